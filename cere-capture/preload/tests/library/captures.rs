//! Captures of real programs: what lies in the pages, how regions end, that nobody notices.

use crate::support::{Captured, Program};
use cere_format::capture::*;
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn values_at_entry_and_exit() {
    for level in ["-O0", "-O2"] {
        let program = Program::new("values.c", &[level]);
        let run = program.capture(&[("step", &[1, 3, 5])], &[]);
        assert_eq!(run.captures.len(), 3);
        for invocation in [1, 3, 5] {
            let capture = run.get("step", invocation);
            let (at, raw) = (|name| capture.address(name), &capture.raw);
            let before = (invocation - 1) * 210;
            capture.finished();
            assert_eq!(capture.both(at("counter")), (before, before + 210));
            assert_eq!(capture.exit(at("spaced") + 2048 * 8), before + 210);
            assert_eq!(capture.entry(at("constants")), 7);
            assert_eq!(capture.flags(at("unread")), 0);
            assert_eq!(capture.flags(at("spaced") + 5000), 0);
            let kinds = PAGE_WRITTEN | PAGE_CODE | PAGE_FOREIGN | PAGE_STACK | PAGE_FRESH;
            assert_eq!(capture.flags(at("counter")) & kinds, PAGE_WRITTEN);
            assert_eq!(capture.flags(at("constants")) & kinds, 0);
            assert_eq!(capture.flags(at("cere.outlined.0")) & kinds, PAGE_CODE);
            // The arguments: return value, then n.
            let stack = capture.flags(raw.entry.arguments);
            assert_ne!(stack & PAGE_STACK, 0);
            assert_eq!(raw.entry.arguments_size % 8, 0);
            assert!(raw.entry.stack_pointer <= raw.entry.arguments);
            assert_eq!(raw.entry.stack_pointer % 16, 0);
            let control = (raw.entry.mxcsr & !63, raw.entry.x87_control);
            assert_eq!(control, (0x1f80, 0x37f));
            // The thread-local block, in the pages of the control block.
            let (start, size) = raw.images[0].tls.unwrap();
            assert!(size >= 8 && start < raw.thread_pointer);
            let foreign = PAGE_FOREIGN | PAGE_WRITTEN | PAGE_ENTRY_STORED | PAGE_EXIT_STORED;
            assert_eq!(capture.flags(start) & foreign, foreign);
            assert_eq!(capture.entry(start), 5 + (invocation - 1) * 10);
            assert_eq!(capture.exit(start), 5 + invocation * 10);
            assert_eq!(capture.flags(raw.thread_pointer) & foreign, foreign);
        }
    }
}

#[test]
fn the_process_is_described() {
    let program = Program::new("values.c", &["-O2"]);
    let run = program.capture(&[("step", &[2])], &[]);
    let raw = &run.get("step", 2).raw;
    assert_eq!(raw.images[0].path, program.path().canonicalize().unwrap());
    assert!(
        raw.images[0].instrumented && raw.images.iter().filter(|i| i.instrumented).count() == 1
    );
    let mut names = raw.images.iter().map(|i| i.path.to_string_lossy());
    assert!(names.any(|name| name.contains("libc.so")));
    let ours = |name: &str| name.contains("libcere_preload");
    assert!(raw.images.iter().all(|i| !ours(&i.path.to_string_lossy())));
    assert!(raw.mappings.iter().all(|m| !ours(&m.path)));
    let stack = raw.mappings.iter().find(|m| m.path == "[stack]").unwrap();
    assert!(stack.start < raw.entry.stack_pointer && raw.entry.stack_pointer < stack.end);
    assert_eq!(stack.permissions, "rw-p");
    let outside = |m: &Mapping| m.end <= raw.heap.0 || raw.heap.1 <= m.start;
    assert!(raw.heap.0 == cere_inside::heap::BASE as u64 && raw.mappings.iter().all(outside));
    let files = "0.json 0.pages 0.places 0.table counts.0.json plan.json process.0.json";
    assert_eq!(run.files.join(" "), files);
    assert_eq!(run.counts[0]["invocations"], 2);
}

