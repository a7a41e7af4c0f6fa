//! Functions that reach another process's memory, as ranks of MPI do for large messages. While that process is captured the kernel
//! finds its memory closed: they wait until it is open.

use crate::os::section::unnoticed;
use crate::os::symbols::{c_name, next};
use crate::os::{errno, files, mappings, sys};
use libc::iovec;

type Transfer = unsafe extern "C" fn(i32, *const iovec, usize, *const iovec, usize, usize) -> isize;

/// Seconds that a transfer waits.
const PATIENCE: u64 = 60;
/// Times in a row that it fails though the other process is found open: that may have opened its memory just then, and close it
/// again before the next attempt.
const OPEN: u32 = 20;

/// Parts of a transfer.
#[derive(Clone, Copy)]
struct Parts(*const iovec, usize);

impl Parts {
    /// Whether the array is there.
    fn are_mapped(self) -> bool {
        let (start, end) = (
            self.0 as usize,
            self.0 as usize + self.1 * size_of::<iovec>(),
        );
        let first = start & !(sys::PAGE - 1);
        sys::is_mapped(first, (end - first).next_multiple_of(sys::PAGE))
    }

    /// As [start, end).
    ///
    /// # Safety
    /// The array is there.
    unsafe fn ranges<'a>(self) -> impl Iterator<Item = (u64, u64)> + 'a {
        // SAFETY: an array of so many parts, as the program says.
        let parts = unsafe { std::slice::from_raw_parts(self.0, self.1) };
        let range = |part: &iovec| {
            (
                part.iov_base as u64,
                part.iov_base as u64 + part.iov_len as u64,
            )
        };
        parts.iter().map(range)
    }

    /// Bytes of all.
    ///
    /// # Safety
    /// The array is there.
    unsafe fn size(self) -> u64 {
        // SAFETY: as the caller says.
        unsafe { self.ranges() }
            .map(|range| range.1 - range.0)
            .sum()
    }
}

/// What another process lets others reach.
enum Reach {
    /// It does not have this library: an error is its own.
    Other,
    /// These ranges are open now.
    Open,
    /// A part of them is closed.
    Closed,
}

/// What `process` lets others reach of these ranges.
fn reach(process: i32, parts: Parts) -> Reach {
    // SAFETY: the kernel has read it, or it is mapped.
    let ranges: Vec<(u64, u64)> = unsafe { parts.ranges() }.collect();
    let text = files::read_text(format!("/proc/{process}/maps")).unwrap_or_default();
    let meets = |start, end| ranges.iter().any(|range| range.0 < end && start < range.1);
    let closed = |line: &str| {
        let mapping = mappings::parse_header(line);
        mapping.is_some_and(|m| m.permissions.starts_with("---") && meets(m.start, m.end))
    };
    match (text.contains("libcere_preload"), text.lines().any(closed)) {
        (false, _) => Reach::Other,
        (true, false) => Reach::Open,
        (true, true) => Reach::Closed,
    }
}

/// Makes a transfer, again while the other process has its memory closed. It may do a part before it finds that out.
///
/// # Safety
/// As `real`.
unsafe fn transfer(real: Transfer, process: i32, own: Parts, other: Parts, flags: usize) -> isize {
    let begin = sys::time();
    let mut open = 0;
    loop {
        // SAFETY: as the program's call.
        let result = unsafe { real(process, own.0, own.1, other.0, other.1, flags) };
        if result < 0 && (errno::get() != libc::EFAULT || !own.are_mapped() || !other.are_mapped())
        {
            return result;
        }
        // SAFETY: both arrays are there.
        let whole = unsafe { own.size().min(other.size()) };
        if u64::try_from(result) == Ok(whole) {
            return result;
        }
        open = match unnoticed(|| reach(process, other)) {
            Reach::Other => return result,
            Reach::Open => open + 1,
            Reach::Closed => 0,
        };
        if open > OPEN || sys::time() - begin > PATIENCE * 1_000_000_000 {
            return result;
        }
        let pause = [0i64, 1_000_000];
        let arguments = [pause.as_ptr() as usize, 0, 0, 0, 0, 0];
        // SAFETY: a time of this frame.
        unsafe { sys::call(libc::SYS_nanosleep, arguments) };
    }
}

macro_rules! transfers {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            process: i32,
            own: *const iovec,
            owned: usize,
            other: *const iovec,
            others: usize,
            flags: usize,
        ) -> isize {
            // SAFETY: libc's function, called as the program calls it.
            unsafe {
                let real = next!(c_name!($name), Transfer);
                transfer(real, process, Parts(own, owned), Parts(other, others), flags)
            }
        }
    )*};
}
transfers!(process_vm_readv, process_vm_writev);
