//! Page traces of real programs: what they hold, that nobody notices.

use crate::support::{Program, Window};
use cere_format::capture::*;

const PAGES: u64 = 512;
/// From the first entry of `begin` to that of `wanted`.
const WINDOW: [Window; 1] = [("wanted", 1, Some(("begin", 1)))];

fn plan(slots: u32) -> TracePlan {
    TracePlan {
        slots,
        pages: 10_000,
        faults: 100_000,
    }
}

/// Pages of `area` in the trace before `wanted`, for a list of touches like `r0-5 w7`.
fn order(program: &Program, plan: TracePlan, touches: &str) -> Vec<i64> {
    let run = program.trace(plan, &WINDOW, &arguments(touches));
    run.get("wanted", 1).traced("area", PAGES)
}

/// Each touch by itself, also of `r5-0`.
fn expand(touches: &str) -> Vec<String> {
    let mut all = Vec::new();
    for part in touches.split(' ') {
        let (kind, range) = part.split_at(1);
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (i64, i64) = (first.parse().unwrap(), last.parse().unwrap());
        let step = if first <= last { 1 } else { -1 };
        let count = (last - first).abs() + 1;
        all.extend((0..count).map(|i| format!("{kind}{}", first + i * step)));
    }
    all
}

fn arguments(touches: &str) -> Vec<&'static str> {
    let leak = |s: String| &*s.leak();
    expand(touches).into_iter().map(leak).collect()
}

#[test]
fn pages_in_the_order_of_their_last_touch() {
    let program = Program::new("pages.c", &["-O2"]);
    let order = |touches: &str| order(&program, plan(8), touches);
    assert_eq!(order("r0-99"), Vec::from_iter(0..100));
    assert_eq!(order("r99-0"), Vec::from_iter((0..100).rev()));
    let strided: Vec<i64> = (0..50).map(|i| i * 7 % 50).collect();
    let touches: Vec<String> = strided.iter().map(|i| format!("r{i}")).collect();
    assert_eq!(order(&touches.join(" ")), strided);
    // Touched again long after: that is its last touch.
    let without_3: Vec<i64> = (0..30).filter(|i| *i != 3).collect();
    assert_eq!(order("r0-29 r3"), [&without_3[..], &[3]].concat());
    // Touched again while it is open: nobody sees that.
    assert_eq!(order("r0-9 r8 r10-19"), Vec::from_iter(0..20));
    // Both: the last pages of the way there are still open on the way back.
    let there_and_back = order("r0-29 r29-0");
    let open = there_and_back.iter().position(|p| *p == 29).unwrap() + 1;
    assert!((2..=8).contains(&open), "{there_and_back:?}");
    let kept = 30 - open as i64..30;
    let back = (0..kept.start).rev();
    assert_eq!(there_and_back, kept.chain(back).collect::<Vec<i64>>());
}

#[test]
fn written_pages_are_marked() {
    let program = Program::new("pages.c", &["-O2"]);
    let written = |page: i64| -page - 1;
    let found = order(&program, plan(8), "r0-9 w10-19 r20-29");
    let expected = (0..10).chain((10..20).map(written)).chain(20..30);
    assert_eq!(found, expected.collect::<Vec<i64>>());
    // First read, then written, while open; and read again long after.
    let found = order(&program, plan(8), "r0-9 w9 r10-40 w0 w50-70 r0");
    let expected = (1..9).chain([written(9)]).chain(10..=40);
    let expected = expected.chain((50..=70).map(written)).chain([0]);
    assert_eq!(found, expected.collect::<Vec<i64>>());
}

#[test]
fn what_is_stored_is_bounded() {
    let program = Program::new("pages.c", &["-O2"]);
    let bounded = TracePlan {
        pages: 20,
        ..plan(8)
    };
    let run = program.trace(bounded, &WINDOW, &arguments("r0-299"));
    let capture = run.get("wanted", 1).finished();
    assert_eq!((capture.known().pages, capture.trace.len()), (20, 20));
    assert!(capture.known().touched > 300);
    let last = capture.traced("area", PAGES);
    let expected = Vec::from_iter(300 - last.len() as i64..300);
    assert!(last.len() >= 10 && last == expected, "{last:?}");
}

