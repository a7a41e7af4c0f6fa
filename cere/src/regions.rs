//! `cere regions`, and the names by which people pick regions.

use crate::options::Common;
use crate::state;
use anyhow::{Result, bail};
use cere_format::build::{Region, Unit};
use cere_format::profile::RegionKey;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// List the regions of the current build
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cere regions 'solve@*'")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Names, globs or unique prefixes; all if none is given
    patterns: Vec<String>,
}

/// A region with its display name.
#[derive(Debug, Clone)]
pub struct Named {
    /// `function@file:line`.
    pub name: String,
    /// Its identity.
    pub key: RegionKey,
    /// What the pass recorded.
    pub region: Region,
}

fn suffix(path: &Path, parts: usize) -> String {
    let all: Vec<_> = path
        .components()
        .map(|c| c.as_os_str().to_string_lossy())
        .collect();
    all[all.len().saturating_sub(parts)..]
        .join("/")
        .replace("//", "/")
}

/// Names every region of `units`. Files are told apart by the shortest path suffix that does; regions that are the same
/// in all of it (a header's loop in two units) get the unit's id behind `%`.
pub fn named(units: &[Unit]) -> Vec<Named> {
    let mut files: BTreeMap<(String, u32, String), BTreeSet<&Path>> = BTreeMap::new();
    let base = |r: &Region| suffix(&r.file, 1);
    for region in units.iter().flat_map(|u| &u.regions) {
        files
            .entry((region.function.clone(), region.line, base(region)))
            .or_default()
            .insert(&region.file);
    }
    let mut all = Vec::new();
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for unit in units {
        for region in &unit.regions {
            let rivals = &files[&(region.function.clone(), region.line, base(region))];
            let most = region.file.components().count();
            let parts = (1..=most)
                .find(|parts| {
                    rivals
                        .iter()
                        .filter(|f| suffix(f, *parts) == suffix(&region.file, *parts))
                        .count()
                        <= 1
                })
                .unwrap_or(most);
            let mut name = format!(
                "{}@{}:{}",
                region.function,
                suffix(&region.file, parts),
                region.line
            );
            if region.ordinal > 1 {
                name.push_str(&format!("#{}", region.ordinal));
            }
            *uses.entry(name.clone()).or_default() += 1;
            all.push(Named {
                name,
                key: RegionKey {
                    unit: unit.id.clone(),
                    index: region.index,
                },
                region: region.clone(),
            });
        }
    }
    for named in &mut all {
        if uses[&named.name] > 1 {
            named.name.push_str(&format!(
                "%{}",
                named.key.unit.get(..8).unwrap_or(&named.key.unit)
            ));
        }
    }
    all
}

/// Whether `text` matches `pattern`, in which `*` stands for anything and `?` for one character.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            p = at + 1;
            t = from + 1;
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The positions in `names` that `pattern` picks: an exact name, a glob, or a prefix of one name only.
pub fn pick(names: &[&str], pattern: &str) -> Result<Vec<usize>> {
    let find = |f: &dyn Fn(&str) -> bool| -> Vec<usize> {
        names
            .iter()
            .enumerate()
            .filter(|(_, n)| f(n))
            .map(|(i, _)| i)
            .collect()
    };
    let exact = find(&|n| n == pattern);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let by_glob = pattern.contains(['*', '?']);
    let found = if by_glob {
        find(&|n| glob(pattern, n))
    } else {
        find(&|n| n.starts_with(pattern))
    };
    if found.is_empty() {
        bail!(
            "no region or codelet is called {pattern}: `cere regions` and `cere codelets` list them"
        );
    }
    if !by_glob && found.len() > 1 {
        let list: Vec<&str> = found.iter().take(8).map(|i| names[*i]).collect();
        bail!(
            "{pattern} begins {} names ({}): give more of it, or a glob such as '{pattern}*'",
            found.len(),
            list.join(", ")
        );
    }
    Ok(found)
}

/// The regions that any of `patterns` picks, once each; all of them without patterns.
pub fn select<'a>(all: &'a [Named], patterns: &[String]) -> Result<Vec<&'a Named>> {
    if patterns.is_empty() {
        return Ok(all.iter().collect());
    }
    let names: Vec<&str> = all.iter().map(|n| n.name.as_str()).collect();
    let mut chosen = BTreeSet::new();
    for pattern in patterns {
        chosen.extend(pick(&names, pattern)?);
    }
    Ok(chosen.into_iter().map(|i| &all[i]).collect())
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let units = state::current_units(&options.common.store()?)?;
    let all = named(&units);
    let chosen = select(&all, &options.patterns)?;
    if options.common.json {
        let list: Vec<_> = chosen
            .iter()
            .map(|n| {
                serde_json::json!({"name": n.name, "file": n.region.file, "line": n.region.line,
                    "outlined": n.region.outlined, "reason": n.region.reason, "function": n.region.function,
                    "symbol": n.region.symbol, "unit": n.key.unit, "index": n.key.index, "live_ins": n.region.live_ins,
                    "exits": n.region.exits})
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&list)?);
        return Ok(0);
    }
    for n in chosen {
        let live: Vec<String> = n
            .region
            .live_ins
            .iter()
            .map(|l| format!("{} {}", l.r#type, l.name))
            .collect();
        match &n.region.reason {
            Some(reason) if !n.region.outlined => println!("{:<40} refused: {reason}", n.name),
            _ => println!("{:<40} ({})", n.name, live.join(", ")),
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        assert!(glob("a*c", "abbc") && glob("*", "") && glob("a?c*", "abc") && !glob("a?c", "ac"));
    }

    #[test]
    fn picking() {
        let names = ["f@a.c:1", "f@a.c:10", "g@a.c:2"];
        assert_eq!(pick(&names, "f@a.c:1").unwrap(), [0]);
        assert_eq!(pick(&names, "g").unwrap(), [2]);
        assert_eq!(pick(&names, "f*").unwrap(), [0, 1]);
        assert!(
            pick(&names, "f")
                .unwrap_err()
                .to_string()
                .contains("begins 2 names")
        );
        assert!(pick(&names, "h").is_err());
    }
}
