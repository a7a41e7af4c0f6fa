//! Counts instructions without a counter: the kernel stops a process after each.

use anyhow::{Context, Result, bail, ensure};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const SWITCHES: [u64; 2] = [0x2400, 0x2401];
/// `syscall`.
const SYSCALL: i64 = 0x050f;
/// What a stop at a system call adds to SIGTRAP.
const CALLED: i32 = 0x80;

/// A process that this one traces.
struct Traced(i32);

fn done(result: i64) -> Result<i64> {
    match result {
        -1 => Err(io::Error::last_os_error()).context("ptrace"),
        result => Ok(result),
    }
}

impl Traced {
    fn request(&self, request: u32, data: i64) -> Result<()> {
        // SAFETY: the requests used here take a number.
        done(unsafe { libc::ptrace(request, self.0, 0i64, data) }).map(drop)
    }

    fn registers(&self) -> Result<libc::user_regs_struct> {
        // SAFETY: registers are numbers; the kernel fills the structure.
        unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            let to = &raw mut registers;
            done(libc::ptrace(libc::PTRACE_GETREGS, self.0, 0i64, to))?;
            Ok(registers)
        }
    }

    /// Whether its next instruction is a system call.
    fn is_at_call(&self, at: u64) -> Result<bool> {
        // SAFETY: the kernel reads a word of the other process; that it may be -1 is no matter for code.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.0, at, 0i64) };
        Ok(word & 0xffff == SYSCALL)
    }

    /// The signal that it was stopped by; none if it ended.
    fn wait(&self) -> Result<Option<i32>> {
        let mut status = 0;
        // SAFETY: writes a word of this frame.
        let found = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        ensure!(found == self.0, "waitpid: {}", io::Error::last_os_error());
        Ok(libc::WIFSTOPPED(status).then(|| libc::WSTOPSIG(status)))
    }

    /// The switch of a counter that it is about to make: descriptor and request.
    fn switch(registers: &libc::user_regs_struct) -> Option<(u64, u64)> {
        let wanted = SWITCHES.contains(&registers.rsi);
        wanted.then_some((registers.rdi, registers.rsi))
    }

    /// Steps to the next system call: how many instructions that are, and the call's registers.
    fn step(&self) -> Result<(u64, libc::user_regs_struct)> {
        for steps in 0.. {
            let registers = self.registers()?;
            if self.is_at_call(registers.rip)? {
                return Ok((steps, registers));
            }
            self.request(libc::PTRACE_SINGLESTEP, 0)?;
            let stopped = self.wait()?;
            ensure!(stopped == Some(libc::SIGTRAP), "stopped by {stopped:?}");
        }
        bail!("no end")
    }
}

/// Runs `command`, of one thread, to its end: for each time that it enables a counter, the counter's descriptor and the
/// instructions up to the system call that disables it.
pub fn stepped(command: &mut Command) -> Result<Vec<(u64, u64)>> {
    // SAFETY: one system call.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let child: Child = command.spawn()?;
    let traced = Traced(child.id().try_into()?);
    ensure!(traced.wait()?.is_some(), "it did not start");
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    traced.request(libc::PTRACE_SETOPTIONS, options.into())?;
    let (mut found, mut signal, mut inside) = (Vec::new(), 0, false);
    loop {
        traced.request(libc::PTRACE_SYSCALL, signal.into())?;
        let Some(stopped) = traced.wait()? else {
            return Ok(found);
        };
        signal = match stopped {
            // After exec.
            libc::SIGTRAP => 0,
            other if other == libc::SIGTRAP | CALLED => 0,
            other => other,
        };
        if stopped != libc::SIGTRAP | CALLED {
            continue;
        }
        inside = !inside;
        let registers = traced.registers()?;
        let enabled = registers.orig_rax == libc::SYS_ioctl as u64;
        let enabled = Traced::switch(&registers).filter(|_| enabled && !inside);
        if let Some((counter, request)) = enabled
            && request == SWITCHES[0]
        {
            let (steps, next) = traced.step()?;
            let last = (next.rax == libc::SYS_ioctl as u64).then(|| Traced::switch(&next));
            ensure!(last == Some(Some((counter, SWITCHES[1]))), "another call");
            found.push((counter, steps));
        }
    }
}
