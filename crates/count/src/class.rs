//! What an instruction does, from LLVM's name of it.
//!
//! The names are regular: mnemonic, type and width, then the operands (`VFMADD231PDYr` works on 256-bit vectors of doubles).

use serde::Serialize;

/// Type of floating-point elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Float {
    /// 16 bits.
    F16,
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
    /// 80 bits of the x87 unit.
    F80,
}

impl Float {
    /// Bits of an element.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Float::F16 => 16,
            Float::F32 => 32,
            Float::F64 => 64,
            Float::F80 => 80,
        }
    }
}

/// A floating-point operation that counts as work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Addition and subtraction: 1.
    Add,
    /// Multiplication: 1.
    Mul,
    /// Multiplication and addition at once: 2.
    Fma,
    /// Division: 1.
    Div,
    /// Square root: 1.
    Sqrt,
}

impl Operation {
    /// Operations of one element.
    #[must_use]
    pub fn flops(self) -> u64 {
        if self == Operation::Fma { 2 } else { 1 }
    }
}

/// Width of the registers that an instruction works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// One element.
    Scalar,
    /// 128 bits.
    V128,
    /// 256 bits.
    V256,
    /// 512 bits.
    V512,
}

impl Width {
    /// Elements of `bits` each.
    #[must_use]
    pub fn lanes(self, bits: u32) -> u64 {
        match self {
            Width::Scalar => 1,
            Width::V128 => (128 / bits).into(),
            Width::V256 => (256 / bits).into(),
            Width::V512 => (512 / bits).into(),
        }
    }
}

/// What an instruction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Floating-point work.
    Float(Float, Operation),
    /// Comparison, minimum, maximum, rounding, approximation, logic of floating-point values.
    FloatOther,
    /// Conversion between types.
    Convert,
    /// Integer addition, logic, shift, comparison, address.
    Integer,
    /// Integer multiplication.
    IntegerMul,
    /// Integer division.
    IntegerDiv,
    /// Integer addition, subtraction, comparison, minimum of vectors.
    VectorAdd,
    /// Integer multiplication of vectors.
    VectorMul,
    /// Logic and shifts of vectors.
    VectorLogic,
    /// Lanes change their place.
    Shuffle,
    /// Copies, to or from memory too.
    Move,
    /// Conditional branch.
    Branch,
    /// Jump.
    Jump,
    /// Call.
    Call,
    /// Return.
    Return,
    /// Locked operation or fence.
    Atomic,
    /// No operation, hint.
    Nothing,
    /// Inline assembly: not looked into.
    Assembly,
    /// None of these.
    Other,
}

/// Kind and width of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// What it is for.
    pub kind: Kind,
    /// What it works on.
    pub width: Width,
    /// Whether its registers are vector registers.
    pub vector: bool,
    /// Whether a mask may leave out lanes.
    pub masked: bool,
    /// Instructions that the machine has for it.
    pub instructions: u64,
}

/// What the longest of the words in `table` that `text` begins with stands for, and the rest.
fn begins<'a, T: Copy>(text: &'a str, table: &[(T, &str)]) -> Option<(T, &'a str)> {
    let words = table.iter();
    let words = words.flat_map(|(value, words)| words.split(' ').map(|word| (*value, word)));
    let fits = words.filter(|(_, word)| text.starts_with(word));
    let (value, word) = fits.max_by_key(|(_, word)| word.len())?;
    Some((value, &text[word.len()..]))
}

const ARITHMETIC: [(Operation, &str); 5] = [
    (Operation::Add, "ADDSUB ADD SUB HADD HSUB"),
    (Operation::Mul, "MUL"),
    (Operation::Div, "DIV"),
    (Operation::Sqrt, "SQRT"),
    (
        Operation::Fma,
        "FMADD FMSUB FNMADD FNMSUB FMADDSUB FMSUBADD",
    ),
];

