//! Messages between cores by MPI (Servet, III.D), where there is one.

use super::cores::{self, disjoint};
use super::group::Pair;
use super::part::Cores;
use super::talk::{LONG, layers};
use crate::bandwidth::Deadline;
use crate::document::{self, curve};
use crate::session::Session;
use cere_format::machine::{Curve, Found, Layer};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const SOURCE: &str = include_str!("ping.c");

/// What was measured by MPI.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Layers; none where there is a note.
    pub layers: Vec<Layer>,
    /// How they were found. The index counts from the first layer by MPI.
    pub found: Vec<Found>,
    /// Bandwidth by size of message.
    pub curves: Vec<Curve>,
    /// Why nothing was measured.
    pub notes: Vec<String>,
}

/// A program in PATH.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|directory| directory.join(name));
    all.find(|file| file.is_file())
}

/// Why nothing was measured by MPI.
#[derive(Debug, thiserror::Error)]
enum MpiError {
    #[error("no time was left to run {0}: allow more, by --seconds")]
    NoTime(String),
    #[error("{name} took longer than {seconds:.1} s: allow more, by --seconds")]
    TooLong { name: String, seconds: f64 },
    #[error("{what}: {source}")]
    System {
        what: String,
        source: std::io::Error,
    },
    #[error("{name} failed ({status}): {said}")]
    Failed {
        name: String,
        status: ExitStatus,
        said: String,
    },
    #[error("mpirun gave no times: {0}")]
    NoTimes(String),
}

/// Runs a command for at most `seconds`; its output, or what went wrong.
fn run(command: &mut Command, seconds: f64) -> Result<String, MpiError> {
    let name = command.get_program().to_string_lossy().into_owned();
    if seconds < 0.05 {
        return Err(MpiError::NoTime(name));
    }
    let system = |source| MpiError::System {
        what: name.clone(),
        source,
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // A group of its own: all its ranks end with it.
    command.stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(system)?;
    let group = child.id() as i32;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let text = |from: &mut dyn Read| {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    std::thread::scope(|scope| {
        let out = scope.spawn(move || out.as_mut().map(|o| text(o)).unwrap_or_default());
        let err = scope.spawn(move || err.as_mut().map(|e| text(e)).unwrap_or_default());
        let end = std::time::Instant::now() + Duration::from_secs_f64(seconds.max(0.0));
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(system(error)),
                Ok(None) if std::time::Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(None) => {
                    let name = name.clone();
                    break Err(MpiError::TooLong { name, seconds });
                }
            }
        };
        // SAFETY: signals the group of a child of our own; after its end the group holds at most ranks that it left behind.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = child.wait();
        let (out, err) = (
            out.join().unwrap_or_default(),
            err.join().unwrap_or_default(),
        );
        match status? {
            status if status.success() => Ok(out),
            status => {
                let lines = err.lines().chain(out.lines());
                let said = lines
                    .filter(|l| l.chars().any(char::is_alphanumeric))
                    .take(3);
                let said = said.collect::<Vec<_>>().join(" ");
                let name = name.clone();
                Err(MpiError::Failed { name, status, said })
            }
        }
    })
}

/// Options of `mpirun` that let it start ranks anywhere, by what it says of its version: ranks bind themselves.
fn options(version: &str) -> &'static [&'static str] {
    if version.contains("Open MPI") || version.contains("OpenRTE") {
        &[
            "--allow-run-as-root",
            "--oversubscribe",
            "--bind-to",
            "none",
        ]
    } else if version.contains("HYDRA") {
        &["-bind-to", "none"]
    } else {
        &[]
    }
}

/// Seconds of each phase, by its number, from the output.
fn parse(output: &str, phases: usize) -> Option<Vec<f64>> {
    let mut found = vec![None; phases];
    for line in output.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("cere") {
            continue;
        }
        let (phase, seconds) = (
            words.next()?.parse::<usize>().ok()?,
            words.next()?.parse().ok()?,
        );
        *found.get_mut(phase)? = Some(seconds);
    }
    let seconds = |value: Option<f64>| value.filter(|s| s.is_finite() && *s > 0.0);
    found.into_iter().map(seconds).collect()
}

/// Starts ranks.
struct Ranks<'a> {
    mpirun: &'a Path,
    program: PathBuf,
    options: &'static [&'static str],
    cores: &'a [u32],
}

