//! Exit state in vitro against exit state in vivo, word by word.

use crate::control::Control;
use crate::library::Origins;
use crate::output::Printed;
use crate::pages::{PAGE, Page, Pages, memory};
use crate::thread::Block;
use crate::typed::{self, Kind};
use crate::{code, space, stores, unset};
use cere_format::capture::{PAGE_CODE, PAGE_FOREIGN, PAGE_STACK, PAGE_WRITTEN};
use cere_format::package::{Manifest, Mask, Variable};
use cere_format::replay::{Comparison, Difference, LeftOut, left_out};

/// Relative errors from this on are not taken for rounding where the types of stores are not known.
const LIKELY: f64 = 0.5;
/// Differences listed.
pub const LISTED: usize = 16;

/// Relative error of finite values whose bits differ, `unit` at least: a difference of signs of zero is one.
fn relative(a: f64, b: f64, unit: f64) -> Option<f64> {
    let finite = a.is_finite() && b.is_finite();
    let scale = a.abs().max(b.abs());
    let error = if scale == 0.0 {
        unit
    } else {
        // Halves: the distance of the largest values is no number.
        (a / 2.0 - b / 2.0).abs() / scale * 2.0
    };
    finite.then_some(error.max(unit))
}

/// Relative errors of a word that differs as a double, or of its halves as floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Floating {
    /// As a double.
    Double(f64),
    /// Of the worse half.
    Single(f64),
}

fn double(a: u64, b: u64) -> Option<f64> {
    relative(f64::from_bits(a), f64::from_bits(b), f64::EPSILON)
}

fn single(a: u64, b: u64) -> Option<f64> {
    let half = |shift: u32| {
        let (x, y) = ((a >> shift) as u32, (b >> shift) as u32);
        if x == y {
            return Some(0.0);
        }
        let (x, y) = (f64::from(f32::from_bits(x)), f64::from(f32::from_bits(y)));
        relative(x, y, f64::from(f32::EPSILON))
    };
    Some(half(0)?.max(half(32)?))
}

/// How two words differ as floating point, if they can be that: by what their halves were stored as, or, where that
/// is not known, in the way with the smaller error.
pub fn floating(a: u64, b: u64, kinds: Option<[Kind; 2]>) -> Option<Floating> {
    let Some(kinds) = kinds else {
        let likely = |e: &f64| *e < LIKELY;
        let (d, s) = (double(a, b).filter(likely), single(a, b).filter(likely));
        return match (d, s) {
            (Some(d), Some(s)) if s < d => Some(Floating::Single(s)),
            (Some(d), _) => Some(Floating::Double(d)),
            (None, s) => s.map(Floating::Single),
        };
    };
    if kinds == [Kind::Double; 2] {
        return double(a, b).map(Floating::Double);
    }
    let fits = |half: usize| {
        let shift = 32 * half as u32;
        (a >> shift) as u32 == (b >> shift) as u32 || kinds[half] == Kind::Single
    };
    single(a, b)
        .filter(|_| fits(0) && fits(1))
        .map(Floating::Single)
}

/// The variable or mapping that `address` belongs to, for people.
pub fn place(manifest: &Manifest, address: u64) -> String {
    let block = manifest.entry.arguments;
    if address >= block && address - block < 8 {
        return "return value".to_owned();
    }
    let inside = |start: u64, size: u64| start <= address && address - start < size;
    if let Some(v) = manifest
        .variables
        .iter()
        .find(|v| inside(v.address, v.size))
    {
        return format!("{}+{}", v.name, address - v.address);
    }
    match space::place(manifest, address) {
        _ if manifest.heap.0 <= address && address < manifest.heap.1 => "[region heap]".to_owned(),
        Some(m) if !m.path.is_empty() => m.path.clone(),
        _ => "anonymous memory".to_owned(),
    }
}

