//! The images of this process, as the loader knows them.

use cere_format::hexadecimal;
use cere_inside::images;
use libc::Elf64_Phdr;
use std::ffi::CStr;

/// The executable or a library.
pub struct Image {
    /// The name by which it was loaded; empty for the executable.
    pub name: String,
    /// What loading added to the addresses of its file.
    pub bias: u64,
    /// What it consists of.
    pub headers: &'static [Elf64_Phdr],
    /// Its thread-local block in the calling thread; 0 if it has none.
    pub locals: u64,
}

/// All of them, the executable first.
pub fn all() -> Vec<Image> {
    let mut found: Vec<Image> = Vec::new();
    images::visit(|info, _| {
        // SAFETY: the loader's string and headers. A replay unloads nothing.
        let (name, headers) = unsafe {
            (
                CStr::from_ptr(info.dlpi_name),
                std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
            )
        };
        found.push(Image {
            name: name.to_string_lossy().into_owned(),
            bias: info.dlpi_addr,
            headers,
            locals: info.dlpi_tls_data as u64,
        });
        true
    });
    found
}

impl Image {
    /// [start, end) of what is mapped of it.
    pub fn range(&self) -> (u64, u64) {
        let loads = self.headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
        let start = loads.clone().map(|h| h.p_vaddr & !0xfff).min().unwrap_or(0);
        let end = loads.map(|h| h.p_vaddr + h.p_memsz).max().unwrap_or(0);
        (self.bias + start, self.bias + end)
    }

    /// The number of its build in hexadecimal, if the linker gave it one.
    pub fn build_id(&self) -> Option<String> {
        self.headers.iter().find_map(|h| {
            let start = (self.bias + h.p_vaddr) as *const u8;
            // SAFETY: notes are mapped, and stay so.
            let notes = || unsafe { std::slice::from_raw_parts(start, h.p_memsz as usize) };
            (h.p_type == libc::PT_NOTE).then(|| build_id(notes()))?
        })
    }
}

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
