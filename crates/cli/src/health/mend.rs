//! Runs what mends items, each command after a question.

use super::item::{Item, sudo};
use crate::ask;
use anyhow::{Context, Result};
use cere_system::console::{note, warning};
use std::process::Command;

const INSTALL: &str = "apt-get install -y ";

/// The commands that mend `items`, one for all packages.
pub fn commands<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<String> {
    let (mut packages, mut others): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for command in items.filter_map(|item| item.command.as_deref()) {
        match command.split_once(INSTALL) {
            Some((_, names)) => packages.extend(names.split_whitespace()),
            None => others.push(command.to_owned()),
        }
    }
    packages.sort_unstable();
    packages.dedup();
    others.dedup();
    let install = (!packages.is_empty()).then(|| {
        let (sudo, names) = (sudo(), packages.join(" "));
        format!("{sudo}apt-get update && {sudo}{INSTALL}{names}")
    });
    install.into_iter().chain(others).collect()
}

/// Asks for each of `commands` and runs those that the user agrees to; whether any was run.
pub fn offer(commands: &[String]) -> Result<bool> {
    let mut any = false;
    for command in commands {
        if !ask::user_agrees(&format!("cere: run `{command}` now?")) {
            continue;
        }
        any = true;
        let own = command.strip_prefix("cere ");
        let status = match own {
            Some(arguments) => {
                let own = std::env::current_exe().context("cannot find this command's own file")?;
                Command::new(own)
                    .args(arguments.split_whitespace())
                    .status()
            }
            None => Command::new("/bin/sh").args(["-c", command]).status(),
        };
        match status.with_context(|| format!("cannot run `{command}`"))? {
            status if status.success() => note!("`{command}` is done"),
            status => warning!("`{command}` failed: {status}"),
        }
    }
    Ok(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_come_in_one_command() {
        let item = |command: &str| Item::limited("x", "gone", "install it").mended_by(command);
        let items = [
            item("apt-get install -y opt-22 lld-22"),
            item("sysctl a=1"),
            item("sudo apt-get install -y lld-22"),
            Item::good("y", "here"),
        ];
        let commands = commands(items.iter());
        assert_eq!(commands.len(), 2, "{commands:?}");
        assert!(
            commands[0].ends_with("apt-get install -y lld-22 opt-22"),
            "{commands:?}"
        );
        assert_eq!(commands[1], "sysctl a=1");
    }
}