impl Ranks<'_> {
    fn phase(&self, bytes: u64, batches: usize, pairs: &[Pair]) -> String {
        let rank = |core: u32| self.cores.iter().position(|c| *c == core).unwrap_or(0);
        let pairs = pairs
            .iter()
            .map(|(a, b)| format!("{}-{}", rank(*a), rank(*b)));
        let pairs: Vec<String> = pairs.collect();
        let rounds = ((256 << 10) / bytes.max(1)).clamp(2, 64);
        format!("{bytes}:{rounds}:{batches}:{}", pairs.join(","))
    }

    fn run(&self, phases: &[String], seconds: f64) -> Result<Vec<f64>, MpiError> {
        let list: Vec<String> = self.cores.iter().map(u32::to_string).collect();
        let mut command = Command::new(self.mpirun);
        command
            .args(self.options)
            .arg("-np")
            .arg(list.len().to_string());
        command.arg(&self.program).arg(list.join(",")).args(phases);
        let output = run(&mut command, seconds)?;
        let said = output.lines().next().unwrap_or("nothing");
        parse(&output, phases.len()).ok_or_else(|| MpiError::NoTimes(said.to_owned()))
    }
}

/// Measures the layers of communication by MPI for messages of `bytes`. A note where there is none, or it fails.
pub fn measure(session: &Session, bytes: u64, all: &Cores, deadline: &Deadline) -> Measured {
    let (mpirun, mpicc) = (in_path("mpirun"), in_path("mpicc"));
    let (Some(mpirun), Some(mpicc)) = (&mpirun, &mpicc) else {
        let missing = if mpirun.is_none() { "mpirun" } else { "mpicc" };
        return Measured {
            notes: vec![format!(
                "no {missing} in PATH: communication by MPI was not measured"
            )],
            ..Measured::default()
        };
    };
    session.step("messages by MPI");
    with(session, (mpirun, mpicc), bytes, all, deadline).unwrap_or_else(|why| Measured {
        notes: vec![format!("communication by MPI was not measured: {why}")],
        ..Measured::default()
    })
}

fn with(
    session: &Session,
    (mpirun, mpicc): (&Path, &Path),
    bytes: u64,
    all: &Cores,
    deadline: &Deadline,
) -> Result<Measured, MpiError> {
    let system = |what: &str, source| MpiError::System {
        what: what.to_owned(),
        source,
    };
    let directory = tempfile::tempdir().map_err(|e| system("no temporary directory", e))?;
    let (source, program) = (
        directory.path().join("ping.c"),
        directory.path().join("ping"),
    );
    std::fs::write(&source, SOURCE).map_err(|e| system(&source.to_string_lossy(), e))?;
    let mut compile = Command::new(mpicc);
    run(
        compile.args(["-O2", "-o"]).arg(&program).arg(&source),
        deadline.left(),
    )?;
    let version = run(Command::new(mpirun).arg("--version"), deadline.left())?;
    let ranks = Ranks {
        mpirun,
        program,
        options: options(&version),
        cores: &all.measured,
    };
    let pairs = cores::pairs(&all.measured);
    let batches = session.pick(10, 30);
    let phases = pairs
        .iter()
        .map(|pair| ranks.phase(bytes, batches, &[*pair]));
    let latencies = ranks.run(&phases.collect::<Vec<_>>(), deadline.left())?;
    let (mut layers, apart) = layers("mpi", bytes, &pairs, &latencies);
    let mut measured = Measured::default();
    match fill(&ranks, &mut layers, batches, deadline) {
        Ok((curves, again)) => {
            measured.curves = curves;
            // The first pair of each layer twice, in two runs: they should agree.
            let close = layers.iter().zip(&again);
            let close = close.map(|(l, again)| (again / first(l, &pairs, &latencies)).ln().abs());
            let worst = close.fold(0.0, f64::max);
            let repeated = (1.0 - 2.0 * worst).clamp(0.0, 1.0);
            measured.found = found(layers.len(), repeated * apart);
        }
        Err(why) => {
            measured.found = found(layers.len(), 0.3 * apart);
            measured
                .notes
                .push(format!("bandwidth by MPI was not measured: {why}"));
        }
    }
    measured.layers = layers;
    Ok(measured)
}