const X87: [(Operation, &str); 4] = [
    (Operation::Add, "ADD_ SUB_ SUBR_"),
    (Operation::Mul, "MUL_"),
    (Operation::Div, "DIV_ DIVR_"),
    (Operation::Sqrt, "SQRT_"),
];

/// Type of the elements, and whether there is one only.
const TYPES: [((Float, bool), &str); 6] = [
    ((Float::F32, false), "PS"),
    ((Float::F64, false), "PD"),
    ((Float::F16, false), "PH"),
    ((Float::F32, true), "SS"),
    ((Float::F64, true), "SD"),
    ((Float::F16, true), "SH"),
];

/// Work of the vector units.
fn arithmetic(name: &str) -> Option<(Float, Operation, bool)> {
    let plain = name.strip_prefix('V').unwrap_or(name);
    let (operation, rest) = begins(plain, &ARITHMETIC)?;
    let orders = ["132", "213", "231"];
    let mut after = orders.iter().filter_map(|order| rest.strip_prefix(order));
    let rest = match operation {
        Operation::Fma => after.next().unwrap_or(rest),
        _ => rest,
    };
    let ((float, scalar), _) = begins(rest, &TYPES)?;
    Some((float, operation, scalar))
}

/// Work of the x87 unit.
fn x87(name: &str) -> Option<Operation> {
    let (operation, rest) = begins(name, &X87)?;
    rest.starts_with('F').then_some(operation)
}

/// Width from the letters that end the name: `Y`, `Z`, `Z256`, `Z128`.
fn width(name: &str) -> Width {
    let bytes = name.as_bytes();
    // Halves of 256 bits, whose names say no more of it.
    if (name.contains("F128") || name.contains("I128")) && !name.contains('Z') {
        return Width::V256;
    }
    for (at, _) in name.match_indices('Z').filter(|(at, _)| *at > 2) {
        let rest = &name[at + 1..];
        if rest.starts_with("256") {
            return Width::V256;
        }
        if rest.starts_with("128") {
            return Width::V128;
        }
        if rest.is_empty() || rest.starts_with(['r', 'm', '_']) {
            return Width::V512;
        }
    }
    let y = name.match_indices('Y').any(|(at, _)| {
        let next = bytes.get(at + 1);
        at > 2 && next.is_none_or(|b| b.is_ascii_lowercase() || *b == b'_')
    });
    if y { Width::V256 } else { Width::V128 }
}

/// Moves of one element, and what works on no vector.
const SINGLE: &str = "MAXS MAXCS MINS MINCS CMPSD CMPSS CMPSH COMIS UCOMIS MOVSS MOVSD \
                      MOVSH MOVQI2PQI MOVPQI MOVPDI MOVDI2 MOV64to MOVZPQI MOVZQI ZERO";

/// Whether an instruction of the vector units other than arithmetic works on one element; `plain` has no `V`.
fn is_single(plain: &str, kind: Kind, rest: &str) -> bool {
    let named = SINGLE.split(' ').any(|name| plain.starts_with(name)) && !plain.contains("DUP");
    let typed = |text: &str| ["SS", "SD", "SH"].iter().any(|t| text.starts_with(t));
    named
        || match kind {
            Kind::FloatOther => typed(rest.trim_start_matches(|c: char| c.is_ascii_digit())),
            Kind::Convert => {
                let from = rest.strip_prefix('T').unwrap_or(rest);
                typed(from) || from.starts_with("SI") || from.starts_with("USI")
            }
            _ => false,
        }
}

