//! The processes of a run that hold regions.

use crate::state;
use anyhow::{Context, Result};
use cere_format::capture::Process;
use cere_format::profile::ProcessName;
use std::path::Path;

/// In the order in which they first loaded regions.
pub struct Processes(Vec<Process>);

impl Processes {
    /// Reads what they left in the run's directory.
    pub fn read(directory: &Path) -> Result<Self> {
        let mut all: Vec<Process> = Vec::new();
        let entries = std::fs::read_dir(directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
            // One that was killed in between left an empty file.
            if name.starts_with("process.") && name.ends_with(".json") {
                all.extend(state::read_json::<Process>(&path));
            }
        }
        all.sort_by_key(|process| process.number);
        Ok(Self(all))
    }

    /// The one with the id `id` that `earlier` others had before it.
    pub fn by_id(&self, id: u32, earlier: usize) -> Option<&Process> {
        self.0.iter().filter(|p| p.id == id).nth(earlier)
    }

    /// The one of this number.
    pub fn by_number(&self, number: u32) -> Option<&Process> {
        self.0.iter().find(|p| p.number == number)
    }

    /// What identifies `process` among the others, in this run and the next.
    pub fn name(&self, process: &Process) -> ProcessName {
        let same = |p: &&Process| {
            p.number < process.number
                && p.program == process.program
                && p.arguments == process.arguments
        };
        ProcessName {
            program: process.program.clone(),
            arguments: process.arguments.clone(),
            before: self.0.iter().filter(same).count() as u32,
        }
    }

    /// The one that has this name.
    pub fn find(&self, name: &ProcessName) -> Option<&Process> {
        self.0.iter().find(|p| self.name(p) == *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_process_of_another_run() {
        let process = |number, id, argument: &str| Process {
            number,
            id,
            program: "/a".into(),
            arguments: vec!["a".into(), argument.into()],
        };
        let one = Processes(vec![
            process(0, 7, "x"),
            process(1, 8, "y"),
            process(2, 7, "x"),
        ]);
        let last = one.by_id(7, 1).expect("a process");
        assert_eq!((last.number, one.name(last).before), (2, 1));
        let other = Processes(vec![process(0, 5, "x"), process(1, 6, "x")]);
        assert_eq!(other.find(&one.name(last)).map(|p| p.number), Some(1));
        let y = one.by_number(1).expect("a process");
        assert_eq!(other.find(&one.name(y)), None);
    }
}
