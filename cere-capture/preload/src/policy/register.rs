//! The process's number in its run. Ordinary code.

use crate::os::files::{self, File};
use cere_format::capture::Process;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

static NUMBER: AtomicU32 = AtomicU32::new(u32::MAX);

/// [`Process::number`] of this process; none while it has no regions.
pub fn process_number() -> Option<u32> {
    Some(NUMBER.load(Ordering::Relaxed)).filter(|number| *number != u32::MAX)
}

/// Takes the next free number of the run, and describes the process in its file.
pub fn claim_number(directory: &Path) -> Result<(), String> {
    for number in 0.. {
        let path = directory.join(format!("process.{number}.json"));
        let failed = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
        match File::create_new(&path) {
            Ok(mut file) => {
                NUMBER.store(number, Ordering::Relaxed);
                let text =
                    serde_json::to_vec(&describe_process(number)).map_err(|e| e.to_string())?;
                return file.write_all(&text).map_err(failed);
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Err("the run has too many processes".into())
}

fn describe_process(number: u32) -> Process {
    let text = files::read("/proc/self/cmdline").unwrap_or_default();
    let text = text.strip_suffix(&[0]).unwrap_or(&text);
    Process {
        number,
        id: std::process::id(),
        // Its name counts for telling processes apart alone.
        program: files::read_link("/proc/self/exe")
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
            .into(),
        arguments: text
            .split(|byte| *byte == 0)
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .collect(),
    }
}
