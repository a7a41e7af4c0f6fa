//! `cere try --watch`: in a terminal, and without one.

use crate::common::{built, directory_with, has, instrument, parsed, run, succeed, write};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const HEADER: &str = "static inline double weight(double x) { return x * 0.25; }\n";

/// A loop that does the same thing many times.
const AGAIN: &str = r#"
#include "weight.h"
#include <stdio.h>
#include <stdlib.h>
#define N 3000
__attribute__((noinline)) void again(double *a, double *b, int n, double c) {
    for (int t = 0; t < 20; t++)
        for (int i = 1; i < n - 1; i++)
            b[i] = weight(c) * (a[i - 1] + 2 * a[i] + a[i + 1]);
}
int main(void) {
    double *a = malloc(N * 8), *b = calloc(N, 8), s = 0;
    for (int i = 0; i < N; i++) a[i] = i % 7;
    for (int r = 0; r < 100; r++) { again(a, b, N, 1.0 + r * 1e-3); s += b[r]; }
    printf("%.15g\n", s);
}
"#;

/// The program with its loop captured.
fn captured() -> tempfile::TempDir {
    let directory = directory_with(&[("src/k.c", AGAIN), ("src/weight.h", HEADER)]);
    let at = directory.path();
    instrument(at, "$CC -O2 src/k.c -o k");
    succeed(at, "profile -- ./k");
    succeed(at, "capture again* --invocation 50 -- ./k");
    directory
}

/// Saves `src/k.c` with `from` replaced by `to`, as editors do.
fn save(at: &Path, from: &str, to: &str) {
    assert!(AGAIN.contains(from), "{from}");
    write(at, &[("src/.k.c.new", &AGAIN.replace(from, to))]);
    std::fs::rename(at.join("src/.k.c.new"), at.join("src/k.c")).expect("saved");
}

/// Longest wait for what a busy machine shows in a few seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// The command in a terminal of its own.
struct Terminal {
    child: Child,
    keys: File,
    written: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// The terminal's other end, held open so that its modes can be read at the end.
    end: OwnedFd,
    modes: Termios,
}

impl Terminal {
    fn start(at: &Path, words: &[&str]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keys).expect("granted");
        unlockpt(&keys).expect("unlocked");
        let size = Winsize {
            ws_row: 40,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&keys, size).expect("a size");
        let [rows, columns] =
            [size.ws_row, size.ws_col].map(|n| n.try_into().expect("some rows and columns"));
        let name = ptsname(&keys, Vec::new()).expect("a name");
        let mut options = File::options();
        let name = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
        let end = options.read(true).write(true).open(name).expect("open");
        let end = OwnedFd::from(end);
        let modes = tcgetattr(&end).expect("modes");
        let stdio = || Stdio::from(end.try_clone().expect("a copy"));
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(built())
            .args(words)
            .current_dir(at)
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .expect("it starts");
        let keys = File::from(keys);
        let mut read = keys.try_clone().expect("a copy");
        let (tell, written) = channel();
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(count @ 1..) = read.read(&mut block) {
                if tell.send(block[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            keys,
            written,
            screen: vt100::Parser::new(rows, columns, 0),
            end,
            modes,
        }
    }

    fn press(&mut self, key: u8) {
        self.keys.write_all(&[key]).expect("a key");
    }

    /// Waits until the screen shows all of `parts`, in a table that is complete.
    fn shows(&mut self, parts: &[&str]) -> String {
        loop {
            let screen = self.screen.screen().contents();
            let complete = screen.contains("q: quit");
            if complete && parts.iter().all(|part| screen.contains(part)) {
                return screen;
            }
            match self.written.recv_timeout(LIMIT) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(_) => panic!("no {parts:?} on the screen:\n{screen}"),
            }
        }
    }

    /// Waits for the end; the status, and whether the terminal is as it was.
    fn end(mut self) -> (ExitStatus, bool) {
        let status = self.child.wait().expect("it ends");
        let now = tcgetattr(&self.end).expect("modes");
        let modes = |of: &Termios| (of.input_modes, of.output_modes, of.local_modes);
        (status, modes(&now) == modes(&self.modes))
    }
}