/// The same, and what leads there: a small variable that at exit holds the nearest address at or below it.
fn place_and_lead(manifest: &Manifest, pages: &Pages, address: u64) -> String {
    /// Larger ones hold data, not the descriptor of an array or a few pointers.
    const SMALL: u64 = 4096;
    /// Bytes beyond which a pointer likely leads to something else.
    const NEAR: u64 = 1 << 20;
    let place = place(manifest, address);
    if place != "[heap]" && place != "[region heap]" && place != "anonymous memory" {
        return place;
    }
    let mut best: Option<(u64, String)> = None;
    // Not the probes' own.
    let small = |v: &&Variable| v.size <= SMALL && !v.name.starts_with("cere.");
    for v in manifest.variables.iter().filter(small) {
        let start = v.address.next_multiple_of(8);
        let end = v.address.saturating_add(v.size) & !7;
        let Some((exit, _)) = (start < end).then(|| pages.both(start, end)).flatten() else {
            continue;
        };
        for (i, to) in words(&exit).enumerate() {
            let nearer = best.as_ref().is_none_or(|(known, _)| *known < to);
            if nearer && to <= address && address - to < NEAR {
                let offset = start + 8 * i as u64 - v.address;
                let offset = if offset == 0 {
                    String::new()
                } else {
                    format!("+{offset}")
                };
                best = Some((to, format!("{}{offset}", v.name)));
            }
        }
    }
    match best {
        Some((to, name)) if to == address => format!("{place}, where {name} points"),
        Some((to, name)) => format!("{place}, {} bytes behind where {name} points", address - to),
        None => place,
    }
}

/// Counts `bytes` that are not compared, of which the region changed, or may have changed, so many.
fn leave_out(comparison: &mut Comparison, reason: &str, bytes: u64, changed: u64) {
    let all = &mut comparison.masked;
    match all.iter_mut().find(|m| m.reason == reason) {
        Some(found) => {
            found.bytes += bytes;
            found.changed += changed;
        }
        None => all.push(LeftOut {
            reason: reason.to_owned(),
            bytes,
            changed,
        }),
    }
}

fn word(
    comparison: &mut Comparison,
    address: u64,
    in_vivo: u64,
    in_vitro: u64,
    place: impl FnOnce() -> String,
) {
    if in_vivo == in_vitro {
        return;
    }
    comparison.different_words += 1;
    stores::ends_wrong(address);
    digest(comparison, address, in_vitro);
    let found = floating(in_vivo, in_vitro, typed::kinds(address, in_vitro));
    comparison.floating_words += u64::from(found.is_some());
    let largest = match found {
        Some(Floating::Double(error)) => Some((&mut comparison.largest_relative_error, error)),
        Some(Floating::Single(error)) => Some((&mut comparison.largest_float_error, error)),
        None => None,
    };
    if let Some((largest, error)) = largest {
        *largest = largest.max(error);
    }
    if comparison.first.len() < LISTED {
        comparison.first.push(Difference {
            address,
            place: place(),
            in_vivo,
            in_vitro,
        });
    }
}

/// Takes a word that differs into the hash of them.
fn digest(comparison: &mut Comparison, address: u64, in_vitro: u64) {
    let words = [comparison.digest, address, in_vitro].map(u64::to_le_bytes);
    comparison.digest = xxhash_rust::xxh3::xxh3_64(words.as_flattened());
}

/// Bytes of the words that the region changed.
fn changed(before: &[u8], after: &[u8]) -> u64 {
    // Whole words by themselves: the compiler makes vectors of them.
    let ((before, one), (after, other)) = (before.as_chunks::<8>(), after.as_chunks::<8>());
    let pairs = before.iter().zip(after);
    let whole: u64 = pairs
        .map(|(before, after)| u64::from(before != after))
        .sum();
    8 * (whole + u64::from(one != other))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|c| {
        let mut w = [0u8; 8];
        w[..c.len()].copy_from_slice(c);
        u64::from_le_bytes(w)
    })
}

/// Variables and functions of the image, by rising address: a replay that means one of them stores its captured
/// address. Functions have no extent: an address inside one is a place in its code.
pub struct Named {
    all: Vec<(u64, u64)>,
    /// Functions with what they reach to.
    functions: Vec<(u64, u64)>,
}

