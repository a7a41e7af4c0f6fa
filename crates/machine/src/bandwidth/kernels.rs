//! Kernels in generated code: a vector width, an unrolling and a number of streams each.

use crate::Error;
use crate::code::Code;
use cere_arch::feature::{Feature, has};
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// What a kernel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Reads one array.
    Load,
    /// Writes one array.
    Store,
    /// a = b.
    Copy,
    /// a = b + s * c.
    Triad,
    /// Writes one array past the caches.
    NtStore,
    /// Loads from random lines, independent of each other.
    Random,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Load,
        Self::Store,
        Self::Copy,
        Self::Triad,
        Self::NtStore,
        Self::Random,
    ];

    /// Its name in the document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Copy => "copy",
            Self::Triad => "triad",
            Self::NtStore => "nt-store",
            Self::Random => "random",
        }
    }

    /// Arrays that it goes through.
    #[must_use]
    pub fn arrays(self) -> u64 {
        match self {
            Self::Copy => 2,
            Self::Triad => 3,
            _ => 1,
        }
    }

    /// Bytes moved for a byte of the program, if a store reads the line first. Nothing is allocated in the nearest cache.
    #[must_use]
    pub fn moved(self, level: u32) -> f64 {
        match self {
            _ if level == 1 => 1.0,
            Self::Store => 2.0,
            Self::Copy => 1.5,
            Self::Triad => 4.0 / 3.0,
            _ => 1.0,
        }
    }
}

/// How a kernel is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bits of a vector: 128, 256, 512.
    pub bits: u32,
    /// Vectors of a stream in an iteration.
    pub unroll: u32,
    /// Parts of an array that are gone through side by side.
    pub streams: u32,
}

impl Shape {
    /// Bytes of an iteration in one array: array sizes are multiples of it.
    #[must_use]
    pub fn granule(self) -> u64 {
        u64::from(self.bits / 8 * self.unroll * self.streams)
    }

    /// Widths that this processor has.
    #[must_use]
    pub fn widths() -> Vec<u32> {
        let has = [
            (128, true),
            (256, has(Feature::Avx)),
            (512, has(Feature::Avx512f)),
        ];
        has.into_iter()
            .filter(|(_, has)| *has)
            .map(|(bits, _)| bits)
            .collect()
    }
}

/// What a kernel is given.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Job {
    /// Addresses of the arrays a, b, c; each aligned to its vectors.
    pub arrays: [u64; 3],
    /// Bytes of a stream: those of an array over the streams. For random loads those of the array, a power of two.
    pub stream: u64,
    /// Times that the arrays are gone through, at least 1. For random loads: loads over [`GENERATORS`].
    pub sweeps: u64,
    /// s; what stores write.
    pub scalar: f64,
}

/// Generators of random addresses side by side.
pub const GENERATORS: u64 = 8;

const X: [AsmRegisterXmm; 16] = [
    xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7, xmm8, xmm9, xmm10, xmm11, xmm12, xmm13, xmm14,
    xmm15,
];
const Y: [AsmRegisterYmm; 16] = [
    ymm0, ymm1, ymm2, ymm3, ymm4, ymm5, ymm6, ymm7, ymm8, ymm9, ymm10, ymm11, ymm12, ymm13, ymm14,
    ymm15,
];
const Z: [AsmRegisterZmm; 16] = [
    zmm0, zmm1, zmm2, zmm3, zmm4, zmm5, zmm6, zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14,
    zmm15,
];
const POINTERS: [AsmRegister64; 12] = [rsi, rdx, rcx, r8, r9, r10, r11, rbx, r12, r13, r14, r15];
const STREAM: i32 = 24;
const SWEEPS: i32 = 32;
const SCALAR: i32 = 40;
/// The register that holds the scalar.
const S: usize = 15;

/// The code of a kernel. Run it with the address of a [`Job`].
pub fn code(kernel: Kernel, shape: Shape) -> Result<Code, Error> {
    match kernel {
        Kernel::Random => Code::new(|a| random(a, false)),
        _ => Code::new(|a| streams(a, kernel, shape)),
    }
}

