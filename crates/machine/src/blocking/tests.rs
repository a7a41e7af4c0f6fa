//! The paper's answers, and what must hold on any machine.

use super::*;
use cere_format::machine::{Cache, Cores, Found, Machine, Operation, Peak};

/// Core i7 as in the paper, but for its vectors.
fn machine() -> Machine {
    let cache = |level, size_bytes| Cache {
        level,
        size_bytes,
        confidence: 0.9,
        ..Cache::default()
    };
    let found = |what: &str| Found {
        what: what.to_owned(),
        confidence: 0.9,
        how: "simulated".to_owned(),
    };
    let peak = |bits, flops_per_second| Peak {
        name: "fma".to_owned(),
        element: "f64".to_owned(),
        bits,
        cores: 1,
        flops_per_second,
        streams: 8,
    };
    Machine {
        line_bytes: Some(64),
        caches: vec![cache(1, 32 << 10), cache(2, 256 << 10), cache(3, 8 << 20)],
        cores: Cores {
            float_registers: Some(16),
            ..Cores::default()
        },
        operations: vec![Operation {
            name: "fma".to_owned(),
            element: "f64".to_owned(),
            bits: 256,
            latency_adds: 4.0,
            per_add: 2.0,
            confidence: 0.9,
            ..Operation::default()
        }],
        peaks: vec![peak(256, 4e10), peak(512, 4.2e10), peak(128, 2e10)],
        found: [
            "line_bytes",
            "cores.float_registers",
            "peaks[0]",
            "peaks[1]",
            "peaks[2]",
        ]
        .map(found)
        .into(),
        ..Machine::default()
    }
}

#[test]
fn registers_as_in_the_paper() {
    let tile = |m, n| Tile { m, n, k: 1 };
    assert_eq!(register_block(16, 1), tile(4, 2));
    // What the paper's model gives before sizes are made even.
    assert_eq!((tile(3, 3).values(), tile(4, 2).values()), (15, 14));
    assert!(tile(3, 3).reuse() > tile(4, 2).reuse());
    assert_eq!(register_block(32, 8), tile(4, 4));
    assert_eq!(register_block(3, 8), tile(1, 1));
    // More accumulators before more reuse.
    assert_eq!(register_block(26, 16), tile(4, 4));
    // With B's values broadcast one after the other.
    assert_eq!(broadcast_block(16, 8), tile(2, 6));
    assert_eq!(broadcast_block(32, 8), tile(4, 6));
    for registers in 3..64 {
        let block = register_block(registers, 8);
        assert!(block.values() <= registers, "{registers}: {block:?}");
    }
}

#[test]
fn first_cache_as_in_the_paper() {
    let words = (32 << 10) / ELEMENT;
    assert_eq!(square(words, 1, 1), 63);
    let used = |n: u64, stride: u64| n * n + n + n * stride;
    assert_eq!((used(63, 1), used(56, 8), used(60, 8)), (4095, 3640, 4140));
    // In steps of the register block.
    assert_eq!(square(words, 8, 4), 56);
}

#[test]
fn wider_vectors_only_for_a_clearly_higher_peak() {
    let mut machine = machine();
    assert_eq!(vector_bits(&machine, "f64"), Some(256));
    machine.peaks[1].flops_per_second = 7e10;
    assert_eq!(vector_bits(&machine, "f64"), Some(512));
    machine.found.retain(|f| f.what != "peaks[1]");
    assert_eq!(vector_bits(&machine, "f64"), Some(256));
    assert_eq!(vector_bits(&machine, "f32"), None);
}

#[test]
fn blocks_grow_with_their_cache_and_fit_it() {
    let mut machine = Parameters::of(&machine()).unwrap();
    assert_eq!(
        (machine.streams, machine.bits, machine.registers),
        (8, 256, 16)
    );
    let blocks = dgemm(&machine);
    assert_eq!(
        (blocks.get("MR"), blocks.get("NR"), blocks.get("TILE")),
        (Some(8), Some(6), Some(56))
    );
    assert_eq!(
        blocks.flags()[..4],
        ["-mprefer-vector-width=256", "-DLANES=4", "-DMR=8", "-DNR=6"]
    );
    let mut before = (0, 0, 0, 0);
    for scale in 1..8 {
        machine.l1 = scale * (16 << 10);
        let (gemm, five) = (dgemm(&machine), stencil(&machine));
        let of = |blocking: &Blocking, name: &str| blocking.get(name).unwrap();
        let (kc, mc, nc) = (of(&gemm, "KC"), of(&gemm, "MC"), of(&gemm, "NC"));
        let now = (kc, of(&gemm, "TILE"), of(&five, "BX2_L1"), of(&five, "BX3"));
        assert!(now.0 >= before.0 && now.1 >= before.1 && now.2 >= before.2 && now.3 >= before.3);
        assert!(8 * kc * (6 + 8) <= machine.l1 && 16 * mc * kc <= machine.l2);
        assert!(8 * nc * kc <= machine.l3.unwrap());
        before = now;
    }
    let mut before = (0, 0);
    for scale in 1..20 {
        machine.l1 = 32 << 10;
        machine.l2 = scale * (128 << 10);
        let now = (
            dgemm(&machine).get("MC").unwrap(),
            stencil(&machine).get("BY3").unwrap(),
        );
        assert!(now.0 >= before.0 && now.1 >= before.1, "{before:?} {now:?}");
        before = now;
    }
}

#[test]
fn unknown_parameters_are_refused() {
    let refused = |change: &dyn Fn(&mut Machine)| {
        let mut machine = machine();
        change(&mut machine);
        Parameters::of(&machine).unwrap_err().to_string()
    };
    let line = refused(&|m| m.line_bytes = None);
    assert!(
        line.contains("line") && line.contains("cere machine"),
        "{line}"
    );
    assert!(refused(&|m| m.caches[0].confidence = 0.4).contains("L1"));
    assert!(refused(&|m| m.caches[1].confidence = 0.4).contains("L2"));
    assert!(refused(&|m| m.peaks.clear()).contains("peak"));
    assert!(refused(&|m| m.operations[0].confidence = 0.1).contains("latency"));
    let registers = refused(&|m| m.found[1].confidence = 0.2);
    assert!(
        registers.contains("registers") && registers.contains("0.20"),
        "{registers}"
    );
    // Beyond L2 nothing is needed.
    let mut machine = machine();
    machine.caches[2].confidence = 0.1;
    let blocks = dgemm(&Parameters::of(&machine).unwrap());
    assert_eq!((blocks.get("NC"), blocks.flags().len()), (None, 7));
}