#[test]
fn a_wanted_region_inside_another() {
    let program = Program::new("values.c", &["-O2"]);
    let run = program.capture(&[("outer", &[1]), ("inner", &[2, 5])], &[]);
    assert_eq!(run.runs, 2);
    // inner(k) adds 10 k to counter[1], for k from 0.
    for (capture, entry, exit) in [
        (run.get("inner", 2), 0, 10),
        (run.get("inner", 5), 60, 100),
        (run.get("outer", 1), 0, 150),
    ] {
        let counter = capture.address("counter") + 8;
        assert_eq!(capture.finished().both(counter), (entry, exit));
    }
    let (outer, inner) = (run.get("outer", 1), run.get("inner", 2));
    let input = outer.address("input");
    assert_eq!(outer.both(input), (3, 18));
    assert_eq!(inner.flags(inner.address("input")), 0);
}

/// How many pages of the program have which flags, the stack apart: how far it reaches into its last page depends on where
/// it begins. Nor those of the thread control block, where the kernel notes the processor.
fn table(capture: &Captured) -> BTreeMap<u32, usize> {
    let mut table = BTreeMap::new();
    let all = capture.pages.values().map(|p| p.flags);
    for flags in all.filter(|flags| flags & (PAGE_STACK | PAGE_FOREIGN) == 0) {
        *table.entry(flags).or_default() += 1;
    }
    table
}

#[test]
fn the_allocator_is_the_programs_up_to_each_capture() {
    let program = Program::new("blocks.c", &["-O2"]);
    let wanted: [(&str, &[u64]); 4] = [
        ("around", &[1]),
        ("step", &[1, 2]),
        ("fill", &[1, 4, 9, 11]),
        ("sum", &[3, 12]),
    ];
    let together = program.capture(&wanted, &[]);
    assert_eq!(together.runs, 3);
    for (function, invocations) in wanted {
        for invocation in invocations {
            let alone = program.capture(&[(function, &[*invocation])], &[]);
            let alone = alone.get(function, *invocation);
            let other = together.get(function, *invocation);
            assert_eq!(
                table(alone),
                table(other.finished()),
                "{function}:{invocation}"
            );
        }
    }
    // Six blocks of half a megabyte each, which went back to the kernel.
    for invocation in [1, 4, 9, 11] {
        let absent = together.get("fill", invocation).count(PAGE_ABSENT);
        assert!(absent > 700, "{invocation}: {absent}");
    }
}

#[test]
fn memory_that_a_captured_invocation_gave_back() {
    let program = Program::new("blocks.c", &["-O2"]);
    let together = program.capture(&[("scratch", &[1]), ("use", &[1])], &["apart"]);
    let postponed = &together.postponed[..];
    assert!(
        matches!(postponed, [p] if p.conflict == Conflict::Memory && p.captured.1 == 1),
        "{postponed:?}"
    );
    let alone = program.capture(&[("use", &[1])], &["apart"]);
    let (alone, together) = (alone.get("use", 1), together.get("use", 1));
    assert_eq!(alone.count(PAGE_TOUCHED | PAGE_ABSENT), 0);
    assert_eq!(table(alone), table(together));
}

#[test]
fn blocks_lie_as_the_program_places_them() {
    let program = Program::new("rows.c", &["-O2"]);
    let shown = String::from_utf8(program.plain(&["show"]).stdout).unwrap();
    let shown: Vec<i64> = shown.lines().map(|line| line.parse().unwrap()).collect();
    let distances = &shown[..199];
    let wanted: [(&str, &[u64]); 2] = [("allocate", &[1]), ("add", &[1, 2])];
    let run = program.capture(&wanted, &["keep"]);
    assert_eq!(run.runs, 2);
    let postponed = |p: &Postponed| p.conflict == Conflict::Blocks && p.captured.1 == 1;
    assert!(run.postponed.len() == 2 && run.postponed.iter().all(postponed));
    for invocation in [1, 2] {
        let capture = run.get("add", invocation);
        let rows = capture.address("rows");
        let row = |r: u64| capture.entry(rows + 8 * r) as i64;
        let found: Vec<i64> = (1..200).map(|r| row(r) - row(r - 1)).collect();
        assert_eq!(found, distances, "{invocation}");
    }
    // What was given back is in nobody's way.
    for given in ["give", "inside"] {
        let run = program.capture(&wanted, &[given]);
        assert_eq!((run.runs, run.postponed.len()), (1, 0), "{given}");
    }
}

