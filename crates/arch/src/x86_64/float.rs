//! The control of floating point.

/// What the switch to the region puts in place: MXCSR and the x87 control word.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// SSE control and status register.
    pub mxcsr: u32,
    /// x87 control word.
    pub x87: u32,
}

impl Control {
    /// That of a captured thread. Exception flags are clear: only masks and modes count.
    #[must_use]
    pub fn captured(mxcsr: u32, x87: u16) -> Self {
        Self {
            mxcsr: mxcsr & 0xffc0,
            x87: x87.into(),
        }
    }

    /// The same, with denormal numbers as zero.
    #[must_use]
    pub fn without_denormals(self) -> Self {
        Self {
            mxcsr: self.mxcsr | 0x8040,
            ..self
        }
    }
}
