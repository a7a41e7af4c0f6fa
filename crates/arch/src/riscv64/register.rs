//! Registers of an interrupted thread.

use crate::fault::Fault;
use libc::{siginfo_t, ucontext_t};

/// Numbers of registers in a signal frame: the program counter takes the place of the one that is always 0.
const PC: usize = 0;
const STACK: usize = 2;
const FIRST: usize = 10;
const NUMBER: usize = 17;

/// Registers where a signal interrupted a thread.
pub struct Registers<'a>(&'a mut ucontext_t);

impl<'a> Registers<'a> {
    /// Of the kernel's record.
    pub fn of(context: &'a mut ucontext_t) -> Self {
        Self(context)
    }

    /// Address of the instruction.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.0.uc_mcontext.__gregs[PC]
    }

    /// Goes on at `address`.
    pub fn set_pc(&mut self, address: u64) {
        self.0.uc_mcontext.__gregs[PC] = address;
    }

    /// Stack pointer.
    #[must_use]
    pub fn stack(&self) -> u64 {
        self.0.uc_mcontext.__gregs[STACK]
    }

    /// What faulted.
    ///
    /// # Safety
    /// `info` is the kernel's record of the same signal.
    #[must_use]
    pub unsafe fn fault(&self, info: *const siginfo_t) -> Fault {
        Fault {
            // SAFETY: by the contract.
            address: unsafe { (*info).si_addr() } as u64,
            pc: self.pc(),
            write: false,
            protection: false,
        }
    }

    /// Whether it was an access whose address the processor does not report.
    #[must_use]
    pub fn protection(&self) -> bool {
        false
    }

    /// Number and arguments of a system call that was caught.
    #[must_use]
    pub fn call(&self) -> (i64, [usize; 6]) {
        let registers = &self.0.uc_mcontext.__gregs;
        let arguments = std::array::from_fn(|at| registers[FIRST + at] as usize);
        (registers[NUMBER] as i64, arguments)
    }

    /// Its result.
    pub fn set_result(&mut self, result: isize) {
        self.0.uc_mcontext.__gregs[FIRST] = result as u64;
    }

    /// Goes on with the call that was caught.
    pub fn call_again(&mut self) {
        self.0.uc_mcontext.__gregs[PC] -= 4;
    }

    /// Nothing: no reading of the counter faults.
    pub fn set_counter(&mut self, _length: usize, _counter: u64, _processor: u32) {}
}
