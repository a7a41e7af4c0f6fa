//! What the command reads itself, changed at random: records of replays and packages. It ends with a
//! message or well, under a limit of memory.

mod common;

use cere_testing::{Random, campaign, change, package};
use common::{cere, text, write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;

/// Bytes of address space that the command has: its own code, LLVM's among it, takes a part.
const SPACE: u64 = 1 << 30;
/// Seconds of processor time.
const SECONDS: u64 = 20;

/// Whether the command ends well; fails if it ends otherwise than by itself.
fn ends(directory: &Path, arguments: &[&str]) -> bool {
    let mut command = cere(directory, arguments);
    let limit = || {
        for (resource, most) in [(libc::RLIMIT_AS, SPACE), (libc::RLIMIT_CPU, SECONDS)] {
            let limit = libc::rlimit {
                rlim_cur: most,
                rlim_max: most,
            };
            // SAFETY: a structure on the stack.
            unsafe { libc::setrlimit(resource, &limit) };
        }
        Ok(())
    };
    // SAFETY: system calls only.
    unsafe { command.pre_exec(limit) };
    let output = command.output().expect("cere runs");
    let message = text(&output.stderr);
    assert_eq!(output.status.signal(), None, "{arguments:?}: {message}");
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    let all = format!("{message}{}", text(&output.stdout));
    let odd = |c: char| c.is_control() && c != '\n';
    assert!(!all.contains(odd), "{arguments:?}: {all:?}");
    output.status.success()
}

fn bytes(path: &Path, random: &mut Random, original: &[u8]) {
    let mut bytes = original.to_vec();
    (0..=random.below(4)).for_each(|_| change::records(&mut bytes, 16, random));
    std::fs::write(path, bytes).expect("a file");
}

#[test]
fn listed_packages() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    std::fs::create_dir_all(at.join(".cere/codelets")).expect("a directory");
    let file = at.join(".cere/codelets/x.codelet");
    campaign("listed packages", 60, |random| {
        let mut manifest = package::manifest();
        (0..=random.below(3)).for_each(|_| change::json(&mut manifest, random));
        let manifest = manifest.to_string();
        let whole = package::package(manifest.as_bytes(), &package::members(), None);
        std::fs::write(&file, whole).expect("a file");
        ends(at, &["codelets"])
    });
}

#[test]
fn records_of_replays() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    write(at, &[(".cere/codelets/none", "")]);
    // A package that cannot be compiled leaves a record of its failure.
    let whole = package::package(
        package::manifest().to_string().as_bytes(),
        &package::members(),
        None,
    );
    std::fs::write(at.join("x.codelet"), whole).expect("a file");
    assert!(!ends(at, &["replay", "x.codelet"]));
    let file = at.join(".cere/results.db");
    let original = std::fs::read(&file).expect("records");
    campaign("records of replays", 40, |random| {
        bytes(&file, random, &original);
        let arguments: &[&str] = if random.once_in(2) {
            &["results"]
        } else {
            &["results", "--json"]
        };
        ends(at, arguments)
    });
    // Whatever a column holds.
    campaign("columns of records", 40, |random| {
        std::fs::write(&file, &original).expect("a file");
        let connection = rusqlite::Connection::open(&file).expect("records");
        let statement = connection
            .prepare("SELECT * FROM replays")
            .expect("the table");
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let name = random.one(&names).clone();
        let value: Box<dyn rusqlite::ToSql> = match random.below(4) {
            0 => Box::new(random.number(1) as i64),
            1 => Box::new("\u{1b}[2J\n"),
            2 => Box::new(f64::NAN),
            _ => Box::new(rusqlite::types::Null),
        };
        drop(statement.finalize());
        let _ = connection.execute(&format!("UPDATE replays SET {name} = ?1"), [value]);
        drop(connection);
        ends(at, &["results"])
    });
}
