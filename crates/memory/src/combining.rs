//! Write-combining buffers: where non-temporal stores gather.

/// Bytes of a buffer.
pub const CHUNK: u64 = 64;

/// One buffer: 64 aligned bytes.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    /// Physical address over 64.
    chunk: u64,
    /// A bit per byte that was written.
    bytes: u64,
}

/// What buffers wrote to memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    pub bytes: u64,
    pub whole: u64,
    pub partial: u64,
}

impl Written {
    fn add(&mut self, buffer: Buffer) {
        self.bytes += u64::from(buffer.bytes.count_ones());
        match buffer.bytes {
            u64::MAX => self.whole += 1,
            _ => self.partial += 1,
        }
    }
}

/// The buffers of a core, in the order in which they were opened.
pub struct Combining {
    buffers: Vec<Buffer>,
    most: usize,
}

impl Combining {
    /// `most` buffers, none open.
    pub fn new(most: usize) -> Self {
        Self {
            buffers: Vec::with_capacity(most),
            most,
        }
    }

    /// Whether a buffer for the chunk is open.
    pub fn is_open(&self, chunk: u64) -> bool {
        self.buffers.iter().any(|b| b.chunk == chunk)
    }

    /// Writes bytes into the chunk's buffer, which is opened if need be; the oldest leaves if all are in use. A buffer
    /// that is full leaves.
    pub fn store(&mut self, chunk: u64, bytes: u64, written: &mut Written) {
        let found = self.buffers.iter().position(|b| b.chunk == chunk);
        let at = found.unwrap_or_else(|| {
            if self.buffers.len() == self.most {
                written.add(self.buffers.remove(0));
            }
            self.buffers.push(Buffer { chunk, bytes: 0 });
            self.buffers.len() - 1
        });
        self.buffers[at].bytes |= bytes;
        if self.buffers[at].bytes == u64::MAX {
            written.add(self.buffers.remove(at));
        }
    }

    /// Writes out the buffers of some chunks.
    pub fn write_out(&mut self, chunks: std::ops::RangeInclusive<u64>, written: &mut Written) {
        self.buffers.retain(|b| {
            let leaves = chunks.contains(&b.chunk);
            if leaves {
                written.add(*b);
            }
            !leaves
        });
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> u64 {
        self.buffers
            .iter()
            .map(|b| u64::from(b.bytes.count_ones()))
            .sum()
    }

    /// Whether no buffer is open.
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }
}
