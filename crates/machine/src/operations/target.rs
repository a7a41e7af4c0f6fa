//! What is measured: operations, their elements and widths, and the values they work on.

use cere_arch::feature::{Feature, has};

/// General registers of streams.
pub const REGISTERS: usize = 13;
/// Of these, those that are free beside a division's.
const DIVIDED: usize = 10;

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `s + c`.
    Add,
    /// `s * c`.
    Mul,
    /// `s / c`.
    Div,
    /// `s * c + d`.
    Fma,
    /// Square root of s.
    Sqrt,
    /// Bits of s that are in c.
    And,
    /// Bits of s or c, not both.
    Xor,
    /// s shifted by one bit.
    Shift,
    /// The smaller of s and c.
    Min,
    /// The larger.
    Max,
    /// Integer to floating point, packed.
    ToFloat,
    /// Floating point to integer, packed.
    ToInt,
    /// Floating point to an integer in a general register and back.
    RoundTrip,
}

/// Of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Integers of 32 bits.
    I32,
    /// Of 64.
    I64,
    /// Floating point of 32 bits.
    F32,
    /// Of 64.
    F64,
}

impl Element {
    /// Its name in the document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Its bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::I32 | Self::F32 => 32,
            Self::I64 | Self::F64 => 64,
        }
    }

    /// Whether it is an integer.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self, Self::I32 | Self::I64)
    }
}

/// An operation on an element in registers of some width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// What is computed.
    pub kind: Kind,
    /// Of what.
    pub element: Element,
    /// Bits of the register: the element's own for scalars.
    pub bits: u32,
}

/// Encodings of vector instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Two operands, 16 registers.
    Sse,
    /// Three operands, 16 registers.
    Vex,
    /// Three operands, 32 registers.
    Evex,
}

/// How instructions of a width are encoded here.
#[must_use]
pub fn encoding(bits: u32) -> Encoding {
    if has(Feature::Avx512vl) || bits == 512 {
        Encoding::Evex
    } else if has(Feature::Avx) {
        Encoding::Vex
    } else {
        Encoding::Sse
    }
}

impl Target {
    /// Of a kind, an element, and bits of a register.
    #[must_use]
    pub fn new(kind: Kind, element: Element, bits: u32) -> Self {
        Self {
            kind,
            element,
            bits,
        }
    }

    /// Whether it computes one element.
    #[must_use]
    pub fn is_scalar(self) -> bool {
        self.bits == self.element.bits()
    }

    /// Elements that it computes.
    #[must_use]
    pub fn elements(self) -> u32 {
        self.bits / self.element.bits()
    }

    /// Whether it works on general registers.
    #[must_use]
    pub fn is_general(self) -> bool {
        self.is_scalar() && self.element.is_integer()
    }

    /// Whether this processor has it and it is a single instruction, but for the round trip.
    #[must_use]
    pub fn exists(self) -> bool {
        use Kind::*;
        let (integer, wide) = (self.element.is_integer(), self.element.bits() == 64);
        if self.is_general() {
            return matches!(self.kind, Add | Mul | Div | And | Xor | Shift);
        }
        let held = match self.bits {
            512 => has(Feature::Avx512f),
            256 if integer => has(Feature::Avx2),
            256 => has(Feature::Avx),
            _ => true,
        };
        // Without VEX only what every x86-64 has is measured.
        let three = encoding(self.bits) != Encoding::Sse;
        let evex = encoding(self.bits) == Encoding::Evex;
        let quad = evex && has(Feature::Avx512dq);
        held && match (self.kind, integer) {
            (Add | Shift, true) => true,
            (And | Xor, true) => !wide,
            (Mul, true) => {
                if wide {
                    quad
                } else {
                    three
                }
            }
            (Min | Max, true) => {
                if wide {
                    evex
                } else {
                    three
                }
            }
            (ToFloat, true) => !wide || quad,
            (Add | Mul | Div | Sqrt | Min | Max, false) => true,
            (Fma, false) => three && has(Feature::Fma),
            (ToInt, false) => !self.is_scalar() && (!wide || quad),
            (RoundTrip, false) => self.is_scalar(),
            _ => false,
        }
    }