#[test]
fn the_fifo_doubles_with_the_faults() {
    let program = Program::new("pages.c", &["-O2"]);
    let few = TracePlan {
        faults: 100,
        ..plan(8)
    };
    let touches = "r0-7 ".repeat(10) + "r0-199";
    let calm = program.trace(few, &WINDOW, &arguments("r0"));
    let busy = program.trace(few, &WINDOW, &arguments(&touches));
    let busier = program.trace(few, &WINDOW, &arguments(&["r0-255"; 20].join(" ")));
    assert_eq!(calm.get("wanted", 1).known().slots, 8);
    let known = busy.get("wanted", 1).known();
    let doubled = (16..=64).contains(&known.slots);
    assert!(doubled && known.faults > 200, "{known:?}");
    // With room for all of them they fault no more.
    let known = busier.get("wanted", 1).known();
    assert!([256, 512].contains(&known.slots), "{known:?}");
    assert!(known.faults < 2_000 && known.cut.is_none(), "{known:?}");
    assert_eq!(busier.get("wanted", 1).traced("area", PAGES).len(), 256);
}

#[test]
fn pages_have_ages() {
    let program = Program::new("pages.c", &["-O2"]);
    let touches = arguments("r0-9 t20 r10-19");
    let run = program.trace(plan(64), &WINDOW, &touches);
    let capture = run.get("wanted", 1);
    let age = |page| capture.age("area", page) as f64 * 1e-6;
    for page in 0..10 {
        let (old, young) = (age(page), age(page + 10));
        // Of each of the 20 times without a fault half a millisecond counts.
        assert!((9.0..12.0).contains(&old), "{page}: {old} ms");
        assert!(young < 1.0, "{page}: {young} ms");
    }
    // What is in use comes back.
    assert!(age(PAGES - 1) < 3.0, "{} ms", age(PAGES - 1));
    assert!(age(0) >= age(9) && age(9) >= age(PAGES - 1) && age(PAGES - 1) >= age(10));
}

#[test]
fn windows_overlap_and_captures_nest() {
    let program = Program::new("pages.c", &["-O2"]);
    let windows = [
        ("wanted", 1, Some(("begin", 1))),
        ("wanted", 2, Some(("between", 2))),
        ("between", 1, None),
        ("between", 2, Some(("between", 1))),
        ("begin", 2, Some(("wanted", 1))),
    ];
    let touches = arguments("r10-29 x5 r30-49 x3 r50-69");
    let run = program.trace(plan(8), &windows, &touches);
    run.captures.iter().for_each(|c| _ = c.finished());
    assert_eq!(run.captures.len(), 5);
    let of = |f, i| run.get(f, i).traced("area", PAGES);
    let list = |ranges: &[std::ops::Range<i64>]| -> Vec<i64> {
        ranges.iter().cloned().flatten().collect()
    };
    assert_eq!(of("between", 1), Vec::from_iter(10..30));
    assert_eq!(of("between", 2), list(&[0..5, 30..50]));
    // The second time it touches what the first did, which is closed meanwhile.
    assert_eq!(of("wanted", 1), list(&[10..30, 3..5, 30..50, 0..3, 50..70]));
    assert_eq!(of("begin", 2), [0, 1]);
    assert_eq!(of("wanted", 2), list(&[2..3, 50..70, 0..2]));
    let began = |f, i| run.get(f, i).known().began.clone();
    let names = [began("between", 1), began("wanted", 2)];
    assert_eq!(names, ["start", "between, 2"]);
    assert!(run.captures.iter().all(|c| c.known().cut.is_none()));
    assert_eq!(run.counts.as_array().unwrap().len(), 3);
}