fn streams(a: &mut CodeAssembler, kernel: Kernel, shape: Shape) -> Result<(), IcedError> {
    let count = shape.streams as usize;
    // Pointers of array i: POINTERS[i * count..]. Four streams of three arrays are all there is room for.
    let pointers = &POINTERS[..count * kernel.arrays() as usize];
    match shape.bits {
        128 => {
            a.movsd_2(X[S], qword_ptr(rdi + SCALAR))?;
            a.unpcklpd(X[S], X[S])?;
        }
        256 => a.vbroadcastsd(Y[S], qword_ptr(rdi + SCALAR))?,
        _ => a.vbroadcastsd(Z[S], qword_ptr(rdi + SCALAR))?,
    }
    a.mov(rbp, qword_ptr(rdi + SWEEPS))?;
    let (mut sweep, mut again) = (a.create_label(), a.create_label());
    a.set_label(&mut sweep)?;
    for (at, pointer) in pointers.iter().enumerate() {
        a.mov(*pointer, qword_ptr(rdi + 8 * (at / count) as i32))?;
        for _ in 0..at % count {
            a.add(*pointer, qword_ptr(rdi + STREAM))?;
        }
    }
    a.mov(rax, qword_ptr(rdi))?;
    a.add(rax, qword_ptr(rdi + STREAM))?;
    a.set_label(&mut again)?;
    let mut register = 0;
    for step in 0..shape.unroll {
        for stream in 0..count {
            let at = (step * shape.bits / 8) as i32;
            let place = |array: usize| pointers[array * count + stream] + at;
            element(a, kernel, shape.bits, register, place)?;
            register = (register + 1) % S;
        }
    }
    let step = (shape.unroll * shape.bits / 8) as i32;
    pointers.iter().try_for_each(|p| a.add(*p, step))?;
    a.cmp(pointers[0], rax)?;
    a.jb(again)?;
    a.dec(rbp)?;
    a.jnz(sweep)?;
    if kernel == Kernel::NtStore {
        a.sfence()?;
    }
    Ok(())
}

/// One vector of a kernel, in `register`; `place` gives the place in each array.
fn element(
    a: &mut CodeAssembler,
    kernel: Kernel,
    bits: u32,
    register: usize,
    place: impl Fn(usize) -> AsmMemoryOperand,
) -> Result<(), IcedError> {
    let r = register;
    let p = |array| ptr(place(array));
    match (kernel, bits) {
        (Kernel::Load, 128) => a.movaps(X[r], p(0)),
        (Kernel::Load, 256) => a.vmovaps(Y[r], p(0)),
        (Kernel::Load, _) => a.vmovaps(Z[r], p(0)),
        (Kernel::Store, 128) => a.movaps(p(0), X[S]),
        (Kernel::Store, 256) => a.vmovaps(p(0), Y[S]),
        (Kernel::Store, _) => a.vmovaps(p(0), Z[S]),
        (Kernel::NtStore, 128) => a.movntps(p(0), X[S]),
        (Kernel::NtStore, 256) => a.vmovntps(p(0), Y[S]),
        (Kernel::NtStore, _) => a.vmovntps(p(0), Z[S]),
        (Kernel::Copy, 128) => {
            a.movaps(X[r], p(1))?;
            a.movaps(p(0), X[r])
        }
        (Kernel::Copy, 256) => {
            a.vmovaps(Y[r], p(1))?;
            a.vmovaps(p(0), Y[r])
        }
        (Kernel::Copy, _) => {
            a.vmovaps(Z[r], p(1))?;
            a.vmovaps(p(0), Z[r])
        }
        (Kernel::Triad, 128) => {
            a.movapd(X[r], p(2))?;
            a.mulpd(X[r], X[S])?;
            a.addpd(X[r], p(1))?;
            a.movapd(p(0), X[r])
        }
        (Kernel::Triad, 256) => {
            a.vmulpd(Y[r], Y[S], p(2))?;
            a.vaddpd(Y[r], Y[r], p(1))?;
            a.vmovapd(p(0), Y[r])
        }
        (Kernel::Triad, _) => {
            a.vmulpd(Z[r], Z[S], p(2))?;
            a.vaddpd(Z[r], Z[r], p(1))?;
            a.vmovapd(p(0), Z[r])
        }
        (Kernel::Random, _) => Ok(()),
    }
}