impl Named {
    /// Whether a function begins there.
    fn begins(&self, address: u64) -> bool {
        self.functions.iter().any(|function| function.0 == address)
    }

    /// From the manifest.
    pub fn new(manifest: &Manifest) -> Self {
        let image = manifest.image.range;
        // Exception tables belong to the code, whose unwinder alone looks at them.
        let table = |name: &str| name.starts_with("GCC_except_table");
        let variables = manifest.variables.iter().filter(|v| !table(&v.name));
        let mut all: Vec<(u64, u64)> = variables
            .map(|v| (v.address, v.address.saturating_add(v.size)))
            .chain(manifest.functions.iter().map(|f| (f.address, f.address)))
            // Functions of libraries by their entries in the linkage table.
            .chain(
                manifest
                    .library_symbols
                    .iter()
                    .map(|s| (s.address, s.address)),
            )
            .filter(|r| (image.0..image.1).contains(&r.0))
            .collect();
        all.sort_unstable();
        let functions = manifest.functions.iter();
        Self {
            all,
            functions: functions
                .map(|f| (f.address, f.address.saturating_add(f.size)))
                .collect(),
        }
    }

    /// Whether `in_vitro`, in this executable, can be what `in_vivo` was: nothing that has a name, or a constant of
    /// the same content.
    fn alike(&self, allowed: &Allowed, in_vivo: u64, in_vitro: u64) -> bool {
        /// Variables that may begin before an address inside another one: strings that share their ends.
        const BEFORE: usize = 16;
        let at = self.all.partition_point(|r| r.0 <= in_vivo);
        let near = &self.all[at.saturating_sub(BEFORE)..at];
        let Some(&(start, end)) = near.iter().rev().find(|r| in_vivo == r.0 || in_vivo < r.1)
        else {
            return true;
        };
        let length = end.saturating_sub(in_vivo);
        if start == end || !allowed.origins.recompiled(in_vitro.saturating_add(length)) {
            return false;
        }
        // SAFETY: inside this executable, whose data and code can be read.
        let here = unsafe { std::slice::from_raw_parts(in_vitro as *const u8, length as usize) };
        let there = allowed.pages.both(in_vivo, end);
        there.is_some_and(|(exit, _)| exit == here)
    }
}

/// What a replay may or must change.
pub struct Allowed<'a> {
    /// Words that hold addresses of library variables, by rising address.
    pub words: &'a [(u64, u64)],
    /// Library variables: where they are and where they were, sorted.
    pub variables: &'a [(u64, u64)],
    /// Where functions and libraries were.
    pub origins: &'a Origins,
    /// The thread-local block now.
    pub block: &'a Block,
    /// The thread's control block and its libraries' variables.
    pub control: &'a Control,
    /// The exception that left the region, or 0.
    pub exception: u64,
    /// The captured pages.
    pub pages: &'a Pages,
    /// What has a name in the image.
    pub named: &'a Named,
    /// Freed parts of the region heap, by rising address.
    pub freed: &'a [(u64, u64)],
    /// Pages that hold what they held at entry for sure, by rising address.
    pub unwritten: &'a [u64],
}

/// What the C++ runtime keeps of an exception lies around the unwinder's header: which handler of the
/// application takes it, which a replay does not have.
const BEFORE_EXCEPTION: u64 = 96;
const EXCEPTION: u64 = 32;