#[test]
fn no_trace_runs_through_a_capture_of_a_region_around() {
    let program = Program::new("blocks.c", &["-O2"]);
    // The second to the seventh invocation of `fill` run inside `around`, the eighth and later ones after it.
    for start in [None, Some(("fill", 1)), Some(("fill", 3))] {
        let windows = [("around", 1, None), ("fill", 9, start)];
        let run = program.trace(plan(64), &windows, &[]);
        run.captures.iter().for_each(|c| _ = c.finished());
        let postponed: Vec<_> = run.postponed.iter().map(|p| p.conflict).collect();
        assert_eq!((run.runs, &postponed[..]), (2, &[Conflict::Trace][..]));
        let fill = run.get("fill", 9);
        let heap = fill.raw.heap;
        let of_heap = |page: &&u64| (heap.0..heap.1).contains(*page);
        assert_eq!(fill.trace.iter().filter(of_heap).count(), 0);
        assert!(fill.trace.len() > 700 && fill.known().cut.is_none());
    }
}

/// Runs `world` with a window around what it does, and one from its start.
fn world(program: &Program, what: &str) -> Option<PageTrace> {
    let windows = [("wanted", 1, Some(("begin", 1))), ("middle", 1, None)];
    let run = program.trace(plan(16), &windows, &[what]);
    let capture = run
        .captures
        .iter()
        .find(|c| c.function == "wanted")?
        .finished();
    let before = capture.traced("area", 64);
    let written = |page: i64| -page - 1;
    let last: Vec<i64> = (20..30).map(written).collect();
    assert!(before.ends_with(&last), "{what}: {before:?}");
    Some(capture.known().clone())
}

#[test]
fn whatever_a_program_does_it_does_unnoticed() {
    let program = Program::new("world.cpp", &["-O2"]);
    // The first word is empty: nothing of these.
    for what in " files exceptions libraries memory clocks deep".split(' ') {
        let known = world(&program, what).unwrap();
        assert_eq!(known.cut, None, "{what}: {known:?}");
        assert!(known.touched >= 20, "{what}: {known:?}");
    }
}

#[test]
fn a_trace_that_is_interrupted_says_so() {
    let program = Program::new("world.cpp", &["-O2"]);
    let starts = |call| format!("the program calls {call}: it starts a thread or a process");
    for (what, reason) in [
        ("processes", &starts("clone")[..]),
        ("threads", &starts("clone3")),
        ("signals", "signal 14 arrives for a handler of the program"),
        ("jumps", "the program may not access 0x0"),
    ] {
        let known = world(&program, what).unwrap();
        assert_eq!(known.cut.as_deref(), Some(reason), "{what}");
    }
}

#[test]
fn programs_end_in_the_midst_of_a_trace() {
    let program = Program::new("world.cpp", &["-O2"]);
    for what in ["crash", "exit", "quit", "abort", "kill"] {
        assert_eq!(world(&program, what), None, "{what}");
    }
}

/// A program with a team of so many threads.
fn of_team(threads: &'static str) -> Program {
    let mut program = Program::new("team.c", &["-O2", "-fopenmp"]);
    program.environment = vec![("OMP_NUM_THREADS", threads)];
    program
}

#[test]
fn each_thread_of_a_team_in_its_order() {
    for (threads, count) in [("1", 1), ("2", 2), ("8", 8)] {
        let program = of_team(threads);
        // From a region with the team's threads there already, and from the program's start.
        for start in [Some(("begin", 1)), None] {
            let run = program.trace(plan(64), &[("wanted", 1, start)], &["t"]);
            let capture = run.get("wanted", 1).finished();
            assert_eq!(capture.known().cut, None);
            let found = capture.traced_by("area", PAGES);
            let share = PAGES / count;
            for thread in 0..count {
                let own = found.iter().filter(|(page, _)| page / share == thread);
                let own: Vec<(u64, u64)> = own.copied().collect();
                let pages: Vec<u64> = own.iter().map(|p| p.0).collect();
                assert_eq!(pages, Vec::from_iter(thread * share..(thread + 1) * share));
                // Numbers are those of the runtime's start: a thread of another number may have had this part.
                assert!(own.iter().all(|p| p.1 == own[0].1), "{own:?}");
            }
            let mut numbers: Vec<u64> = found.iter().map(|p| p.1).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers, Vec::from_iter(0..count));
        }
    }
}

