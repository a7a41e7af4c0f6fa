//! The state that the C library has for a program outside the program's memory. A replay starts with a new C library and sets this state in it.

use serde::{Deserialize, Serialize};
use std::ffi::CStr;

/// As it stands at a moment, for the thread that asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CLibrary {
    /// Names of the thread's locale, one for each of [`CATEGORIES`].
    pub locale: Vec<String>,
    /// The process's keys for thread-specific data (`pthread_key_create`), rising, and what the thread has there.
    pub keys: Vec<(u32, u64)>,
    /// The generator of `random` and `rand`.
    pub random: Option<Random>,
    /// The generator of `drand48` and its kin: [`SERIES`] words of glibc's `struct drand48_data`. Empty if it is not known.
    pub series: Vec<u64>,
    /// The variables of `getopt`, one for each of [`OPTIONS`]. Empty if they are not known, or the program's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<u64>,
}

/// The generator of `random` and `rand`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Random {
    /// Address of its state, as `initstate` returns it: in the C library, or the program's.
    pub address: u64,
    /// The state, as `setstate` takes it.
    pub state: Vec<u32>,
}

/// Categories of a locale (`LC_CTYPE` and so on).
pub const CATEGORIES: [i32; 12] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12];
/// Keys for thread-specific data that glibc has, at most: its `PTHREAD_KEYS_MAX`.
pub const KEYS: u32 = 1024;
/// Words of `struct drand48_data`.
pub const SERIES: usize = 3;
/// Variables of `getopt`, and their bytes.
pub const OPTIONS: [(&CStr, usize); 4] = [
    (c"optind", 4),
    (c"opterr", 4),
    (c"optopt", 4),
    (c"optarg", 8),
];
/// Words of a state of `random`, by its kind: the first word's remainder by their number.
pub const RANDOM_WORDS: [usize; 5] = [2, 8, 16, 32, 64];

impl CLibrary {
    /// Whether numbers and lengths are possible ones. A reader checks this before it sets the state.
    pub fn is_sound(&self) -> bool {
        let random = self.random.iter().all(|random| {
            let kind = random.state.first().map_or(0, |first| *first as usize);
            let words = RANDOM_WORDS[kind % RANDOM_WORDS.len()];
            // Beyond the first word lies the state; which of it comes next is what the first word says.
            random.state.len() == words && kind / RANDOM_WORDS.len() < words
        });
        let names = self.locale.is_empty() || self.locale.len() == CATEGORIES.len();
        let series = self.series.is_empty() || self.series.len() == SERIES;
        let options = self.options.is_empty() || self.options.len() == OPTIONS.len();
        let keys =
            self.keys.is_sorted_by(|a, b| a.0 < b.0) && self.keys.iter().all(|key| key.0 < KEYS);
        random && names && series && options && keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_sound() {
        let sound = CLibrary {
            locale: vec!["C".into(); CATEGORIES.len()],
            keys: vec![(0, 1), (3, 0)],
            random: Some(Random {
                address: 8,
                state: [&[3 + 5 * 2][..], &[7; 31]].concat(),
            }),
            series: vec![0; SERIES],
            options: vec![1; OPTIONS.len()],
        };
        assert!(sound.is_sound());
        let mut changed: [CLibrary; 5] = std::array::from_fn(|_| sound.clone());
        changed[0].locale.pop();
        changed[1].keys = vec![(3, 0), (0, 1)];
        changed[2].random.iter_mut().for_each(|r| r.state[0] += 1);
        changed[3].series.push(1);
        changed[4].options.pop();
        assert!(changed.iter().all(|c| !c.is_sound()));
    }
}
