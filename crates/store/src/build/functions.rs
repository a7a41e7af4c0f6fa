//! Functions that become regions as a whole, as the user chose: the list in the store, the units that lack it, and what the build made
//! of it.

use crate::names;
use crate::state;
use anyhow::Result;
use cere_format::build::{ChosenFunctions, DefinedFunction, Region, RegionKind, Unit};
use cere_format::store::Store;
use cpp_demangle::{DemangleOptions, Symbol};
use std::collections::BTreeSet;

/// Adds names and globs to the store's list, of which an empty one removes all before it. The whole list.
pub fn choose(store: &Store, patterns: &[String]) -> Result<Vec<String>> {
    let mut all = state::chosen_functions(store)?;
    for pattern in patterns {
        if pattern.is_empty() {
            all.clear();
        } else if !all.contains(pattern) {
            all.push(pattern.clone());
        }
    }
    let chosen = ChosenFunctions {
        version: ChosenFunctions::VERSION,
        patterns: all,
    };
    state::write_json(&store.functions(), &chosen)?;
    Ok(chosen.patterns)
}

/// The units in which other functions are regions than `patterns` name.
pub fn lacking<'a>(build: &'a [Unit], patterns: &[String]) -> Vec<&'a Unit> {
    let lacks = |unit: &&Unit| {
        let before = &unit.command.functions;
        let differs = |f: &DefinedFunction| f.is_named(patterns) != f.is_named(before);
        unit.functions.iter().any(differs)
    };
    build.iter().filter(lacks).collect()
}

/// What a build made of a name or glob.
#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    /// Functions are called so.
    Regions {
        /// The names of those that are regions.
        outlined: Vec<String>,
        /// Of those that are not, with the reason.
        refused: Vec<(String, String)>,
    },
    /// A function is called so that the compiler dropped: nothing uses it.
    Dropped,
    /// Units call a function of this symbol, and none defines it.
    Declared(String),
    /// Nothing is called so; these are called alike.
    Nothing(Vec<String>),
}

/// What the build made of `pattern`.
pub fn made_of(build: &[Unit], pattern: &str) -> Made {
    let named = names::named(build);
    let all = named.iter().filter(|n| is_named(&n.region, pattern));
    let (outlined, refused): (Vec<_>, Vec<_>) = all.partition(|n| n.region.outlined);
    if !outlined.is_empty() || !refused.is_empty() {
        let reason = |region: &Region| region.reason.clone().unwrap_or_default();
        return Made::Regions {
            outlined: outlined.into_iter().map(|n| n.name.clone()).collect(),
            refused: refused
                .into_iter()
                .map(|n| (n.name.clone(), reason(&n.region)))
                .collect(),
        };
    }
    let mut defined = build.iter().flat_map(|unit| &unit.functions);
    if defined.any(|f| f.is_named_by(pattern)) {
        return Made::Dropped;
    }
    let mut needed = build.iter().flat_map(|unit| &unit.needs);
    let declared = needed.find(|symbol| function(&demangle(symbol), symbol).is_named_by(pattern));
    match declared {
        Some(symbol) => Made::Declared(symbol.clone()),
        None => Made::Nothing(alike(build, pattern)),
    }
}

/// The name in the source, with scopes and without parameters; the symbol itself if it has no other.
fn demangle(symbol: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let mangled = symbol.starts_with("_Z");
    let known = mangled.then(|| Symbol::new(symbol).ok()).flatten();
    let name = known.and_then(|known| known.demangle_with_options(&options).ok());
    name.unwrap_or_else(|| symbol.to_owned())
}

fn function(name: &str, symbol: &str) -> DefinedFunction {
    DefinedFunction {
        name: name.to_owned(),
        symbol: symbol.to_owned(),
    }
}

fn is_named(region: &Region, pattern: &str) -> bool {
    let of = function(&region.function, &region.symbol);
    region.kind == RegionKind::Function && of.is_named_by(pattern)
}

fn alike(build: &[Unit], pattern: &str) -> Vec<String> {
    let functions = build.iter().flat_map(|unit| &unit.functions);
    let all: BTreeSet<&str> = functions.map(|f| f.name.as_str()).collect();
    let all: Vec<&str> = all.into_iter().collect();
    let near = names::near(&all, pattern).into_iter();
    near.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_functions_are_known_by_their_name_in_the_source() {
        let step = function(&demangle("_ZN4Grid4stepEd"), "_ZN4Grid4stepEd");
        assert!(step.is_named_by("Grid::step") && step.is_named_by("*step"));
        assert!(step.is_named_by("_ZN4Grid*") && !step.is_named_by("step"));
        assert_eq!(demangle("pow"), "pow");
    }
}
