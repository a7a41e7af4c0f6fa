//! What else happened on a thread while a part was timed.

use cere_arch::call::inlined;

/// Counts of the calling thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults, with and without input or output.
    pub faults: u64,
    /// Context switches, asked for or not.
    pub switches: u64,
}

impl Usage {
    /// What came since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            faults: self.faults.wrapping_sub(earlier.faults),
            switches: self.switches.wrapping_sub(earlier.switches),
        }
    }
}

/// Reads the counts by the bare system call. Outside the timed part: it takes hundreds of cycles.
pub fn usage() -> Usage {
    const THREAD: i64 = 1;
    let mut words = [0u64; 18];
    // SAFETY: getrusage(RUSAGE_THREAD) writes a struct rusage, which has 18 words.
    unsafe { inlined(libc::SYS_getrusage, THREAD, words.as_mut_ptr()) };
    Usage {
        faults: words[8] + words[9],
        switches: words[16] + words[17],
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::usage;

    #[test]
    fn a_touched_page_and_a_nap_are_counted() {
        let before = usage();
        let memory = std::vec![1u8; 64 << 20];
        std::hint::black_box(&memory);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let found = usage().since(before);
        assert!(found.faults > 0 && found.switches > 0, "{found:?}");
    }
}
