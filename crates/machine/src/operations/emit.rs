//! Instructions of a probe: one operation on a stream's register.

use super::target::{Element, Encoding, Kind, REGISTERS, Target, encoding, vectors};
use iced_x86::IcedError;
use iced_x86::code_asm::registers::*;
use iced_x86::code_asm::*;

/// General registers of streams. RDI counts rounds, R15 holds c.
pub const GENERAL: [AsmRegister64; REGISTERS] = [
    rbx, rbp, r8, r9, r10, r11, r12, r13, r14, rsi, rax, rcx, rdx,
];
const GENERAL_32: [AsmRegister32; REGISTERS] = [
    ebx, ebp, r8d, r9d, r10d, r11d, r12d, r13d, r14d, esi, eax, ecx, edx,
];

macro_rules! register {
    ($name:ident, $get:ident, $kind:ident, $first:ident) => {
        fn $name(index: usize) -> $kind {
            $get(iced_x86::Register::$first + index as u32)
                .expect("a probe has at most 32 registers")
        }
    };
}
register!(xmm, get_xmm, AsmRegisterXmm, XMM0);
register!(ymm, get_ymm, AsmRegisterYmm, YMM0);
register!(zmm, get_zmm, AsmRegisterZmm, ZMM0);

/// One instruction in the widths it has, with the given operands.
macro_rules! packed {
    ($a:ident, $t:ident, $name:ident, [$($r:expr),*] $(, $immediate:expr)?) => {
        match $t.bits {
            512 => $a.$name($(zmm($r)),* $(, $immediate)?),
            256 => $a.$name($(ymm($r)),* $(, $immediate)?),
            _ => $a.$name($(xmm($r)),* $(, $immediate)?),
        }
    };
}

/// An instruction by its element: of 32 or of 64 bits.
macro_rules! by_width {
    ($wide:expr, $a:ident.$narrow:ident | $wider:ident($($r:expr),*)) => {
        match $wide {
            false => $a.$narrow($($r),*),
            true => $a.$wider($($r),*),
        }
    };
}

/// The same of packed instructions.
macro_rules! packed_by_width {
    ($a:ident, $t:ident, $wide:expr, $narrow:ident | $wider:ident, [$($r:expr),*] $(, $immediate:expr)?) => {
        match $wide {
            false => packed!($a, $t, $narrow, [$($r),*] $(, $immediate)?),
            true => packed!($a, $t, $wider, [$($r),*] $(, $immediate)?),
        }
    };
}

/// Loads the constants that RSI points to, and the start of every stream.
pub fn prepare(a: &mut CodeAssembler, targets: &[Target], streams: usize) -> Result<(), IcedError> {
    let Some(target) = targets.first().copied() else {
        return Ok(());
    };
    if target.is_general() {
        if target.kind == Kind::Div {
            // A multiple of 3 below 2^32 or 2^64.
            let dividend = if target.element == Element::I32 {
                3 * 0x3fff_fff1
            } else {
                3 * 0x3fff_ffff_ffff_fff1u64
            };
            a.mov(rcx, 3u64)?;
            a.mov(rax, dividend)?;
            return (0..streams).try_for_each(|s| a.mov(GENERAL[s], rax));
        }
        a.mov(r15, qword_ptr(rsi + 64))?;
        // RSI is a stream's as well, and the last that is loaded.
        a.mov(rax, qword_ptr(rsi))?;
        return (0..streams)
            .filter(|s| GENERAL[*s] != rax)
            .try_for_each(|s| a.mov(GENERAL[s], rax));
    }
    let registers = vectors(target.bits);
    let evex = encoding(target.bits);
    a.set_prefer_vex(evex != Encoding::Evex);
    let load = |a: &mut CodeAssembler, register: usize, offset: i32| {
        let from = rsi + offset;
        match (target.bits, evex) {
            (512, _) => a.vmovups(zmm(register), zmmword_ptr(from)),
            (256, _) => a.vmovups(ymm(register), ymmword_ptr(from)),
            (_, Encoding::Sse) => a.movups(xmm(register), xmmword_ptr(from)),
            _ => a.vmovups(xmm(register), xmmword_ptr(from)),
        }
    };
    load(a, registers - 2, 64)?;
    load(a, registers - 1, 128)?;
    (0..streams).try_for_each(|stream| load(a, stream, 0))
}

