//! The C++ library's standard streams. They are fresh in a replay, as the library is; how they format and what they write to is
//! the program's: each of their words that is no address in a library is as captured.

use crate::library::{Origins, symbol};
use crate::pages::Pages;
use cere_format::system::STREAMS;
use std::ffi::c_void;

/// Words of a stream that is written to.
const WORDS: u64 = 34;
/// Its word that points to its buffer, an object of so many words if it belongs to the library and is not the C library's.
const BUFFER: u64 = 30;
const BUFFER_WORDS: u64 = 30;

/// Words and what they hold at entry.
#[derive(Default)]
pub struct Streams(Vec<(u64, u64)>);

impl Streams {
    /// Those that the region looked at, once the library has been started.
    pub fn find(origins: &Origins, pages: &Pages) -> Self {
        let mut found = Self::default();
        let mut apart = false;
        for (name, reads) in STREAMS {
            let (Some(here), Some(there)) = (symbol(name, None), origins.captured_variable(name))
            else {
                continue;
            };
            let more = u64::from(reads);
            let at = 8 * (BUFFER + more);
            let Some(buffer) = pages.word(there + at) else {
                continue;
            };
            // SAFETY: a word of the library's object.
            let own = || unsafe { *((here + at) as *const u64) };
            let same = |here| origins.same(buffer, here) || origins.of_other_build(buffer, here);
            if origins.was_in_library(buffer) && !same(own()) && !apart {
                apart = true;
                leave_stdio();
            }
            found.take(origins, pages, (here, there), WORDS + more);
            if apart && same(own()) {
                found.take(origins, pages, (own(), buffer), BUFFER_WORDS);
            }
        }
        found
    }

    fn take(&mut self, origins: &Origins, pages: &Pages, (here, there): (u64, u64), words: u64) {
        for at in (0..words).map(|word| 8 * word) {
            let captured = pages.word(there + at);
            let own = captured.filter(|value| !origins.was_in_library(*value));
            self.0.extend(own.map(|value| (here + at, value)));
        }
    }

    /// As at entry.
    pub fn put_back(&self) {
        for &(at, value) in &self.0 {
            // SAFETY: a word of an object of the library's, which nobody uses between repetitions.
            unsafe { *(at as *mut u64) = value };
        }
    }
}

/// Gives the streams buffers of their own, as `std::ios_base::sync_with_stdio(false)` in the program did.
fn leave_stdio() {
    if let Some(function) = symbol("_ZNSt8ios_base15sync_with_stdioEb", None) {
        // SAFETY: that function of the C++ library.
        unsafe {
            let function: extern "C" fn(bool) -> bool =
                std::mem::transmute(function as *const c_void);
            function(false);
        }
    }
}