    /// Whether its instructions lower the frequency of some processors: wide ones of the units of floating point.
    #[must_use]
    pub fn is_heavy(self) -> bool {
        let light = matches!(
            self.kind,
            Kind::Add | Kind::And | Kind::Xor | Kind::Shift | Kind::Min | Kind::Max
        );
        self.bits == 512 && !(light && self.element.is_integer())
    }

    /// Its name in the document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.kind {
            Kind::Add => "add",
            Kind::Mul => "mul",
            Kind::Div => "div",
            Kind::Fma => "fma",
            Kind::Sqrt => "sqrt",
            Kind::And => "and",
            Kind::Xor => "xor",
            Kind::Shift => "shift",
            Kind::Min => "min",
            Kind::Max => "max",
            Kind::ToFloat => "to-float",
            Kind::ToInt => "to-int",
            Kind::RoundTrip => "to-int-and-back",
        }
    }

    /// What a reader should know of how it was measured; empty for most.
    #[must_use]
    pub fn note(self) -> &'static str {
        match (self.kind, self.is_general()) {
            (Kind::Div, true) => {
                "unsigned, quotients of 30 or 62 bits by 3 (time depends on the operands); the addition that restores the dividend is \
                 subtracted from the latency"
            }
            (Kind::Div, false) => {
                "divisor close to 1, quotients of full length (time may depend on the operands)"
            }
            (Kind::Sqrt, _) => "of the largest number below 1 (time may depend on the operand)",
            (Kind::RoundTrip, _) => {
                "two instructions: to an integer in a general register, and back"
            }
            _ => "",
        }
    }

    /// Streams that its registers hold.
    #[must_use]
    pub fn streams(self) -> usize {
        match (self.is_general(), self.kind) {
            (true, Kind::Div) => DIVIDED,
            (true, _) => REGISTERS,
            // Two hold constants.
            (false, _) => vectors(self.bits) - 2,
        }
    }

    /// What a stream starts with, and the constants c and d; each fills 64 bytes. No result of any length of chain is a denormal, an
    /// infinity or a NaN.
    fn values(self) -> [u64; 3] {
        use Kind::*;
        let float = |x: f64| match self.element {
            Element::F32 | Element::I32 => u64::from((x as f32).to_bits()) * 0x1_0000_0001,
            Element::F64 | Element::I64 => x.to_bits(),
        };
        let ulp = match self.element {
            Element::F32 | Element::I32 => f64::from(f32::EPSILON),
            Element::F64 | Element::I64 => f64::EPSILON,
        };
        match (self.kind, self.element.is_integer()) {
            (ToFloat, _) => [0x4d35_9e11_4d35_9e11, 0, 0],
            (Mul, true) => [0x0123_4567_0123_4567, 0x0000_0005_0000_0005, 0],
            (_, true) => [
                0x0123_4567_0123_4567,
                0x7654_3213_7654_3213,
                0x1357_9bdf_1357_9bdf,
            ],
            (ToInt, _) => [0, 0, 0],
            (Mul | Div, _) => [float(1.1), float(1.0 + 4.0 * ulp), 0],
            (Sqrt, _) => [float(0.3), 0, 0],
            (RoundTrip, _) => [float(1234.0), float(0.0), 0],
            _ => [float(1.2), float(0.75), float(0.3)],
        }
    }

    /// The memory that [`prepare`](super::emit::prepare) reads: start, c, d.
    #[must_use]
    pub fn constants(self) -> Constants {
        let [start, c, d] = self.values();
        Constants([[start; 8], [c; 8], [d; 8]])
    }
}

/// Constants of a probe.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Constants(pub [[u64; 8]; 3]);

/// Vector registers that instructions of a width reach.
#[must_use]
pub fn vectors(bits: u32) -> usize {
    match encoding(bits) {
        Encoding::Evex => 32,
        _ => 16,
    }
}