/// A multiplication of constants that no stream waits for, in 512 bits.
pub fn aside(a: &mut CodeAssembler, t: Target) -> Result<(), IcedError> {
    let (c, d) = constants(t);
    a.vmulps(zmm(0), zmm(c), zmm(d))
}

/// The operation on `stream`, once. `alone`: there is no other stream.
pub fn emit(a: &mut CodeAssembler, t: Target, stream: usize, alone: bool) -> Result<(), IcedError> {
    if t.is_general() {
        return general(a, t, stream, alone);
    }
    if encoding(t.bits) == Encoding::Sse {
        return sse(a, t, stream);
    }
    match (t.element, t.is_scalar()) {
        (Element::I32 | Element::I64, _) => integers(a, t, stream),
        (_, true) => scalars(a, t, stream),
        _ => floats(a, t, stream),
    }
}

fn general(a: &mut CodeAssembler, t: Target, stream: usize, alone: bool) -> Result<(), IcedError> {
    let wide = t.element == Element::I64;
    let (s, c, s32, c32) = (GENERAL[stream], r15, GENERAL_32[stream], r15d);
    match (t.kind, wide) {
        (Kind::Mul, false) => a.imul_2(s32, c32),
        (Kind::Mul, true) => a.imul_2(s, c),
        (Kind::And, false) => a.and(s32, c32),
        (Kind::And, true) => a.and(s, c),
        (Kind::Xor, false) => a.xor(s32, c32),
        (Kind::Xor, true) => a.xor(s, c),
        (Kind::Shift, false) => a.shr(s32, 1),
        (Kind::Shift, true) => a.shr(s, 1),
        (Kind::Div, _) => {
            // A lone chain goes through RAX, without moves in it.
            if !alone {
                a.mov(rax, s)?;
            }
            a.xor(edx, edx)?;
            if wide {
                a.div(rcx)?
            } else {
                a.div(ecx)?
            }
            match (wide, alone) {
                (true, true) => a.lea(rax, rax + rax * 2),
                (false, true) => a.lea(eax, rax + rax * 2),
                (true, false) => a.lea(s, rax + rax * 2),
                (false, false) => a.lea(s32, rax + rax * 2),
            }
        }
        (_, false) => a.add(s32, c32),
        (_, true) => a.add(s, c),
    }
}

fn constants(t: Target) -> (usize, usize) {
    let registers = vectors(t.bits);
    (registers - 2, registers - 1)
}

fn integers(a: &mut CodeAssembler, t: Target, s: usize) -> Result<(), IcedError> {
    let ((c, d), wide) = (constants(t), t.element == Element::I64);
    let evex = encoding(t.bits) == Encoding::Evex;
    match t.kind {
        Kind::Mul => packed_by_width!(a, t, wide, vpmulld | vpmullq, [s, s, c]),
        Kind::And if evex => packed!(a, t, vpandd, [s, s, c]),
        Kind::And if t.bits == 256 => a.vpand(ymm(s), ymm(s), ymm(c)),
        Kind::And => a.vpand(xmm(s), xmm(s), xmm(c)),
        Kind::Xor if evex => packed!(a, t, vpxord, [s, s, c]),
        Kind::Xor if t.bits == 256 => a.vpxor(ymm(s), ymm(s), ymm(c)),
        Kind::Xor => a.vpxor(xmm(s), xmm(s), xmm(c)),
        Kind::Shift => packed_by_width!(a, t, wide, vpslld | vpsllq, [s, s], 1),
        Kind::Min => packed_by_width!(a, t, wide, vpminsd | vpminsq, [s, s, c]),
        Kind::Max => packed_by_width!(a, t, wide, vpmaxsd | vpmaxsq, [s, s, c]),
        Kind::ToFloat => packed_by_width!(a, t, wide, vcvtdq2ps | vcvtqq2pd, [s, s]),
        _ => packed_by_width!(a, t, wide, vpaddd | vpaddq, [s, s, d]),
    }
}