fn first(layer: &Layer, pairs: &[Pair], latencies: &[f64]) -> f64 {
    let at = pairs
        .iter()
        .position(|pair| Some(pair) == layer.pairs.first());
    at.map_or(layer.latency_seconds, |at| latencies[at])
}

fn found(layers: usize, confidence: f64) -> Vec<Found> {
    let how = "messages there and back between ranks bound to pairs of cores; latencies within 15 % are one layer";
    let one = |at| document::found(format!("mpi.layers[{at}]"), confidence, how);
    (0..layers).map(one).collect()
}

/// Long messages and all pairs at once, in a second run; the latency of each layer's first pair again.
fn fill(
    ranks: &Ranks,
    layers: &mut [Layer],
    batches: usize,
    deadline: &Deadline,
) -> Result<(Vec<Curve>, Vec<f64>), MpiError> {
    let mut phases = Vec::new();
    for layer in layers.iter() {
        let first = &layer.pairs[..1];
        phases.push(ranks.phase(layer.bytes, batches, first));
        phases.extend(LONG.iter().map(|bytes| ranks.phase(*bytes, batches, first)));
        phases.push(ranks.phase(layer.bytes, batches, &disjoint(&layer.pairs)));
    }
    let seconds = ranks.run(&phases, deadline.left())?;
    let (mut curves, mut again) = (Vec::new(), Vec::new());
    for (layer, times) in layers.iter_mut().zip(seconds.chunks(LONG.len() + 2)) {
        let points = LONG.iter().zip(&times[1..]);
        let points: Vec<(f64, f64)> = points
            .map(|(bytes, time)| (*bytes as f64, *bytes as f64 / time))
            .collect();
        layer.bytes_per_second = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let many = disjoint(&layer.pairs).len() > 1;
        layer.slowdown = many.then(|| times[LONG.len() + 1] / times[0]);
        again.push(times[0]);
        let (a, b) = layer.pairs[0];
        let name = format!("Messages by MPI between cores {a} and {b}");
        let titles: [&str; 3] = [&name, "bytes of a message", "bytes per second"];
        curves.push(curve(titles, points, None));
    }
    Ok((curves, again))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output() {
        let text = "a warning\ncere 1 2.5e-6\ncere 0 1e-6\n";
        assert_eq!(parse(text, 2), Some(vec![1e-6, 2.5e-6]));
        assert_eq!(parse(text, 3), None, "a phase is missing");
        assert_eq!(parse("cere 7 1e-6\n", 1), None);
        assert_eq!(parse("cere 0 nan\n", 1), None);
        assert!(options("mpirun (Open MPI) 4.1.4\n").contains(&"--bind-to"));
        assert!(options("HYDRA build details:\n").contains(&"-bind-to"));
    }

    #[test]
    fn commands_end_in_time_and_say_why_they_fail() {
        assert_eq!(run(Command::new("echo").arg("a"), 5.0).unwrap(), "a\n");
        let error = run(Command::new("sleep").arg("100"), 0.05).unwrap_err();
        assert!(matches!(error, MpiError::TooLong { .. }), "{error}");
        let error = run(
            Command::new("sh").args(["-c", "echo because >&2; exit 3"]),
            5.0,
        );
        assert!(error.unwrap_err().to_string().contains("because"));
        assert!(run(&mut Command::new("/no/such"), 1.0).is_err());
    }

    #[test]
    fn with_mpi_and_without() {
        let _quiet = crate::sharing::tests::quiet();
        let session = Session::new(true, 30.0, &|_| {});
        let measured = crate::place::usable();
        let all = Cores {
            allowed: measured.len(),
            measured,
        };
        if all.measured.len() < 2 {
            return;
        }
        let deadline = Deadline::within(&session, 20.0);
        let found = measure(&session, 32 << 10, &all, &deadline);
        if in_path("mpirun").is_some() && in_path("mpicc").is_some() {
            assert!(!found.layers.is_empty(), "{found:?}");
            assert!(
                found
                    .layers
                    .iter()
                    .all(|l| l.bytes_per_second > 0.0 && l.by == "mpi")
            );
        } else {
            assert!(found.notes[0].contains("not measured"), "{found:?}");
        }
        let none = with(
            &session,
            (Path::new("/no/mpirun"), Path::new("/no/mpicc")),
            64,
            &all,
            &deadline,
        );
        assert!(none.unwrap_err().to_string().contains("/no/mpicc"));
    }
}
