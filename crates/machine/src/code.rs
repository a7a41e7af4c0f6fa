//! Machine code that is generated for a probe: no compiler may change it.

use crate::Error;
use cere_arch::feature::{Feature, has};
use cere_arch::target::Target;
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, r12, r13, r14, r15, rbp, rbx};

/// A function `(u64, u64, u64, u64) -> u64` by the System V convention: arguments in RDI, RSI, RDX, RCX, result in RAX.
pub struct Code {
    memory: *mut libc::c_void,
    bytes: usize,
    length: usize,
}

// SAFETY: the code is not written after it was made.
unsafe impl Send for Code {}
// SAFETY: the code is not written after it was made.
unsafe impl Sync for Code {}

impl Code {
    /// Whether this machine runs what is generated: instructions of x86-64.
    #[must_use]
    pub fn runs() -> bool {
        cere_arch::HERE == Target::X86_64
    }

    /// What `body` writes, between a prologue and an epilogue: all general registers but RSP and all vector registers may be used.
    pub fn new(
        body: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
    ) -> Result<Self, Error> {
        if !Self::runs() {
            return Err(Error::Architecture(cere_arch::HERE));
        }
        let wrong = |error: IcedError| Error::Encode(error.to_string());
        let mut a = CodeAssembler::new(64).map_err(wrong)?;
        let saved = [rbx, rbp, r12, r13, r14, r15];
        let write = || -> Result<(), IcedError> {
            saved.into_iter().try_for_each(|r| a.push(r))?;
            body(&mut a)?;
            if has(Feature::Avx) {
                a.vzeroupper()?;
            }
            saved.into_iter().rev().try_for_each(|r| a.pop(r))?;
            a.ret()
        };
        write().map_err(wrong)?;
        // Position independent: probes have no addresses in them but those of labels.
        let bytes = a.assemble(0).map_err(wrong)?;
        Self::of(&bytes)
    }

    fn of(bytes: &[u8]) -> Result<Self, Error> {
        let size = bytes.len().next_multiple_of(4096);
        let refused = || Error::Executable(std::io::Error::last_os_error());
        // SAFETY: a fresh mapping, filled before it becomes executable; it is never both writable and executable.
        unsafe {
            let memory = libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if memory == libc::MAP_FAILED {
                return Err(refused());
            }
            let code = Self {
                memory,
                bytes: size,
                length: bytes.len(),
            };
            memory
                .cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            match libc::mprotect(memory, size, libc::PROT_READ | libc::PROT_EXEC) {
                0 => Ok(code),
                _ => Err(refused()),
            }
        }
    }

    /// Bytes of the code.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Runs it.
    ///
    /// # Safety
    /// The code must end, keep the stack, and reach only memory that its arguments give it the right to.
    pub unsafe fn call(&self, arguments: [u64; 4]) -> u64 {
        type Function = unsafe extern "C" fn(u64, u64, u64, u64) -> u64;
        // SAFETY: `new` made a whole function of this type.
        let function: Function = unsafe { std::mem::transmute(self.memory) };
        let [a, b, c, d] = arguments;
        // SAFETY: the caller's promise.
        unsafe { function(a, b, c, d) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the mapping of `of`; nobody runs it, as `call` borrows.
        unsafe { libc::munmap(self.memory, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::code_asm::{rax, rdi, rsi};

    #[test]
    fn generated_code_runs() {
        let code = Code::new(|a| {
            let mut again = a.create_label();
            a.xor(rax, rax)?;
            a.set_label(&mut again)?;
            a.add(rax, rdi)?;
            a.dec(rsi)?;
            a.jnz(again)
        })
        .unwrap();
        assert!(code.length() > 10);
        // SAFETY: a loop of six rounds that uses registers alone.
        assert_eq!(unsafe { code.call([7, 6, 0, 0]) }, 42);
    }
}
