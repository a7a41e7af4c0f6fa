//! Whether the region's code uses thread-local variables that a replay does not have: it has those of the region's image only,
//! and code of other images runs as captured.

use crate::PackError;
use crate::program::Loaded;
use crate::raw::Raw;
use crate::reach::{Place, references};
use cere_format::capture::PAGE_CODE;
use cere_format::package::Absent;
use std::collections::HashSet;

/// How code of one image finds thread-local variables.
struct Ways {
    /// Addresses of the words that hold the address of one, as far as the region touched their pages.
    slots: HashSet<u64>,
    /// Whether the image has some of its own, so that code may know their distance from the thread pointer.
    own: bool,
}

impl Ways {
    /// In another image than the region's.
    fn of(loaded: &Loaded, raw: &Raw) -> Result<Self, PackError> {
        Ok(Self {
            slots: slots(loaded, raw, |_| true)?,
            own: loaded.elf.template()?.is_some(),
        })
    }

    /// In the region's image, for those variables that are `absent`.
    fn to_others(loaded: &Loaded, raw: &Raw, absent: &[Absent]) -> Result<Self, PackError> {
        let other = |name: &str| absent.iter().any(|a| a.thread_local && a.name == name);
        Ok(Self {
            slots: slots(loaded, raw, other)?,
            own: false,
        })
    }

    fn used(&self, code: &[u8], start: u64) -> bool {
        let mut found = self.own && direct(code);
        references(code, start, |address| {
            found |= self.slots.contains(&address)
        });
        found
    }
}

/// Slots of the variables whose names are `wanted`, as far as the region touched their pages.
fn slots(
    loaded: &Loaded,
    raw: &Raw,
    wanted: impl Fn(&str) -> bool,
) -> Result<HashSet<u64>, PackError> {
    let slots = loaded.elf.thread_local_slots()?.into_iter();
    let slots = slots.filter(|(_, name)| wanted(name));
    let slots = slots.map(|(at, _)| loaded.address(at));
    Ok(slots.filter(|at| raw.index(*at).is_some()).collect())
}

/// Whether code reads or writes at a fixed place at or below the thread pointer: an `fs` prefix, an opcode, and an
/// operand that is an address alone. Above the pointer lies libc's block.
fn direct(code: &[u8]) -> bool {
    const FS: u8 = 0x64;
    code.windows(6).enumerate().any(|(at, window)| {
        let &[operand, 0x25, ref address @ ..] = window else {
            return false;
        };
        let address = address.first_chunk().map_or(1, |a| i32::from_le_bytes(*a));
        operand & 0xc7 == 4 && address <= 0 && code[at.saturating_sub(4)..at].contains(&FS)
    })
}

/// Why a replay cannot run the functions `reached`, if so; the region's image is the one at `own`.
pub fn thread_locals(
    raw: &Raw,
    images: &[Loaded],
    own: (u64, u64),
    absent: &[Absent],
    reached: &[Place<'_>],
) -> Result<Option<String>, PackError> {
    for loaded in images.iter().filter(|l| l.image.program) {
        let other = loaded.image.range != own;
        let ways = match other {
            true => Ways::of(loaded, raw)?,
            false => Ways::to_others(loaded, raw, absent)?,
        };
        if ways.slots.is_empty() && !ways.own {
            continue;
        }
        let user = reached
            .iter()
            .filter(|f| f.loaded.image.range == loaded.image.range)
            .find(|f| ways.used(code(loaded, f.range), f.range.0))
            .map(|f| f.name);
        // Functions without a name are not among those reached.
        let unnamed = other && loaded.elf.symbols()?.is_none() && user.is_none();
        let executed = |p: &u64| loaded.image.range.0 <= *p && *p < loaded.image.range.1;
        let pages = raw.table.iter().filter(|p| p.flags & PAGE_CODE != 0);
        let mut pages = pages.map(|p| p.address).filter(executed);
        let size = raw.capture.page_size;
        let somewhere =
            unnamed && pages.any(|page| ways.used(code(loaded, (page, page + size)), page));
        let what = match user {
            Some(name) if name.starts_with("cere.") => "code of the region".to_owned(),
            Some(name) => name.to_owned(),
            None if somewhere => "code".to_owned(),
            None => continue,
        };
        let whose = match other {
            true => "thread-local variables",
            false => "thread-local variables of another image",
        };
        return Ok(Some(format!(
            "it leads to {what} in {}, which uses {whose}: a replay has those of the region's own image only; link the \
             two into one",
            loaded.file_name()
        )));
    }
    Ok(None)
}

/// Code of an image at its loaded addresses; what the file does not hold is left out.
fn code(loaded: &Loaded, (start, end): (u64, u64)) -> &[u8] {
    let value = start.wrapping_sub(loaded.image.bias);
    (0..end.saturating_sub(start))
        .step_by(64)
        .find_map(|less| loaded.elf.bytes(value, end - start - less))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::direct;

    #[test]
    fn places_below_the_thread_pointer() {
        // mov %fs:-4,%eax; mov %fs:0,%rax; mov %fs:0x28,%rax (the stack protector's); mov 0x25,%rax.
        assert!(direct(&[0x64, 0x8b, 0x04, 0x25, 0xfc, 0xff, 0xff, 0xff]));
        assert!(direct(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0xc3]));
        assert!(!direct(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]));
        assert!(!direct(&[0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0]));
        assert!(!direct(&[0x64]));
    }
}
