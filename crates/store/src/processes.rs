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

    /// A variable that numbers the processes which nothing else tells apart, if there is one: each of them has another number, from 0 or
    /// from 1 on. It becomes their rank.
    pub fn take_numbers(&mut self) -> Option<String> {
        let unknown = |p: &&Process| p.rank.is_none();
        let first = self.0.iter().filter(unknown).find(|p| p.beside)?;
        let (program, arguments) = (first.program.clone(), first.arguments.clone());
        let alike =
            |p: &Process| p.rank.is_none() && p.program == program && p.arguments == arguments;
        let group: Vec<&Process> = self.0.iter().filter(|p| alike(p)).collect();
        let numbers = |name: &String| {
            let values: Option<Vec<u64>> =
                group.iter().map(|p| p.numbers.get(name).copied()).collect();
            let mut values = values?;
            values.sort_unstable();
            let first = *values.first().filter(|first| **first < 2)?;
            values
                .iter()
                .copied()
                .eq((first..).take(values.len()))
                .then_some(())
        };
        let named = |name: &&String| (!name.contains("RANK"), name.len());
        let name = group
            .first()?
            .numbers
            .keys()
            .filter(|name| numbers(name).is_some())
            .min_by_key(named)?
            .clone();
        for process in &mut self.0 {
            if let (None, Some(number)) = (&process.rank, process.numbers.get(&name)) {
                process.rank = Some(number.to_string());
                process.beside = false;
            }
        }
        Some(name)
    }

    /// Whether it is chance which one has the name of `process`.
    pub fn is_chance(&self, process: &Process) -> bool {
        let name = |p: &Process| (p.program.clone(), p.arguments.clone(), p.rank.clone());
        let own = name(process);
        let same = || self.0.iter().filter(|p| name(p) == own);
        same().count() > 1 && same().any(|p| p.beside)
    }

    /// How many processes their launcher started, if it told.
    pub fn launched(&self) -> Option<u32> {
        self.0.iter().filter_map(|process| process.launched).max()
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
                && p.rank == process.rank
        };
        ProcessName {
            program: process.program.clone(),
            arguments: process.arguments.clone(),
            before: self.0.iter().filter(same).count() as u32,
            rank: process.rank.clone(),
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
    use std::collections::BTreeMap;

    #[test]
    fn the_same_process_of_another_run() {
        let process = |number, argument: &str, rank: Option<&str>| Process {
            number,
            id: 7,
            program: "/a".into(),
            arguments: vec!["a".into(), argument.into()],
            rank: rank.map(str::to_owned),
            launched: None,
            beside: false,
            numbers: BTreeMap::new(),
        };
        let all = [
            process(0, "x", None),
            process(1, "y", None),
            process(2, "x", None),
        ];
        let one = Processes(all.to_vec());
        let last = one.by_number(2).expect("a process");
        assert_eq!(one.name(last).before, 1);
        let other = Processes(vec![process(0, "x", None), process(1, "x", None)]);
        assert_eq!(other.find(&one.name(last)).map(|p| p.number), Some(1));
        let y = one.by_number(1).expect("a process");
        assert_eq!(other.find(&one.name(y)), None);
        // Whatever the order in which they start.
        let ranks = |first, second| {
            Processes(vec![
                process(0, "x", Some(first)),
                process(1, "x", Some(second)),
            ])
        };
        let (here, there) = (ranks("0", "1"), ranks("1", "0"));
        let name = here.name(&here.0[0]);
        assert_eq!(there.find(&name).map(|p| p.number), Some(1));
    }

    #[test]
    fn numbers_of_the_environment() {
        let process = |number: u32, variables: &[(&str, u64)]| Process {
            number,
            id: number,
            program: "/a".into(),
            arguments: vec!["a".into()],
            rank: None,
            launched: None,
            beside: number > 0,
            numbers: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
        };
        let mut all = Processes(vec![
            process(0, &[("SHLVL", 1), ("MY", 1), ("PORT", 81)]),
            process(1, &[("SHLVL", 1), ("MY", 0), ("PORT", 80)]),
        ]);
        assert!(all.is_chance(&all.0[0]));
        assert_eq!(all.take_numbers().as_deref(), Some("MY"));
        assert_eq!(all.0[0].rank.as_deref(), Some("1"));
        assert!(!all.is_chance(&all.0[0]));
        let mut none = Processes(vec![
            process(0, &[("PORT", 80)]),
            process(1, &[("PORT", 81)]),
        ]);
        assert_eq!(none.take_numbers(), None);
        assert!(none.is_chance(&none.0[0]));
        let mut alone = Processes(vec![process(0, &[("MY", 0)])]);
        assert_eq!(alone.take_numbers(), None);
    }
}
