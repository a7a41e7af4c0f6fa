//! Faults.

/// What an access that faulted was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Its address; none that counts if `protection`.
    pub address: u64,
    /// Of the instruction.
    pub pc: u64,
    /// Whether it wrote; false where the system does not say (RISC-V, emulators).
    pub write: bool,
    /// A general protection fault of x86-64, whose address the processor does not report.
    pub protection: bool,
}
