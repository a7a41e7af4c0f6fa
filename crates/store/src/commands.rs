//! Codelets of several commands beside one another: which belong to the command that is worked on, and the words for the others.

use crate::notes::some;
use cere_format::package::{CapturedRun, Manifest};
use cere_format::profile::Profile;
use cere_format::untrusted::visible;
use cere_system::console::print;
use std::collections::BTreeMap;

/// Characters of a command in a sentence or a table, at most.
const LONG: usize = 60;

/// A command as a user would type it, cut if it is long.
pub fn shown(command: &[String]) -> String {
    print::short(&visible(&shell_words::join(command)), LONG)
}

/// What is left out of `profile`'s command because the run of its capture was another, by command.
pub fn left_out(others: &[Manifest], profile: &Profile) -> Vec<String> {
    let mut by_command: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    let (mut other_input, mut other_rank) = (Vec::new(), Vec::new());
    for codelet in others {
        let Some(run) = &codelet.run else { continue };
        if run.is_command(profile) && !run.is_rank(profile) {
            other_rank.push(codelet.name.as_str());
            continue;
        }
        if run.is_command(profile) {
            other_input.push(codelet.name.as_str());
            continue;
        }
        let key = (shown(&run.command), run.directory.as_str());
        by_command.entry(key).or_default().push(&codelet.name);
    }
    let here = profile.directory.to_string_lossy();
    let mut notes = Vec::new();
    for ((command, directory), names) in by_command {
        let place = match directory == here {
            true => String::new(),
            false => format!(" in {directory}"),
        };
        notes.push(format!(
            "left out {} of another command, `{command}`{place}: {}; `cere profile -- {command}` makes that one the command to work on",
            counted(names.len()),
            some(&names)
        ));
    }
    if !other_rank.is_empty() {
        let rank = profile.process.rank.as_deref().unwrap_or("none");
        notes.push(format!(
            "left out {} of other ranks than the profile's ({}): {}; `cere profile --rank` makes another rank the one to work on",
            counted(other_rank.len()),
            visible(rank),
            some(&other_rank)
        ));
    }
    if !other_input.is_empty() {
        notes.push(format!(
            "left out {} of the same command with other input than the profile's: {}; `cere capture -- {}` takes them with what it reads now",
            counted(other_input.len()),
            some(&other_input),
            shown(&profile.command)
        ));
    }
    notes
}

/// A note if `codelets` come from another file of the program than `profile`.
pub fn of_another_program<'m>(
    codelets: impl Iterator<Item = &'m Manifest>,
    profile: &Profile,
) -> Option<String> {
    let other = |run: &CapturedRun| !run.program.is_empty() && run.program != profile.program;
    let names: Vec<&str> = codelets
        .filter(|m| m.run.as_ref().is_some_and(other))
        .map(|m| m.name.as_str())
        .collect();
    (!names.is_empty() && !profile.program.is_empty()).then(|| {
        format!(
            "{} of another build of {} than the profile's; their own code is the same, what reaches it may not be: capture them again if it matters ({})",
            counted(names.len()),
            profile.command.first().map_or("the program", String::as_str),
            some(&names)
        )
    })
}

/// `1 codelet`, `2 codelets`.
pub fn counted(count: usize) -> String {
    match count {
        1 => "1 codelet".to_owned(),
        count => format!("{count} codelets"),
    }
}
