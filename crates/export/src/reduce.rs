//! The least IR that keeps what flags do wrong: llvm-reduce proposes, [`crate::probe`] decides.

use crate::keeps::{Keeps, instructions, without_promises};
use crate::probe::Probe;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_replay::Options;
use cere_toolchain::CompileError;
use cere_toolchain::command::{Line, run};
use cere_toolchain::unit::DIS;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const REDUCE: &str = "llvm-reduce-22";
/// Seconds that llvm-reduce gets to end after the last candidate.
const LATE: u64 = 120;
/// What llvm-reduce runs for each candidate: it hands the name over and waits for the status.
const TEST: &str = "#!/bin/sh\necho \"$1\" > ask\nread -r status < answer\nexit \"$status\"\n";

/// What a reduction came to.
#[derive(Debug)]
pub struct Reduced {
    /// The IR, as text.
    pub ir: String,
    /// Instructions before and after.
    pub instructions: (usize, usize),
    /// Lines before and after.
    pub lines: (usize, usize),
    /// Candidates that were tried.
    pub tried: u32,
    /// Whether it ended by itself, not by its time limit.
    pub finished: bool,
    /// Whether it is kept without the promises of the IR's arithmetic, such as `nsw`; none where that was not asked.
    pub without_promises: Option<bool>,
}

/// The smallest candidate that was accepted.
struct Best {
    text: String,
    tried: u32,
    late: bool,
}

/// A named pipe.
fn pipe(path: &Path) -> Result<File> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .with_context(|| format!("cannot create {}", path.display()))?;
    // Both ends, so that opening does not wait for the other side.
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.with_context(|| format!("cannot open {}", path.display()))
}

/// Reduces the probe's unit in `directory`, which is for this alone, within `limit`.
pub fn reduce(
    probe: &mut Probe,
    ir: &Path,
    keeps: Keeps,
    directory: &Path,
    limit: Duration,
    options: &Options,
) -> Result<Reduced> {
    let sandbox = &options.settings.sandbox;
    let start = directory.join("start.ll");
    let line = Line::new(DIS).confined(sandbox).path(ir).arg("-o");
    run(&line.output(&start), "the unit")?;
    let whole = text(&start)?;
    probe.note_text(&whole);
    if !probe.keeps(&start, &whole) {
        bail!(
            E6424,
            "what is to be kept was seen once and not again: it is not deterministic, or the time varies too much to reduce by it"
        );
    }
    let test = directory.join("test.sh");
    std::fs::write(&test, TEST).with_context(|| format!("cannot write {}", test.display()))?;
    let (ask, answer) = (
        pipe(&directory.join("ask"))?,
        pipe(&directory.join("answer"))?,
    );
    let line = Line::new(REDUCE)
        .confined(sandbox)
        .directory(directory)
        .arg("--test=/bin/sh")
        .args(["--test-arg=test.sh", "-j", "1"])
        .arg("-o")
        .output(&directory.join("reduced.ll"))
        .path(&start)
        .limit(limit + Duration::from_secs(LATE));
    let began = Instant::now();
    let until = began.checked_add(limit);
    let mut best = Best {
        text: whole.clone(),
        tried: 0,
        late: false,
    };
    let mut stop = ask.try_clone().context("cannot share a pipe")?;
    let ended = std::thread::scope(|scope| {
        let tool = scope.spawn(move || {
            let ended = run(&line, "the reduction");
            // The loop below waits for a candidate.
            let _ = stop.write_all(b"\n");
            ended
        });
        serve(probe, directory, (ask, answer), until, &mut best)?;
        tool.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(anyhow::Error::from)
    });
    match ended {
        Ok(_) => {}
        // What was accepted until then holds.
        Err(error) if best.late && error.is::<CompileError>() => {}
        Err(error) => return Err(error),
    }
    let plainer = without_promises(&best.text);
    let promises = directory.join("promises.ll");
    std::fs::write(&promises, &plainer)
        .with_context(|| format!("cannot write {}", promises.display()))?;
    let asked = keeps == Keeps::Different && plainer != best.text;
    Ok(Reduced {
        instructions: (instructions(&whole), instructions(&best.text)),
        lines: (whole.lines().count(), best.text.lines().count()),
        without_promises: asked.then(|| probe.keeps(&promises, &plainer)),
        ir: best.text,
        tried: best.tried,
        finished: !best.late,
    })
}

fn text(path: &Path) -> Result<String> {
    let read = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&read).into_owned())
}

/// Answers for each candidate until an empty line.
fn serve(
    probe: &Probe,
    directory: &Path,
    (ask, mut answer): (File, File),
    until: Option<Instant>,
    best: &mut Best,
) -> Result<()> {
    for line in BufReader::new(ask).lines() {
        let name = line.context("cannot read from llvm-reduce")?;
        if name.is_empty() {
            break;
        }
        let path: PathBuf = directory.join(name);
        best.late |= until.is_some_and(|until| Instant::now() >= until);
        let mut kept = false;
        // A candidate that cannot be read is none.
        if let Some(text) = text(&path).ok().filter(|_| !best.late) {
            best.tried += 1;
            kept = probe.keeps(&path, &text);
            if kept && text.len() <= best.text.len() {
                best.text = text;
            }
        }
        let status: &[u8] = match kept {
            true => b"0\n",
            false => b"1\n",
        };
        answer
            .write_all(status)
            .context("cannot answer llvm-reduce")?;
    }
    Ok(())
}
