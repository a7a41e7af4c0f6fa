//! Runs a program for its profile.

use super::ranks::{Of, Which, pick};
use crate::energy::Metered;
use crate::launch::{Finished, Launch, Output};
use crate::reads;
use anyhow::{Context, Result};
use cere_catalogue::{anyhow, bail};
use cere_format::capture::RunMode;
use cere_format::profile::{Profile, RegionKey, Stdin};
use cere_format::profile_raw::{
    RAW_DEPTH, RAW_PREFIX, RAW_THREADS, RawHeader, raw_files, read_raw,
};
use cere_format::store::Store;
use cere_store::build::image::{Image, Program};
use cere_store::build::virtual_machine;
use cere_store::commands;
use cere_store::names::{Names, named};
use cere_store::processes::Processes;
use cere_store::state;
use cere_system::events::Events;
use cere_system::process::supervise::shell_code;
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::process::ExitStatusExt as _;
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
    /// Why the run is not all that it would have been, if someone stopped it: by a signal to this command, or at the terminal.
    pub stopped: Option<String>,
    /// Notes for readers of the profile.
    pub notes: Vec<String>,
}

/// One run for its profile.
pub struct Run<'a> {
    /// The store that knows the program's regions; the caller holds its lock.
    pub store: &'a Store,
    /// The program.
    pub program: &'a Program,
    /// Another build of it that runs in its place.
    pub build: Option<&'a Path>,
    /// The process that the profile is of.
    pub which: &'a Which,
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
    /// Measures its energy.
    pub energy: Option<&'a Metered>,
    /// Told that it runs, if its output goes nowhere.
    pub events: &'a Events,
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
        build: run.build,
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
        energy: run.energy,
        events: run.events,
        beside: None,
    }
    .run()?;
    if let Some(late) = finished.late {
        bail!(E4016, "{late}");
    }
    // The profile up to here is useful, except for runs beside replays, of which there are several.
    let cut = finished.told.is_some() || finished.status.code().is_none();
    if let (Some(told), Some(_)) = (&finished.told, run.only) {
        bail!("{told}");
    }
    // The terminal interrupts the program alone, to which it is lent. One that handles that itself ends as it likes.
    let at_terminal = finished.status.signal() == Some(libc::SIGINT);
    let stopped = finished
        .told
        .clone()
        .or_else(|| at_terminal.then(|| format!("{} was interrupted", run.command[0])));
    let code = shell_code(finished.status);
    let mut processes = Processes::read(finished.directory.path())?;
    let key = processes.take_numbers();
    let profiles = of_processes(&finished, &processes, command, &mut names)?;
    let left = profiles.len();
    let Some((picked, others)) = pick(profiles, run.which) else {
        return Err(no_profile(run, code, left));
    };
    let Of {
        mut profile, path, ..
    } = picked;
    let mut notes = notes(&path)?;
    notes.extend(other_threads(&profile));
    if others > 0 {
        notes.push(format!(
            "{others} more processes of the run were instrumented; the profile is of the main one"
        ));
    }
    profile.program = match &program.image {
        Some(image) if program.is_direct() => image.hash.clone(),
        // Nothing but the run shows what a launcher starts.
        _ => Image::open(&profile.process.program, store)?.hash,
    };
    notes.extend(key.as_ref().map(|name| {
        format!("the variable {name} numbers the processes of the run: it stands for their rank")
    }));
    notes.extend(by_chance(&processes, &profile));
    profile.process_key = key.or_else(|| program.process_key.clone());
    profile.launched = processes.launched();
    notes.extend(profile.not_seen().map(|(silent, launched)| {
        format!(
            "{silent} of the {launched} processes that the launcher started left no profile: they ran no instrumented program, or were killed"
        )
    }));
    profile.by_rank = matches!(run.which, Which::Rank(_));
    profile.ended = (!finished.status.success()).then(|| finished.status.to_string());
    profile.input = reads::without_own_output(before, &reads::of(command));
    Ok(Collected {
        profile,
        code,
        cut,
        stopped,
        notes,
    })
}

/// The profiles that the `processes` of a run left.
fn of_processes(
    finished: &Finished,
    processes: &Processes,
    command: &[String],
    names: &mut Names,
) -> Result<Vec<Of>> {
    let directory = std::env::current_dir()?;
    let mut profiles = Vec::new();
    for path in raw_files(finished.directory.path())? {
        let mut profile = read_raw(&path, command.to_vec(), directory.clone(), &mut |key| {
            names.of(key)
        })?;
        let (id, number) = process_of(&path).unwrap_or_default();
        if let Some(process) = processes.by_number(number) {
            profile.process = processes.name(process);
        }
        profiles.push(Of {
            main: id == finished.pid,
            profile,
            path,
        });
    }
    Ok(profiles)
}

/// A note where no variable distinguishes the profiled process from others: the next run may show another one.
fn by_chance(processes: &Processes, profile: &Profile) -> Option<String> {
    let process = processes.find(&profile.process)?;
    processes.is_chance(process).then(|| {
        format!(
            "several processes ran `{}` beside one another, and nothing tells them apart: which of them is profiled or captured is chance. \
             Name a variable of their environment that does by --process-key",
            commands::shown(&process.arguments)
        )
    })
}

/// The number of the process in the name of its raw profile, behind its id.
fn process_of(path: &Path) -> Option<(u32, u32)> {
    let name = path.file_name()?.to_str()?.strip_prefix(RAW_PREFIX)?;
    let (id, number) = name.split_once('.')?;
    Some((id.parse().ok()?, number.parse().ok()?))
}

/// Why there is no profile, though `left` processes left one.
fn no_profile(run: &Run, code: u8, left: usize) -> anyhow::Error {
    let name = &run.command[0];
    match run.which {
        Which::Rank(rank) if left > 0 => {
            anyhow!(
                E2038,
                "no process of the run had the rank {rank}, or it ran no region: `cere profile` shows the ranks"
            )
        }
        Which::Same(process) if left > 0 => anyhow!(
            E2039,
            "the process that was profiled before ({}{}) is not in this run: the program does not start the same processes each time",
            process.arguments.join(" "),
            process
                .rank
                .as_ref()
                .map_or(String::new(), |rank| format!(", rank {rank}"))
        ),
        _ => {
            let why = match run.program.is_direct() {
                true => {
                    "it loaded no code that `cere instrument` built, or the preload library could not enter it (see its messages above)"
                }
                false if run.program.is_static() => {
                    "it is linked statically, so the preload library cannot enter it: link it without -static, and build it with `cere instrument`"
                }
                false => {
                    "it started no program that `cere instrument` built, or it does not pass the environment of this command on to the programs that it starts (LD_PRELOAD and CERE_RUN are needed), or those have the preload library refused (see its messages above)"
                }
            };
            let advice = virtual_machine::advice(name);
            let advice = advice.map_or(String::new(), |advice| format!(". About {name}: {advice}"));
            anyhow!(
                E2006,
                "{name} ended with status {code} without a profile: {why}{advice}"
            )
        }
    }
}

/// What ran in threads other than the first, outside teams.
fn other_threads(profile: &Profile) -> Option<String> {
    let (share, processor) = (profile.others_at_work()?, profile.processor?);
    Some(format!(
        "{:.1} % of the processor time ({:.3} of {:.3} s) is in threads other than the first: `cere select` and `cere check` count all threads",
        share * 100.0,
        processor.others(),
        processor.all
    ))
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
            offset_of!(RawHeader, threads_lost),
            format!("invocations are not timed: they came in threads beside {RAW_THREADS} others"),
        ),
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