/// Vector mnemonics without `V`, the longest that fits counts.
const VECTOR: &[(Kind, &str)] = &[
    (
        Kind::VectorAdd,
        "PADD PSUB PCMP PMAX PMIN PABS PAVG PSAD PHADD PHSUB",
    ),
    (Kind::VectorMul, "PMUL PMADD PDP"),
    (
        Kind::VectorLogic,
        "PAND POR PXOR PSLL PSRL PSRA PTEST PTERNLOG",
    ),
    (
        Kind::Shuffle,
        "PSHUF PUNPCK UNPCK SHUF PERM PERM2 PBLEND BLEND PALIGNR ALIGN PACK INSERT EXTRACT \
         PINSR PEXTR BROADCAST PBROADCAST MOVDDUP MOVSHDUP MOVSLDUP MOVHLPS MOVLHPS PCOMPRESS \
         PEXPAND COMPRESS EXPAND PMOVSX PMOVZX PMOV",
    ),
    (
        Kind::FloatOther,
        "ANDP ANDNP ORP XORP MAXP MAXS MAXCP MAXCS MINP MINS MINCP MINCS CMPP CMPSD CMPSS COMIS \
         UCOMIS ROUND RNDSCALE RCP RSQRT DPPS DPPD GETEXP GETMANT SCALEF FIXUPIMM RANGE REDUCE \
         FPCLASS",
    ),
    (Kind::Convert, "CVT"),
    (
        Kind::Move,
        "MOVMSK PMOVMSK MOVAP MOVUP MOVDQ MOVNT MOVHP MOVLP MOVSS MOVSD MOVSH MOVQI2PQI MOVPQI \
         MOVPDI MOVDI2 MOV64toPQI MOVPQIto64 MOVZPQI MOVZQI MOVSDto64 MOV64toSD MOVSS2DI \
         MOVDI2SS LDDQU MASKMOV PMASKMOV GATHER PGATHER SCATTER PSCATTER",
    ),
    (Kind::Nothing, "ZEROUPPER ZEROALL"),
];

/// Mnemonics of general registers.
const SCALAR: &[(Kind, &str)] = &[
    (
        Kind::Integer,
        "ADD ADC SUB SBB INC DEC NEG NOT AND ANDN OR XOR SHL SHR SAR SHLD SHRD SHLX SHRX SARX \
         ROL ROR RORX RCL RCR BT BS BSWAP BEXTR BLS BZHI LZCNT TZCNT POPCNT PDEP PEXT32 PEXT64 \
         CMP8 CMP16 CMP32 CMP64 TEST SETCC CMOV LEA CDQ CQO CWD CWDE CDQE CBW CRC32",
    ),
    (
        Kind::VectorLogic,
        "KAND KOR KXOR KXNOR KNOT KSHIFT KTEST KUNPCK KADD",
    ),
    (
        Kind::Move,
        "KMOV MOV MOVBE PUSH POP16 POP64 LEAVE REP_MOVS REP_STOS MOVSB LD_F ST_F XCH_F",
    ),
    (Kind::IntegerMul, "IMUL MUL8 MUL16 MUL32 MUL64 MULX"),
    (Kind::IntegerDiv, "IDIV DIV8 DIV16 DIV32 DIV64"),
    (Kind::Convert, "ILD_F IST_F ISTT_F"),
    (Kind::FloatOther, "CHS_F ABS_F UCOM_F COM_F"),
    (Kind::Branch, "JCC JRCXZ JECXZ LOOP"),
    (Kind::Jump, "JMP"),
    (Kind::Call, "CALL TLS_ TAILJMP"),
    (Kind::Return, "RET"),
    (
        Kind::Atomic,
        "LOCK_ LCMPXCHG LXADD XCHG CMPXCHG MFENCE SFENCE LFENCE",
    ),
    (Kind::Nothing, "NOOP NOOPL ENDBR PREFETCH PAUSE"),
    (Kind::Assembly, "INLINEASM"),
];