/// Maximum number of pages that are opened ahead of a stream.
const AHEAD: usize = 31;

/// The pages of six areas of 400 pages each, touched in orders that are known.
#[test]
fn what_streams_touch_and_what_is_opened_ahead_of_them() {
    const PAGES: u64 = 400;
    let program = Program::new("streams.c", &["-O2"]);
    let run = program.capture(&[("touch_all", &[1])], &[]);
    let capture = run.get("touch_all", 1);
    assert!(capture.raw.faults < 500 + 5 * 40, "{}", capture.raw.faults);
    fn stream(page: u64) -> bool {
        (100..300).contains(&page)
    }
    type Pages = dyn Fn(u64) -> bool;
    let all: [(&str, &Pages, &Pages); 6] = [
        ("third", &|page| page % 3 == 0, &|_| false),
        ("rising", &stream, &|_| false),
        ("falling", &stream, &|_| false),
        ("scattered", &|page| page % 2 == 0, &|_| false),
        ("fifth", &stream, &|page| stream(page) && page % 5 == 0),
        ("written", &stream, &stream),
    ];
    for (area, touched, written) in all {
        let (mut beyond, mut unsure) = (0, 0);
        for page in 0..PAGES {
            let address = capture.address(area) + page * 4096;
            let flags = capture.flags(address);
            let known = flags & PAGE_TOUCHED != 0;
            assert!(!known || touched(page), "{area} {page}: {flags}");
            assert!(flags != 0 || !touched(page), "{area} {page}");
            beyond += usize::from(flags != 0 && !touched(page));
            unsure += usize::from(flags != 0 && !known && touched(page));
            assert_eq!(flags & PAGE_WRITTEN != 0, written(page), "{area} {page}");
            if flags != 0 {
                assert_eq!(capture.entry(address), page + 1, "{area} {page}");
                assert_eq!(capture.entry(address + 8), 0, "{area} {page}");
            }
            if written(page) {
                assert_eq!(capture.exit(address), page + 1, "{area} {page}");
                assert_eq!(capture.exit(address + 8), page, "{area} {page}");
            }
        }
        let most = match area {
            "third" | "scattered" => 0,
            _ => AHEAD,
        };
        assert!(
            beyond <= most && unsure <= most,
            "{area}: {beyond} {unsure}"
        );
    }
}

#[test]
fn memory_that_was_not_there_at_entry() {
    let program = Program::new("first.c", &["-O2"]);
    let run = program.capture(&[("fill", &[1, 2]), ("add", &[1, 2])], &[]);
    // The block's header shares the first page, the last one is not full.
    for (region, flags) in [
        (
            "fill",
            PAGE_TOUCHED | PAGE_WRITTEN | PAGE_EXIT_STORED | PAGE_ABSENT,
        ),
        ("add", PAGE_TOUCHED | PAGE_ABSENT),
    ] {
        let first = run.get(region, 1);
        // Pages that a stream may have touched at its end are not flagged as touched.
        let all = first.pages.values();
        let fresh = all.filter(|p| p.flags | PAGE_TOUCHED == flags).count();
        assert!((63..=64 + AHEAD).contains(&fresh), "{region}: {fresh}");
        assert_eq!(run.get(region, 2).count(PAGE_ABSENT), 0, "{region}");
    }
    let run = program.capture(&[("take", &[1]), ("borrow", &[1])], &[]);
    let fresh = run.get("take", 1).count(PAGE_TOUCHED | PAGE_ABSENT);
    assert!((62..=66).contains(&fresh), "{fresh}");
    let borrowed = run.get("borrow", 1);
    let heap = borrowed.raw.heap;
    let of_heap = |page: &&u64| (heap.0..heap.1).contains(*page);
    assert!(borrowed.pages.keys().filter(of_heap).count() > 60);
    // The end of what `take` got and did not touch.
    assert!(borrowed.count(PAGE_TOUCHED | PAGE_ABSENT) <= 1);
}

