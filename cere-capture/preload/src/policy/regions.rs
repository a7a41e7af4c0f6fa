//! The regions of the loaded images: which have a hook, and their counts. Ordinary code, but for [`listen_everywhere`].

use super::state::{Region, State};
use super::{elsewhere, hooks, register, targets};
use crate::os::files::FileError;
use crate::os::sys::{self, PAGE};
use crate::os::{files, images};
use cere_format::abi::RegionDescriptor;
use cere_format::profile::RegionKey;

/// Whether `region` has this key.
///
/// # Safety
/// It is the descriptor of a loaded image.
pub unsafe fn has_key(region: *const RegionDescriptor, key: &RegionKey) -> bool {
    // SAFETY: the linker has bound the descriptor to its unit's marker.
    unsafe { (*region).index == key.index && (*(*region).unit).id == *key.unit.as_bytes() }
}

/// Notes an image and arms those of its regions that are wanted.
pub fn arm_image(
    state: &mut State,
    start: usize,
    instrumented: bool,
    regions: Vec<*mut RegionDescriptor>,
) {
    state.known.push((start, instrumented));
    state.all.extend(&regions);
    for region in regions {
        // SAFETY: descriptors of a loaded image and their markers.
        unsafe {
            let found = state.wanted.iter().position(|w| has_key(region, &w.key));
            let Some(wanted) = found.filter(|place| !is_done(&state.wanted, *place)) else {
                hooks::set_hook(region, false);
                continue;
            };
            state.wanted[wanted].armed.push(region);
            (*region).scratch = wanted as u64 + 1;
            hooks::set_hook(region, true);
        }
    }
}

/// Gives all regions the hook, or only the armed ones again. Memory is open; may run in a handler.
pub fn listen_everywhere(state: &mut State, yes: bool) {
    if state.listens == yes {
        return;
    }
    state.listens = yes;
    let mut known = (0, false);
    for region in state.all.iter().copied() {
        let armed = state.wanted.iter().any(|w| w.armed.contains(&region));
        // The image may be unloaded and not forgotten yet.
        let page = region as usize & !(PAGE - 1);
        if known.0 != page {
            known = (page, sys::is_mapped(page, PAGE));
        }
        if !armed && known.1 {
            // SAFETY: descriptors of loaded images.
            unsafe { hooks::set_hook(region, yes) };
        }
    }
}

/// Forgets unloaded images.
pub fn forget_images(state: &mut State, present: &dyn Fn(usize) -> bool) {
    let gone = state.known.iter().any(|(start, _)| !present(*start));
    state.known.retain(|(start, _)| present(*start));
    state.chosen.retain(|(start, _)| present(*start));
    if gone {
        let ranges: Vec<_> = images::list_loaded().iter().map(|i| i.range).collect();
        let loaded = |at: &*mut RegionDescriptor| {
            let at = *at as usize;
            ranges.iter().any(|r| r.0 <= at && at < r.1)
        };
        for region in &mut state.wanted {
            region.armed.retain(loaded);
        }
        state.all.retain(loaded);
    }
}

/// Whether nothing more is wanted of the region whose entry is at `place`, in any thread.
fn is_done(wanted: &[Region], place: usize) -> bool {
    let key = &wanted[place].key;
    let mut entries = wanted.iter().filter(|w| w.key == *key);
    entries.all(|w| w.next == u64::MAX)
}

/// Makes the region of the entry at `place` dormant again once nothing more is wanted of it.
pub fn disarm_if_done(wanted: &mut [Region], place: usize) {
    if is_done(wanted, place) {
        let region = &mut wanted[targets::group(wanted, place)];
        region.elsewhere += elsewhere::counted_in_capture(&region.armed);
        for descriptor in region.armed.drain(..) {
            // SAFETY: descriptors of loaded images.
            unsafe { hooks::set_hook(descriptor, false) };
        }
    }
}

/// `counts.<number>.json`: how often each wanted region was entered while armed, in the process of that number.
pub fn write_counts(state: &State) -> Result<(), FileError> {
    let Some(number) = register::process_number() else {
        return Ok(());
    };
    let path = state.directory.join(format!("counts.{number}.json"));
    let count = |(place, w): (usize, &Region)| {
        let key = serde_json::json!({ "unit": w.key.unit, "index": w.key.index });
        let elsewhere = w.elsewhere + elsewhere::counted_in_capture(&w.armed);
        let count = targets::at(place).map_or(w.count, |target| target.count());
        serde_json::json!({ "key": key, "thread": w.thread, "invocations": count, "elsewhere": elsewhere })
    };
    let listed = state.wanted.iter().enumerate().filter(|(_, w)| w.listed);
    let counts: Vec<serde_json::Value> = listed.map(count).collect();
    let part = path.with_extension("part");
    files::write(&part, serde_json::Value::from(counts).to_string())
        .and_then(|()| files::rename(&part, &path))
        .map_err(files::failed("write", &path))
}
