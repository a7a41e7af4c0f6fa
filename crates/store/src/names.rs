//! The names by which people know regions, and how they pick them.

use crate::state;
use anyhow::Result;
use cere_catalogue::bail;
use cere_format::build::{Region, Unit};
use cere_format::profile::RegionKey;
use cere_format::store::Store;
use cere_system::console::short;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use strsim::levenshtein;
use wildmatch::WildMatch;

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

/// A region's name without the id of its unit.
fn without_unit(name: &str) -> &str {
    name.rsplit_once('%').map_or(name, |(plain, _)| plain)
}

/// As [`pick`], for a run of a program that holds the units `held`: a name or prefix that the build has more than one
/// region for means the one that the program holds.
pub fn pick_in(all: &[Named], held: Option<&HashSet<String>>, pattern: &str) -> Result<Vec<usize>> {
    let names: Vec<&str> = all.iter().map(|n| n.name.as_str()).collect();
    pick(&names, pattern).or_else(|ambiguous| {
        let here = |i: &usize| held.is_some_and(|held| held.contains(&all[*i].key.unit));
        let here: Vec<usize> = (0..all.len()).filter(here).collect();
        let same = here.iter().filter(|i| without_unit(names[**i]) == pattern);
        if let [only] = same.copied().collect::<Vec<_>>()[..] {
            return Ok(vec![only]);
        }
        let names: Vec<&str> = here.iter().map(|i| names[*i]).collect();
        match pick(&names, pattern) {
            Ok(found) => Ok(found.into_iter().map(|i| here[i]).collect()),
            Err(_) => Err(ambiguous),
        }
    })
}

/// Whether `pattern` is a glob rather than a name.
pub fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// Whether `text` matches `pattern`, in which `*` stands for anything and `?` for one character.
pub fn glob(pattern: &str, text: &str) -> bool {
    WildMatch::new(pattern).matches(text)
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
    let by_glob = is_glob(pattern);
    let found = if by_glob {
        find(&|n| glob(pattern, n))
    } else {
        find(&|n| n.starts_with(pattern))
    };
    if found.is_empty() {
        let near = near(names, pattern);
        let hint = if near.is_empty() {
            String::new()
        } else {
            format!(" (near: {})", short::list(&near))
        };
        bail!(
            E4010,
            "nothing is called {pattern}{hint}: `cere regions` and `cere codelets` list the names"
        );
    }
    if !by_glob && found.len() > 1 {
        let list: Vec<&str> = found.iter().take(8).map(|i| names[*i]).collect();
        bail!(
            E4011,
            "{pattern} begins {} names ({}): give more of it, or a glob such as '{pattern}*'",
            found.len(),
            short::list(&list)
        );
    }
    Ok(found)
}

/// Up to three names that resemble `pattern`, of which only the function may be given, the nearest first.
pub fn near<'a>(names: &[&'a str], pattern: &str) -> Vec<&'a str> {
    let plain = pattern.replace(['*', '?'], "");
    let function = |name: &str| name.split('@').next().unwrap_or("").to_owned();
    let given = function(&plain);
    let score = |name: &str| {
        let own = function(name);
        let changes = levenshtein(&given, &own);
        let similar = changes <= 1 + own.chars().count().min(given.chars().count()) / 3
            || !given.is_empty() && own.contains(&given);
        similar.then(|| changes * 100 + levenshtein(&plain, name))
    };
    let mut scored: Vec<(usize, &str)> = names
        .iter()
        .filter_map(|name| Some((score(name)?, *name)))
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, name)| name).collect()
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

/// Display names by identity, for regions of the current build and of older ones that a program may still hold.
pub struct Names {
    store: Store,
    known: HashMap<RegionKey, String>,
}

impl Names {
    /// The names of `all`; older units are looked up in `store`.
    pub fn new(store: &Store, all: &[Named]) -> Self {
        let known = all
            .iter()
            .map(|n| (n.key.clone(), n.name.clone()))
            .collect();
        Self {
            store: store.clone(),
            known,
        }
    }

    /// The name of `key`. A region of an older build carries its unit's id, so that it stays apart from the newer one.
    pub fn of(&mut self, key: &RegionKey) -> String {
        if let Some(name) = self.known.get(key) {
            return name.clone();
        }
        let short = key.unit.get(..8).unwrap_or(&key.unit).to_owned();
        let unit: Option<Unit> = state::read_json(&self.store.unit_record(&key.unit)).ok();
        for older in unit.iter().flat_map(|u| named(std::slice::from_ref(u))) {
            self.known
                .entry(older.key)
                .or_insert(format!("{}%{short}", older.name));
        }
        self.known
            .entry(key.clone())
            .or_insert_with(|| format!("region {}%{short}", key.index))
            .clone()
    }
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
        let missing = pick(&names, "g@a.c:3").unwrap_err().to_string();
        assert!(missing.contains("near: g@a.c:2"), "{missing}");
    }
}