#[test]
fn recursion_back_into_the_region() {
    let program = Program::new("values.c", &["-O2"]);
    let run = program.capture(&[("count_down", &[1, 2, 3, 4])], &[]);
    assert_eq!(run.runs, 4);
    // counter[3] starts at 150 and grows by 2^n - 1 in count_down(n).
    for (i, both) in [
        (1, (150, 165)),
        (2, (151, 158)),
        (3, (152, 155)),
        (4, (153, 154)),
    ] {
        let capture = run.get("count_down", i).finished();
        assert_eq!(capture.both(capture.address("counter") + 24), both);
    }
}

#[test]
fn printing_is_captured() {
    let program = Program::new("outside.c", &["-O2"]);
    let run = program.capture(&[("print", &[1, 2])], &["print"]);
    let first = run.get("print", 1).finished();
    assert_eq!((first.calls("write"), first.calls("newfstatat")), (1, 1));
    assert_eq!(run.get("print", 2).calls("write"), 1);
}

#[test]
fn outside_state_is_refused_and_the_rest_goes_on() {
    let program = Program::new("outside.c", &["-O2"]);
    for (what, function, reason) in [
        (
            "read",
            "read_self",
            "calls openat: it depends on outside state",
        ),
        (
            "child",
            "start_child",
            "calls clone: it starts a thread or a process",
        ),
        (
            "signal",
            "wait_for_ticks",
            "a signal that the program handles arrives inside, and it goes on for long",
        ),
        (
            "catch",
            "crash",
            "it touches 0x0, which it may not, and the program's own handler of SIGSEGV runs: a replay has no such handler",
        ),
    ] {
        let run = program.capture(&[(function, &[1]), ("add", &[1])], &[what]);
        assert_eq!(run.refused(function, 1), reason);
        assert_eq!(run.get(function, 1).raw.end, RegionEnd::Never);
        run.get("add", 1).finished();
    }
}

#[test]
fn regions_that_never_end() {
    use std::os::unix::process::ExitStatusExt;
    let program = Program::new("outside.c", &["-O2"]);
    let run = program.capture(&[("crash", &[1])], &["crash"]);
    assert_eq!(run.output.status.signal(), Some(libc::SIGSEGV));
    assert!(
        run.refused("crash", 1)
            .starts_with("the program crashes inside")
    );
    let run = program.capture(&[("leave", &[1]), ("add", &[1])], &["jump"]);
    let left = &run.get("leave", 1).raw;
    assert_eq!(
        (left.end, left.refused.as_deref()),
        (RegionEnd::Never, None)
    );
    run.get("add", 1).finished();
    let run = program.capture(&[("end", &[1])], &["end"]);
    assert_eq!(run.output.status.code(), Some(9));
}

#[test]
fn allocation_inside_comes_from_the_region_heap() {
    for level in ["-O0", "-O2"] {
        let program = Program::new("heap.c", &[level]);
        let run = program.capture(&[("work", &[1, 2])], &[]);
        let first = run.get("work", 1);
        let heap = first.raw.heap.0..first.raw.heap.1;
        let kept = first.address("kept");
        for i in 0..64 {
            assert!(!heap.contains(&first.entry(kept + 8 * i)));
            assert!(heap.contains(&first.exit(kept + 8 * i)));
        }
        let aligned = first.exit(first.address("aligned"));
        assert!(heap.contains(&aligned) && aligned.is_multiple_of(4096));
        assert_eq!(u64::from_le_bytes(*b"CEREHEA1"), first.exit(heap.start));
        assert_eq!(first.entry(heap.start), 0);
        // The second one is captured by a run in which the program's allocator served the first one.
        let second = run.get("work", 2);
        let kept = second.address("kept");
        assert!(!heap.contains(&second.entry(kept)) && heap.contains(&second.exit(kept)));
        assert_eq!((run.runs, second.entry(heap.start)), (2, 0));
    }
}

