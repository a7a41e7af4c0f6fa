//! The control of floating point.

/// Rounding mode of MXCSR.
const ROUNDING: u32 = 13;

/// What the switch to the region puts in place.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// The rounding mode.
    pub frm: u64,
}

impl Control {
    /// That of a thread captured on x86-64: its rounding mode. Denormal numbers are never taken as zero here; traps are not there.
    #[must_use]
    pub fn captured(mxcsr: u32, _x87: u16) -> Self {
        // Nearest, down, up, to zero; here nearest, to zero, down, up.
        Self {
            frm: [0, 2, 3, 1][(mxcsr >> ROUNDING & 3) as usize],
        }
    }

    /// The same: this architecture always computes with denormal numbers.
    #[must_use]
    pub fn without_denormals(self) -> Self {
        self
    }
}
