//! What the command does on this machine's architecture.

use anyhow::Result;
use cere_arch::target::Target;
use cere_catalogue::ensure;

/// Refuses a command that has to capture on `here`, if CERE does not capture there.
pub fn captures(here: Target) -> Result<()> {
    ensure!(
        here.facts().captures,
        E7005,
        "this machine is {}: CERE captures on x86-64; replay, measure, results work here",
        here.processor()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::captures;
    use cere_arch::target::Target;

    #[test]
    fn captures_are_refused_where_there_are_none() {
        assert!(captures(Target::X86_64).is_ok());
        let error = captures(Target::Aarch64).unwrap_err();
        let code = cere_catalogue::codes::E7005;
        assert_eq!(cere_catalogue::of(&error), Some(code));
        assert!(error.to_string().starts_with("this machine is aarch64: "));
    }
}
