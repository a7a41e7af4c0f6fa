//! Which store made an edit's result wrong: the stores of the edited and of the captured code to the same words, side by side.

use crate::{Code, Options, Replay, ReplayError, Tolerance, judge, objects, plan, run};
use cere_format::package::Manifest;
use cere_format::replay::{Comparison, Repetitions, StoreEntry, StoreSite, Stores, Warmup};
use std::path::Path;
use std::time::Duration;

/// How long a compile or a run may take, each: people wait for the answer.
const LIMIT: Duration = Duration::from_secs(20);

/// Why a result is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrong {
    /// The store that left the first wrong word as it is; none if the code does not store there, or a library's function wrote it.
    pub last: Option<Step>,
    /// The first store to a wrong word that differs from the captured code's; none if that is not known.
    pub first: Option<First>,
    /// Whether the code ends right where each store is reported, which keeps the optimiser from combining them.
    pub optimised: bool,
}

/// A store in an iteration of the loops around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where it is.
    pub site: StoreSite,
    /// Iterations of the site's loops, from 1.
    pub iterations: Vec<u64>,
    /// What was stored, for people.
    pub value: String,
}

/// The first store that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First {
    /// The edited code stores something else than the captured one: what that stored.
    Other(Step, String),
    /// The edited code stores where the captured one does not, or not any more.
    More(Step),
    /// The captured code stores where the edited one does not, or not any more.
    Missing(Step),
}

/// Runs the edited and the captured code once more and compares what they store; none if no store explains the difference.
/// `edited` and `captured`: as they were replayed; `replay`: what came of the edited code.
///
/// # Errors
/// As of a replay.
pub fn explain(
    package: &Path,
    manifest: &Manifest,
    edited: &Options,
    captured: &Options,
    replay: &Replay,
) -> Result<Option<Wrong>, ReplayError> {
    let several = plan::threads(manifest, edited.settings.team.threads).is_some_and(|n| n > 1);
    let in_memory =
        |c: &Comparison| c.same_end && c.first.iter().any(|difference| difference.address != 0);
    if !replay.repeatable || !replay.comparison.as_ref().is_some_and(in_memory) {
        return Ok(None);
    }
    let traced = |options: &Options| {
        let mut options = Options {
            keep: None,
            keepers: None,
            ..options.clone()
        };
        options.settings.warmup = Some(Warmup::Cold);
        options.settings.operands.clear();
        options.settings.repetitions = Repetitions::exactly(1);
        options.settings.timeout = Some(
            options
                .settings
                .timeout
                .map_or(LIMIT, |most| most.min(LIMIT)),
        );
        let built = objects::objects(package, manifest, Code::Traced, &options)?;
        let built = built.link(package, manifest, &options)?;
        Ok::<_, ReplayError>((built, options))
    };
    let (built, options) = traced(edited)?;
    let (ended, found) = run::run_traced(package, manifest, &built, &[], &options)?;
    if found.wrong.is_empty() {
        let right = ended
            .comparison
            .is_some_and(|c| c.different_words == 0 && c.same_end);
        return Ok((right && !several).then(|| Wrong {
            optimised: true,
            ..Wrong::default()
        }));
    }
    let (ended, mut new) = run::run_traced(package, manifest, &built, &found.wrong, &options)?;
    drop_overwritten(&mut new, &ended);
    if several {
        // What is stored first differs from run to run.
        return Ok(Some(Wrong {
            last: new.last.first().cloned().flatten().map(|e| step(&new, &e)),
            ..Wrong::default()
        }));
    }
    let (built, options) = traced(captured)?;
    let (ended, old) = run::run_traced(package, manifest, &built, &found.wrong, &options)?;
    let mut wrong = judged(&new, &old, edited.settings.tolerance);
    // Code that does not do again what it did in vivo is nothing to compare with.
    let again = |c: &Comparison| c.same_end && c.different_words == 0;
    if !ended.comparison.as_ref().is_some_and(again) && !judge::may_be_rounding(&ended, &options) {
        wrong.first = None;
    }
    Ok(Some(wrong))
}

/// Forgets the last store to the first word if something else wrote there afterwards, such as a library's function.
fn drop_overwritten(stores: &mut Stores, ended: &Replay) {
    let word = stores.words.first().copied();
    let listed = ended.comparison.iter().flat_map(|c| &c.first);
    let left = listed
        .filter(|d| Some(d.address) == word)
        .map(|d| d.in_vitro)
        .next();
    if let Some(last) = stores.last.first_mut()
        && last.as_ref().is_some_and(|entry| Some(entry.value) != left)
    {
        *last = None;
    }
}

fn step(stores: &Stores, entry: &StoreEntry) -> Step {
    Step {
        site: stores.sites[entry.site as usize].clone(),
        iterations: entry.iterations.clone(),
        value: value(entry),
    }
}