fn floats(a: &mut CodeAssembler, t: Target, s: usize) -> Result<(), IcedError> {
    let ((c, d), wide) = (constants(t), t.element == Element::F64);
    match t.kind {
        Kind::Mul => packed_by_width!(a, t, wide, vmulps | vmulpd, [s, s, c]),
        Kind::Div => packed_by_width!(a, t, wide, vdivps | vdivpd, [s, s, c]),
        Kind::Fma => packed_by_width!(a, t, wide, vfmadd213ps | vfmadd213pd, [s, c, d]),
        Kind::Sqrt => packed_by_width!(a, t, wide, vsqrtps | vsqrtpd, [s, s]),
        Kind::Min => packed_by_width!(a, t, wide, vminps | vminpd, [s, s, c]),
        Kind::Max => packed_by_width!(a, t, wide, vmaxps | vmaxpd, [s, s, c]),
        Kind::ToInt => packed_by_width!(a, t, wide, vcvtps2dq | vcvtpd2qq, [s, s]),
        _ => packed_by_width!(a, t, wide, vaddps | vaddpd, [s, s, d]),
    }
}

fn scalars(a: &mut CodeAssembler, t: Target, s: usize) -> Result<(), IcedError> {
    let ((c, d), wide) = (constants(t), t.element == Element::F64);
    let (s, c, d) = (xmm(s), xmm(c), xmm(d));
    match t.kind {
        Kind::Mul => by_width!(wide, a.vmulss | vmulsd(s, s, c)),
        Kind::Div => by_width!(wide, a.vdivss | vdivsd(s, s, c)),
        Kind::Fma => by_width!(wide, a.vfmadd213ss | vfmadd213sd(s, c, d)),
        Kind::Sqrt => by_width!(wide, a.vsqrtss | vsqrtsd(s, s, s)),
        Kind::Min => by_width!(wide, a.vminss | vminsd(s, s, c)),
        Kind::Max => by_width!(wide, a.vmaxss | vmaxsd(s, s, c)),
        Kind::RoundTrip => {
            by_width!(wide, a.vcvttss2si | vcvttsd2si(rax, s))?;
            // The upper part comes from c: the chain goes through RAX alone.
            by_width!(wide, a.vcvtsi2ss | vcvtsi2sd(s, c, rax))
        }
        _ => by_width!(wide, a.vaddss | vaddsd(s, s, d)),
    }
}

/// Two operands: for processors without AVX.
fn sse(a: &mut CodeAssembler, t: Target, s: usize) -> Result<(), IcedError> {
    use Element::*;
    let ((c, d), wide) = (constants(t), t.element == F64);
    let (s, c, d) = (xmm(s), xmm(c), xmm(d));
    match (t.kind, t.element, t.is_scalar()) {
        (Kind::And, ..) => a.pand(s, c),
        (Kind::Xor, ..) => a.pxor(s, c),
        (Kind::Shift, I32, _) => a.pslld(s, 1),
        (Kind::Shift, ..) => a.psllq(s, 1),
        (Kind::ToFloat, ..) => a.cvtdq2ps(s, s),
        (Kind::ToInt, ..) => a.cvtps2dq(s, s),
        (Kind::Mul, _, true) => by_width!(wide, a.mulss | mulsd(s, c)),
        (Kind::Mul, _, false) => by_width!(wide, a.mulps | mulpd(s, c)),
        (Kind::Div, _, true) => by_width!(wide, a.divss | divsd(s, c)),
        (Kind::Div, _, false) => by_width!(wide, a.divps | divpd(s, c)),
        (Kind::Sqrt, _, true) => by_width!(wide, a.sqrtss | sqrtsd(s, s)),
        (Kind::Sqrt, _, false) => by_width!(wide, a.sqrtps | sqrtpd(s, s)),
        (Kind::Min, _, true) => by_width!(wide, a.minss | minsd(s, c)),
        (Kind::Min, _, false) => by_width!(wide, a.minps | minpd(s, c)),
        (Kind::Max, _, true) => by_width!(wide, a.maxss | maxsd(s, c)),
        (Kind::Max, _, false) => by_width!(wide, a.maxps | maxpd(s, c)),
        (Kind::RoundTrip, ..) => {
            by_width!(wide, a.cvttss2si | cvttsd2si(rax, s))?;
            a.xorps(s, s)?;
            by_width!(wide, a.cvtsi2ss | cvtsi2sd(s, rax))
        }
        (_, I32, _) => a.paddd(s, d),
        (_, I64, _) => a.paddq(s, d),
        (_, _, true) => by_width!(wide, a.addss | addsd(s, d)),
        (_, _, false) => by_width!(wide, a.addps | addpd(s, d)),
    }
}
