//! What the processor says of itself.

/// Instructions of x86-64, of which no processor here has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// AVX.
    Avx,
    /// AVX2.
    Avx2,
    /// FMA.
    Fma,
    /// AVX-512.
    Avx512f,
    /// AVX-512: products of 64 bits.
    Avx512dq,
    /// AVX-512: shorter vectors.
    Avx512vl,
}

/// Whether this processor and this system have it: never.
#[must_use]
pub fn has(_feature: Feature) -> bool {
    false
}

/// Zeros: there is no CPUID.
#[must_use]
pub fn leaf(_leaf: u32, _sub: u32) -> [u32; 4] {
    [0; 4]
}
