//! Programs that confine themselves or handle their own faults are as they are without us: what they print, what they see of
//! themselves, how they end.

use super::support::{Program, Run};
use std::process::{Command, Output};

const BARRIER: &str = "the program's own handler of SIGSEGV runs";

/// A mode of `odd`, and why its `touch` cannot be captured, if the mode calls it.
const TABLE: [(&str, Option<&str>); 39] = [
    ("plain", None),
    ("fsize", None),
    ("fsize-core", None),
    ("nofile", None),
    ("nofile0", None),
    ("stack", None),
    ("cpu", None),
    ("memlock", None),
    ("nproc", None),
    ("user", None),
    ("user-as", None),
    ("root", None),
    ("close-all", None),
    ("close-by-one", None),
    ("descriptors", None),
    ("landlock", None),
    ("directory", None),
    ("umask", None),
    ("namespace", None),
    ("dumpable", None),
    ("space", None),
    ("data", None),
    ("guard", None),
    ("barrier", Some(BARRIER)),
    ("barrier-here", Some(BARRIER)),
    ("lazy", Some(BARRIER)),
    ("once", Some(BARRIER)),
    ("overflow", None),
    ("bus", None),
    ("traps", None),
    ("code", None),
    ("fork", None),
    ("vfork", None),
    ("spawn", None),
    ("system", None),
    ("exec", None),
    ("ticks", None),
    ("abort", None),
    ("kill", None),
];

fn text(output: &Output) -> String {
    let of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}{}{}",
        of(&output.stdout),
        of(&output.stderr),
        output.status
    )
}

/// The program, its limits as the command leaves them.
fn odd() -> Program {
    let mut program = Program::new("odd.c", &["-O2", "-w"]);
    program.stack_limit = Some(8 << 20);
    program
}

/// `odd` with the usual limit of the stack, or with the maximum, as the command has it.
fn command(program: &Program, what: &str, before: &str, limit: &str) -> Command {
    program.shell(&format!("{before} ulimit -S -s {limit};"), what)
}

fn three(program: &Program, what: &str, before: &str) -> (Output, Output, Run) {
    let raised = "$(ulimit -H -s)";
    let plain = command(program, what, before, "8192").output().unwrap();
    let profiled = program.profile_output(&mut command(program, what, before, raised));
    let wanted: [(&str, &[u64]); 2] = [("sweep", &[3]), ("touch", &[1])];
    let run = program.run(&wanted, &mut command(program, what, before, raised));
    (plain, profiled, run)
}

/// `sweep` is captured, by each process that runs it.
fn assert_captured(run: &Run, what: &str) {
    let of_sweep = run.captures.iter().filter(|c| c.function == "sweep");
    let refused: Vec<_> = of_sweep.map(|c| &c.raw.refused).collect();
    assert!(!refused.is_empty(), "{what}: {:?}", run.files);
    assert!(refused.iter().all(|r| r.is_none()), "{what}: {refused:?}");
}

#[test]
fn odd_programs() {
    let program = odd();
    for (what, reason) in TABLE {
        let (plain, profiled, run) = three(&program, what, "");
        assert_eq!(text(&profiled), text(&plain), "{what}, profiled");
        assert_eq!(text(&run.output), text(&plain), "{what}, captured");
        // The system lets the program not confine itself like that.
        if matches!(plain.status.code(), Some(20..40)) {
            continue;
        }
        assert_captured(&run, what);
        if let Some(reason) = reason {
            let refused = run.refused("touch", 1);
            assert!(refused.contains(reason), "{what}: {refused}");
        }
    }
}

#[test]
fn signals_that_are_ignored_or_blocked() {
    let program = odd();
    for before in ["trap '' INT XFSZ PIPE HUP URG;", "trap '' SEGV SYS TRAP;"] {
        let (plain, profiled, run) = three(&program, "fsize", before);
        assert_eq!(text(&profiled), text(&plain), "{before}");
        assert_eq!(text(&run.output), text(&plain), "{before}");
        assert_captured(&run, before);
    }
}
