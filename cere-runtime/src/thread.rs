//! The thread-local block of the captured image, which the glue lays out as the image did.

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
}

/// What the block holds in a thread that starts; empty if there is none.
#[derive(Debug, Clone, Copy)]
pub struct Template<'a>(&'a [u8]);

impl Template<'_> {
    /// Whether there is nothing to put anywhere.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts it into the calling thread's block.
    pub fn put_here(&self) {
        // SAFETY: the glue's function gives this thread's block, which is as long as the file, see `Block::new`.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), cere_glue_tls(), self.0.len()) };
    }
}

impl Block {
    /// The block of this thread.
    pub fn new(entry: Bytes, exit: Bytes, template: Bytes) -> Result<Self, String> {
        // SAFETY: the generator's glue defines both.
        let (start, size) = unsafe { (cere_glue_tls(), cere_glue_tls_size as usize) };
        for file in [&entry, &exit, &template] {
            let length = file.get().len();
            if length != 0 && length != size {
                return Err(format!(
                    "the thread-local block has {size} bytes, its file {length}"
                ));
            }
        }
        Ok(Self {
            start,
            size,
            entry,
            exit,
            template,
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

    /// The content in a thread that starts.
    pub fn template(&self) -> Template<'_> {
        Template(self.template.get())
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
