//! Checks that a manifest is possible. One that passes still cannot take this process's own memory:
//! every captured address is mapped with MAP_FIXED_NOREPLACE.

use crate::error::Damage;
use crate::pages::{PAGE, TOP};
use cere_format::package::Manifest;

/// Refuses a manifest that no capture writes.
pub fn check(manifest: &Manifest) -> Result<(), Damage> {
    if manifest.page_size != PAGE {
        return Err(Damage::PageSize(manifest.page_size));
    }
    let ranges = manifest
        .mappings
        .iter()
        .filter(|m| !m.path.starts_with("[v"))
        .map(|m| ("a mapping", (m.start, m.end)))
        .chain(manifest.fresh.iter().map(|r| ("a range mapped inside", *r)))
        .chain([
            ("the region heap", manifest.heap),
            ("the image", manifest.image.range),
        ]);
    for (what, (start, end)) in ranges {
        let null = start < PAGE && start < end;
        if null || start > end || end > TOP {
            return Err(Damage::Addresses { what, start, end });
        }
    }
    let entry = &manifest.entry;
    let block = entry.arguments.checked_add(u64::from(entry.arguments_size));
    let stack = entry.stack_pointer;
    if !stack.is_multiple_of(16) || !(PAGE..TOP).contains(&stack) || block.is_none_or(|b| b > TOP) {
        return Err(Damage::Entry {
            stack,
            arguments: entry.arguments,
        });
    }
    Ok(())
}