#[test]
fn exceptions_inside_and_out() {
    let program = Program::new("throws.cpp", &["-O2"]);
    let run = program.capture(&[("add", &[1, 2]), ("tolerant", &[1])], &[]);
    let total = run.get("add", 1).address("total");
    for (invocation, exit) in [(1, 170), (2, 253)] {
        let capture = run.get("add", invocation);
        assert_eq!(capture.exit(total), exit, "{invocation}");
        assert_ne!(capture.raw.end, RegionEnd::Never);
    }
    run.get("tolerant", 1).finished();
}

#[test]
fn mappings_and_stacks_that_change_inside() {
    let program = Program::new("maps.c", &["-O2"]);
    let run = program.capture(&[("maps", &[1]), ("stacks", &[1])], &[]);
    let maps = run.get("maps", 1);
    assert_eq!(
        ["mmap", "mremap", "munmap"].map(|call| maps.calls(call)),
        [4; 3]
    );
    assert!(maps.raw.fresh.len() >= 4 && maps.count(PAGE_FRESH) > 0);
    let fixed = maps.entry(maps.address("fixed"));
    assert_eq!(maps.entry(fixed), u64::from_le_bytes([9; 8]));
    let moved = maps.exit(maps.address("fixed"));
    assert_eq!(maps.exit(moved + 3 * 4096) & 255, 10);
    let raw = &run.get("stacks", 1).raw;
    let stack = raw.mappings.iter().find(|m| m.path == "[stack]").unwrap();
    let grown = raw.fresh.iter().find(|f| f.1 == stack.start).unwrap();
    assert!(raw.entry.stack_pointer - grown.0 > 40 * 65536);
}

#[test]
fn other_threads_wait() {
    let program = Program::new("threads.c", &["-O2", "-pthread"]);
    let run = program.capture(&[("work", &[1, 2]), ("join", &[1])], &[]);
    let (first, second) = (run.get("work", 1), run.get("work", 2));
    let data = first.address("data");
    assert_eq!(first.both(data + 8), (0, 25 + 4096 * 300));
    assert_eq!(second.entry(data + 8), first.exit(data + 8));
    // It may find the threads at their ends.
    if let Some(reason) = &run.get("join", 1).raw.refused {
        assert!(reason.starts_with("calls pthread_join: "), "{reason}");
    }
}

#[test]
fn more_pages_than_mappings() {
    let program = Program::new("large.c", &["-O2", "-pthread"]);
    let run = program.capture(&[("scattered", &[1])], &["random", "540"]);
    let capture = run.get("scattered", 1).finished();
    let data = capture.entry(capture.address("data"));
    for page in (0..540 * 256).step_by(2) {
        let at = data + page * 4096;
        assert_eq!(capture.entry(at) as u32 as u64, page + 1);
        assert_eq!(capture.exit(at + 20) as u32 as u64, page);
    }
}

#[test]
fn memory_in_order() {
    let program = Program::new("large.c", &["-O2", "-pthread"]);
    let run = program.capture(&[("in_order", &[1])], &["order", "128"]);
    let capture = run.get("in_order", 1);
    let pages = 128 * 256;
    // A page is read, then written: but for the first, one fault serves both.
    assert!(capture.raw.faults < pages + 1000, "{}", capture.raw.faults);
    let data = capture.entry(capture.address("data"));
    for page in 0..pages {
        assert_eq!(capture.entry(data + page * 4096) as u32 as u64, page + 1);
        assert_eq!(capture.exit(data + page * 4096) as u32 as u64, page * 1024);
    }
}

