//! Collects the data of a report from a store.

use super::codelet::Codelet;
use super::flags::{self, Best};
use super::format;
use super::why::{self, Why};
use crate::listing;
use crate::roofline::Document as Roofline;
use anyhow::Result;
use cere_capture::capture::Refused;
use cere_count::listing::Listing;
use cere_format::build::Unit;
use cere_format::profile::{Profile, RegionKey, RegionProfile};
use cere_format::replay::{CacheLevel, Warmup};
use cere_format::store::Store;
use cere_measure::matching::{Matching, Measured, Pair, Row as Matched};
use cere_store::codelets::encoded;
use cere_store::current;
use cere_store::results::{Database, Machine, Record, counting, tool, warmup_name};
use cere_store::sources::{self, State};
use cere_store::state;
use cere_tune::choices::Choices;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Where a region's source is.
pub struct Place {
    /// File.
    pub file: PathBuf,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// What became of the file since the build.
    pub state: State,
}

/// A warm-up's comparison with the run.
pub struct Compared {
    /// Which.
    pub warmup: Warmup,
    /// Number of its colour, from 1.
    pub colour: usize,
    /// The comparison.
    pub matching: Matching,
}

/// All data of a report.
pub struct Data {
    /// The store's profile.
    pub profile: Profile,
    /// Source places of the build's regions.
    pub places: HashMap<RegionKey, Place>,
    /// Codelets of the build, by name.
    pub codelets: Vec<Codelet>,
    /// What was excluded and why, for the user.
    pub notes: Vec<String>,
    /// Records of replays of `codelets` at the capture flags, the oldest first.
    pub records: Vec<Record>,
    /// The machine of the compared records; `None` without records.
    pub machine: Option<Machine>,
    /// Warm-ups with records, the default first.
    pub compared: Vec<Compared>,
    /// Largest error of a region that predictions may use.
    pub max_error: f64,
    /// The last roofline of the store's codelets.
    pub roofline: Option<Roofline>,
    /// Machine code of regions with codelets, where `cere asm` listed it.
    pub listings: Vec<Listing>,
    /// Best known flags by region.
    pub best: HashMap<RegionKey, Best>,
    /// Why regions with codelets take their time.
    pub why: HashMap<RegionKey, Why>,
    /// Sources of the fastest right edits that `cere try --watch` saw, by region.
    pub edits: HashMap<RegionKey, PathBuf>,
    /// Why regions have no codelets, by name.
    pub refused: BTreeMap<String, String>,
    /// Compilers and their flags, each with the number of files that were compiled so, the most frequent first.
    pub build: Vec<(String, usize)>,
}

/// Warm-ups in display order, with their display names.
pub const WARMUPS: [(Warmup, &str); 5] = [
    (Warmup::PageTrace, "page trace"),
    (Warmup::WorkingSet, "working set"),
    (Warmup::Cold, "cold"),
    (Warmup::Partial(CacheLevel::L2), "warm to L2"),
    (Warmup::Partial(CacheLevel::Llc), "warm to LLC"),
];

/// The display name of a warm-up.
pub fn warmup_title(warmup: Warmup) -> &'static str {
    let found = WARMUPS.iter().find(|w| w.0 == warmup);
    found.map_or(warmup_name(warmup), |w| w.1)
}

impl Data {
    /// Reads `store`.
    pub fn read(store: &Store, max_error: f64) -> Result<Self> {
        let profile = current::profile(store)?;
        let units = state::current_units(store)?;
        let (codelets, notes) = codelets(store, &profile)?;
        let records = match Database::existing(store)? {
            Some(database) => database.all()?,
            None => Vec::new(),
        };
        let places = units.iter().flat_map(|unit| places(store, unit)).collect();
        let refused = Refused::last(store);
        let choices = choices(store)?;
        let by_region = by_region(&codelets);
        let by_codelet = flags::by_codelet(&records);
        let of_region = |r: &RegionProfile| by_region.get(&r.key).map_or(&[][..], |c| c);
        let best = profile.regions.iter().filter_map(|r| {
            let best = flags::best(&r.name, of_region(r), choices.as_ref(), &by_codelet)?;
            Some((r.key.clone(), best))
        });
        let best: HashMap<RegionKey, Best> = best.collect();
        let edits = by_region.keys().filter_map(|key| {
            let tree = store.best().join(encoded(&profile.region(key)?.name));
            tree.is_dir().then(|| ((*key).clone(), tree))
        });
        let edits: HashMap<RegionKey, PathBuf> = edits.collect();
        let mut of_why = Vec::new();
        let explained = by_region.iter().map(|(key, codelets)| {
            let why = why::kept(store, key, codelets, &mut of_why);
            ((*key).clone(), why)
        });
        let explained: HashMap<RegionKey, Why> = explained.collect();
        let data = Self::of(
            profile, places, codelets, records, &refused, max_error, notes,
        )?;
        Ok(Self {
            roofline: Roofline::kept(store),
            listings: listings(store, &data.codelets),
            notes: data.notes.into_iter().chain(of_why).collect(),
            best,
            why: explained,
            edits,
            refused,
            build: build(&units),
            ..data
        })
    }

