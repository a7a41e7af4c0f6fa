//! This machine's geometry: sizes from sysfs, which is right where `getconf` is not, and as measured where sysfs is wrong; inclusion
//! and TLBs from CPUID, TLBs as measured where there is none.

use super::error::GeometryError;
use super::levels::{Geometry, Inclusion, Level, Tlb};
use cere_arch::feature::leaf;
use cere_format::caches::Cache;
use cere_format::machine::{self, Machine, USABLE};

/// What is taken where CPUID says nothing of TLBs.
const DEFAULT_TLBS: [Tlb; 2] = [
    Tlb {
        entries: 64,
        ways: 4,
    },
    Tlb {
        entries: 1536,
        ways: 12,
    },
];

/// Caches from sysfs, TLBs and inclusion from CPUID.
pub fn geometry() -> Result<Geometry, GeometryError> {
    let tlbs = match tlbs() {
        told if told.is_empty() => measured_tlbs(),
        told => told,
    };
    from(&machine::caches_of(0), &inclusive(), tlbs)
}

/// TLBs as they were measured; none where they were not, or not reliably.
fn measured_tlbs() -> Vec<Tlb> {
    let measured = Machine::kept().map_or(Vec::new(), |machine| machine.tlb);
    let reliable = measured.iter().take_while(|tlb| tlb.confidence >= USABLE);
    let tlb = |entries: u32| Tlb {
        entries,
        ways: if entries.is_multiple_of(8) {
            8
        } else {
            entries
        },
    };
    reliable
        .filter_map(|t| u32::try_from(t.entries).ok())
        .map(tlb)
        .collect()
}

/// A geometry of caches of which `inclusive` levels are, and TLBs. A level is shared if more processors have it than
/// have the first one. A third level or beyond that is not inclusive is a victim level, as on AMD since Zen and on Intel
/// since Skylake's servers.
fn from(found: &[Cache], inclusive: &[u32], tlbs: Vec<Tlb>) -> Result<Geometry, GeometryError> {
    let first = found.first().ok_or(GeometryError::Here)?;
    if found.iter().any(|c| c.line == 0 || c.ways == 0) {
        return Err(GeometryError::Here);
    }
    let levels = found.iter().map(|c| Level {
        line: c.line,
        shared: c.sharers() > first.sharers(),
        inclusion: match c.level {
            l if inclusive.contains(&l) => Inclusion::Inclusive,
            1 | 2 => Inclusion::None,
            _ => Inclusion::Victim,
        },
        ..Level::new(&format!("L{}", c.level), c.size, c.ways)
    });
    let geometry = Geometry {
        name: "here".into(),
        levels: levels.collect(),
        tlbs: match tlbs.is_empty() {
            true => DEFAULT_TLBS.to_vec(),
            false => tlbs,
        },
    };
    geometry.check()?;
    Ok(geometry)
}

fn is_amd() -> bool {
    let [_, b, c, d] = leaf(0, 0);
    [b, d, c].map(u32::to_le_bytes).concat() == b"AuthenticAMD"
}

/// Levels that hold all that nearer ones do.
fn inclusive() -> Vec<u32> {
    let caches = if is_amd() { 0x8000_001d } else { 4 };
    let found = (0..16).map(|sub| leaf(caches, sub));
    found
        .take_while(|[a, ..]| a & 0x1f != 0)
        .filter(|[.., d]| d & 2 != 0)
        .map(|[a, ..]| (a >> 5) & 7)
        .filter(|&level| level > 1)
        .collect()
}

