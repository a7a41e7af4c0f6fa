//! Exit state in vitro against exit state in vivo, word by word.

use crate::memory::{self, PAGE, Page};
use cere_format::capture::{PAGE_CODE, PAGE_FOREIGN, PAGE_STACK, PAGE_WRITTEN};
use cere_format::package::Manifest;
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

fn place(manifest: &Manifest, address: u64) -> String {
    let block = manifest.entry.arguments;
    if address >= block && address < block + 8 {
        return "return value".to_owned();
    }
    if let Some(v) = manifest
        .variables
        .iter()
        .find(|v| v.address <= address && address < v.address + v.size)
    {
        return format!("{}+{}", v.name, address - v.address);
    }
    match memory::place(address) {
        Some(m) if !m.path.is_empty() => m.path.clone(),
        _ if manifest.heap.0 <= address && address < manifest.heap.1 => "[region heap]".to_owned(),
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

/// Compares all pages; `rewritten` are words that a replay must change (library variables).
pub fn compare(
    manifest: &Manifest,
    pages: &[Page],
    entry: &[u8],
    exit: &[u8],
    rewritten: &[u64],
) -> Comparison {
    let mut comparison = Comparison::default();
    let zero = [0u8; PAGE as usize];
    for page in pages {
        let flags = page.record.flags;
        let start = page.record.address;
        if flags & PAGE_CODE != 0 {
            continue;
        }
        if flags & PAGE_FOREIGN != 0 {
            count(&mut comparison, "library or thread state", PAGE);
            continue;
        }
        let wanted = if flags & PAGE_WRITTEN != 0 {
            page.exit.and_then(|at| exit.get(at..at + PAGE as usize))
        } else {
            page.entry.and_then(|at| entry.get(at..at + PAGE as usize))
        }
        .unwrap_or(&zero);
        // SAFETY: the page is open.
        let found = unsafe { std::slice::from_raw_parts(start as *const u8, PAGE as usize) };
        for (i, (a, b)) in words(wanted).zip(words(found)).enumerate() {
            let address = start + 8 * i as u64;
            if flags & PAGE_STACK != 0 && address < manifest.entry.stack_pointer {
                count(&mut comparison, "dead stack", 8);
                continue;
            }
            if a != b {
                if let Some(m) = manifest
                    .masks
                    .iter()
                    .find(|m| m.start < address + 8 && address < m.end)
                {
                    count(&mut comparison, &m.reason, 8);
                    continue;
                }
                if rewritten.binary_search(&address).is_ok() {
                    count(&mut comparison, "address of a library variable", 8);
                    continue;
                }
            }
            word(&mut comparison, address, a, b, || place(manifest, address));
        }
    }
    comparison
}

/// Adds the thread-local block.
pub fn compare_tls(
    comparison: &mut Comparison,
    manifest: &Manifest,
    in_vivo: &[u8],
    in_vitro: &[u8],
) {
    let Some(tls) = &manifest.image.tls else {
        return;
    };
    for (i, (a, b)) in words(in_vivo).zip(words(in_vitro)).enumerate() {
        let offset = 8 * i as u64;
        word(comparison, tls.address + offset, a, b, || {
            tls.variables
                .iter()
                .find(|v| v.offset <= offset && offset < v.offset + v.size)
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
