//! Registers of an interrupted thread.

use crate::fault::Fault;
use libc::{siginfo_t, ucontext_t};

/// The kernel's record of the exception syndrome in a signal frame: its magic number; the bit that says that the access wrote.
const ESR_MAGIC: u32 = 0x4553_5201;
const WRITES: u64 = 1 << 6;
/// The bit of maintenance of caches, which sets the one above too.
const MAINTAINS: u64 = 1 << 8;
/// Kinds of SIGSEGV that are faults of an access: of others the record is that of an earlier one.
const FAULTS: [i32; 2] = [1, 2];
/// Number of the system call's register.
const NUMBER: usize = 8;
/// Bytes of records behind the registers.
const RECORDS: usize = 4096;

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
        self.0.uc_mcontext.pc
    }

    /// Goes on at `address`.
    pub fn set_pc(&mut self, address: u64) {
        self.0.uc_mcontext.pc = address;
    }

    /// Stack pointer.
    #[must_use]
    pub fn stack(&self) -> u64 {
        self.0.uc_mcontext.sp
    }

    /// What faulted.
    ///
    /// # Safety
    /// `info` is the kernel's record of the same signal.
    #[must_use]
    pub unsafe fn fault(&self, info: *const siginfo_t) -> Fault {
        // SAFETY: by the contract.
        let (address, kind) = unsafe { ((*info).si_addr() as u64, (*info).si_code) };
        let syndrome = self.syndrome().filter(|_| FAULTS.contains(&kind));
        Fault {
            address,
            pc: self.pc(),
            write: syndrome.is_some_and(|esr| esr & WRITES != 0 && esr & MAINTAINS == 0),
            protection: false,
        }
    }

    /// The exception's syndrome, if the kernel says it.
    #[must_use]
    pub fn syndrome(&self) -> Option<u64> {
        // The records lie behind the registers, which the system's header aligns to 16 bytes.
        let registers = &raw const self.0.uc_mcontext;
        let mut at = (registers as usize + 8 * 35).next_multiple_of(16);
        let end = at + RECORDS;
        while at + 16 <= end {
            // SAFETY: within the records of the kernel's frame, each of which begins with its kind and its size.
            let (magic, size) = unsafe { (*(at as *const u32), *((at + 4) as *const u32)) };
            match (magic, size) {
                (0, _) | (_, 0..8) => return None,
                // SAFETY: as above.
                (ESR_MAGIC, _) => return Some(unsafe { *((at + 8) as *const u64) }),
                _ => at += size as usize,
            }
        }
        None
    }

    /// Whether it was an access whose address the processor does not report.
    #[must_use]
    pub fn protection(&self) -> bool {
        false
    }

    /// Number and arguments of a system call that was caught.
    #[must_use]
    pub fn call(&self) -> (i64, [usize; 6]) {
        let registers = &self.0.uc_mcontext.regs;
        let arguments = std::array::from_fn(|at| registers[at] as usize);
        (registers[NUMBER] as i64, arguments)
    }

    /// Its result.
    pub fn set_result(&mut self, result: isize) {
        self.0.uc_mcontext.regs[0] = result as u64;
    }

    /// Goes on with the call that was caught.
    pub fn call_again(&mut self) {
        self.0.uc_mcontext.pc -= 4;
    }

    /// Nothing: no reading of the counter faults.
    pub fn set_counter(&mut self, _length: usize, _counter: u64, _processor: u32) {}
}
