//! Alignment, pages and the order of working sets.

use cere_timer::{Aligned, Clock, Invocations, Mode, Operand, State, Timer, TimerError};
use proptest::prelude::*;

proptest! {
    #[test]
    fn memory_is_aligned_as_asked(
        bytes in 1usize..100_000,
        align in 0u32..=21,
        above in 1u32..=4,
        any in any::<bool>(),
    ) {
        let align = 1usize << align;
        let misalign = if any { 0 } else { align << above };
        let mut memory = Aligned::new(bytes, align, misalign).expect("memory");
        let address = memory.as_ptr() as usize;
        prop_assert_eq!(address % align, 0);
        prop_assert!(misalign == 0 || !address.is_multiple_of(misalign));
        prop_assert_eq!(memory.len(), bytes);
        memory.bytes_mut().fill(7);
    }

    #[test]
    fn other_alignments_are_errors(align in 0usize..5000, misalign in 0usize..5000) {
        let two = |n: usize| n.is_power_of_two();
        let right = two(align) && (misalign == 0 || two(misalign) && misalign > align);
        let found = Aligned::new(1, align, misalign);
        prop_assert_eq!(found.is_ok(), right, "{:?}", found);
        prop_assert_eq!(Operand::new(1, align, misalign, State::Warm).is_ok(), right);
    }
}

/// Page faults of a timed part that writes all of an operand whose own function writes none.
#[test]
fn pages_are_touched_before() {
    const BYTES: usize = 1 << 20;
    for state in [State::Warm, State::Cold] {
        for often in [Invocations::One, Invocations::Several] {
            let operand = Operand::new(BYTES, 1, 2, state)
                .expect("an operand")
                .filled(|_| ());
            let found = Timer::new()
                .invocations(often)
                .operand(operand)
                .time(|operands| operands.values_mut::<u8>(0).fill(1))
                .expect("a time");
            assert_eq!(found.usage.faults, 0, "{state:?} {often:?}");
        }
    }
    // That they would be counted.
    let mut memory = Aligned::new(BYTES, 1, 2).expect("memory");
    let before = cere_timing::clock::usage();
    memory.bytes_mut().fill(1);
    assert!(cere_timing::clock::usage().since(before).faults > 0);
}

#[test]
fn working_sets_are_walked_backwards() {
    // Caches of 1 and 64 KiB: few copies overflow the first one, so that the pointers start again within a sample.
    let operand = |bytes, state| Operand::new(bytes, 8, 64, state).expect("an operand");
    let mut seen: Vec<Vec<usize>> = Vec::new();
    let found = Timer::new()
        .caches(&[1 << 10, 64 << 10])
        .invocations(Invocations::Several)
        .samples(3)
        .operand(operand(1000, State::Cold))
        .operand(operand(100, State::Warm))
        .operand(operand(512, State::InLevel(2)))
        .time(|operands| seen.push(operands.pointers().iter().map(|p| *p as usize).collect()))
        .expect("a time");
    let Mode::Multiple(invocations) = found.mode else {
        panic!("{:?}", found.mode)
    };
    let (cold, warm, second) = (found.copies[0], found.copies[1], found.copies[2]);
    assert!(
        cold > second && second > 1 && warm == 1,
        "{:?}",
        found.copies
    );
    assert!(invocations > 2 * second, "{invocations} {second}");
    let samples = &seen[seen.len() - 3 * invocations..];
    for sample in samples.chunks(invocations) {
        for (index, &copies) in found.copies.iter().enumerate() {
            let at = |n: usize| sample[n][index];
            assert!((0..invocations).all(|n| at(n) % 8 == 0 && at(n) % 64 != 0));
            assert!(
                (0..invocations).all(|n| at(n) == at(n % copies)),
                "it starts again"
            );
            let steps: Vec<_> = (1..copies.min(invocations))
                .map(|n| at(n - 1) - at(n))
                .collect();
            let bytes = [1000, 100, 512][index];
            assert!(
                steps.iter().all(|&s| s == steps[0] && s >= bytes + 64),
                "{steps:?}"
            );
        }
        assert_eq!(sample[0], samples[0], "each sample starts at the top");
    }
}

