//! A system call that was caught, in the registers of the thread that made it.

use crate::engine::memory::Access;
use crate::engine::state::Engine;
use crate::os::{local, signals};
use libc::ucontext_t;

/// Number and arguments of the call that was caught.
pub fn read_call(context: &ucontext_t) -> (usize, [usize; 6]) {
    let registers = &context.uc_mcontext.gregs;
    let at = |r: i32| registers[r as usize] as usize;
    let arguments = [
        at(libc::REG_RDI),
        at(libc::REG_RSI),
        at(libc::REG_RDX),
        at(libc::REG_R10),
        at(libc::REG_R8),
        at(libc::REG_R9),
    ];
    (at(libc::REG_RAX), arguments)
}

/// Sets the result of the call for the program.
pub fn set_result(context: &mut ucontext_t, result: isize) {
    context.uc_mcontext.gregs[libc::REG_RAX as usize] = result as i64;
}

/// Makes the program repeat the call itself: its `syscall` instruction has two bytes.
pub fn repeat_call(context: &mut ucontext_t) {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] -= 2;
}

/// Address after the call's instruction.
pub fn call_address(context: &ucontext_t) -> usize {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
}

/// `rt_sigprocmask`: changes the mask in the context that the handler returns to.
pub fn change_signal_mask(
    engine: &mut Engine,
    a: [usize; 6],
    context: &mut ucontext_t,
) -> Result<isize, &'static str> {
    engine.reach(a[1], 8, Access::Read)?;
    engine.reach(a[2], 8, Access::Write)?;
    // SAFETY: the kernel's record, and the program's words, open now.
    unsafe {
        let mask = (&raw mut context.uc_sigmask).cast::<u64>();
        let team = local::is_of_team();
        let before = if team {
            *mask
        } else {
            signals::mask_outside(*mask)
        };
        if a[1] != 0 {
            let set = *(a[1] as *const u64);
            let wanted = match a[0] as i32 {
                libc::SIG_BLOCK => before | set,
                libc::SIG_UNBLOCK => before & !set,
                libc::SIG_SETMASK => set,
                _ => return Ok(-(libc::EINVAL as isize)),
            };
            if team {
                *mask = signals::mask_in_team(wanted);
            } else {
                signals::set_mask(wanted);
                *mask = signals::mask_inside(wanted);
            }
        }
        if a[2] != 0 {
            *(a[2] as *mut u64) = before;
        }
    }
    Ok(0)
}