/// What the instruction that LLVM calls `name` does.
#[must_use]
pub fn class(name: &str) -> Class {
    let masked = name.contains('Z') && (name.ends_with('k') || name.ends_with("kz"));
    let of = |kind, width, vector| Class {
        kind,
        width,
        vector,
        masked,
        instructions: if name.starts_with("TLS_addr") { 2 } else { 1 },
    };
    if let Some((float, operation, scalar)) = arithmetic(name) {
        let width = if scalar { Width::Scalar } else { width(name) };
        return of(Kind::Float(float, operation), width, true);
    }
    if let Some(operation) = x87(name) {
        return of(Kind::Float(Float::F80, operation), Width::Scalar, false);
    }
    let plain = name.strip_prefix('V').unwrap_or(name);
    // A fence.
    if name.ends_with("Locked") {
        return of(Kind::Atomic, Width::Scalar, false);
    }
    if name.starts_with("TAILJMP") && name.contains("_CC") {
        return of(Kind::Branch, Width::Scalar, false);
    }
    let vector = begins(plain, VECTOR).filter(|_| !matches!(name, "POPCNT32rr" | "POPCNT64rr"));
    let scalar = begins(name, SCALAR);
    let length = |found: &Option<(Kind, &str)>, text: &str| {
        found
            .as_ref()
            .map_or(0, |(_, rest)| text.len() - rest.len())
    };
    // Where both tables have one, the longer mnemonic counts.
    if length(&vector, plain) > length(&scalar, name) {
        let (kind, rest) = vector.unwrap_or((Kind::Other, ""));
        let scalar = is_single(plain, kind, rest);
        let width = if scalar { Width::Scalar } else { width(name) };
        return of(kind, width, true);
    }
    match scalar {
        Some((kind, _)) => of(kind, Width::Scalar, false),
        None => of(Kind::Other, Width::Scalar, name.starts_with('V')),
    }
}

/// Bytes that an instruction called `name` reaches, where the compiler does not say.
#[must_use]
pub fn bytes(name: &str) -> u32 {
    for (ending, bytes) in [
        ("m8", 1),
        ("m16", 2),
        ("8rm", 1),
        ("8mr", 1),
        ("8mi", 1),
        ("16mr", 2),
    ] {
        if name.contains(ending) && !name.starts_with('V') {
            return bytes;
        }
    }
    let class = class(name);
    if class.vector {
        return match class.width {
            Width::Scalar if name.contains("SS") || name.contains("DI") => 4,
            Width::Scalar => 8,
            Width::V128 => 16,
            Width::V256 => 32,
            Width::V512 => 64,
        };
    }
    match () {
        () if name.contains("16") => 2,
        () if name.contains("32") => 4,
        () if name.contains("80") => 10,
        () => 8,
    }
}

/// Bits of the lanes that a mask chooses from, in an instruction called `name`.
#[must_use]
pub fn lane_bits(name: &str) -> u32 {
    let plain = name.strip_prefix('V').unwrap_or(name);
    // The first that it contains counts.
    let contained = |table: &[(u32, &str)]| {
        let contains = |words: &str| words.split(' ').any(|word| plain.contains(word));
        let found = table.iter().find(|(_, words)| contains(words));
        found.map(|(bits, _)| *bits)
    };
    // Gathers and scatters name the index before the element: DPD is an index of 32 and an element of 64 bits.
    let floats = [(64, "PD SD"), (32, "PS SS"), (16, "PH SH")];
    let integers = [
        (
            32,
            "MASKMOVD DQU32 DQA32 GATHERDD GATHERQD SCATTERDD SCATTERQD",
        ),
        (
            64,
            "MASKMOVQ DQU64 DQA64 GATHERDQ GATHERQQ SCATTERDQ SCATTERQQ",
        ),
        (16, "DQU16"),
        (8, "DQU8"),
    ];
    let float = contained(&floats).filter(|_| !plain.starts_with('P'));
    if let Some(bits) = float.or_else(|| contained(&integers)) {
        return bits;
    }
    // The letter of the type stands before the width.
    let end = plain.find('Z').unwrap_or(plain.len());
    match plain[..end].bytes().last() {
        Some(b'B') => 8,
        Some(b'W') => 16,
        Some(b'D') => 32,
        _ => 64,
    }
}

