//! Built-in geometries, from the vendors' manuals: sizes, ways and inclusion. Replacement is not published; they take
//! least recently used.

use super::levels::{Geometry, Inclusion, Level, Tlb};

/// What [`of`] knows.
pub const NAMES: &[&str] = &[
    "zen3",
    "zen4",
    "zen5",
    "skylake",
    "skylake-server",
    "sapphire-rapids",
];

/// The geometry of a name.
pub fn of(name: &str) -> Option<Geometry> {
    use Inclusion::{Inclusive, None as Free, Victim};
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    // Size, ways and inclusion of three levels; entries and ways of two TLBs.
    let (levels, tlbs) = match name {
        "zen3" => (
            [
                (32 * K, 8, Free),
                (512 * K, 8, Inclusive),
                (32 * M, 16, Victim),
            ],
            [(64, 64), (2048, 8)],
        ),
        "zen4" => (
            [(32 * K, 8, Free), (M, 8, Inclusive), (32 * M, 16, Victim)],
            [(72, 72), (3072, 12)],
        ),
        "zen5" => (
            [(48 * K, 12, Free), (M, 16, Inclusive), (32 * M, 16, Victim)],
            [(96, 96), (4096, 16)],
        ),
        "skylake" => (
            [
                (32 * K, 8, Free),
                (256 * K, 4, Free),
                (8 * M, 16, Inclusive),
            ],
            [(64, 4), (1536, 12)],
        ),
        // A slice of 1.375 MiB for each of 28 cores.
        "skylake-server" => (
            [
                (32 * K, 8, Free),
                (M, 16, Free),
                (28 * 1408 * K, 11, Victim),
            ],
            [(64, 4), (1536, 12)],
        ),
        // A slice of 1.875 MiB for each of 56 cores.
        "sapphire-rapids" => (
            [
                (48 * K, 12, Free),
                (2 * M, 16, Free),
                (56 * 1920 * K, 15, Victim),
            ],
            [(96, 6), (2048, 16)],
        ),
        _ => return None,
    };
    let named = levels.iter().zip(["L1", "L2", "L3"]);
    let levels = named.map(|(&(size, ways, inclusion), name)| Level {
        inclusion,
        shared: name == "L3",
        ..Level::new(name, size, ways)
    });
    Some(Geometry {
        name: name.to_owned(),
        levels: levels.collect(),
        tlbs: tlbs.map(|(entries, ways)| Tlb { entries, ways }).to_vec(),
    })
}
