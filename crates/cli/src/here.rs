//! What the command does on this machine's architecture.

use crate::Command;
use anyhow::Result;
use cere_arch::target::Target;
use cere_catalogue::ensure;

/// Refuses what has to capture where CERE does not.
pub fn check(command: &Command) -> Result<()> {
    on(command, cere_arch::HERE)
}

fn on(command: &Command, here: Target) -> Result<()> {
    let captures = matches!(
        command,
        Command::Instrument(_)
            | Command::Profile(_)
            | Command::Capture(_)
            | Command::Study(_)
            | Command::Hybrid(_)
    );
    ensure!(
        here.facts().captures || !captures,
        E7005,
        "this machine is {}: CERE captures on x86-64; replay, measure, results work here",
        here.processor()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Cli;
    use cere_arch::target::Target;
    use clap::Parser;

    #[test]
    fn captures_are_refused_where_there_are_none() {
        let on = |words: &[&str], here| super::on(&Cli::parse_from(words).command, here);
        let capture = ["cere", "capture", "--", "true"];
        assert!(on(&capture, Target::X86_64).is_ok());
        let error = on(&capture, Target::Aarch64).unwrap_err();
        assert_eq!(
            cere_catalogue::of(&error),
            Some(cere_catalogue::codes::E7005)
        );
        assert!(error.to_string().starts_with("this machine is aarch64: "));
        for words in [&["cere", "doctor"][..], &["cere", "replay", "solve@1"]] {
            assert!(on(words, Target::Aarch64).is_ok(), "{words:?}");
        }
    }
}
