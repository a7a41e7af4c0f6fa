//! The process's number in its run. Ordinary code.

use crate::os::files::{self, FileError};
use cere_format::capture::Process;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

static NUMBER: AtomicU32 = AtomicU32::new(u32::MAX);

/// [`Process::number`] of this process; none while it has no regions.
pub fn process_number() -> Option<u32> {
    Some(NUMBER.load(Ordering::Relaxed)).filter(|number| *number != u32::MAX)
}

/// Takes the next free number of the run, and describes the process in its file.
pub fn claim_number(directory: &Path) -> Result<(), FileError> {
    let path = |number| directory.join(format!("process.{number}.json"));
    let (number, mut file) = files::create_first(&path)?;
    NUMBER.store(number, Ordering::Relaxed);
    let mut process = describe_process(number);
    process.beside = (0..number).any(|other| runs_beside(&process, &path(other)));
    let text = serde_json::to_vec(&process).map_err(io::Error::from);
    text.and_then(|text| file.write_all(&text))
        .map_err(files::failed("write", &path(number)))
}

fn describe_process(number: u32) -> Process {
    let text = |bytes: OsString| bytes.to_string_lossy().into_owned();
    let line = files::read("/proc/self/cmdline").unwrap_or_default();
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    let arguments = line.split(|byte| *byte == 0);
    let program = files::read_link("/proc/self/exe").unwrap_or_default();
    let rank = cere_format::rank::own();
    Process {
        number,
        id: std::process::id(),
        // Its name counts for telling processes apart alone.
        program: program.to_string_lossy().into_owned().into(),
        arguments: arguments
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .collect(),
        numbers: match &rank {
            Some(_) => BTreeMap::new(),
            None => std::env::vars_os()
                .filter_map(|(name, value)| Some((text(name), text(value).parse().ok()?)))
                .collect(),
        },
        rank,
        launched: cere_format::rank::size(),
        beside: false,
    }
}

/// Whether the process that registered in `file` is another one like `process`, and still runs.
fn runs_beside(process: &Process, file: &Path) -> bool {
    // One that is about to write its file began at the same time: it counts.
    let other = files::read(file).map(|text| serde_json::from_slice::<Process>(&text));
    let Ok(Ok(other)) = other else {
        return true;
    };
    let same = other.program == process.program
        && other.arguments == process.arguments
        && other.rank == process.rank;
    let runs = || {
        files::read_link(format!("/proc/{}/exe", other.id)).is_ok_and(|exe| exe == *other.program)
    };
    same && other.id != process.id && runs()
}