#[test]
fn calls_of_a_team() {
    for threads in ["2", "8"] {
        let program = of_team(threads);
        for steps in ["s", "a", "p", "ttat", "astg"] {
            let run = program.trace(plan(16), &[("wanted", 1, None)], &[steps]);
            let capture = run.get("wanted", 1).finished();
            assert!(!capture.traced_by("area", PAGES).is_empty(), "{steps}");
            let cut = capture.known().cut.as_deref();
            let starts = cut.is_some_and(|c| c.contains("starts a thread"));
            let expected = steps.contains('g') && threads == "2";
            assert!(
                cut.is_some() == expected && starts == expected,
                "{steps}: {cut:?}"
            );
        }
        // What is not followed interrupts the trace, and hinders nobody.
        for steps in ["r", "w", "wtr", "swat", "ithtt", "isat", "hth"] {
            let run = program.trace(plan(16), &[("wanted", 1, None)], &[steps]);
            run.get("wanted", 1).finished();
        }
    }
}

#[test]
fn threads_that_start_while_pages_are_closed_again() {
    let program = Program::new("late.c", &["-O2", "-fopenmp"]).beside("slow_start.c");
    let windows = [("around", 1, None), ("last", 1, None)];
    let run = program.trace(plan(8), &windows, &[]);
    for function in ["around", "last"] {
        run.get(function, 1).finished();
    }
}

#[test]
fn signals_while_the_library_is_at_work() {
    let program = Program::new("nudged.c", &["-O2", "-fopenmp"]);
    for _ in 0..3 {
        let windows = [
            ("use_locks", 1, None),
            ("handle", 100, Some(("handle", 90))),
        ];
        let run = program.trace(plan(8), &windows, &["signals"]);
        run.get("use_locks", 1).finished();
        assert!(run.get("use_locks", 1).known().cut.is_some());
        run.get("handle", 100);
    }
}

#[test]
fn memory_that_others_reach() {
    let program = Program::new("reached.c", &["-O2", "-pthread"]);
    for (what, call) in [
        ("uring", "io_uring_setup"),
        ("userfault", "userfaultfd"),
        ("aio", "io_setup"),
    ] {
        // The call comes within the window, or before it.
        let inside =
            format!("the program calls {call}: the kernel reaches memory by itself from then on");
        let before = "the program has an io_uring, a userfaultfd or a context of io_setup";
        for (begins, cut) in [("before", &inside[..]), ("work", before)] {
            let windows = [("before", 2, Some((begins, 1)))];
            let run = program.trace(plan(8), &windows, &[what]);
            let known = run.get("before", 2).raw.trace.as_ref();
            let same = known.is_none_or(|k| k.cut.as_deref() == Some(cut));
            assert!(same, "{known:?}");
        }
    }
}

#[test]
fn rights_that_change_half_way() {
    let program = Program::new("held.c", &["-O2", "-pthread"]);
    let windows = [("add", 2, Some(("add", 1)))];
    let run = program.trace(plan(8), &windows, &["hole"]);
    let cut = "the program calls mprotect: it fails half way";
    assert_eq!(run.get("add", 2).known().cut.as_deref(), Some(cut));
}

#[test]
fn what_a_program_asks_for_while_memory_is_closed() {
    let program = Program::new("told.c", &["-O2", "-pthread"]);
    for (what, cut) in [
        ("stack", "it asks for the stack of the main thread"),
        ("maps", "the file would show that memory is closed"),
    ] {
        let windows = [("add", 100, Some(("add", 1)))];
        let run = program.trace(plan(8), &windows, &[what]);
        let capture = run.get("add", 100).finished();
        let cut = format!("the program calls openat: {cut}");
        assert_eq!(capture.known().cut, Some(cut));
    }
}