impl Allowed<'_> {
    /// Why a difference does not count, if it does not.
    fn excuse<'m>(
        &self,
        manifest: &'m Manifest,
        address: u64,
        in_vivo: u64,
        in_vitro: u64,
    ) -> Option<&'m str> {
        let masked = |m: &&Mask| m.start < address + 8 && address < m.end;
        let masks = || {
            manifest
                .masks
                .iter()
                .filter(masked)
                .map(|m| m.reason.as_str())
        };
        if let Some(reason) = masks().find(|reason| left_out::harmless(reason)) {
            return Some(reason);
        }
        let start = self.exception.saturating_sub(BEFORE_EXCEPTION);
        // The probe's own frame, in which it holds the exception while it says that the region is left.
        let probe = manifest.entry.stack_pointer..manifest.entry.arguments;
        let (image, end) = (
            manifest.image.range,
            self.exception.saturating_add(EXCEPTION),
        );
        let reason = if self.library(address, in_vivo, in_vitro) {
            left_out::LIBRARY_ADDRESS
        } else if self.origins.half(in_vivo, in_vitro) {
            left_out::HALF_ADDRESS
        } else if self.exception != 0
            && ((start..end).contains(&address) || probe.contains(&address))
        {
            left_out::HANDLER
        } else if self.freed(address) {
            left_out::FREED
        } else if self.code(image, in_vivo, in_vitro) || self.mixed_code(image, in_vivo, in_vitro) {
            left_out::CODE_ADDRESS
        } else if let Some(reason) = masks().next() {
            reason
        } else if unset::is(address, in_vivo, in_vitro) {
            left_out::UNSET
        } else if self.origins.of_other_build(in_vivo, in_vitro) {
            left_out::OTHER_BUILD
        } else {
            return None;
        };
        Some(reason)
    }

    /// Whether both are the address of a library's variable, there and here, or what the region left of one.
    fn library(&self, address: u64, in_vivo: u64, in_vitro: u64) -> bool {
        let left = |at: usize| {
            let new = self.words[at].1.to_le_bytes();
            let old = self.pages.word(address).unwrap_or(0).to_le_bytes();
            let (in_vivo, in_vitro) = (in_vivo.to_le_bytes(), in_vitro.to_le_bytes());
            (0..8)
                .all(|i| in_vivo[i] == in_vitro[i] || in_vivo[i] == old[i] && in_vitro[i] == new[i])
        };
        let written = self.words.binary_search_by_key(&address, |w| w.0);
        self.variables.binary_search(&(in_vitro, in_vivo)).is_ok() || written.is_ok_and(left)
    }

    fn freed(&self, address: u64) -> bool {
        let at = self.freed.partition_point(|f| f.1 <= address);
        self.freed.get(at).is_some_and(|f| f.0 <= address)
    }

    /// Whether two words that a replay did not leave in memory mean the same: as such, or as code that has no name, such as the
    /// entry of a library's function in the linkage table.
    pub fn alike(&self, image: (u64, u64), in_vivo: u64, in_vitro: u64) -> bool {
        let mut functions = self.named.functions.iter();
        in_vivo == in_vitro
            || self.same(in_vivo, in_vitro)
            || !functions.any(|f| f.0 <= in_vivo && in_vivo < f.1)
                && self.code(image, in_vivo, in_vitro)
    }

    fn same(&self, in_vivo: u64, in_vitro: u64) -> bool {
        self.control.same(in_vivo, in_vitro) || self.origins.same(in_vivo, in_vitro)
    }

    /// Whether both are an address in the same code, which was compiled again.
    fn code(&self, image: (u64, u64), in_vivo: u64, in_vitro: u64) -> bool {
        self.origins.recompiled(in_vitro)
            && !self.origins.was_label(in_vivo)
            && (image.0..image.1).contains(&in_vivo)
            && self.named.alike(self, in_vivo, in_vitro)
    }

    /// The same of addresses that the C library has mixed with its guard (`setjmp`).
    fn mixed_code(&self, image: (u64, u64), in_vivo: u64, in_vitro: u64) -> bool {
        let plain = self
            .control
            .plain(in_vivo)
            .zip(self.control.plain(in_vitro));
        plain.is_some_and(|(in_vivo, in_vitro)| self.code(image, in_vivo, in_vitro))
    }
}