    /// The comparison of each region under the default warm-up, by its name.
    pub fn matched(&self) -> HashMap<&str, &Matched> {
        let rows = self.compared.first().map(|c| &c.matching.rows);
        let rows = rows.into_iter().flatten();
        rows.map(|row| (row.name.as_str(), row)).collect()
    }

    /// The codelets of a region.
    pub fn codelets_of<'a>(&'a self, key: &'a RegionKey) -> impl Iterator<Item = &'a Codelet> {
        self.codelets.iter().filter(move |c| c.manifest.key == *key)
    }

    /// Combines profile, codelets and records.
    pub fn of(
        profile: Profile,
        places: HashMap<RegionKey, Place>,
        codelets: Vec<Codelet>,
        mut records: Vec<Record>,
        refused: &BTreeMap<String, String>,
        max_error: f64,
        mut notes: Vec<String>,
    ) -> Result<Self> {
        let known: HashSet<&str> = codelets.iter().map(|c| c.sha256.as_str()).collect();
        records.retain(|r| {
            let capture_flags = r.setting.flags.is_empty() && r.setting.passes.is_none();
            let whole = r.setting.operands.is_empty();
            capture_flags && whole && known.contains(r.sha256.as_str())
        });
        notes.extend(more_than_all(&profile));
        let here = cere_store::results::this_machine();
        let ours = |r: &Record| r.machine.id == here.id && r.tool == tool();
        let from = match records.iter().any(ours) {
            true => Some((here, tool())),
            false => records.last().map(|r| (r.machine.clone(), r.tool.clone())),
        };
        let of_machine = |r: &&Record| {
            from.as_ref()
                .is_some_and(|(m, tool)| m.id == r.machine.id && *tool == r.tool)
        };
        let others = records.len() - records.iter().filter(of_machine).count();
        if others > 0 {
            notes.push(format!(
                "{others} records come from other machines or other versions of cere: regions list them, the comparison ignores them"
            ));
        }
        let mut compared = Vec::new();
        for (colour, (warmup, _)) in (1..).zip(WARMUPS) {
            let of_warmup = |r: &&Record| r.setting.warmup == warmup;
            if !records.iter().filter(of_machine).any(|r| of_warmup(&r)) {
                continue;
            }
            let measured: Vec<Measured> = codelets
                .iter()
                .map(|codelet| {
                    // The default warm-up of a replay without a page trace.
                    let instead = match warmup {
                        Warmup::PageTrace => {
                            cere_replay::plan::warmup(&codelet.manifest, None, None)
                                .map_or(warmup, |found| found.0)
                        }
                        other => other,
                    };
                    let of_codelet = records.iter().filter(of_machine).filter(|r| {
                        r.sha256 == codelet.sha256 && (of_warmup(r) || r.setting.warmup == instead)
                    });
                    measured(codelet, &counting(&of_codelet.collect::<Vec<_>>()))
                })
                .collect();
            compared.push(Compared {
                warmup,
                colour,
                matching: Matching::of(&profile, &measured, refused, max_error)?,
            });
        }
        Ok(Self {
            profile,
            places,
            codelets,
            notes,
            machine: from.map(|(machine, _)| machine),
            records,
            compared,
            max_error,
            roofline: None,
            listings: Vec::new(),
            best: HashMap::new(),
            why: HashMap::new(),
            edits: HashMap::new(),
            refused: BTreeMap::new(),
            build: Vec::new(),
        })
    }
}