/// What a capture keeps lies in a file: of it, and of the pages at exit that are kept beside other threads, the process holds a
/// window of 32 MiB and eight blocks of 2 MiB.
#[test]
fn the_peak_of_memory_is_the_programs_and_a_window() {
    const STATE: u64 = 160;
    let program = Program::new("large.c", &["-O2", "-pthread"]);
    let (size, file) = (STATE.to_string(), program.path().with_extension("peak"));
    for (order, region) in [
        ("order", "in_order"),
        ("beside", "in_order"),
        ("random", "scattered"),
    ] {
        let arguments = [order, &size, file.to_str().expect("a path")];
        let peak = || -> u64 {
            let text = std::fs::read_to_string(&file).expect("written");
            text.trim().parse().expect("KiB")
        };
        program.plain(&arguments);
        let plain = peak();
        let run = program.capture(&[(region, &[1])], &arguments);
        let capture = run.get(region, 1).finished();
        assert!(capture.count(PAGE_EXIT_STORED) as u64 >= STATE * 128);
        let (most, found) = (plain * 11 / 10 + (48 << 10), peak());
        assert!(found <= most, "{order}: {found} KiB, plain {plain}");
        let (data, step) = (
            capture.entry(capture.address("data")),
            [1, 2][usize::from(order == "random")],
        );
        for page in (0..STATE * 256).step_by(step) {
            let at = data + page * 4096;
            let (place, exit) = match order {
                "random" => (20, page),
                _ => (0, page * 1024),
            };
            assert_eq!(capture.entry(at) as u32 as u64, page + 1);
            assert_eq!(capture.exit(at + place) as u32 as u64, exit);
        }
    }
}

#[test]
fn without_address_space_the_program_runs_on() {
    let program = Program::new("values.c", &["-O2"]);
    let run = program.run(
        &[("step", &[1])],
        &mut program.shell("ulimit -v 2000000;", ""),
    );
    assert_eq!(run.output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&run.output.stderr);
    assert!(text.contains("the program runs uncaptured"), "{text}");
    assert_eq!(run.output.stdout, program.plain(&[]).stdout);
}

#[test]
fn invocations_that_do_not_happen_are_counted() {
    let program = Program::new("values.c", &["-O2"]);
    let run = program.capture(&[("step", &[1, 100])], &[]);
    assert_eq!(run.captures.len(), 1);
    assert_eq!(run.counts[0]["invocations"], 5);
}

#[test]
fn threads_and_processes_that_come_and_go() {
    let program = Program::new("crowd.c", &["-O2", "-pthread"]);
    for _ in 0..3 {
        let run = program.capture(
            &[("outer", &[1, 9, 20]), ("inner", &[3, 30, 175, 390])],
            &[],
        );
        assert_eq!(run.captures.len(), 7);
    }
}

#[test]
fn what_the_program_may_have_it_has() {
    let program = Program::new("rights.c", &["-O2", "-pthread"]);
    let loaded = Program::new("values.c", &["-O2", "-fPIC"]);
    let directory = program.path().parent().unwrap().join("plugins");
    std::fs::create_dir(&directory).unwrap();
    let link = |from: &Program, to: &std::path::Path, flag: &str| {
        let object = from.path().with_extension("o");
        let mut command = Command::new("clang-22");
        command.arg(object).args([flag, "-o"]).arg(to);
        assert!(command.status().unwrap().success());
    };
    link(&loaded, &directory.join("libloaded.so"), "-shared");
    link(&program, program.path(), "-Wl,-rpath,$ORIGIN/plugins");
    for what in ["vfork", "load", "lock", "guard", "map"] {
        let run = program.capture(&[("add", &[1])], &[what]);
        run.get("add", 1).finished();
    }
    let mut shell = program.shell("ulimit -s unlimited 2> /dev/null;", "threads");
    let run = program.run(&[("add", &[1])], &mut shell);
    assert_eq!(run.output.stdout, program.plain(&["threads"]).stdout);
    run.get("add", 1).finished();
    let run = program.capture(&[("sleep_on", &[1])], &["sleep"]);
    assert_eq!(
        run.refused("sleep_on", 1),
        "calls clock_nanosleep: it sleeps, and the program handles signals"
    );
    let run = program.capture(&[("overflow", &[1])], &["guard"]);
    assert!(
        run.refused("overflow", 1)
            .ends_with("the program's own handler of SIGSEGV runs: a replay has no such handler")
    );
}

