//! The control of floating point.

/// Flush-to-zero of MXCSR, and its rounding mode.
const FLUSH: u32 = 1 << 15;
const DENORMALS_ARE_ZEROS: u32 = 1 << 6;
const ROUNDING: u32 = 13;
/// The same of FPCR.
const FZ: u64 = 1 << 24;
const RMODE: u32 = 22;

/// What the switch to the region puts in place.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// The control register.
    pub fpcr: u64,
}

impl Control {
    /// That of a thread captured on x86-64: its rounding mode, and whether denormal numbers are zero. MXCSR says of operands and
    /// results apart what FPCR says of both; traps are not there.
    #[must_use]
    pub fn captured(mxcsr: u32, _x87: u16) -> Self {
        // Nearest, down, up, to zero; here nearest, up, down, to zero.
        let rounding = [0, 2, 1, 3][(mxcsr >> ROUNDING & 3) as usize];
        let flush = match mxcsr & (FLUSH | DENORMALS_ARE_ZEROS) {
            0 => 0,
            _ => FZ,
        };
        Self {
            fpcr: rounding << RMODE | flush,
        }
    }

    /// The same, with denormal numbers as zero.
    #[must_use]
    pub fn without_denormals(self) -> Self {
        Self {
            fpcr: self.fpcr | FZ,
        }
    }
}
