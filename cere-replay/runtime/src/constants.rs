//! Constants of fresh libraries at the addresses where the captured process had them: captured objects point to some that the
//! captured invocation did not read. A library compares names of types by pointer first, and this process's library has its own.
//! They are copied from this process's library, if it is the same build, when something reads them.

use crate::images;
use crate::pages::PAGE;
use cere_format::package::Manifest;
use libc::Elf64_Phdr;
use std::sync::OnceLock;

/// A segment that is never written.
struct Segment {
    /// Where the captured process had it.
    there: (u64, u64),
    /// Where it is here.
    here: u64,
}

static SEGMENTS: OnceLock<Vec<Segment>> = OnceLock::new();

/// Finds the segments.
pub fn find(manifest: &Manifest) {
    let mut found = Vec::new();
    for image in images::all() {
        let same = |build| manifest.fresh_libraries.iter().find(|l| l.build == build);
        let Some(library) = image.build_id().and_then(same) else {
            continue;
        };
        let constant = |h: &&Elf64_Phdr| h.p_type == libc::PT_LOAD && h.p_flags == libc::PF_R;
        for header in image.headers.iter().filter(constant) {
            let start = header.p_vaddr & !(PAGE - 1);
            let end = (header.p_vaddr + header.p_memsz).next_multiple_of(PAGE);
            found.push(Segment {
                there: (
                    library.bias.wrapping_add(start),
                    library.bias.wrapping_add(end),
                ),
                here: image.bias + start,
            });
        }
    }
    let _ = SEGMENTS.set(found);
}

/// The region read `address`: puts the page there if it is a constant one of a library. Takes no lock and no memory of the
/// allocator.
pub fn open(address: u64) -> bool {
    let holds = |s: &&Segment| s.there.0 <= address && address < s.there.1;
    let Some(segment) = SEGMENTS.get().and_then(|all| all.iter().find(holds)) else {
        return false;
    };
    let page = address & !(PAGE - 1);
    let here = segment.here + (page - segment.there.0);
    // By the bare calls: `mmap` and its like are the region's.
    // SAFETY: a fresh page, which gets a page of a library that stays mapped and then the place of a captured page that the package
    // lacks. Another thread may do the same: either page is the same.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let fresh = libc::syscall(libc::SYS_mmap, 0, PAGE, protection, kind, -1, 0);
        if fresh <= 0 {
            return false;
        }
        (fresh as *mut u8).copy_from(here as *const u8, PAGE as usize);
        libc::syscall(libc::SYS_mprotect, fresh, PAGE, libc::PROT_READ) == 0
            && libc::syscall(
                libc::SYS_mremap,
                fresh,
                PAGE,
                PAGE,
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                page,
            ) == page as i64
    }
}
