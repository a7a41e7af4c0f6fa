//! What the processor says of itself.

use core::arch::x86_64::__cpuid_count;

/// Instructions that not every processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// AVX: vectors of 256 bits, three operands.
    Avx,
    /// AVX2.
    Avx2,
    /// FMA.
    Fma,
    /// AVX-512: its foundation.
    Avx512f,
    /// AVX-512: products of 64 bits.
    Avx512dq,
    /// AVX-512: shorter vectors.
    Avx512vl,
}

/// Whether this processor and this system have it.
#[must_use]
pub fn has(feature: Feature) -> bool {
    match feature {
        Feature::Avx => std::arch::is_x86_feature_detected!("avx"),
        Feature::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
        Feature::Fma => std::arch::is_x86_feature_detected!("fma"),
        Feature::Avx512f => std::arch::is_x86_feature_detected!("avx512f"),
        Feature::Avx512dq => std::arch::is_x86_feature_detected!("avx512dq"),
        Feature::Avx512vl => std::arch::is_x86_feature_detected!("avx512vl"),
    }
}

/// Registers EAX, EBX, ECX and EDX of a leaf of CPUID; zeros where there is none.
#[must_use]
pub fn leaf(leaf: u32, sub: u32) -> [u32; 4] {
    if leaf > __cpuid_count(leaf & 0x8000_0000, 0).eax {
        return [0; 4];
    }
    let r = __cpuid_count(leaf, sub);
    [r.eax, r.ebx, r.ecx, r.edx]
}
