//! The formats that the stages of CERE share, and their common readers. The logic of single stages is elsewhere.
//!
//! | module | written by | read by |
//! |---|---|---|
//! | [`abi`] | the pass, into the program's data | the preload library |
//! | [`build`] | the wrappers and the pass | every later stage |
//! | [`language`] | | the wrappers, the pass and the compilers of kept IR: what each language needs |
//! | [`profile`] | the preload library | the command |
//! | [`profile_raw`] | the preload library, into a shared mapping | the command, by the reader there |
//! | [`count`] | the pass, into counted code; that code, when it runs | the command |
//! | [`rank`] | launchers, into the environment | the preload library, the command |
//! | [`answers`] | the preload library | the packager, the replay runtime |
//! | [`clibrary`] | the preload library | the replay runtime |
//! | [`mpi`] | the preload library | the replay runtime |
//! | [`capture`] | the command (plan), the preload library (raw capture) | the packager |
//! | [`package`] | the packager | the replay generator, on any machine |
//! | [`replay`] | the replay generator (plan), the replay runtime (outcome) | each other |
//! | [`store`] | everyone | everyone: where each file lies |
//! | [`machine`] | `cere machine` | everyone who needs the machine's parameters |
//! | [`proc`] | the kernel | the command |
//! | [`caches`] | the kernel (sysfs) | the command, the replay runtime |
//! | [`system`] | | the preload library and the packager: which libraries a replay takes fresh |
//! | [`explain`] | `cere explain` | the report: why a region takes its time |
//! | [`error`] | | all readers |
//! | [`untrusted`] | | all readers and printers of untrusted text |
//!
//! ```
//! use cere_format::store::Store;
//!
//! let store = Store::new("/home/user/app/.cere");
//! assert!(store.profile().starts_with(store.root()));
//! ```

pub mod abi;
pub mod answers;
pub mod build;
pub mod caches;
pub mod capture;
pub mod clibrary;
pub mod count;
pub mod error;
pub mod explain;
pub mod language;
pub mod machine;
pub mod mpi;
pub mod package;
pub mod proc;
pub mod profile;
pub mod profile_raw;
pub mod rank;
pub mod replay;
pub mod store;
pub mod system;
pub mod untrusted;
pub mod verdict;

pub use error::FormatError;

/// Bytes of a page, on every machine that CERE runs on.
pub const PAGE: u64 = 4096;

/// `bytes` as lower-case hexadecimal digits, two a byte: how every format spells checksums and ids.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_digits_a_byte() {
        assert_eq!(super::hexadecimal(&[0, 10, 255]), "000aff");
    }
}