#[test]
fn a_short_kernel_runs_several_times_and_a_long_one_once() {
    for clock in [Clock::Wall, Clock::Cpu, Clock::ProcessCpu] {
        let timer = || Timer::new().clock(clock).samples(3);
        let short = timer().time(|_| ()).expect("a time");
        assert!(short.invocations() > 10, "{short:?}");
        let long = timer().time(|_| {
            let from = cere_timing::clock::monotonic_ns();
            while cere_timing::clock::monotonic_ns() < from + 2_000_000 {}
        });
        let long = long.expect("a time");
        assert_eq!((long.mode, long.samples.len()), (Mode::Single, 3));
        assert_eq!(long.level, 0.75, "the probability that three samples give");
        let spread = long.spread;
        assert_eq!((spread.min, spread.max), long.interval);
        let reported = if clock == Clock::Wall {
            spread.min
        } else {
            spread.median
        };
        assert_eq!(long.seconds, reported);
        assert!(clock != Clock::Wall || long.seconds > 0.0019, "{long:?}");
    }
}

#[test]
fn what_cannot_be_is_an_error() {
    let operand = |bytes, state| Operand::new(bytes, 64, 0, state);
    assert!(matches!(
        operand(0, State::Cold),
        Err(TimerError::ZeroBytes)
    ));
    assert!(matches!(Aligned::new(0, 1, 0), Err(TimerError::ZeroBytes)));
    let time = |bytes, state| {
        let timer = Timer::new().caches(&[32 << 10, 1 << 20]);
        timer
            .operand(operand(bytes, state).expect("an operand"))
            .time(|_| ())
    };
    for bytes in [1 << 50, usize::MAX - 64, usize::MAX] {
        for state in [State::Cold, State::Warm] {
            let found = time(bytes, state);
            assert!(
                matches!(found, Err(TimerError::Memory { .. })),
                "{bytes}: {found:?}"
            );
        }
    }
    for level in [0, 3] {
        let found = time(64, State::InLevel(level));
        assert!(
            matches!(found, Err(TimerError::Level { levels: 2, .. })),
            "{found:?}"
        );
    }
    for (bytes, level) in [(64 << 10, 1), (1 << 20, 2), (usize::MAX, 2)] {
        let found = time(bytes, State::InLevel(level));
        assert!(
            matches!(found, Err(TimerError::DoesNotFit { .. })),
            "{found:?}"
        );
    }
    for caches in [&[0][..], &[32 << 10, 1023]] {
        let found = Timer::new().caches(caches).time(|_| ());
        let level = caches.len();
        assert!(
            matches!(found, Err(TimerError::Cache { level: l, .. }) if l == level),
            "{found:?}"
        );
    }
    for samples in [0, 1_000_001] {
        let found = Timer::new().samples(samples).time(|_| ());
        assert!(matches!(found, Err(TimerError::Samples(n)) if n == samples));
    }
}

#[test]
fn values_of_an_operand() {
    let odd = Operand::new(20, 4, 8, State::Warm).expect("an operand");
    let even = Operand::new(20, 8, 0, State::Warm)
        .expect("an operand")
        .filled(|b| b.fill(0));
    Timer::new()
        .operand(odd)
        .operand(even)
        .time(|operands| {
            assert_eq!((operands.len(), operands.values::<f64>(1).len()), (2, 2));
            let (from, to) = operands.read_write::<f32>(0, 1);
            to.copy_from_slice(from);
            assert_eq!(operands.values::<f32>(1)[1], 1.875);
            operands.values_mut::<u8>(1).fill(0);
        })
        .expect("a time");
    let misaligned = Timer::new().operand(Operand::new(20, 4, 8, State::Warm).expect("an operand"));
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        misaligned.time(|operands| {
            std::hint::black_box(operands.values::<f64>(0));
        })
    }));
    assert!(read.is_err(), "a value that is not aligned is refused");
}
