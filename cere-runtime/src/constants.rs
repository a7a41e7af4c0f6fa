//! Constants of fresh libraries at the addresses where the captured process had them: captured objects point to some that the
//! captured invocation did not read. A library compares names of types by pointer first, and this process's library has its own.
//! They are copied from this process's library, if it is the same build, when something reads them.

use crate::pages::PAGE;
use cere_format::hexadecimal;
use cere_format::package::Manifest;
use libc::c_void;
use std::sync::OnceLock;

/// A segment that is never written.
struct Segment {
    /// Where the captured process had it.
    there: (u64, u64),
    /// Where it is here.
    here: u64,
}

static SEGMENTS: OnceLock<Vec<Segment>> = OnceLock::new();

/// Name and kind of the note with a build's number.
const BUILD_NOTE: (&[u8], u32) = (b"GNU\0", 3);

/// The number of a build, from the notes of its file.
fn build_id(mut notes: &[u8]) -> Option<String> {
    loop {
        let word = |at: usize| Some(u32::from_le_bytes(*notes.get(at..)?.first_chunk()?));
        let (name, bytes, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let at = 12 + name.next_multiple_of(4);
        if kind == BUILD_NOTE.1 && notes.get(12..12 + name)? == BUILD_NOTE.0 {
            return Some(hexadecimal(notes.get(at..at + bytes)?));
        }
        notes = notes.get(at + bytes.next_multiple_of(4)..)?;
    }
}

/// Finds the segments.
pub fn find(manifest: &Manifest) {
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        data: *mut c_void,
    ) -> i32 {
        // SAFETY: the loader hands over valid pointers to what it has mapped; `data` is the pair below.
        unsafe {
            let (manifest, found) = &mut *data.cast::<(&Manifest, Vec<Segment>)>();
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            let build = headers.iter().find_map(|h| {
                let start = (info.dlpi_addr + h.p_vaddr) as *const u8;
                let notes = || std::slice::from_raw_parts(start, h.p_memsz as usize);
                (h.p_type == libc::PT_NOTE).then(|| build_id(notes()))?
            });
            let same = |build| manifest.fresh_libraries.iter().find(|l| l.build == build);
            let Some(library) = build.and_then(same) else {
                return 0;
            };
            let constant =
                |h: &&libc::Elf64_Phdr| h.p_type == libc::PT_LOAD && h.p_flags == libc::PF_R;
            for header in headers.iter().filter(constant) {
                let start = header.p_vaddr & !(PAGE - 1);
                let end = (header.p_vaddr + header.p_memsz).next_multiple_of(PAGE);
                found.push(Segment {
                    there: (
                        library.bias.wrapping_add(start),
                        library.bias.wrapping_add(end),
                    ),
                    here: info.dlpi_addr + start,
                });
            }
        }
        0
    }
    let mut data = (manifest, Vec::new());
    // SAFETY: the callback only touches the pair.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut data).cast()) };
    let _ = SEGMENTS.set(data.1);
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

#[cfg(test)]
mod tests {
    use super::build_id;

    #[test]
    fn builds_are_known_by_their_notes() {
        let note = |kind: u32, content: &[u8]| {
            let words = [4u32, content.len() as u32, kind].map(u32::to_le_bytes);
            [&words.concat()[..], b"GNU\0", content].concat()
        };
        let other = note(5, &[1, 2, 3, 4]);
        let build = note(3, &[0xab, 0xcd, 0, 1]);
        assert_eq!(
            build_id(&[&other[..], &build].concat()).unwrap(),
            "abcd0001"
        );
        assert_eq!(build_id(&other), None);
        assert_eq!(build_id(&build[..build.len() - 1]), None);
        assert_eq!(build_id(&[]), None);
    }
}
