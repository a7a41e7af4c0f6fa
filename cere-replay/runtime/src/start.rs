//! The entry point of the executable. The C library's own start files are for programs in the low 2 GiB.

use crate::error::Error;
use cere_format::replay::ENV_KEEP;

#[cfg(not(test))]
cere_arch::entry!();

/// A replay, or what keeps its state.
fn run() -> Result<i32, Error> {
    match std::env::var_os(ENV_KEEP) {
        Some(plan) => crate::keep::serve(plan.as_ref()).map(|()| 0),
        None => crate::run::run(),
    }
}

/// What the C library calls.
#[unsafe(no_mangle)]
pub extern "C" fn cere_main(_argc: i32, _argv: *const *const std::ffi::c_char) -> i32 {
    let status = match std::panic::catch_unwind(run) {
        Ok(Ok(status)) => status,
        Ok(Err(message)) => {
            eprintln!("replay: {message}");
            2
        }
        Err(_) => 3,
    };
    // Destructors of fresh libraries must not run over captured memory.
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}