/// Loads from lines of 64 bytes that linear congruential generators name: independent of each other, with no index in memory.
/// `write` adds 1 to the line instead, for tests.
fn random(a: &mut CodeAssembler, write: bool) -> Result<(), IcedError> {
    let states = [r8, r9, r10, r11, r12, r13, r14, r15];
    let targets = [rax, rbx];
    // Their high bits, down to the length: the low bits of such a generator are poor.
    a.mov(rcx, 64u64)?;
    a.bsr(rax, qword_ptr(rdi + STREAM))?;
    a.sub(rcx, rax)?;
    a.mov(rsi, qword_ptr(rdi))?;
    a.mov(rbp, qword_ptr(rdi + SWEEPS))?;
    a.mov(rdx, 6_364_136_223_846_793_005u64)?;
    for (at, state) in states.into_iter().enumerate() {
        let seed = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(at as u64 + 1);
        a.mov(state, seed)?;
        // Another call goes on elsewhere.
        a.add(state, rbp)?;
        a.add(state, qword_ptr(rdi + SCALAR))?;
        a.imul_2(state, rdx)?;
    }
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    for (at, state) in states.into_iter().enumerate() {
        let target = targets[at % 2];
        a.imul_2(state, rdx)?;
        a.add(state, 0x2545_F491)?;
        a.mov(target, state)?;
        a.shr(target, cl)?;
        a.and(target, -64)?;
        if write {
            a.inc(qword_ptr(rsi + target))?;
        } else {
            a.mov(target, qword_ptr(rsi + target))?;
        }
    }
    a.dec(rbp)?;
    a.jnz(again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_timing::area::{Area, Pages};

    fn shapes() -> Vec<Shape> {
        let mut shapes = Vec::new();
        for bits in Shape::widths() {
            for unroll in [1, 2, 3, 4, 8] {
                for streams in [1, 2, 4] {
                    shapes.push(Shape {
                        bits,
                        unroll,
                        streams,
                    });
                }
            }
        }
        shapes
    }

    /// Runs a kernel on three arrays that lie a page within an area, with a page between them.
    fn run(kernel: Kernel, shape: Shape) -> (Vec<f64>, usize) {
        let bytes = shape.granule() * 3;
        let room = bytes.next_multiple_of(4096) + 4096;
        let mut area = Area::new(4096 + 3 * room as usize, Pages::Small).unwrap();
        for (at, word) in area.words().iter_mut().enumerate() {
            *word = (at as f64).to_bits();
        }
        let base = area.address() + 4096;
        let job = Job {
            arrays: [base, base + room, base + 2 * room],
            stream: bytes / u64::from(shape.streams),
            sweeps: 2,
            scalar: 3.0,
        };
        let code = code(kernel, shape).unwrap();
        // SAFETY: the job names three arrays inside the area.
        unsafe { code.call([&raw const job as u64, 0, 0, 0]) };
        let words = area.words().iter().map(|w| f64::from_bits(*w)).collect();
        (words, bytes as usize / 8)
    }

    #[test]
    fn kernels_compute_and_touch_nothing_around() {
        for shape in shapes() {
            let room = ((shape.granule() * 3).next_multiple_of(4096) + 4096) as usize / 8;
            for kernel in Kernel::ALL {
                if kernel == Kernel::Random {
                    continue;
                }
                let (words, length) = run(kernel, shape);
                for (at, word) in words.iter().enumerate() {
                    let inside = (512..512 + length).contains(&at);
                    let (b, c) = ((at + room) as f64, (at + 2 * room) as f64);
                    let expected = match kernel {
                        _ if !inside => at as f64,
                        Kernel::Store | Kernel::NtStore => 3.0,
                        Kernel::Copy => b,
                        Kernel::Triad => b + 3.0 * c,
                        _ => at as f64,
                    };
                    assert_eq!(*word, expected, "{kernel:?} {shape:?} word {at}");
                }
            }
        }
    }

    #[test]
    fn random_loads_stay_inside_and_reach_every_line() {
        let mut area = Area::new(3 << 16, Pages::Small).unwrap();
        let job = Job {
            arrays: [area.address() + (1 << 16), 0, 0],
            stream: 1 << 16,
            sweeps: 4096,
            scalar: 5.0,
        };
        let code = Code::new(|a| random(a, true)).unwrap();
        // SAFETY: adds to lines of the middle third alone, which the check below is about.
        unsafe { code.call([&raw const job as u64, 0, 0, 0]) };
        let words = area.words();
        let (lines, third) = (1024, (1 << 16) / 8);
        assert!(words[..third].iter().all(|w| *w == 0));
        assert!(words[2 * third..].iter().all(|w| *w == 0));
        let counts: Vec<u64> = (0..lines).map(|line| words[third + line * 8]).collect();
        assert_eq!(counts.iter().sum::<u64>(), 4096 * GENERATORS);
        assert_eq!(words.iter().sum::<u64>(), 4096 * GENERATORS);
        // 32 on average: independent draws leave no line out, and none is drawn twice as often.
        assert!(counts.iter().all(|c| (8..72).contains(c)), "{counts:?}");
    }
}