/// What is said where regions take more than the run.
fn more_than_all(profile: &Profile) -> Option<String> {
    let over = |share: f64| share >= 1.0005;
    let sum: f64 = profile.regions.iter().map(|r| r.share).sum();
    let most = profile
        .regions
        .iter()
        .map(|r| r.share)
        .fold(sum.max(profile.coverage), f64::max);
    over(most).then(|| {
        format!(
            "the times of regions add up to {:.1} % of the run: the cost of the probes, which is subtracted, is not known better; where a share is above 100 %, it says all",
            100.0 * most
        )
    })
}

fn measured(codelet: &Codelet, records: &[&Record]) -> Measured {
    let pair = |r: &&Record| Pair::of(r).ok_or_else(|| r.reason.clone());
    Measured {
        key: codelet.manifest.key.clone(),
        represents: codelet.manifest.represents,
        replays: match records {
            [] => Err("it has codelets without a replay".to_owned()),
            some => some.iter().map(pair).collect(),
        },
    }
}

/// The codelets of the profile's build and command, with notes on what is left out.
fn codelets(store: &Store, profile: &Profile) -> Result<(Vec<Codelet>, Vec<String>)> {
    let chosen = current::choose(store, profile)?;
    let codelet = |(file, manifest): current::Codelet| {
        Ok(Codelet {
            bytes: std::fs::metadata(&file).map_or(0, |m| m.len()),
            sha256: state::hash_file(&file)?,
            manifest,
        })
    };
    let found: Result<Vec<Codelet>> = chosen.codelets.into_iter().map(codelet).collect();
    let damaged = chosen.damaged.iter();
    let damaged =
        damaged.map(|(file, error)| format!("a codelet is damaged: {}: {error}", file.display()));
    Ok((found?, chosen.notes.into_iter().chain(damaged).collect()))
}

/// The choices of `cere tune`, if there are any.
fn choices(store: &Store) -> Result<Option<Choices>> {
    let file = store.tuned();
    file.exists().then(|| Choices::read(&file)).transpose()
}

/// Codelets by region.
fn by_region(codelets: &[Codelet]) -> HashMap<&RegionKey, Vec<&Codelet>> {
    let mut found: HashMap<&RegionKey, Vec<&Codelet>> = HashMap::new();
    for codelet in codelets {
        found
            .entry(&codelet.manifest.key)
            .or_default()
            .push(codelet);
    }
    found
}

/// How the units were compiled: compiler and flags of code generation, with how many of them.
fn build(units: &[Unit]) -> Vec<(String, usize)> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for unit in units {
        let compiler = Path::new(&unit.command.compiler).file_name();
        let compiler = compiler.map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let words: Vec<String> = std::iter::once(compiler)
            .chain(unit.command.codegen.iter().cloned())
            .collect();
        *found.entry(format::words(&words)).or_default() += 1;
    }
    let mut found: Vec<(String, usize)> = found.into_iter().collect();
    found.sort_by_key(|(_, files)| std::cmp::Reverse(*files));
    found
}

/// The listings of the codelets' regions.
fn listings(store: &Store, codelets: &[Codelet]) -> Vec<Listing> {
    let mut keys: Vec<&RegionKey> = codelets.iter().map(|c| &c.manifest.key).collect();
    keys.dedup();
    let kept = keys
        .into_iter()
        .map(|key| listing::kept(store, &key.unit, key.index));
    kept.flatten().collect()
}

/// The places of a unit's regions. Files are looked at once.
fn places(store: &Store, unit: &Unit) -> Vec<(RegionKey, Place)> {
    let mut states: HashMap<PathBuf, State> = HashMap::new();
    let place = |region: &cere_format::build::Region| {
        let file = unit.command.directory.join(&region.file);
        let state = states
            .entry(file.clone())
            .or_insert_with(|| sources::state(store, unit, &file));
        let place = Place {
            state: *state,
            file,
            line: region.line,
        };
        let key = RegionKey {
            unit: unit.id.clone(),
            index: region.index,
        };
        (key, place)
    };
    unit.regions.iter().map(place).collect()
}
