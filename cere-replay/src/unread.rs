//! What code that nobody has read may not hold: what runs without being called, and instructions that no compiler chose. Both reach
//! around what a replay restores, catches and compares.

use crate::{Options, ReplayError};
use cere_toolchain::command::{Line, run};
use cere_toolchain::unit::DIS;
use std::collections::BTreeSet;
use std::path::Path;

/// Functions of these are called before the replay begins, or after it.
const CALLED: [&str; 2] = ["@llvm.global_ctors", "@llvm.global_dtors"];

/// What the unit with this `ir` holds of it that the `captured` one does not, if anything.
pub fn find(ir: &Path, captured: &Path, options: &Options) -> Result<Option<String>, ReplayError> {
    let [new, old] = [ir, captured].map(|path| {
        let line = Line::new(DIS)
            .confined(&options.settings.sandbox)
            .path(path)
            .args(["-o", "-"]);
        run(&line, "the edited unit")
    });
    let (new, old) = (new?, old?);
    let known = held(&old);
    Ok(held(&new).into_iter().find(|found| !known.contains(found)))
}

/// All of it in the text of a unit, for people.
fn held(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(of_line).collect()
}

fn of_line(line: &str) -> Option<String> {
    if line.starts_with("module asm") {
        return Some(format!("assembly ({line})"));
    }
    if CALLED.iter().any(|name| line.starts_with(name)) {
        return Some("a function that runs before or after all others".to_owned());
    }
    let global = line.starts_with('@');
    let line = match global {
        true => without_strings(line),
        false => line.to_owned(),
    };
    let literal = |behind: &str| {
        let from = line.find(behind)? + behind.len();
        line[from..].split('"').nth(1).map(str::to_owned)
    };
    if global || line.starts_with("define") {
        if line.contains(" ifunc ") {
            return Some("a function that is chosen when the program starts".to_owned());
        }
        return literal(" section ").map(|name| format!("a section of its own ({name})"));
    }
    // Metadata quote what they like.
    let instruction = line.starts_with(' ') && line.contains(" asm ");
    let assembly = || literal(" asm ").unwrap_or_default();
    instruction.then(|| format!("assembly ({})", assembly()))
}

/// The line without the strings that it defines.
fn without_strings(line: &str) -> String {
    let mut parts = line.split(" c\"");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once('"').map_or("", |(_, rest)| rest));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_called_is_found() {
        let of = |line: &str| of_line(line).unwrap_or_default();
        assert_eq!(
            of("module asm \".globl x\""),
            "assembly (module asm \".globl x\")"
        );
        assert_eq!(
            of("  call void asm sideeffect \"syscall\", \"~{rcx}\"()"),
            "assembly (syscall)"
        );
        assert!(of("@llvm.global_ctors = appending global [1 x ...]").contains("before"));
        assert!(of("@f = ifunc void (), ptr @g").contains("is chosen"));
        let section = "@p = internal global ptr @f, section \".init_array\", align 8";
        assert_eq!(of(section), "a section of its own (.init_array)");
        for quiet in [
            "@s = private constant [3 x i8] c\" section \\22asm \", align 1",
            "!3 = !{!\" asm sideeffect\"}",
            "  %x = call i32 @f(), !dbg !7",
        ] {
            assert_eq!(of_line(quiet), None, "{quiet}");
        }
    }
}
