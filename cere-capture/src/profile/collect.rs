//! Runs a program for its profile.

use crate::launch::{Launch, Output};
use crate::reads;
use anyhow::{Context, Result, bail};
use cere_format::capture::RunMode;
use cere_format::profile::{Profile, RegionKey, Stdin};
use cere_format::profile_raw::{RAW_DEPTH, RAW_PREFIX, RawHeader, raw_files, read_raw};
use cere_format::store::Store;
use cere_store::build::image::Program;
use cere_store::names::{Names, named};
use cere_store::processes::Processes;
use cere_store::state;
use cere_system::process::supervise::shell_code;
use std::fs::File;
use std::mem::offset_of;
use std::path::Path;
use std::process::Stdio;

/// A profile and how the program ended.
pub struct Collected {
    /// The profile.
    pub profile: Profile,
    /// The program's exit status as a shell reports it.
    pub code: u8,
    /// Whether a signal ended the run before its end, the program's or one to this command.
    pub cut: bool,
    /// Notes for readers of the profile.
    pub notes: Vec<String>,
}

/// One run for its profile.
pub struct Run<'a> {
    /// The store that knows the program's regions; the caller holds its lock.
    pub store: &'a Store,
    /// The program.
    pub program: &'a Program,
    /// Program and arguments as given.
    pub command: &'a [String],
    /// End it after this many seconds.
    pub timeout: Option<f64>,
    /// Where its output goes.
    pub output: Output,
    /// Further invocations whose times are kept for every region.
    pub trace: &'a [u64],
    /// The regions to time; none: all.
    pub only: Option<&'a [RegionKey]>,
    /// Environment variables in addition to this command's.
    pub environment: &'a [(String, String)],
}

/// Runs a program, which reads `input` if that is not this command's stdin.
pub fn collect(run: &Run, input: Option<Stdio>) -> Result<Collected> {
    let Run {
        store,
        program,
        command,
        ..
    } = *run;
    let mut names = Names::new(store, &named(&state::current_units(store)?));
    let mut before = reads::of(command);
    if input.is_some() {
        before.stdin = Stdin::Unknown;
    }
    let finished = Launch {
        store,
        program,
        command,
        mode: match run.only {
            None => RunMode::Profile,
            Some(these) => RunMode::Time(these.to_vec()),
        },
        trace: run.trace,
        timeout: run.timeout,
        output: run.output,
        environment: run.environment,
        input,
        beside: None,
    }
    .run()?;
    if let Some(late) = finished.late {
        bail!(late);
    }
    // The profile up to here is useful, except for runs beside replays, of which there are several.
    let cut = finished.told.is_some() || finished.status.code().is_none();
    if let (Some(told), Some(_)) = (finished.told, run.only) {
        bail!(told);
    }
    let code = shell_code(finished.status);
    let directory = std::env::current_dir()?;
    let processes = Processes::read(finished.directory.path())?;
    let mut profiles = Vec::new();
    for path in raw_files(finished.directory.path())? {
        let mut profile = read_raw(&path, command.to_vec(), directory.clone(), &mut |key| {
            names.of(key)
        })?;
        let (id, earlier) = process_of(&path).unwrap_or_default();
        if let Some(process) = processes.by_id(id, earlier) {
            profile.process = processes.name(process);
        }
        let main = id == finished.pid;
        profiles.push((main, profile.coverage * profile.seconds, profile, path));
    }
    let others = profiles.len().saturating_sub(1);
    // The program itself, unless it only starts the one that computes.
    let Some((_, _, mut profile, path)) = profiles.into_iter().max_by(|a, b| {
        (a.0 && a.1 > 0.0, a.1)
            .partial_cmp(&(b.0 && b.1 > 0.0, b.1))
            .unwrap_or(std::cmp::Ordering::Equal)
    }) else {
        bail!(
            "{} ended with status {code} without a profile: it loaded no code that `cere instrument` built, or the preload library could not enter it (see its messages above)",
            command[0]
        );
    };
    let mut notes = notes(&path)?;
    notes.extend(other_threads(&profile));
    if others > 0 {
        notes.push(format!(
            "{others} more processes of the run were instrumented; the profile is of the main one"
        ));
    }
    profile.program = program.hash.clone();
    profile.ended = (!finished.status.success()).then(|| finished.status.to_string());
    profile.input = reads::without_own_output(before, &reads::of(command));
    Ok(Collected {
        profile,
        code,
        cut,
        notes,
    })
}

/// The process id in the name of a raw profile, and how many processes had the same id before.
fn process_of(path: &Path) -> Option<(u32, usize)> {
    let name = path.file_name()?.to_str()?.strip_prefix(RAW_PREFIX)?;
    let (id, earlier) = name.split_once('.')?;
    Some((id.parse().ok()?, earlier.parse().ok()?))
}

/// Share of the processor time in other threads from which on it is reported.
const NOTABLE: f64 = 0.01;
/// Regions that are named.
const NAMED: usize = 5;

/// What ran in threads other than the first, outside teams.
fn other_threads(profile: &Profile) -> Option<String> {
    let share = profile.processor.map_or(0.0, |p| p.other_share());
    let regions = &profile.elsewhere;
    if share < NOTABLE && regions.is_empty() {
        return None;
    }
    let known = profile.processor.map(|p| {
        format!(
            "{:.1} % of the processor time ({:.3} of {:.3} s) is in threads other than the first, which are not timed",
            share * 100.0,
            p.others(),
            p.all
        )
    });
    let mut text = known.unwrap_or_else(|| "threads other than the first are not timed".into());
    if !regions.is_empty() {
        let names = regions.iter().take(NAMED);
        let names: Vec<String> = names
            .map(|e| format!("{} ({} times)", e.name, e.entries))
            .collect();
        text.push_str(&format!("; regions that ran there: {}", names.join(", ")));
        if regions.len() > NAMED {
            text.push_str(&format!(" and {} more", regions.len() - NAMED));
        }
    }
    Some(text)
}

/// Notes on what the raw profile lacks, from its header.
fn notes(path: &Path) -> Result<Vec<String>> {
    use std::io::Read;
    let mut header = [0; size_of::<RawHeader>()];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut header))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let word = |offset: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[offset..offset + 8]);
        u64::from_le_bytes(bytes)
    };
    let counts = [
        (
            offset_of!(RawHeader, regions_lost),
            "invocations of regions for which there was no room are not timed".to_owned(),
        ),
        (
            offset_of!(RawHeader, depth_lost),
            format!(
                "invocations inside {RAW_DEPTH} active ones, or more than there was room for, are neither counted nor timed: their time is their caller's"
            ),
        ),
        (
            offset_of!(RawHeader, interrupted),
            "invocations in signal handlers came while a probe was at work and are neither counted nor timed".to_owned(),
        ),
    ];
    let notes = counts
        .into_iter()
        .map(|(offset, what)| (word(offset), what));
    let mut notes: Vec<String> = notes
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if word(offset_of!(RawHeader, full)) != 0 {
        let lost = word(offset_of!(RawHeader, times_lost));
        notes.push(format!(
            "the disk that holds the store was full: the single times of {lost} invocations were not kept, and regions or \
             callers that came later may be missing. Make room, or name another --store, and profile again"
        ));
    }
    Ok(notes)
}
