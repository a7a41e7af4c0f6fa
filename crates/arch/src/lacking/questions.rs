//! Functions of the C library that ask the kernel. No system call of a program can be caught here without a filter that stays
//! (Linux has no Syscall User Dispatch on this architecture), so an executable has functions of its own.

/// Defines [`questions`](crate::target::Facts::questions): each asks `$answer`, `unsafe fn(usize, [usize; 6]) -> isize`, by the number in packages, and returns as the C
/// library's function does.
#[macro_export]
macro_rules! questions {
    ($answer:path) => {
        use $crate::questions as each_question;
        $crate::question_family!(each_question, $answer);
    };
    ($answer:path; $($function:ident($($argument:ident),*) = $number:ident;)*) => {
        mod questions {
            $(#[unsafe(no_mangle)]
            unsafe extern "C" fn $function($($argument: usize),*) -> isize {
                let mut arguments = [0; 6];
                let given: &[usize] = &[$($argument),*];
                arguments[..given.len()].copy_from_slice(given);
                // SAFETY: the function asks what the system call asks.
                let result = unsafe { $answer($crate::numbers::$number as usize, arguments) };
                if (-4095..0).contains(&result) {
                    // SAFETY: the calling thread's word.
                    unsafe { *libc::__errno_location() = -result as i32 };
                    return -1;
                }
                result
            })*
        }
    };
}
