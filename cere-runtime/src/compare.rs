//! Exit state in vitro against exit state in vivo, word by word.

use crate::library::Origins;
use crate::pages::{PAGE, Pages, memory};
use crate::thread::Block;
use crate::{code, space};
use cere_format::capture::{PAGE_CODE, PAGE_FOREIGN, PAGE_STACK, PAGE_WRITTEN};
use cere_format::package::{Manifest, Mask};
use cere_format::replay::{Comparison, Difference};

/// Differences are floating point when their relative error is at most this.
const TOLERANCE: f64 = 1e-4;
/// Differences listed.
const LISTED: usize = 16;

fn relative(a: f64, b: f64) -> Option<f64> {
    if !a.is_finite() || !b.is_finite() {
        return None;
    }
    let scale = a.abs().max(b.abs());
    let error = if scale == 0.0 {
        0.0
    } else {
        (a - b).abs() / scale
    };
    // Words that read as denormals are integers or pointers, not results.
    let plausible = |x: f64| x == 0.0 || (x.abs() > 1e-200 && x.abs() < 1e200);
    (error <= TOLERANCE && plausible(a) && plausible(b)).then_some(error)
}

/// Relative error of two words that read as a double or as a pair of floats.
pub fn floating(a: u64, b: u64) -> Option<f64> {
    if let Some(error) = relative(f64::from_bits(a), f64::from_bits(b)) {
        return Some(error);
    }
    let part = |shift: u32| {
        let (x, y) = ((a >> shift) as u32, (b >> shift) as u32);
        if x == y {
            return f32::from_bits(x).is_normal().then_some(0.0);
        }
        relative(f64::from(f32::from_bits(x)), f64::from(f32::from_bits(y)))
            .filter(|_| f32::from_bits(x).abs() > 1e-30)
    };
    Some(part(0)?.max(part(32)?))
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

fn count(comparison: &mut Comparison, reason: &str, bytes: u64) {
    match comparison.masked.iter_mut().find(|m| m.0 == reason) {
        Some(found) => found.1 += bytes,
        None => comparison.masked.push((reason.to_owned(), bytes)),
    }
}

fn word(
    comparison: &mut Comparison,
    address: u64,
    in_vivo: u64,
    in_vitro: u64,
    place: impl FnOnce() -> String,
) {
    comparison.compared += 8;
    if in_vivo == in_vitro {
        return;
    }
    comparison.different_words += 1;
    if let Some(error) = floating(in_vivo, in_vitro) {
        comparison.floating_words += 1;
        comparison.largest_relative_error = comparison.largest_relative_error.max(error);
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

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|c| {
        let mut w = [0u8; 8];
        w[..c.len()].copy_from_slice(c);
        u64::from_le_bytes(w)
    })
}

/// Variables and functions of the image, by rising address: a replay that means one of them stores its captured
/// address. Functions have no extent: an address inside one is a place in its code.
pub struct Named(Vec<(u64, u64)>);

impl Named {
    /// From the manifest.
    pub fn new(manifest: &Manifest) -> Self {
        let image = manifest.image.range;
        // Exception tables belong to the code, whose unwinder alone looks at them.
        let table = |name: &str| name.starts_with("GCC_except_table");
        let variables = manifest.variables.iter().filter(|v| !table(&v.name));
        let mut all: Vec<(u64, u64)> = variables
            .map(|v| (v.address, v.address.saturating_add(v.size)))
            .chain(manifest.functions.iter().map(|f| (f.address, f.address)))
            .filter(|r| (image.0..image.1).contains(&r.0))
            .collect();
        all.sort_unstable();
        Self(all)
    }

    /// Whether `in_vitro`, in this executable, can be what `in_vivo` was: nothing that has a name, or a constant of
    /// the same content.
    fn alike(&self, allowed: &Allowed, in_vivo: u64, in_vitro: u64) -> bool {
        /// Variables that may begin before an address inside another one: strings that share their ends.
        const BEFORE: usize = 16;
        let at = self.0.partition_point(|r| r.0 <= in_vivo);
        let near = &self.0[at.saturating_sub(BEFORE)..at];
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
    /// The exception that left the region, or 0.
    pub exception: u64,
    /// The captured pages.
    pub pages: &'a Pages,
    /// What has a name in the image.
    pub named: &'a Named,
    /// Freed parts of the region heap, by rising address.
    pub freed: &'a [(u64, u64)],
}

/// What the C++ runtime keeps of an exception lies around the unwinder's header: which handler of the
/// application takes it, which a replay does not have.
const BEFORE_EXCEPTION: u64 = 96;
const EXCEPTION: u64 = 32;

impl Allowed<'_> {
    /// Why a difference does not count, if it does not.
    fn excuse(
        &self,
        manifest: &Manifest,
        address: u64,
        in_vivo: u64,
        in_vitro: u64,
    ) -> Option<String> {
        let masked = |m: &&Mask| m.start < address + 8 && address < m.end;
        if let Some(m) = manifest.masks.iter().find(masked) {
            return Some(m.reason.clone());
        }
        let start = self.exception.saturating_sub(BEFORE_EXCEPTION);
        let (image, end) = (
            manifest.image.range,
            self.exception.saturating_add(EXCEPTION),
        );
        let reason = if self.library(address, in_vivo, in_vitro) {
            "address of a library variable"
        } else if self.exception != 0 && (start..end).contains(&address) {
            "handler of the exception"
        } else if self.freed(address) {
            "freed memory"
        } else if self.origins.recompiled(in_vitro)
            && (image.0..image.1).contains(&in_vivo)
            && self.named.alike(self, in_vivo, in_vitro)
        {
            "address inside recompiled code or its tables"
        } else {
            return None;
        };
        Some(reason.to_owned())
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

    fn same(&self, manifest: &Manifest, in_vivo: u64, in_vitro: u64) -> bool {
        let offset = in_vitro.wrapping_sub(self.block.address());
        let thread =
            manifest.image.tls.as_ref().is_some_and(|tls| {
                offset < tls.size && in_vivo == tls.address.wrapping_add(offset)
            });
        thread || self.origins.same(in_vivo, in_vitro)
    }
}

/// Compares all pages.
pub fn compare(manifest: &Manifest, pages: &Pages, allowed: &Allowed) -> Comparison {
    let mut comparison = Comparison::default();
    for page in &pages.all {
        let start = page.start();
        if page.is(PAGE_CODE) || code::executable(start) {
            continue;
        }
        if page.is(PAGE_FOREIGN) {
            count(&mut comparison, "library or thread state", PAGE);
            continue;
        }
        let wanted = if page.is(PAGE_WRITTEN) {
            pages.exit(page)
        } else {
            pages.entry(page)
        };
        let found = memory(page);
        let stack = manifest.entry.stack_pointer;
        let dead = if page.is(PAGE_STACK) && start < stack {
            (stack - start).min(PAGE) & !7
        } else {
            0
        };
        if dead > 0 {
            count(&mut comparison, "dead stack", dead);
        }
        let dead = dead as usize;
        if wanted[dead..] == found[dead..] {
            comparison.compared += PAGE - dead as u64;
            continue;
        }
        for (i, (a, b)) in words(&wanted[dead..])
            .zip(words(&found[dead..]))
            .enumerate()
        {
            let address = start + dead as u64 + 8 * i as u64;
            if a != b {
                if allowed.same(manifest, a, b) {
                    comparison.compared += 8;
                    continue;
                }
                if let Some(reason) = allowed.excuse(manifest, address, a, b) {
                    count(&mut comparison, &reason, 8);
                    continue;
                }
            }
            word(&mut comparison, address, a, b, || place(manifest, address));
        }
    }
    thread_block(&mut comparison, manifest, allowed);
    comparison
}

/// Adds the comparison of what was printed.
pub fn output(comparison: &mut Comparison, (bytes, found): (u64, Option<Difference>)) {
    comparison.compared += bytes;
    if let Some(found) = found {
        comparison.different_words += 1;
        comparison.first.truncate(LISTED - 1);
        comparison.first.push(found);
    }
}

fn thread_block(comparison: &mut Comparison, manifest: &Manifest, allowed: &Allowed) {
    let Some(tls) = &manifest.image.tls else {
        return;
    };
    let pairs = words(allowed.block.exit()).zip(words(allowed.block.memory()));
    for (i, (a, b)) in pairs.enumerate() {
        let offset = 8 * i as u64;
        let b = if allowed.same(manifest, a, b) { a } else { b };
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
    fn floats() {
        assert!(floating(1.0f64.to_bits(), 1.0000001f64.to_bits()).is_some());
        assert!(floating(1, 2).is_none());
        assert!(floating(0x5555_0000, 0x5555_0010).is_none());
        assert!(floating(1.0f64.to_bits(), 2.0f64.to_bits()).is_none());
    }
}
