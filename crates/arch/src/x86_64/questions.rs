//! Functions of the C library that ask the kernel: Syscall User Dispatch catches their system calls, and the kernel's shared page is
//! replaced, so none has to be defined.

/// Defines none.
#[macro_export]
macro_rules! questions {
    ($answer:path) => {};
}
