//! The compiler wrapper: runs clang-22, clang++-22 or flang-22 with the pass, one source at a time, and records
//! compile and link commands in the store.
//!
//! A wrapper is a program of its own: it speaks on stderr, as the compiler whose place it takes.

mod bitcode;
mod compile;
mod drive;
pub mod edited;
pub mod front;
mod inputs;
mod job;
pub mod modules;
mod object;
mod own;
mod rust;
pub mod said;
mod tools;

use anyhow::{Context, Result};
use cere_catalogue::anyhow;
use cere_format::build::LinkCommand;
use cere_format::language::Front;
use cere_toolchain::arguments::{self, Item};
use cere_toolchain::gcc;

pub use tools::{ENV_ALL_LOOPS, Failure, LAUNCH_HERE, Tool, compiler, names, tool, tool_of_argv0};
use tools::{drivers, named_by_path};

/// The parts of a recorded link, in order: options, sources and other files.
pub fn link_items(command: &LinkCommand) -> Result<Vec<LinkItem>> {
    let (_, language, _) = drivers()
        .find(|(.., compiler)| *compiler == command.compiler)
        .with_context(|| {
            format!(
                "the link of {} was made by {}, which no wrapper stands for",
                command.output.display(),
                command.compiler
            )
        })?;
    let compiler = match &command.front {
        Some(front) => front.clone(),
        None => compiler(&command.compiler)?,
    };
    let adapted = gcc::adapt(&command.arguments, &compiler, language)?;
    let parsed = arguments::parse(&adapted.arguments, language);
    let items = parsed.items.into_iter().filter_map(|item| match item {
        Item::Source { path, .. } => Some(LinkItem::Source(path)),
        Item::Assembler { path, .. } => Some(LinkItem::Assembler(path)),
        Item::Other(path) => Some(LinkItem::File(path)),
        Item::Option(words) => job::link_words(&words).map(LinkItem::Words),
    });
    Ok(items.collect())
}

/// A part of a recorded link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkItem {
    /// An option with its value.
    Words(Vec<String>),
    /// A source that the same command compiled under the pass.
    Source(String),
    /// A source that it compiled without the pass.
    Assembler(String),
    /// An object, archive or library file.
    File(String),
}

/// Acts as `tool` with the arguments of this process.
pub fn run(tool: Tool) -> Result<u8> {
    let given = std::env::args_os()
        .skip(1)
        .map(|a| {
            a.into_string()
                .map_err(|a| anyhow!(E4014, "the argument {} is not UTF-8", a.display()))
        })
        .collect::<Result<Vec<String>>>()?;
    let named = named_by_path()?;
    match tool.language.facts().front {
        Front::Driver => drive::drive(tool, given, named),
        Front::Rustc => rust::run(&given, named),
        Front::Own(parse) => own::run(tool, &given, named, parse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers() {
        for (name, compiler) in [
            ("gcc", "clang-22"),
            ("gcc-12", "clang-22"),
            ("clang++-22", "clang++-22"),
            ("x86_64-linux-gnu-g++-12", "clang++-22"),
            ("flang-new", "flang-22"),
            ("rustc", "rustc"),
            ("zig", "zig"),
        ] {
            assert_eq!(tool(name).map(|t| t.compiler), Some(compiler), "{name}");
        }
        for name in ["cere", "gcc-ar", "clang-tidy-22", "clang-format", "ld", ""] {
            assert!(tool(name).is_none(), "{name}");
        }
    }
}