#[test]
fn memory_that_moves_and_goes() {
    let program = Program::new("rights.c", &["-O2", "-pthread"]);
    let run = program.capture(&[("map", &[1])], &["map"]);
    let capture = run.get("map", 1).finished();
    // The sixteen pages that moved away: in the end nothing is there. Two of those that came were looked at.
    let left = PAGE_WRITTEN | PAGE_ENTRY_STORED | PAGE_EXIT_STORED | PAGE_FRESH | PAGE_STACK;
    let with = |flags| capture.flagged(left, flags);
    assert_eq!(with(PAGE_WRITTEN | PAGE_ENTRY_STORED), 16);
    assert_eq!(with(PAGE_WRITTEN | PAGE_EXIT_STORED | PAGE_FRESH), 2);
}

#[test]
fn a_limit_on_files_ends_the_capture_and_not_the_program() {
    let program = Program::new("values.c", &["-O2"]);
    let run = program.run(&[("step", &[1])], &mut program.shell("ulimit -f 2;", ""));
    assert_eq!(run.output.status.code(), Some(3));
    assert_eq!(run.output.stdout, program.plain(&[]).stdout);
    let run = program.run(
        &[("step", &[1])],
        &mut program.shell("ulimit -v 100000;", ""),
    );
    assert_eq!(run.output.status.code(), Some(3));
}

#[test]
fn handlers_enter_regions_as_soon_as_they_may() {
    let program = Program::new("ticks.c", &["-O2"]);
    let wanted: [(&str, &[u64]); 2] = [("work", &[1, 2, 3, 20, 40]), ("handle", &[1, 2, 3, 4])];
    let run = program.capture(&wanted, &[]);
    for invocation in wanted[0].1 {
        run.get("work", *invocation).finished();
    }
}

#[test]
fn a_program_with_functions_named_like_system_calls() {
    let program = Program::new("names.c", &["-O2"]);
    let run = program.capture(&[("work", &[1, 2])], &[]);
    assert_eq!(run.captures.len(), 2);
    for invocation in [1, 2] {
        let capture = run.get("work", invocation).finished();
        let made = 1000 * (invocation - 1);
        assert_eq!(capture.both(capture.address("calls")), (made, made + 1000));
    }
}

#[test]
fn system_calls_of_other_threads() {
    let program = Program::new("inside.c", &["-O2", "-pthread"]);
    // It may have written a part when it is interrupted.
    let run = program.capture(&[("work", &[1])], &["parts"]);
    assert_eq!(
        run.refused("work", 1),
        "another thread is inside writev, which reaches memory that a capture closes"
    );
    // Into memory that is closed, which it does again afterwards; into its own stack, which stays open; and calls that begin while
    // memory is closed.
    for what in ["wait", "stack", "calls"] {
        let run = program.capture(&[("work", &[1])], &[what]);
        run.get("work", 1).finished();
    }
}

#[test]
fn a_runtime_in_the_program() {
    let program = Program::new("built_in.c", &["-O2", "-fopenmp"]);
    let run = program.capture(&[("loop", &[1]), ("team", &[1]), ("around", &[1])], &[]);
    assert_eq!(run.get("loop", 1).finished().raw.openmp, None);
    for (function, invocation) in [("team", 1), ("around", 1)] {
        let refused = run.refused(function, invocation);
        assert!(refused.contains("-static-openmp"), "{refused}");
    }
}

#[test]
fn threads_that_take_long_to_join_the_team() {
    let program = Program::new("late.c", &["-O2", "-fopenmp"]).beside("slow_start.c");
    let run = program.capture(&[("around", &[1])], &[]);
    run.get("around", 1).finished();
}

#[test]
fn a_system_call_filter_ends_what_is_captured_and_not_the_program() {
    let program = Program::new("filter.c", &["-O2"]);
    for how in ["prctl", "syscall"] {
        let plain = program.plain(&[how]);
        assert!(plain.status.success());
        let mut command = Command::new(program.path());
        let run = program.run(&[("work", &[2, 3])], command.arg(how));
        assert_eq!(run.output.stdout, plain.stdout);
        assert_eq!(run.output.status, plain.status);
        let said = String::from_utf8_lossy(&run.output.stderr);
        assert!(said.contains("system call filter (seccomp)"), "{said}");
        assert_eq!(run.captures.len(), 1);
        assert_eq!(run.captures[0].raw.invocation, 2);
        assert_eq!(run.counts[0]["invocations"], 2);
    }
}

