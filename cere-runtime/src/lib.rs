//! The runtime inside a replay executable: restores the captured memory at its captured addresses, runs the
//! region on the captured stack, times it, and compares what it left with what it left in vivo.
//!
//! | module | what |
//! |---|---|
//! | [`trampoline`] | the switch to the captured stack and back, exceptions included |
//! | [`memory`] | reserving, restoring, the handler of stray accesses |
//! | [`heap`] | `malloc` and family |
//! | [`compare`] | exit state in vitro against in vivo |
//! | [`run`] | the order of it all |

mod compare;
mod heap;
mod memory;
mod run;
mod trampoline;

/// Entry point of the replay executable.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub extern "C" fn main(argc: i32, argv: *const *const std::ffi::c_char) -> i32 {
    let _ = (argc, argv);
    let status = match std::panic::catch_unwind(run::run) {
        Ok(Ok(())) => 0,
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
