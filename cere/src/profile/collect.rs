//! Runs a program for its profile and keeps that in the store.

use crate::image::Program;
use crate::launch::{Launch, Output};
use crate::names::{Names, named};
use crate::state;
use crate::supervise::shell_code;
use anyhow::{Context, Result, bail};
use cere_format::capture::RunMode;
use cere_format::profile::Profile;
use cere_format::profile_raw::{RAW_PREFIX, RawHeader, raw_files, read_raw};
use cere_format::store::Store;
use std::fs::File;
use std::path::Path;

/// A profile and how the program ended.
pub struct Collected {
    /// The profile, as kept in the store.
    pub profile: Profile,
    /// The program's exit status as a shell reports it.
    pub code: u8,
    /// What a reader of the profile should know.
    pub notes: Vec<String>,
}

/// Runs `command` and keeps its profile, with the times of the invocations `trace` if any come. The caller holds the
/// store's lock.
pub fn collect(
    store: &Store,
    program: &Program,
    command: &[String],
    timeout: Option<f64>,
    output: Output,
    input: Option<File>,
    trace: &[u64],
) -> Result<Collected> {
    let mut names = Names::new(store, &named(&state::current_units(store)?));
    let finished = Launch {
        store,
        program,
        command,
        mode: RunMode::Profile,
        trace,
        timeout,
        output,
        input,
    }
    .run()?;
    if let Some(late) = finished.late {
        bail!(late);
    }
    let code = shell_code(finished.status);
    let directory = std::env::current_dir()?;
    let mut profiles = Vec::new();
    for path in raw_files(finished.directory.path())? {
        let profile = read_raw(&path, command.to_vec(), directory.clone(), &mut |key| {
            names.of(key)
        })?;
        let main = path
            .file_name()
            .and_then(|n| n.to_str())
            .and_then(|n| n.strip_prefix(RAW_PREFIX))
            .and_then(|n| n.split('.').next())
            .is_some_and(|pid| pid == finished.pid.to_string());
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
    if others > 0 {
        notes.push(format!(
            "{others} more processes of the run were instrumented; the profile is of the main one"
        ));
    }
    profile.program = program.hash.clone();
    state::write_json(&store.profile(), &profile)?;
    Ok(Collected {
        profile,
        code,
        notes,
    })
}

/// What the raw profile's header says was left out.
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
    let mut notes = Vec::new();
    let threads = word(std::mem::offset_of!(RawHeader, other_threads));
    if threads > 0 {
        notes.push(format!(
            "{threads} probe events came from threads other than the first and are not timed"
        ));
    }
    let lost = word(std::mem::offset_of!(RawHeader, regions_lost));
    if lost > 0 {
        notes.push(format!(
            "{lost} invocations of regions beyond the table's end are not timed"
        ));
    }
    Ok(notes)
}
