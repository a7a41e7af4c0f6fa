//! The file that the copies of a capture go to: the memory of the process holds a window of them. Ordinary code, with everything open.

use super::state::State;
use crate::engine::pool::WINDOW;
use crate::os::files::{self, FileError};
use std::io;

/// Makes the file of the capture that begins, and lets copies be made. Nothing is written to it before the window is full.
pub fn begin_copies(state: &mut State) -> Result<(), FileError> {
    let pool = &mut state.engine.pages.pool;
    let (start, end) = pool.room();
    let path = |number| state.directory.join(format!("pages.{number}.part"));
    let (number, file) = files::create_first(&path)?;
    let path = path(number);
    let mut size = end - start;
    // The file has holes where nothing is written, but a limit of the file system or of the process counts them.
    while let Err(e) = file.set_length(size) {
        if !is_limit(&e) || size <= WINDOW {
            return Err(files::failed("make room in", &path)(e));
        }
        size /= 2;
    }
    if size > WINDOW {
        // SAFETY: the pool's room for copies, none of which is in use.
        unsafe { file.map_over(start + WINDOW, size - WINDOW, WINDOW) }
            .map_err(files::failed("map", &path))?;
    }
    pool.allow(size);
    state.kept = Some(path);
    Ok(())
}

fn is_limit(e: &io::Error) -> bool {
    let limits = [libc::EFBIG, libc::EINVAL, libc::ENOSPC];
    e.raw_os_error().is_some_and(|e| limits.contains(&e))
}
