//! Tests the comparison: flips a bit of each word that the region wrote, in the exit state of a package, replays it, and counts
//! the differences found. Does the same to what the region printed, or registered to run at the end.

use crate::tools::{cere, json, shown, text};
use anyhow::{Context, Result, ensure};
use cere_format::answers::{ANSWER_HEAD, TEXT_BEFORE, decode};
use cere_format::capture::*;
use cere_format::package::*;
use cere_format::replay::left_out;
use cere_package::io::{NewMember, Package, encode_table, read_package, write_package};
use serde_json::Value;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Maximum flipped words of a codelet: every n-th of those that the region wrote.
const MOST: usize = 50_000;
/// Bytes of a package that are read.
const LIMIT: u64 = 4 << 30;
const PAGE: usize = cere_format::PAGE as usize;

/// The outcome for the flipped words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Injected {
    /// Words flipped.
    pub flipped: u64,
    /// Of those, words that the replay detected.
    pub detected: u64,
    /// Of those, words that the comparison excludes.
    pub masked: u64,
}

impl Injected {
    /// Adds `other`.
    pub fn add(&mut self, other: Self) {
        self.flipped += other.flipped;
        self.detected += other.detected;
        self.masked += other.masked;
    }
}

impl std::fmt::Display for Injected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = 100.0 * self.masked as f64 / self.flipped.max(1) as f64;
        let (detected, flipped, masked) = (self.detected, self.flipped, self.masked);
        write!(
            f,
            "{detected} of {flipped} found, {masked} masked ({share:.2} %)"
        )
    }
}

/// Sum over all calls of [`inject`] so far.
pub fn total() -> Injected {
    *TOTAL.lock().unwrap_or_else(PoisonError::into_inner)
}

static TOTAL: Mutex<Injected> = Mutex::new(Injected {
    flipped: 0,
    detected: 0,
    masked: 0,
});

/// Offsets of the words in which `after` is not `before`.
fn written<'a>(before: &'a [u8], after: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let pairs = before.chunks_exact(8).zip(after.chunks_exact(8));
    let pairs = pairs
        .enumerate()
        .filter(|(_, (before, after))| before != after);
    pairs.map(|(at, _)| 8 * at)
}

