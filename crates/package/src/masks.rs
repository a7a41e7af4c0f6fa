//! Captured words that a replay does not compare.

use crate::PackError;
use crate::program::{self, Loaded, RegionImage};
use crate::raw::Raw;
use crate::streams::Streams;
use cere_format::abi::HOOK_OFFSET;
use cere_format::clibrary::OPTIONS;
use cere_format::package::{Mask, TlsBlock, Variable};
use cere_format::replay::left_out;
use cere_format::store::Store;
use cere_format::system::STREAMS;
use std::collections::{HashMap, HashSet};

/// Offset of [`cere_format::abi::RegionDescriptor::scratch`].
const SCRATCH_OFFSET: usize = std::mem::offset_of!(cere_format::abi::RegionDescriptor, scratch);

/// Words that the preload library and the OpenMP runtime write: a package holds zeros there.
pub fn zeroed(
    raw: &Raw,
    images: &[Loaded],
    image: &RegionImage<'_>,
    variables: &[Variable],
    store: &Store,
) -> Result<Vec<Mask>, PackError> {
    let mut masks = probes(raw, images)?;
    masks.extend(openmp_words(variables, image, images, store)?);
    let locks = raw.capture.openmp.iter().flat_map(|o| &o.lock_words);
    masks.extend(locks.map(|at| mask((*at, at + 8), left_out::OPENMP)));
    Ok(masks)
}

/// What else is not compared as memory: the frames above the region's, the thread-local block, what libraries keep in the program
/// (`copied`: names, addresses, sizes), the buffers of streams.
pub fn apart(
    raw: &Raw,
    tls: Option<&TlsBlock>,
    copied: &[(String, u64, u64)],
    streams: &Streams,
) -> Result<Vec<Mask>, PackError> {
    let entry = &raw.capture.entry;
    let frames = entry
        .frames
        .map(|at| mask((at, entry.stack_pointer), left_out::OWN_STACK));
    let block = tls.map(|tls| mask((tls.address, tls.address + tls.size), left_out::APART));
    let copied = copied.iter().filter(|(name, ..)| is_compared_apart(name));
    let copied = copied.map(|(_, at, size)| mask((*at, at + size), left_out::LIBRARY));
    let buffers = streams.buffers(raw)?.into_iter();
    let buffers = buffers.map(|range| mask(range, left_out::STREAM));
    let all = frames.into_iter().chain(block).chain(copied);
    Ok(all.chain(buffers).collect())
}

/// The words of region descriptors that the preload library writes, where their pages were captured: a replay's
/// regions are dormant.
fn probes(raw: &Raw, images: &[Loaded]) -> Result<Vec<Mask>, PackError> {
    let mut masks = Vec::new();
    for loaded in images.iter().filter(|l| l.image.instrumented) {
        for descriptor in program::descriptors(loaded)? {
            if raw.index(descriptor).is_none() {
                continue;
            }
            for offset in [HOOK_OFFSET, SCRATCH_OFFSET] {
                let start = descriptor + offset as u64;
                masks.push(mask((start, start + 8), left_out::PROBE));
            }
        }
    }
    Ok(masks)
}

/// Variables in which the OpenMP runtime keeps what belongs to the threads that run, as the units of the program's images name them.
/// A replay's runtime finds them as they are before their first use.
fn openmp_words(
    variables: &[Variable],
    image: &RegionImage<'_>,
    images: &[Loaded],
    store: &Store,
) -> Result<Vec<Mask>, PackError> {
    let others = program::units_beside(images, image.loaded, store)?;
    let mut named = HashMap::new();
    for unit in image.units.iter().chain(&others) {
        let defines: HashSet<&str> = unit.defines.iter().map(String::as_str).collect();
        for word in &unit.runtime_words {
            let local = !defines.contains(word.symbol.as_str());
            named.insert(
                (word.symbol.as_str(), local.then_some(unit.id.as_str())),
                word.bytes,
            );
        }
    }
    let of_runtime = |v: &Variable| {
        let bytes = named.get(&(v.name.as_str(), v.unit.as_deref()))?;
        Some(mask(
            (v.address, v.address + v.size.min(*bytes)),
            left_out::OPENMP,
        ))
    };
    Ok(variables.iter().filter_map(of_runtime).collect())
}

/// Whether a library's variable, which the linker may have copied into the program, is compared by what it says, not as memory:
/// all others hide results.
fn is_compared_apart(name: &str) -> bool {
    let stream = STREAMS.iter().any(|stream| stream.0 == name);
    stream || OPTIONS.iter().any(|option| option.0.to_str() == Ok(name))
}

fn mask((start, end): (u64, u64), reason: &str) -> Mask {
    let reason = reason.into();
    Mask { start, end, reason }
}