/// Compares all pages.
pub fn compare(manifest: &Manifest, pages: &Pages, allowed: &Allowed) -> Comparison {
    let mut comparison = Comparison {
        typed: typed::is_active(),
        ..Comparison::default()
    };
    for (number, page) in pages.all.iter().enumerate() {
        pages.passed(number);
        let written = page.is(PAGE_WRITTEN);
        let all = if written { PAGE } else { 0 };
        if page.is(PAGE_CODE) || code::executable(page.start()) {
            // What it holds here is machine code of this replay's.
            if written {
                leave_out(&mut comparison, left_out::CODE, PAGE, all);
            }
            continue;
        }
        if page.is(PAGE_FOREIGN) {
            leave_out(&mut comparison, left_out::LIBRARY, PAGE, all);
            continue;
        }
        page_at_exit(&mut comparison, manifest, pages, page, allowed);
    }
    pages.let_go();
    for page in &pages.given_up {
        let changed = if page.is(PAGE_WRITTEN) { PAGE } else { 0 };
        leave_out(&mut comparison, left_out::LIBRARY, PAGE, changed);
    }
    thread_block(&mut comparison, manifest, allowed);
    comparison
}

/// Compares a page but for the dead stack in it.
fn page_at_exit(
    comparison: &mut Comparison,
    manifest: &Manifest,
    pages: &Pages,
    page: &Page,
    allowed: &Allowed,
) {
    let (start, stack) = (page.start(), manifest.entry.stack_pointer);
    let before = pages.entry(page);
    let wanted = match page.is(PAGE_WRITTEN) {
        true => pages.exit(page),
        false => before,
    };
    // SAFETY: the region rests while its end is compared.
    let found = unsafe { memory(page) };
    let dead = match page.is(PAGE_STACK) && start < stack {
        true => (stack - start).min(PAGE) & !7,
        false => 0,
    };
    if dead > 0 {
        let changed = if page.is(PAGE_WRITTEN) { dead } else { 0 };
        leave_out(comparison, left_out::DEAD_STACK, dead, changed);
    }
    let dead = dead as usize;
    comparison.compared += PAGE - dead as u64;
    if page.is(PAGE_WRITTEN) {
        comparison.changed += changed(&before[dead..], &wanted[dead..]);
    } else if allowed.unwritten.binary_search(&start).is_ok() {
        return;
    }
    if wanted[dead..] == found[dead..] {
        return;
    }
    let pairs = words(&wanted[dead..]).zip(words(&found[dead..]));
    for (at, (a, b)) in (dead..).step_by(8).zip(pairs) {
        if a == b || allowed.same(a, b) {
            continue;
        }
        let address = start + at as u64;
        let Some(reason) = allowed.excuse(manifest, address, a, b) else {
            // For the first one alone: it takes a look at all variables.
            let first = comparison.first.is_empty();
            // The address of a function, or of a label, is a value of the program's.
            let pointer = || allowed.origins.was_label(a) || allowed.named.begins(a);
            unset::differs(address, a, b, |value| {
                allowed.origins.recompiled(value) && !pointer()
            });
            word(comparison, address, a, b, || match first {
                true => place_and_lead(manifest, pages, address),
                false => place(manifest, address),
            });
            continue;
        };
        let bytes = match reason {
            left_out::UNSET => unset::bytes(address),
            _ => 8,
        };
        let changed = changed(&before[at..at + 8], &wanted[at..at + 8]).min(bytes);
        comparison.compared -= bytes;
        comparison.changed -= changed;
        leave_out(comparison, reason, bytes, changed);
    }
}

/// Adds the comparison of what was printed.
pub fn output(comparison: &mut Comparison, printed: Printed) {
    comparison.compared += printed.compared;
    if printed.unknown > 0 {
        leave_out(comparison, left_out::TEXT, printed.unknown, printed.unknown);
    }
    if printed.unseen > 0 {
        leave_out(comparison, left_out::UNSEEN, printed.unseen, printed.unseen);
    }
    if printed.unregistered > 0 {
        let bytes = 8 * printed.unregistered;
        leave_out(comparison, left_out::REGISTERED, bytes, bytes);
    }
    beside(comparison, printed.different);
}

