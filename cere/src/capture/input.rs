//! The program's stdin, for two runs that must read the same.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileTypeExt;

/// What a program reads.
pub enum Input {
    /// A terminal or nothing that ends: passed on as it is.
    Passed,
    /// A file, to be put back to where it was.
    Rewound(u64),
    /// A pipe's content.
    Copied(File),
}

/// This command's stdin, which stays open.
fn stdin() -> ManuallyDrop<File> {
    // SAFETY: descriptor 0 is never closed here, and the file does not close it.
    ManuallyDrop::new(unsafe { File::from_raw_fd(0) })
}

impl Input {
    /// Looks at stdin; a pipe is read to its end.
    pub fn open() -> Result<Self> {
        let mut file = stdin();
        let Ok(kind) = file.metadata().map(|m| m.file_type()) else {
            return Ok(Self::Passed);
        };
        if kind.is_file() {
            return Ok(Self::Rewound(file.stream_position().unwrap_or(0)));
        }
        if kind.is_fifo() || kind.is_socket() {
            let mut copy = tempfile::tempfile().context("cannot keep a copy of stdin")?;
            std::io::copy(&mut *file, &mut copy).context("cannot keep a copy of stdin")?;
            return Ok(Self::Copied(copy));
        }
        Ok(Self::Passed)
    }

    /// For the next run, from the start.
    pub fn again(&mut self) -> Result<Option<File>> {
        match self {
            Self::Passed => Ok(None),
            Self::Rewound(position) => {
                let _ = stdin().seek(SeekFrom::Start(*position));
                Ok(None)
            }
            Self::Copied(copy) => {
                copy.rewind()?;
                Ok(Some(copy.try_clone()?))
            }
        }
    }
}
