//! Against valgrind's cachegrind: the same program, its accesses as valgrind's lackey lists them, every miss equal.
//!
//! Cachegrind's model (its manual, 5.8; `cg_sim.c`): least recently used, no write-backs, a modified word is a read.
//! An access over two lines is one miss at most, and if it misses in the first level it looks up both lines in the last
//! one. So the caches are simulated one by one here, and an access that misses in a first one goes to the last one
//! whole. Instructions share the last level.

use cere_memory::geometry::Level;
use cere_memory::{Access, Geometry, Hierarchy, Options};
use std::path::Path;
use std::process::Command;

/// Bytes and ways.
type Cache = (u64, u32);

struct One(Hierarchy, u64);

impl One {
    fn new((size, ways): Cache) -> Self {
        let geometry = Geometry {
            name: "one".into(),
            levels: vec![Level::new("cache", size, ways)],
            tlbs: Vec::new(),
        };
        Self(Hierarchy::new(&geometry, &Options::default()).unwrap(), 0)
    }

    /// Whether a line of the access missed.
    fn misses(&mut self, access: Access) -> bool {
        self.0.access(0, access);
        let misses = self.0.counters().levels[0].misses();
        std::mem::replace(&mut self.1, misses) != misses
    }
}

/// Instructions, reads and writes: all, missed in the first level, missed in the last.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts([[u64; 3]; 3]);

fn output(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}; scripts/setup installs it"));
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{command:?}: {text}");
    text
}

fn cachegrind(program: &Path, file: &Path, first: [Cache; 2], last: Cache) -> Counts {
    let cache = |name: &str, (size, ways): Cache| format!("--{name}={size},{ways},64");
    output(
        Command::new("valgrind")
            .args(["--tool=cachegrind", &cache("I1", first[0])])
            .args([cache("D1", first[1]), cache("LL", last)])
            .arg(format!("--cachegrind-out-file={}", file.display()))
            .arg(program),
    );
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw"));
    let summary = text.lines().find_map(|l| l.strip_prefix("summary: "));
    let numbers: Vec<u64> = (summary.unwrap().split(' '))
        .map(|n| n.parse().unwrap())
        .collect();
    let three = |at: usize| [numbers[at], numbers[at + 1], numbers[at + 2]];
    Counts([three(0), three(3), three(6)])
}

/// Which of instructions (0), reads (1) and writes (2) a line of the trace is, and where.
fn parse(line: &str) -> Option<(usize, Access)> {
    let of = match line.get(..3)? {
        "I  " => 0,
        " L " | " M " => 1,
        " S " => 2,
        _ => return None,
    };
    let (address, size) = line[3..].split_once(',').unwrap();
    let address = u64::from_str_radix(address, 16).unwrap();
    let size = size.parse().unwrap();
    let access = match of {
        2 => Access::store(address, size),
        _ => Access::load(address, size),
    };
    Some((of, access))
}

fn simulate(trace: &str, first: [Cache; 2], last: Cache) -> Counts {
    let mut counts = Counts::default();
    let [mut instructions, mut data] = first.map(One::new);
    let mut last = One::new(last);
    for (of, access) in trace.lines().filter_map(parse) {
        let first = if of == 0 {
            &mut instructions
        } else {
            &mut data
        };
        let count = &mut counts.0[of];
        count[0] += 1;
        if first.misses(access) {
            count[1] += 1;
            count[2] += u64::from(last.misses(access));
        }
    }
    counts
}

#[test]
fn every_miss_is_cachegrinds() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/walks.c");
    let program = at("walks");
    output(
        Command::new("clang-22")
            .args(["-O1", "-static", "-nostdlib", "-fno-pic", "-march=x86-64"])
            .arg(source)
            .arg("-o")
            .arg(&program),
    );
    output(
        Command::new("valgrind")
            .args(["--tool=lackey", "--trace-mem=yes"])
            .arg(format!("--log-file={}", at("trace").display()))
            .arg(&program),
    );
    let trace = std::fs::read_to_string(at("trace")).unwrap();
    for kind in ["\nI  ", "\n L ", "\n S ", "\n M "] {
        assert!(trace.contains(kind), "no {kind:?} in the trace");
    }
    let straddle = |(_, a): &(usize, Access)| a.address % 64 + u64::from(a.size) > 64;
    assert!(trace.lines().filter_map(parse).filter(straddle).count() > 1000);
    for (first, last) in [
        ([(8 << 10, 2), (8 << 10, 2)], (64 << 10, 8)),
        ([(1 << 10, 1), (32 << 10, 8)], (128 << 10, 16)),
        ([(512, 8), (2 << 10, 32)], (32 << 10, 4)),
        ([(4 << 10, 4), (1 << 10, 1)], (512 << 10, 16)),
    ] {
        let found = simulate(&trace, first, last);
        let expected = cachegrind(&program, &at("counts"), first, last);
        assert_eq!(found, expected, "{first:?} {last:?}");
        println!("{first:?} {last:?}: {found:?}");
    }
}
