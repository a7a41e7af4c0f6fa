//! What the region copies without having set it: two runs that find other bytes on the stack show which bytes of the result come from
//! there, and a third leaves those out of the comparison.

use crate::space;
use cere_format::package::Manifest;
use cere_format::replay::{Differing, MOST_DIFFERING, Unset};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes of the stack below the region that are filled, at most.
const DEEP: u64 = 1 << 20;
/// Words below an allocator's function that its own calls have used, at most.
const FRAMES: usize = 128;
/// No byte.
const NONE: u32 = 1 << 8;

static FILL: AtomicU32 = AtomicU32::new(NONE);
static WORDS: OnceLock<Vec<(u64, u8)>> = OnceLock::new();
/// None where there are more than can be listed.
static DIFFERING: Mutex<Option<Vec<Differing>>> = Mutex::new(Some(Vec::new()));

/// Takes what is known or wanted.
pub fn begin(unset: &Unset) {
    FILL.store(unset.fill.map_or(NONE, u32::from), Relaxed);
    let _ = WORDS.set(unset.words.clone());
}

fn fill() -> Option<u8> {
    u8::try_from(FILL.load(Relaxed)).ok()
}

/// Fills the stack below the region, if that is wanted. No thread of the region runs.
pub fn fill_stack(manifest: &Manifest) {
    let Some(byte) = fill() else {
        return;
    };
    let (lowest, highest) = space::stack(manifest);
    let top = manifest.entry.stack_pointer;
    let low = lowest.max(top.saturating_sub(DEEP));
    // A stack of the program's own may lie beside its data.
    if low < top && top <= highest && space::reserved(low) {
        // SAFETY: the captured stack, which this process reserves and has opened for writing; the region's frames end at its stack pointer.
        unsafe { std::ptr::write_bytes(low as *mut u8, byte, (top - low) as usize) };
    }
}

/// Fills what calls of an allocator's function have left below its frame, if that is wanted.
pub fn leave_frames() {
    if let Some(byte) = fill() {
        overwrite(u64::from_ne_bytes([byte; 8]));
    }
}

#[inline(never)]
fn overwrite(word: u64) {
    let mut frame = [0u64; FRAMES];
    for place in &mut frame {
        // SAFETY: a word of this frame.
        unsafe { std::ptr::write_volatile(place, word) };
    }
}

/// The bits of the word's bytes that nobody set.
fn mask(address: u64) -> u8 {
    let words = WORDS.get().map_or(&[][..], Vec::as_slice);
    match words.binary_search_by_key(&address, |word| word.0) {
        Ok(at) => words[at].1,
        Err(_) => 0,
    }
}

/// Whether the word differs only in bytes that nobody set.
pub fn is(address: u64, in_vivo: u64, in_vitro: u64) -> bool {
    let mask = mask(address);
    let different = (in_vivo ^ in_vitro).to_le_bytes();
    mask != 0 && (0..8).all(|byte| different[byte] == 0 || mask >> byte & 1 == 1)
}

/// How many they are.
pub fn bytes(address: u64) -> u64 {
    mask(address).count_ones().into()
}

/// A word differs; `is_code`: whether something is an address in this replay's code.
pub fn differs(address: u64, in_vivo: u64, in_vitro: u64, is_code: impl Fn(u64) -> bool) {
    if fill().is_none() {
        return;
    }
    let mut list = DIFFERING.lock().unwrap_or_else(PoisonError::into_inner);
    if list
        .as_ref()
        .is_some_and(|list| list.len() == MOST_DIFFERING)
    {
        *list = None;
    }
    // A tag may have been written over the lowest bytes.
    let low = (0..4).map(|bytes| (1u64 << (8 * bytes)) - 1);
    let code = low
        .into_iter()
        .any(|low| is_code(in_vitro & !low) || is_code(in_vitro | low));
    if let Some(list) = list.as_mut() {
        list.push(Differing {
            address,
            in_vivo,
            in_vitro,
            code,
        });
    }
}

/// The words that differ, if they are wanted and not too many.
pub fn told() -> Option<Vec<Differing>> {
    fill()?;
    DIFFERING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
}