/// Bits of a position in the vector of a gather or scatter called `name`.
#[must_use]
pub fn index_bits(name: &str) -> u32 {
    let after = name
        .split_once("GATHER")
        .or_else(|| name.split_once("SCATTER"))
        .map_or("", |(_, rest)| rest);
    if after.starts_with('D') { 32 } else { 64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(name: &str) -> (u64, u32) {
        let class = class(name);
        match class.kind {
            Kind::Float(float, operation) => {
                let lanes = class.width.lanes(float.bits());
                (lanes * operation.flops(), float.bits())
            }
            _ => (0, 0),
        }
    }

    #[test]
    fn floating_point_work_by_name() {
        for (name, flops, bits) in [
            ("ADDSDrr", 1, 64),
            ("ADDSDrr_Int", 1, 64),
            ("MULPDrm", 2, 64),
            ("ADDPSrm", 4, 32),
            ("VADDPDYrm", 4, 64),
            ("VADDPDZrmbk", 8, 64),
            ("VADDPDZ256rr", 4, 64),
            ("VADDPDZ128rr", 2, 64),
            ("VFMADD231PDYr", 8, 64),
            ("VFMADD231PDZr", 16, 64),
            ("VFMADD213SDm_Int", 2, 64),
            ("VFNMADD132PSYm", 16, 32),
            ("VFMADDSUB231PDYr", 8, 64),
            ("VFMSUBADD231PDYr", 8, 64),
            ("VDIVPDYrr", 4, 64),
            ("VSQRTSDr", 1, 64),
            ("SQRTPDr", 2, 64),
            ("HADDPDrr", 2, 64),
            ("ADDSUBPDrr", 2, 64),
            ("MUL_FST0r", 1, 80),
            ("DIVR_FPrST0", 1, 80),
            ("ADD64rr", 0, 0),
            ("SUB32ri", 0, 0),
            ("MUL64m", 0, 0),
            ("DIV32r", 0, 0),
            ("MOVAPDrm", 0, 0),
            ("MAXPDrr", 0, 0),
            ("VPADDDYrr", 0, 0),
        ] {
            assert_eq!(work(name), (flops, bits), "{name}");
        }
    }

    #[test]
    fn kinds_by_name() {
        for (name, kind, width) in [
            ("MOVSDrm", Kind::Move, Width::Scalar),
            ("MOVSDmr", Kind::Move, Width::Scalar),
            ("MOVAPDrm", Kind::Move, Width::V128),
            ("VMOVUPDYrm", Kind::Move, Width::V256),
            ("VMOVUPDZrm", Kind::Move, Width::V512),
            ("MOV64rm", Kind::Move, Width::Scalar),
            ("PUSH64r", Kind::Move, Width::Scalar),
            ("POPCNT64rr", Kind::Integer, Width::Scalar),
            ("ADD64ri32", Kind::Integer, Width::Scalar),
            ("CMP64rr", Kind::Integer, Width::Scalar),
            ("TEST32rr", Kind::Integer, Width::Scalar),
            ("IMUL64rri32", Kind::IntegerMul, Width::Scalar),
            ("IDIV32r", Kind::IntegerDiv, Width::Scalar),
            ("JCC_1", Kind::Branch, Width::Scalar),
            ("JMP_1", Kind::Jump, Width::Scalar),
            ("CALL64pcrel32", Kind::Call, Width::Scalar),
            ("RET64", Kind::Return, Width::Scalar),
            ("UNPCKLPDrr", Kind::Shuffle, Width::V128),
            ("VPERM2F128rri", Kind::Shuffle, Width::V256),
            ("VEXTRACTF128rri", Kind::Shuffle, Width::V256),
            ("VBROADCASTF128rm", Kind::Shuffle, Width::V256),
            ("VSHUFPDYrri", Kind::Shuffle, Width::V256),
            ("SHUFPDrri", Kind::Shuffle, Width::V128),
            ("VSHUFF64X2Z256rri", Kind::Shuffle, Width::V256),
            ("VBROADCASTSDYrm", Kind::Shuffle, Width::V256),
            ("MOVSHDUPrr", Kind::Shuffle, Width::V128),
            ("VPMOVZXBDYrm", Kind::Shuffle, Width::V256),
            ("MOVQI2PQIrm", Kind::Move, Width::Scalar),
            ("VMOVPQI2QImr", Kind::Move, Width::Scalar),
            ("VZEROUPPER", Kind::Nothing, Width::Scalar),
            ("MOVSDrm_alt", Kind::Move, Width::Scalar),
            ("VRNDSCALESDZrri", Kind::FloatOther, Width::Scalar),
            ("RSQRTSSr", Kind::FloatOther, Width::Scalar),
            ("ANDPSrr", Kind::FloatOther, Width::V128),
            ("VCMPPDYrri", Kind::FloatOther, Width::V256),
            ("CVTSI2SDrr", Kind::Convert, Width::Scalar),
            ("CVTTSD2SIrr", Kind::Convert, Width::Scalar),
            ("VCVTUSI642SDZrr", Kind::Convert, Width::Scalar),
            ("CVTDQ2PSrr", Kind::Convert, Width::V128),
            ("VCVTPS2PDYrm", Kind::Convert, Width::V256),
            ("TAILJMPd64_CC", Kind::Branch, Width::Scalar),
            ("TAILJMPd64", Kind::Call, Width::Scalar),
            ("PADDDrr", Kind::VectorAdd, Width::V128),
            ("VPADDQYrm", Kind::VectorAdd, Width::V256),
            ("PXORrr", Kind::VectorLogic, Width::V128),
            ("XORPSrr", Kind::FloatOther, Width::V128),
            ("UCOMISDrr", Kind::FloatOther, Width::Scalar),
            ("LOCK_ADD64mr", Kind::Atomic, Width::Scalar),
            ("XCHG64rm", Kind::Atomic, Width::Scalar),
            ("OR32mi8Locked", Kind::Atomic, Width::Scalar),
            ("LEA64r", Kind::Integer, Width::Scalar),
            ("SETCCr", Kind::Integer, Width::Scalar),
            ("CMOV64rr", Kind::Integer, Width::Scalar),
            ("VGATHERDPDYrm", Kind::Move, Width::V256),
        ] {
            let found = class(name);
            assert_eq!((found.kind, found.width), (kind, width), "{name}");
        }
    }

    #[test]
    fn sizes_by_name() {
        for (name, size) in [
            ("MOV64rm", 8),
            ("MOV32mr", 4),
            ("MOV16rm", 2),
            ("MOV8rm", 1),
            ("MOVZX32rm8", 1),
            ("MOVSX64rm32", 4),
            ("MOVSDrm", 8),
            ("MOVSSrm", 4),
            ("MOVAPDrm", 16),
            ("VMOVUPDYrm", 32),
            ("VMOVUPDZrm", 64),
        ] {
            assert_eq!(bytes(name), size, "{name}");
        }
        assert_eq!(lane_bits("VMASKMOVPDYrm"), 64);
        assert_eq!(lane_bits("VPMASKMOVDYmr"), 32);
        assert_eq!(lane_bits("VMOVUPSZrmkz"), 32);
        assert_eq!(lane_bits("VMOVDQU8Z128mrk"), 8);
        assert_eq!(lane_bits("VPADDDZrmk"), 32);
        assert_eq!(
            (lane_bits("VGATHERDPDYrm"), index_bits("VGATHERDPDYrm")),
            (64, 32)
        );
        assert_eq!(
            (lane_bits("VGATHERQPSYrm"), index_bits("VGATHERQPSYrm")),
            (32, 64)
        );
        assert_eq!(
            (lane_bits("VPGATHERDQYrm"), index_bits("VPGATHERDQYrm")),
            (64, 32)
        );
        assert_eq!(
            (lane_bits("VPGATHERQDYrm"), index_bits("VPGATHERQDYrm")),
            (32, 64)
        );
    }
}