/// Adds differences of what is not memory.
fn beside(comparison: &mut Comparison, different: impl IntoIterator<Item = Difference>) {
    for found in different {
        comparison.different_words += 1;
        digest(comparison, found.address, found.in_vitro);
        comparison.first.truncate(LISTED - 1);
        comparison.first.push(found);
    }
}

/// Adds what the C library keeps otherwise than it did at exit.
pub fn c_library(comparison: &mut Comparison, different: Vec<(String, u64, u64)>) {
    let different = different.into_iter();
    let different = different.map(|(place, in_vivo, in_vitro)| Difference {
        address: 0,
        place,
        in_vivo,
        in_vitro,
    });
    beside(comparison, different);
}

/// Of two comparisons the one that is farther off: by words that are no numbers, then by error, then by words.
pub fn worse(a: Comparison, b: Comparison) -> Comparison {
    let far = |c: &Comparison| {
        let error = c.largest_relative_error.max(c.largest_float_error);
        (
            !c.same_end,
            c.different_words - c.floating_words.min(c.different_words),
            error.to_bits(),
            c.different_words,
        )
    };
    if far(&a) < far(&b) { b } else { a }
}

fn thread_block(comparison: &mut Comparison, manifest: &Manifest, allowed: &Allowed) {
    let Some(tls) = &manifest.image.tls else {
        return;
    };
    comparison.compared += allowed.block.exit().len() as u64;
    comparison.changed += changed(allowed.block.entry(), allowed.block.exit());
    let pairs = words(allowed.block.exit()).zip(words(allowed.block.memory()));
    for (i, (a, b)) in pairs.enumerate() {
        let offset = 8 * i as u64;
        let b = if allowed.same(a, b) { a } else { b };
        word(comparison, tls.address.wrapping_add(offset), a, b, || {
            tls.variables
                .iter()
                .find(|v| v.offset <= offset && offset - v.offset < v.size)
                .map_or("thread-local block".to_owned(), |v| {
                    format!("{}+{}", v.name, offset - v.offset)
                })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn errors_of_floating_point() {
        let close = |a: f64, b: f64| double(a.to_bits(), b.to_bits()).unwrap();
        assert!((close(1.0, 1.0 + 1e-9) - 1e-9).abs() < 1e-12);
        assert_eq!(close(0.0, -0.0), f64::EPSILON);
        assert_eq!(close(0.0, 1e-300), 1.0);
        assert_eq!(close(f64::MAX, -f64::MAX), 2.0);
        assert!(double(f64::NAN.to_bits(), 0).is_none());
        let pair = |a: f32, b: f32| u64::from(a.to_bits()) | u64::from(b.to_bits()) << 32;
        assert_eq!(
            single(pair(1.0, 0.0), pair(1.0, -0.0)),
            Some(f64::from(f32::EPSILON))
        );
    }

    #[test]
    fn what_was_stored_decides() {
        let (a, b) = (0x3b9a_ca00_3b9a_ca07u64, 0x3b9a_ca00_3b9a_cb07u64);
        assert!(floating(a, b, None).is_some());
        assert!(floating(a, b, Some([Kind::Other; 2])).is_none());
        assert!(floating(a, b, Some([Kind::Double, Kind::Other])).is_none());
        // A float beside an integer that is the same.
        let half = Some([Kind::Single, Kind::Other]);
        let (a, b) = (0x0000_0007_3f80_0000, 0x0000_0007_3f80_0001);
        assert!(matches!(floating(a, b, half), Some(Floating::Single(e)) if e < 2e-7));
        assert!(floating(a, b ^ 1 << 32, half).is_none());
        let (a, b) = (1.0f64.to_bits(), 1.0000001f64.to_bits());
        assert!(matches!(
            floating(a, b, Some([Kind::Double; 2])),
            Some(Floating::Double(_))
        ));
        assert!(floating(1.0f64.to_bits(), (-3.0f64).to_bits(), None).is_none());
    }
}