/// Data TLBs of 4 KiB pages, nearest first; none if CPUID does not say.
fn tlbs() -> Vec<Tlb> {
    let found = if is_amd() {
        amd(leaf(0x8000_0005, 0)[1], leaf(0x8000_0006, 0)[1])
    } else {
        let [last, ..] = leaf(0x18, 0);
        let parameters: Vec<_> = (0..=last.min(32)).map(|sub| leaf(0x18, sub)).collect();
        match intel(&parameters) {
            found if found.is_empty() => intel_descriptors(leaf(2, 0)),
            found => found,
        }
    };
    let sensible = Geometry {
        name: String::new(),
        levels: Vec::new(),
        tlbs: found.clone(),
    };
    match sensible.check() {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

/// From EBX of leaves 0x8000_0005 and 0x8000_0006 (AMD's manual, volume 3, appendix E).
fn amd(first: u32, second: u32) -> Vec<Tlb> {
    let mut found = Vec::new();
    let entries = (first >> 16) & 0xff;
    let ways = match first >> 24 {
        0xff => entries,
        ways => ways,
    };
    if entries == 0 || ways == 0 {
        return found;
    }
    found.push(Tlb { entries, ways });
    let entries = (second >> 16) & 0xfff;
    let ways = match second >> 28 {
        code @ 1..=4 => code,
        5 => 6,
        6 => 8,
        8 => 16,
        0xa => 32,
        0xb => 48,
        0xc => 64,
        0xd => 96,
        0xe => 128,
        0xf => entries,
        _ => 0,
    };
    if entries != 0 && ways != 0 {
        found.push(Tlb { entries, ways });
    }
    found
}

/// From leaf 0x18, all sub-leaves (Intel's manual, volume 2, CPUID).
fn intel(parameters: &[[u32; 4]]) -> Vec<Tlb> {
    let of_level = |wanted: u32| {
        parameters.iter().find_map(|&[_, b, sets, d]| {
            let (kind, level) = (d & 0x1f, (d >> 5) & 7);
            // Data, unified, or loads only; of 4 KiB pages.
            let fits = matches!(kind, 1 | 3 | 4) && level == wanted && b & 1 != 0;
            let ways = b >> 16;
            let entries = ways.checked_mul(sets)?;
            (fits && entries > 0).then_some(Tlb {
                entries,
                ways: if d & 0x100 != 0 { entries } else { ways },
            })
        })
    };
    let Some(first) = of_level(1) else {
        return Vec::new();
    };
    [first].into_iter().chain(of_level(2)).collect()
}

/// From the descriptors of leaf 2 (Intel's manual, volume 2, table 3-12): the data TLBs of processors with two levels.
fn intel_descriptors(registers: [u32; 4]) -> Vec<Tlb> {
    let valid = registers.into_iter().filter(|r| r >> 31 == 0);
    let bytes: Vec<u8> = valid.flat_map(u32::to_le_bytes).collect();
    let tlb = |known: &[(u8, u32, u32)]| {
        let found = known.iter().find(|k| bytes.contains(&k.0))?;
        Some(Tlb {
            entries: found.1,
            ways: found.2,
        })
    };
    let first = tlb(&[(0x03, 64, 4), (0xba, 64, 4), (0xa0, 32, 32), (0x5b, 64, 64)]);
    let second = tlb(&[
        (0xc1, 1024, 8),
        (0xc3, 1536, 6),
        (0xca, 512, 4),
        (0xb4, 256, 4),
        (0xb3, 128, 4),
    ]);
    match first {
        Some(first) => [first].into_iter().chain(second).collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlb(entries: u32, ways: u32) -> Tlb {
        Tlb { entries, ways }
    }

    #[test]
    fn tlbs_of_amd() {
        // A Zen 3: 64 entries, fully associative; 2048 with 8 ways.
        assert_eq!(amd(0xff40_ff40, 0x6800_4200), [tlb(64, 64), tlb(2048, 8)]);
        assert_eq!(amd(0, 0), []);
        assert_eq!(amd(0xff40_0000, 0), [tlb(64, 64)]);
    }

    #[test]
    fn tlbs_of_intel() {
        // A Golden Cove: loads, 16 sets of 6 ways; unified, 128 sets of 16 ways.
        let parameters = [
            [8, 0, 0, 0],
            [0, 0x0008_0001, 32, 0x22],
            [0, 0x0006_000f, 16, 0x24],
            [0, 0x0010_0003, 128, 0x43],
        ];
        assert_eq!(intel(&parameters), [tlb(96, 6), tlb(2048, 16)]);
        assert_eq!(intel(&[[0; 4]]), []);
        // A Skylake client: descriptors in the low bytes of EAX count too.
        let registers = [0x7603_6301, 0x00f0_b5ff, 0, 0x00c3_0000];
        assert_eq!(intel_descriptors(registers), [tlb(64, 4), tlb(1536, 6)]);
        assert_eq!(intel_descriptors([0x8000_0003; 4]), []);
    }

    fn cache(level: u32, size: u64, ways: u32, shared: &str) -> Cache {
        Cache {
            level,
            kind: "Unified".into(),
            size,
            line: 64,
            ways,
            shared: shared.into(),
        }
    }

    #[test]
    fn caches_as_sysfs_shows_them() {
        let found = [
            cache(1, 48 << 10, 12, "0,64"),
            cache(2, 2 << 20, 16, "0,64"),
            cache(3, 105 << 20, 15, "0-111"),
        ];
        let geometry = from(&found, &[2], Vec::new()).unwrap();
        let of = |l: &Level| (l.ways, l.shared, l.inclusion);
        let levels: Vec<_> = geometry.levels.iter().map(of).collect();
        let expected = [
            (12, false, Inclusion::None),
            (16, false, Inclusion::Inclusive),
            (15, true, Inclusion::Victim),
        ];
        assert_eq!(levels, expected);
        assert_eq!(geometry.tlbs, DEFAULT_TLBS);
        let silent = [cache(1, 48 << 10, 0, "0")];
        for found in [&silent[..], &[]] {
            let error = from(found, &[], Vec::new()).unwrap_err();
            assert!(matches!(error, GeometryError::Here), "{error}");
        }
    }

    #[test]
    fn this_machine() {
        match Geometry::here() {
            Ok(geometry) => println!("{geometry}"),
            Err(error) => assert!(matches!(error, GeometryError::Here), "{error}"),
        }
    }
}
