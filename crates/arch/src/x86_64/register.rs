//! Registers of an interrupted thread.

use crate::fault::Fault;
use libc::{siginfo_t, ucontext_t};

/// The processor's number of a general protection fault.
const PROTECTION: i64 = 13;
/// Of a system call's arguments.
const ARGUMENTS: [i32; 6] = [
    libc::REG_RDI,
    libc::REG_RSI,
    libc::REG_RDX,
    libc::REG_R10,
    libc::REG_R8,
    libc::REG_R9,
];

/// Registers where a signal interrupted a thread.
pub struct Registers<'a>(&'a mut ucontext_t);

impl<'a> Registers<'a> {
    /// Of the kernel's record.
    pub fn of(context: &'a mut ucontext_t) -> Self {
        Self(context)
    }

    fn get(&self, register: i32) -> u64 {
        self.0.uc_mcontext.gregs[register as usize] as u64
    }

    fn set(&mut self, register: i32, value: u64) {
        self.0.uc_mcontext.gregs[register as usize] = value as i64;
    }

    /// Address of the instruction.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.get(libc::REG_RIP)
    }

    /// Goes on at `address`.
    pub fn set_pc(&mut self, address: u64) {
        self.set(libc::REG_RIP, address);
    }

    /// Stack pointer.
    #[must_use]
    pub fn stack(&self) -> u64 {
        self.get(libc::REG_RSP)
    }

    /// What faulted.
    ///
    /// # Safety
    /// `info` is the kernel's record of the same signal.
    #[must_use]
    pub unsafe fn fault(&self, info: *const siginfo_t) -> Fault {
        let protection = self.protection();
        Fault {
            // SAFETY: by the contract.
            address: unsafe { (*info).si_addr() } as u64,
            pc: self.pc(),
            write: self.get(libc::REG_ERR) & 2 != 0 && !protection,
            protection,
        }
    }

    /// Whether it was a general protection fault.
    #[must_use]
    pub fn protection(&self) -> bool {
        self.get(libc::REG_TRAPNO) as i64 == PROTECTION
    }

    /// Number and arguments of a system call that was caught.
    #[must_use]
    pub fn call(&self) -> (i64, [usize; 6]) {
        let arguments = ARGUMENTS.map(|register| self.get(register) as usize);
        (self.get(libc::REG_RAX) as i64, arguments)
    }

    /// Its result.
    pub fn set_result(&mut self, result: isize) {
        self.set(libc::REG_RAX, result as u64);
    }

    /// Goes on with the call that was caught.
    pub fn call_again(&mut self) {
        self.set_pc(self.pc() - 2);
    }

    /// Gives the instruction that reads the counter, `length` bytes, what it reads: the counter, and with three bytes the processor.
    pub fn set_counter(&mut self, length: usize, counter: u64, processor: u32) {
        self.set(libc::REG_RAX, counter & 0xffff_ffff);
        self.set(libc::REG_RDX, counter >> 32);
        if length == 3 {
            self.set(libc::REG_RCX, processor.into());
        }
        self.set_pc(self.pc() + length as u64);
    }
}