/// What was stored, as the type says.
fn value(entry: &StoreEntry) -> String {
    let (offset, size) = (
        entry.bytes.trailing_zeros().min(7),
        entry.bytes.count_ones(),
    );
    let bits = entry.value >> (8 * offset);
    match (entry.kind, size) {
        (1, 4) => f32::from_bits(bits as u32).to_string(),
        (1, 8) => format!(
            "{} {}",
            f32::from_bits(bits as u32),
            f32::from_bits((bits >> 32) as u32)
        ),
        (2, 8) => f64::from_bits(bits).to_string(),
        _ => {
            let unused = 64 - 8 * size.clamp(1, 8);
            (((bits << unused) as i64) >> unused).to_string()
        }
    }
}

/// The stores of a word that reach one of its bytes, each with its number among all.
struct Sequence<'a> {
    all: Vec<(usize, &'a StoreEntry)>,
    /// Whether these are all.
    whole: bool,
    /// How often the word was stored.
    count: u64,
    /// What was stored last: of all, the byte's last store, else the word's.
    last: Option<&'a StoreEntry>,
}

impl<'a> Sequence<'a> {
    fn of(stores: &'a Stores, word: usize, byte: u32) -> Self {
        let all = stores.entries.iter().enumerate();
        let own = all.filter(|(_, e)| e.word as usize == word);
        let kept = own.clone().count() as u64;
        let count = stores.counts.get(word).copied().unwrap_or(0);
        let all: Vec<_> = own.filter(|(_, e)| e.bytes >> byte & 1 == 1).collect();
        let whole = kept == count;
        Self {
            last: match whole {
                true => all.last().map(|(_, entry)| *entry),
                false => stores.last.get(word).and_then(Option::as_ref),
            },
            all,
            whole,
            count,
        }
    }
}

/// Whether two stores leave the same byte, or the same number but for rounding.
fn same(a: &StoreEntry, b: &StoreEntry, byte: u32, tolerance: Tolerance) -> bool {
    let close = |a: f64, b: f64, most: f64| (a - b).abs() <= most * a.abs().max(b.abs());
    let (x, y) = (a.value, b.value);
    (x ^ y) >> (8 * byte) & 0xff == 0
        || a.kind == b.kind
            && match a.kind {
                1 => {
                    let shift = byte / 4 * 32;
                    let float = |bits: u64| f64::from(f32::from_bits((bits >> shift) as u32));
                    close(float(x), float(y), tolerance.single)
                }
                2 => close(f64::from_bits(x), f64::from_bits(y), tolerance.double),
                _ => false,
            }
}

/// A place where the stores of a word part.
struct Parted {
    /// Whether the sequences have other lengths: the numbers in them may rightly be others.
    doubtful: bool,
    /// When the edited code came there; `usize::MAX` if it did not.
    new: usize,
    /// When the captured code did.
    old: usize,
    first: First,
}

fn judged(new: &Stores, old: &Stores, tolerance: Tolerance) -> Wrong {
    let last = new.last.first().cloned().flatten();
    let mut stored: Option<Parted> = None;
    let mut missing: Option<Parted> = None;
    for word in 0..new.words.len().min(old.words.len()) {
        for byte in 0..8 {
            let (ours, theirs) = (
                (new, Sequence::of(new, word, byte)),
                (old, Sequence::of(old, word, byte)),
            );
            let Some(found) = differs(ours, theirs, |a, b| same(a, b, byte, tolerance)) else {
                continue;
            };
            let (best, when) = match found.first {
                First::Missing(_) => (&mut missing, (false, found.old)),
                _ => (&mut stored, (found.doubtful, found.new)),
            };
            let before = best.as_ref().map(|known| match known.first {
                First::Missing(_) => (false, known.old),
                _ => (known.doubtful, known.new),
            });
            if before.is_none_or(|before| when < before) {
                *best = Some(found);
            }
        }
    }
    // What is left out comes first if the captured code stored it before what differs.
    let first = match (stored, missing) {
        (Some(stored), Some(missing)) if missing.old < stored.old => missing,
        (Some(found), _) | (None, Some(found)) => found,
        (None, None) => {
            return Wrong {
                last: last.map(|entry| step(new, &entry)),
                ..Wrong::default()
            };
        }
    };
    Wrong {
        last: last.map(|entry| step(new, &entry)),
        first: Some(first.first),
        optimised: false,
    }
}

