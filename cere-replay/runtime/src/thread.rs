//! The thread-local block of the captured image, which the glue lays out as the image did.

use crate::error::Damage;
use crate::glue::{cere_glue_tls, cere_glue_tls_size};
use crate::pages::Bytes;

/// The block and what it held at both ends.
pub struct Block {
    start: *mut u8,
    size: usize,
    entry: Bytes,
    exit: Bytes,
    /// Of a thread that starts.
    template: Bytes,
    /// Of other threads at entry, one after the other.
    team: Bytes,
    /// Their numbers.
    numbers: Vec<u32>,
}

/// The files that the block is made of.
pub struct Files {
    /// At entry.
    pub entry: Bytes,
    /// At exit.
    pub exit: Bytes,
    /// Of a thread that starts.
    pub template: Bytes,
    /// Of other threads at entry.
    pub team: Bytes,
}

/// What the block holds in the other threads of a team before the region.
#[derive(Clone, Copy)]
pub struct Others<'a>(&'a Block);

// SAFETY: threads only read the files, which nobody writes, and the numbers.
unsafe impl Sync for Others<'_> {}

impl Others<'_> {
    /// Whether there is nothing to put anywhere.
    pub fn is_empty(&self) -> bool {
        self.0.template.get().is_empty()
    }

    /// Puts it into the calling thread's block: what the thread of this number in vivo had, or one that starts.
    pub fn put_here(&self, number: u32) {
        let block = self.0;
        let place = block.numbers.iter().position(|n| *n == number);
        let own = place.and_then(|at| block.team.get().chunks_exact(block.size.max(1)).nth(at));
        let content = own.unwrap_or(block.template.get());
        // SAFETY: the glue's function gives this thread's block, which is as long as the content, see `Block::new`.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), cere_glue_tls(), content.len()) };
    }
}

impl Block {
    /// The block of this thread; `numbers` are those of the other threads whose blocks are there.
    pub fn new(files: Files, numbers: &[u32]) -> Result<Self, Damage> {
        let Files {
            entry,
            exit,
            template,
            team,
        } = files;
        // SAFETY: the generator's glue defines both.
        let (start, size) = unsafe { (cere_glue_tls(), cere_glue_tls_size as usize) };
        for file in [&entry, &exit, &template] {
            let length = file.get().len();
            if length != 0 && length != size {
                return Err(Damage::Block {
                    bytes: size,
                    file: length,
                });
            }
        }
        let length = team.get().len();
        if length != size * numbers.len() {
            return Err(Damage::Blocks {
                threads: numbers.len(),
                bytes: size,
                file: length,
            });
        }
        Ok(Self {
            start,
            size,
            entry,
            exit,
            template,
            team,
            numbers: numbers.to_vec(),
        })
    }

    /// Address in this process.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// Puts the content at entry in place.
    pub fn restore(&self) {
        let entry = self.entry.get();
        // SAFETY: the block is as long as the file, see `new`.
        unsafe { std::ptr::copy_nonoverlapping(entry.as_ptr(), self.start, entry.len()) };
    }

    /// The content in other threads at entry.
    pub fn others(&self) -> Others<'_> {
        Others(self)
    }

    /// The content at entry.
    pub fn entry(&self) -> &[u8] {
        self.entry.get()
    }

    /// The content at exit in vivo.
    pub fn exit(&self) -> &[u8] {
        self.exit.get()
    }

    /// The content now.
    pub fn memory(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: the block of this thread, alive as long as it.
        unsafe { std::slice::from_raw_parts(self.start, self.size) }
    }
}