/// Flips one bit of the word at `offset`, another one at another address.
fn flip(bytes: &mut [u8], offset: usize, address: u64) {
    let bit = (address / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
    bytes[offset + bit as usize / 8] ^= 1 << (bit % 8);
}

/// The content of the pages of a table at one end, zeros where none is stored.
fn contents(pages: &[PageRecord], stored: &[u8], flag: u32) -> Vec<Vec<u8>> {
    let mut stored = stored.chunks_exact(PAGE);
    let content = |page: &PageRecord| match page.flags & flag {
        0 => vec![0; PAGE],
        _ => stored.next().map_or(vec![0; PAGE], <[u8]>::to_vec),
    };
    pages.iter().map(content).collect()
}

/// Flips bits in `package`; how many.
fn flip_package(package: &mut Package) -> u64 {
    let manifest = &package.manifest;
    let stack = manifest.entry.stack_pointer;
    let entry = contents(
        &package.pages,
        package.member(MEMBER_ENTRY),
        PAGE_ENTRY_STORED,
    );
    let mut exit = contents(
        &package.pages,
        package.member(MEMBER_EXIT),
        PAGE_EXIT_STORED,
    );
    let compared = |page: &PageRecord| {
        page.flags & PAGE_WRITTEN != 0 && page.flags & (PAGE_CODE | PAGE_FOREIGN) == 0
    };
    let of_libraries = |mask: &&Mask| mask.reason == left_out::LIBRARY;
    let library: Vec<&Mask> = manifest.masks.iter().filter(of_libraries).collect();
    let mut places = Vec::new();
    for (number, page) in package.pages.iter().enumerate().filter(|p| compared(p.1)) {
        let dead = |at: u64| page.flags & PAGE_STACK != 0 && at < stack;
        let words = written(&entry[number], &exit[number]);
        let words = words.map(|offset| (number, offset, page.address + offset as u64));
        // Variables of libraries that the linker copied into the program: never compared as memory.
        let of_library =
            |at: u64| (library.iter()).any(|mask| (mask.start..mask.end).contains(&at));
        places.extend(words.filter(|(_, _, at)| !dead(*at) && !of_library(*at)));
    }
    let step = places.len().div_ceil(MOST).max(1);
    let mut flipped = 0;
    for &(number, offset, at) in places.iter().step_by(step) {
        flip(&mut exit[number], offset, at);
        package.pages[number].flags |= PAGE_EXIT_STORED;
        flipped += 1;
    }
    let pairs = package.pages.iter().zip(exit);
    let stored: Vec<Vec<u8>> = pairs
        .filter(|(page, _)| page.flags & PAGE_EXIT_STORED != 0)
        .map(|(_, content)| content)
        .collect();
    package.members.insert(MEMBER_EXIT.into(), stored.concat());
    let before = package.member(MEMBER_TLS_ENTRY).to_vec();
    if let Some(after) = package.members.get_mut(MEMBER_TLS_EXIT) {
        let offsets: Vec<usize> = written(&before, after).collect();
        for offset in offsets {
            flip(after, offset, offset as u64);
            flipped += 1;
        }
    }
    flipped
}

/// Whether a difference is none of memory: of printed text, or of what was registered.
fn is_deed(difference: &Value) -> bool {
    let place = difference["place"].as_str();
    place.is_some_and(|p| p.starts_with("standard ") || p.starts_with("function "))
}

/// Flips a bit of what the region printed or registered; whether it did.
fn flip_deed(package: &mut Package) -> Result<bool> {
    let Some(list) = package.members.get_mut(MEMBER_ANSWERS) else {
        return Ok(false);
    };
    let (mut at, mut place) = (0, None);
    for (head, bytes) in decode(MEMBER_ANSWERS, list)? {
        let end = at + ANSWER_HEAD + bytes.len();
        if head.is_registration() {
            // Of the function. The first ones may lie in the linkage table, where nothing has a name.
            place = Some(at + ANSWER_HEAD);
        }
        if head.is_text() && head.flags & TEXT_BEFORE == 0 && !bytes.is_empty() {
            place = Some(end - 1);
        }
        at = end.next_multiple_of(8);
    }
    if let Some(place) = place {
        list[place] ^= 1;
    }
    Ok(place.is_some())
}

/// Replays `package`, which was altered.
fn replay_altered(
    directory: &Path,
    package: Package,
    threads: Option<u32>,
) -> Result<(Value, String)> {
    let scratch = tempfile::tempdir_in(directory)?;
    let altered = scratch.path().join("altered.codelet");
    let Package {
        mut manifest,
        pages,
        members,
    } = package;
    let order = manifest.members.clone();
    let members: Vec<NewMember> = order
        .iter()
        .map(|member| match member.name.as_str() {
            MEMBER_TABLE => NewMember::bytes(MEMBER_TABLE, encode_table(&pages)),
            name => NewMember::bytes(name, members.get(name).cloned().unwrap_or_default()),
        })
        .collect();
    write_package(&altered, &mut manifest, &members)?;
    replay(directory, &altered, threads)
}

/// (words that differ, bytes left out, whether printed text or registrations are among these).
fn counts(result: &Value) -> Result<(u64, u64, bool)> {
    let comparison = &result["comparison"];
    let number = |value: &Value| {
        value
            .as_u64()
            .with_context(|| format!("no number in {result}"))
    };
    let masked = comparison["masked"]
        .as_array()
        .context("no list of what is left out")?;
    let bytes = masked.iter().map(|m| number(&m["bytes"]));
    let excluded = [left_out::TEXT, left_out::REGISTERED];
    let text = masked
        .iter()
        .any(|m| excluded.iter().any(|e| m["reason"] == *e));
    // Printed text is compared besides memory: a flipped word of a stream's buffer is excluded there and found here.
    let first = comparison["first"].as_array().into_iter().flatten();
    let printed = first.filter(|d| is_deed(d));
    let words = number(&comparison["different_words"])? - printed.count() as u64;
    Ok((words, bytes.sum::<Result<u64>>()?, text))
}

/// The replay of the package at `file`: its result as JSON, and the command with what it printed.
fn replay(directory: &Path, file: &Path, threads: Option<u32>) -> Result<(Value, String)> {
    let mut command = cere(directory);
    command.args(["replay", "--json", "--reps", "1"]).arg(file);
    if let Some(threads) = threads {
        command.args(["--threads", &threads.to_string()]);
    }
    let (result, run) = json(&mut command)?;
    Ok((result, format!("{}\n{}", shown(&command), text(&run))))
}

/// Injects into the codelet of the package at `file`, whose replay with the build's flags is exact or partly, with
/// `threads` instead of the captured number where given. Each flipped word has to be found, or counted as left out.
pub fn inject(directory: &Path, file: &Path, threads: Option<u32>) -> Result<Injected> {
    let (plain, printed) = replay(directory, file, threads)?;
    let verdict = plain["verdict"].as_str();
    ensure!(
        verdict.is_some_and(|v| ["exact", "partly"].contains(&v)),
        "nothing is flipped yet, and the verdict is {verdict:?}\n{printed}"
    );
    let mut package = read_package(file, LIMIT)?;
    let excluded = counts(&plain)?.2;
    if !excluded && flip_deed(&mut package)? {
        let (result, printed) = replay_altered(directory, package, threads)?;
        let first = &result["comparison"]["first"];
        let noticed = first.as_array().into_iter().flatten().any(is_deed);
        ensure!(
            noticed,
            "the text, or what is registered, is another one, and is not found\n{printed}"
        );
        package = read_package(file, LIMIT)?;
    }
    let flipped = flip_package(&mut package);
    if flipped == 0 {
        return Ok(Injected::default());
    }
    let (result, printed) = replay_altered(directory, package, threads)?;
    let fail = || printed.clone();
    let ((none, before, _), (detected, after, _)) =
        (counts(&plain)?, counts(&result).with_context(fail)?);
    ensure!(none == 0, "{} words differ before any is flipped", none);
    let masked = after.saturating_sub(before) / 8;
    // Words that the plain replay excluded because they differ are excluded again and not counted again.
    let known = masked_words(&plain);
    ensure!(
        detected + masked <= flipped && flipped <= detected + masked + known,
        "{flipped} words flipped, {detected} found, {masked} left out, {known} of them before\n{}",
        fail()
    );
    // A difference that looks like rounding between threads is reported as such, not ignored.
    let noticed = result["verdict"] == "different" || result["verdict"] == "tolerance";
    ensure!(detected == 0 || noticed, "{result}\n{}", fail());
    let found = Injected {
        flipped,
        detected,
        masked: flipped - detected,
    };
    let mut total = TOTAL.lock().unwrap_or_else(PoisonError::into_inner);
    total.add(found);
    Ok(found)
}

/// Words that a comparison excluded because they differ, not because of their address.
fn masked_words(result: &Value) -> u64 {
    use cere_format::replay::left_out::{CODE, DEAD_STACK, LIBRARY};
    let masked = result["comparison"]["masked"].as_array();
    let by_place = |m: &&Value| {
        [CODE, DEAD_STACK, LIBRARY]
            .iter()
            .any(|r| m["reason"] == *r)
    };
    let words = masked.into_iter().flatten().filter(|m| !by_place(m));
    words.filter_map(|m| m["bytes"].as_u64()).sum::<u64>() / 8
}