/// Where two sequences of stores part. Those of very different lengths are compared as long as one is the other's beginning: code
/// that adds in several variables stores other numbers, and rightly so.
fn differs(
    (new, ours): (&Stores, Sequence),
    (old, theirs): (&Stores, Sequence),
    same: impl Fn(&StoreEntry, &StoreEntry) -> bool,
) -> Option<Parted> {
    let whole = ours.whole && theirs.whole;
    let ends_alike = match (ours.last, theirs.last) {
        (Some(a), Some(b)) => same(a, b),
        (None, None) => true,
        // Of some of the stores it is not known.
        _ => !whole,
    };
    if ends_alike {
        return None;
    }
    let mut pairs = ours.all.iter().zip(&theirs.all);
    if let Some(((when, a), (then, b))) = pairs.find(|((_, a), (_, b))| !same(a, b)) {
        let doubtful = ours.count != theirs.count;
        return (!doubtful || 2 * ours.count >= theirs.count).then(|| Parted {
            doubtful,
            new: *when,
            old: *then,
            first: First::Other(step(new, a), value(b)),
        });
    }
    let common = ours.all.len().min(theirs.all.len());
    let (more, less) = (ours.all.get(common), theirs.all.get(common));
    match (whole, more, less) {
        (true, Some((when, more)), _) => Some(Parted {
            doubtful: false,
            new: *when,
            old: 0,
            first: First::More(step(new, more)),
        }),
        (true, None, Some((then, missing))) => Some(Parted {
            doubtful: false,
            new: usize::MAX,
            old: *then,
            first: First::Missing(step(old, missing)),
        }),
        _ => None,
    }
}

impl Step {
    /// Where it is, for people.
    fn place(&self) -> String {
        let StoreSite {
            file,
            function,
            line,
            loops,
        } = &self.site;
        let place = match line {
            0 if function.is_empty() => "where the region hands over its results".to_owned(),
            0 => format!("in the function {function}"),
            line => format!("at {file}:{line}"),
        };
        let loops = loops.iter().zip(&self.iterations);
        let iterations: Vec<String> = loops
            .map(|(line, number)| match line {
                0 => format!("iteration {number} of a loop"),
                line => format!("iteration {number} of the loop at line {line}"),
            })
            .collect();
        match iterations.is_empty() {
            true => place,
            false => format!("{place}, {}", iterations.join(", ")),
        }
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.optimised {
            return f.write_str(
                "where each of its stores is reported, so that the optimiser does not combine them, the code ends right: undefined behaviour (such as pointers of other types to the same memory) or sums that may be reordered make the difference",
            );
        }
        match &self.last {
            Some(step) => write!(
                f,
                "the first wrong value was stored last {}",
                step.place()
            )?,
            None => f.write_str(
                "no store of the new code left the first wrong value: it lacks one, or a library's function wrote it",
            )?,
        }
        match &self.first {
            Some(First::Other(step, expected)) => write!(
                f,
                "; the first store that differs: {} instead of {expected} {}",
                step.value,
                step.place()
            ),
            Some(First::More(step)) => write!(
                f,
                "; the first store that differs: {} {}, where the code as captured stores nothing more",
                step.value,
                step.place()
            ),
            Some(First::Missing(step)) => write!(
                f,
                "; the code as captured stores {} {}, the new code does not",
                step.value,
                step.place()
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores of one word, each of these bytes, of which the first ones are kept; `count` in all.
    fn stores(kept: &[(u8, u64)], last: (u8, u64), count: u64) -> Stores {
        let entry = |(bytes, value): &(u8, u64)| StoreEntry {
            word: 0,
            site: 0,
            value: *value,
            bytes: *bytes,
            kind: 3,
            iterations: Vec::new(),
        };
        Stores {
            wrong: Vec::new(),
            words: vec![0x1000],
            counts: vec![count],
            last: vec![Some(entry(&last))],
            entries: kept.iter().map(entry).collect(),
            sites: vec![StoreSite {
                file: "k.c".to_owned(),
                function: "f".to_owned(),
                line: 7,
                loops: Vec::new(),
            }],
        }
    }

    fn first(new: &Stores, old: &Stores) -> Option<First> {
        judged(new, old, Tolerance::default()).first
    }

    const LOW: u8 = 0x0f;
    const HIGH: u8 = 0xf0;

    #[test]
    fn bytes_that_end_right_are_not_accused() {
        // The lower half is stored in another order and ends right; the upper half is wrong, by a store that is not kept.
        let old = stores(&[(LOW, 1), (LOW, 2)], (HIGH, 3 << 32 | 2), 3);
        let new = stores(&[(LOW, 2), (LOW, 1)], (HIGH, 4 << 32 | 2), 3);
        assert_eq!(first(&new, &old), None);
        // Where all stores are kept, it is found.
        let (mut new, mut old) = (
            stores(&[(LOW, 2), (HIGH, 4 << 32 | 2)], (HIGH, 4 << 32 | 2), 2),
            stores(&[(LOW, 2), (HIGH, 3 << 32 | 2)], (HIGH, 3 << 32 | 2), 2),
        );
        let Some(First::Other(step, expected)) = first(&new, &old) else {
            panic!("a store differs");
        };
        assert_eq!((&*step.value, &*expected), ("4", "3"));
        // More, or less, than before.
        old.entries.pop();
        (old.counts, old.last) = (vec![1], vec![Some(old.entries[0].clone())]);
        assert!(matches!(first(&new, &old), Some(First::More(_))));
        std::mem::swap(&mut new, &mut old);
        assert!(matches!(first(&new, &old), Some(First::Missing(_))));
    }
}