#[test]
fn signals_while_the_library_is_at_work() {
    let program = Program::new("nudged.c", &["-O2", "-fopenmp"]);
    // A thread that waits for itself hears of no signal but this.
    let capture = |wanted: &[(&str, &[u64])], what| {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "60"]).arg(program.path());
        let run = program.run(wanted, command.arg(what));
        assert_eq!(run.output.stdout, b"done\n", "{:?}", run.output);
        run
    };
    let rounds: Vec<u64> = (1..=60).collect();
    let wanted = [("use_locks", &rounds[..]), ("use_heap", &rounds[..])];
    let run = capture(&wanted, "nudges");
    assert_eq!(run.captures.len(), 120);
    let nudged = run.captures.iter().filter_map(|c| c.raw.refused.as_deref());
    let reason = "the program's other threads have to stand still while it runs, ";
    assert!(nudged.filter(|r| r.starts_with(reason)).count() > 60);
    let entries: Vec<u64> = (1..=150).collect();
    for _ in 0..3 {
        let run = capture(&[("handle", &entries)], "signals");
        assert_eq!(run.captures.len(), 150);
        let all = run.captures.iter();
        let mut reasons: Vec<&str> = all.filter_map(|c| c.raw.refused.as_deref()).collect();
        assert!((1..140).contains(&reasons.len()), "{}", reasons.len());
        reasons.dedup();
        assert_eq!(
            reasons,
            [
                "a signal handler of the program enters it where that has interrupted the capture library: \
                choose another invocation"
            ]
        );
    }
}

#[test]
fn memory_that_others_reach() {
    let program = Program::new("reached.c", &["-O2", "-pthread"]);
    for (what, has) in [
        ("uring", "an io_uring"),
        ("userfault", "a userfaultfd"),
        ("aio", "a context of io_setup (aio)"),
    ] {
        let run = program.capture(&[("work", &[1]), ("before", &[1])], &[what]);
        let reason = format!(
            "the program has {has}: its memory is reached from outside while a capture has it closed"
        );
        assert_eq!(run.refused("work", 1), reason, "{what}");
        assert_eq!(run.get("before", 1).raw.refused, None);
    }
}

#[test]
fn the_exit_is_what_the_region_left() {
    let program = Program::new("held.c", &["-O2", "-pthread"]);
    let rounds: Vec<u64> = (1..=3).collect();
    let run = program.capture(&[("work", &rounds)], &["writes"]);
    for round in rounds {
        let capture = run.get("work", round);
        assert_eq!(capture.raw.refused, None);
        let own = capture.address("both") + 4096 * 4096;
        assert_eq!(capture.both(own), (round - 1, round));
        // The other thread waits for the page from the entry on.
        let (entry, exit) = capture.both(own + 8);
        assert_eq!(entry, exit, "{round}");
    }
}

#[test]
fn rights_that_change_half_way() {
    let program = Program::new("held.c", &["-O2", "-pthread"]);
    let run = program.capture(&[("change", &[1]), ("add", &[1, 2])], &["hole"]);
    assert_eq!(
        run.refused("change", 1),
        "calls mprotect, which fails half way"
    );
    assert_eq!(run.get("add", 2).raw.refused, None);
}

#[test]
fn the_stack_is_the_users() {
    let mut program = Program::new("told.c", &["-O2", "-pthread"]);
    program.stack_limit = Some(8 << 20);
    let shell = |limit: &str| program.shell(&format!("ulimit -S -s {limit};"), "stack");
    let plain = shell("8192").output().unwrap();
    let run = program.run(&[("add", &[3])], &mut shell("$(ulimit -H -s)"));
    assert_eq!(run.output, plain);
    assert_eq!(program.profile_output(&mut shell("$(ulimit -H -s)")), plain);
}