#[test]
fn a_terminal_shows_each_save() {
    let directory = captured();
    let at = directory.path();
    let mut terminal = Terminal::start(at, &["try", "--watch", "--reps", "3"]);
    terminal.shows(&["No source of the chosen codelets differs"]);
    let during = tcgetattr(&terminal.end).expect("modes");
    assert_ne!(during.local_modes, terminal.modes.local_modes);

    save(at, "2 * a[i]", "3 * a[i]");
    let screen = terminal.shows(&["different"]);
    assert!(!screen.contains("best so far"), "{screen}");
    terminal.press(b'b');
    terminal.shows(&["Not frozen: a baseline has to be right"]);

    save(at, "a[i + 1]);", "a[i + 1])");
    let screen = terminal.shows(&["failed", "k.c:9:"]);
    let mut lines = screen
        .lines()
        .skip_while(|l| !l.contains("error: expected ';'"));
    has(lines.next().expect("clang's message"), "k.c:9:");
    has(lines.next().expect("the source"), "a[i + 1])");
    has(lines.next().expect("the caret"), "^");

    let fast = ("t < 20", "t < 1");
    save(at, fast.0, fast.1);
    let screen = terminal.shows(&["exact", "best so far: 0."]);
    assert!(!screen.contains("of baseline"), "{screen}");
    terminal.press(b'b');
    // The same code is not timed.
    terminal.shows(&["The baseline is this state", "baseline", "1.000 ± 0.000"]);

    save(at, fast.0, "t < 2");
    let screen = terminal.shows(&["exact", "baseline", "best so far: 0."]);
    let intervals = [" ± ", " to "].map(|between| screen.matches(between).count());
    assert!(intervals.iter().sum::<usize>() >= 2, "{screen}");
    let option = screen.rsplit_once(": cere try ").expect("a command").1;
    let option = option.lines().next().expect("a line").trim_end();
    terminal.press(b'q');
    let (status, restored) = terminal.end();
    assert!(status.success() && restored, "{status}");

    // The best one is kept, and can be tried.
    let kept = option.strip_prefix("--source ").expect("one file");
    assert!(Path::new(kept).starts_with(at.canonicalize().expect("a path").join(".cere/best")));
    let text = std::fs::read_to_string(kept).expect("a source");
    assert_eq!(text, AGAIN.replace(fast.0, fast.1));
    let tried = parsed(&run(at, &*format!("try --json --reps 3 {option}")));
    assert_eq!(tried[0]["verdict"], "exact", "{tried}");
}

#[test]
fn ctrl_c_leaves_the_terminal_as_it_was() {
    let directory = captured();
    let mut terminal = Terminal::start(directory.path(), &["try", "--watch", "--reps", "3"]);
    terminal.shows(&["No source"]);
    terminal.press(3);
    let (status, restored) = terminal.end();
    assert!(status.success() && restored, "{status}");
}

/// The command with pipes; each line that it prints is one document.
struct Piped {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Piped {
    fn start(at: &Path, words: &[&str]) -> Self {
        let mut child = Command::new(built())
            .args(words)
            .current_dir(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (tell, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).expect("one document a line");
                if tell.send(value).is_err() {
                    break;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    /// The next document for which `wanted` holds. All are as the schema says.
    fn until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let schema = include_str!("../../../../docs/schemas/watch.json");
        let schema = serde_json::from_str(schema).expect("JSON");
        let schema = jsonschema::draft202012::new(&schema).expect("a schema");
        loop {
            let document = self.lines.recv_timeout(LIMIT).expect("a document");
            assert!(schema.is_valid(&document), "{document:#}");
            if wanted(&document) {
                return document;
            }
        }
    }
}

#[test]
fn without_a_terminal_each_table_follows_the_last() {
    let directory = captured();
    let at = directory.path();
    let mut piped = Piped::start(at, &["try", "--watch", "--json", "--reps", "3"]);
    let verdict = |document: &Value| document["tried"][0]["verdict"].as_str().map(str::to_owned);
    assert!(verdict(&piped.until(|_| true)).is_none());
    // Headers are sources too; the last of several saves counts.
    write(at, &[("src/weight.h", &HEADER.replace("0.25", "0.5"))]);
    piped.until(|d| verdict(d).as_deref() == Some("different"));
    write(at, &[("src/weight.h", &HEADER.replace("0.25", "0.75"))]);
    write(
        at,
        &[("src/weight.h", &HEADER.replace("x * 0.25", "0.25 * x"))],
    );
    piped.until(|d| verdict(d).as_deref() == Some("exact"));
    std::fs::remove_file(at.join("src/k.c")).expect("a file");
    let gone = piped.until(|d| d["error"].is_string());
    has(&gone["error"].to_string(), "k.c is not there any more");
    save(at, "t < 20", "t < 1");
    let fast = piped.until(|d| verdict(d).as_deref() == Some("exact"));
    // Two files changed: a tree stands for both.
    let option = fast["best"][0]["option"].as_str().expect("a variant");
    has(option, "--dir ");
    save(at, "t < 20", "t < 20");
    let tried = parsed(&run(at, &*format!("try --json --reps 3 {option}")));
    assert_eq!(tried[0]["verdict"], "exact", "{tried}");
    // It ends when stdin does.
    piped.stdin = None;
    assert!(piped.child.wait().expect("it ends").success());
}
