//! What is refused, by name; files; the built-in geometries.

use cere_memory::geometry::{Inclusion, Level, Replacement, Tlb};
use cere_memory::options::Prefetcher;
use cere_memory::{Geometry, GeometryError, Hierarchy, Options};

fn sound() -> Geometry {
    Geometry::named("zen3").unwrap()
}

/// The error, without its fields, of a sound geometry after a change.
fn refused(change: impl Fn(&mut Geometry)) -> String {
    let mut geometry = sound();
    change(&mut geometry);
    let error = geometry.check().unwrap_err();
    // A simulation is refused for the same reason.
    let same = Hierarchy::new(&geometry, &Options::default())
        .err()
        .unwrap();
    assert_eq!(format!("{error}"), format!("{same}"));
    name(&error)
}

fn name(error: &GeometryError) -> String {
    let text = format!("{error:?}");
    text.split([' ', '(', '{']).next().unwrap().to_owned()
}

#[test]
fn nonsense_has_names() {
    assert_eq!(refused(|g| g.levels[1].size = 0), "Zero");
    assert_eq!(refused(|g| g.levels[1].line = 0), "Zero");
    assert_eq!(refused(|g| g.levels[1].ways = 0), "Zero");
    assert_eq!(refused(|g| g.levels[0].line = 48), "Line");
    assert_eq!(refused(|g| g.levels[0].line = 16), "Line");
    assert_eq!(refused(|g| g.levels[0].line = 8192), "Line");
    assert_eq!(refused(|g| g.levels[0].size += 64), "Sets");
    assert_eq!(refused(|g| g.levels[0].ways = 7), "Sets");
    assert_eq!(refused(|g| g.levels[0].ways = u32::MAX), "Sets");
    assert_eq!(refused(|g| g.levels[1].size = 16 << 10), "Shrinks");
    assert_eq!(refused(|g| g.levels[1].line = 32), "Shrinks");
    assert_eq!(
        refused(|g| g.levels[0].inclusion = Inclusion::Victim),
        "Victim"
    );
    assert_eq!(refused(|g| g.levels[2].line = 128), "Victim");
    assert_eq!(refused(|g| g.levels[0].shared = true), "Private");
    assert_eq!(refused(|g| g.levels[2].size <<= 20), "TooLarge");
    assert_eq!(refused(|g| g.levels[2].size = 1 << 63), "TooLarge");
    assert_eq!(refused(|g| g.tlbs[0].entries = 0), "Tlb");
    assert_eq!(refused(|g| g.tlbs[1].ways = 7), "Tlb");
    assert_eq!(refused(|g| g.tlbs[1].ways = 0), "Tlb");
    assert_eq!(refused(|g| g.tlbs[1].entries = 32), "TlbShrinks");
    assert_eq!(refused(|g| g.tlbs.push(g.tlbs[1])), "Tlbs");
    let nine = |g: &mut Geometry| g.levels = vec![Level::new("x", 4096, 4); 9];
    assert_eq!(refused(nine), "Levels");
    let odd = |g: &mut Geometry| {
        g.levels[0] = Level {
            replacement: Replacement::TreePlru,
            ..Level::new("L1", 48 << 10, 12)
        }
    };
    assert_eq!(refused(odd), "Plru");
    let wide = |g: &mut Geometry| {
        g.levels[0] = Level {
            replacement: Replacement::TreePlru,
            ..Level::new("L1", 32 << 10, 128)
        }
    };
    assert_eq!(refused(wide), "Plru");
    // A small victim cache is one.
    let mut geometry = sound();
    geometry.levels[2].size = 16 << 10;
    geometry.check().unwrap();
}

#[test]
fn options_have_names() {
    let refused = |change: &dyn Fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        let geometry = Geometry::named("zen5").unwrap();
        name(&Hierarchy::new(&geometry, &options).err().unwrap())
    };
    assert_eq!(refused(&|o| o.cores = 0), "Cores");
    assert_eq!(refused(&|o| o.cores = 1025), "Cores");
    assert_eq!(
        refused(&|o| o.replacement = Some(Replacement::TreePlru)),
        "Plru"
    );
    assert_eq!(refused(&|o| o.combining = 0), "Combining");
    assert_eq!(refused(&|o| o.footprint_pages = 0), "Footprint");
    assert_eq!(refused(&|o| o.footprint_pages = 1 << 29), "Footprint");
    assert_eq!(refused(&|o| o.huge = vec![0..1; 1025]), "Huge");
    #[expect(clippy::reversed_empty_ranges)]
    let reversed = 8..4;
    assert_eq!(refused(&|o| o.huge = vec![reversed.clone()]), "Huge");
    assert_eq!(refused(&|o| o.sampling = Some(0)), "Sampling");
    assert_eq!(refused(&|o| o.sampling = Some(65)), "Sampling");
    let prefetcher = Prefetcher {
        level: 1,
        streams: 8,
        distance: 16,
        degree: 2,
    };
    for bad in [
        Prefetcher {
            level: 3,
            ..prefetcher
        },
        Prefetcher {
            level: 2,
            ..prefetcher
        },
        Prefetcher {
            streams: 0,
            ..prefetcher
        },
        Prefetcher {
            distance: 0,
            ..prefetcher
        },
        Prefetcher {
            degree: 0,
            ..prefetcher
        },
    ] {
        assert_eq!(refused(&|o| o.prefetcher = Some(bad)), "Prefetcher");
    }
    let both = |o: &mut Options| {
        (o.sampling, o.prefetcher) = (Some(2), Some(prefetcher));
    };
    assert_eq!(refused(&both), "Sampling");
    // Private levels count once a core.
    let many = Options {
        cores: 1024,
        ..Options::default()
    };
    let geometry = Geometry {
        levels: vec![Level::new("L1", 16 << 20, 8)],
        ..sound()
    };
    let error = Hierarchy::new(&geometry, &many).err().unwrap();
    assert_eq!(name(&error), "TooLarge");
}

#[test]
fn files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("geometry.json");
    for name in Geometry::names() {
        let geometry = Geometry::named(name).unwrap();
        geometry.check().unwrap();
        std::fs::write(&path, geometry.to_json()).unwrap();
        assert_eq!(Geometry::read(&path).unwrap(), geometry);
        assert!(geometry.to_string().starts_with(name));
    }
    let short =
        r#"{"name": "x", "levels": [{"name": "L1", "size": 32768, "line": 64, "ways": 8}]}"#;
    std::fs::write(&path, short).unwrap();
    let expected = Geometry {
        name: "x".into(),
        levels: vec![Level::new("L1", 32 << 10, 8)],
        tlbs: Vec::new(),
    };
    assert_eq!(Geometry::read(&path).unwrap(), expected);
    for (from, to, error) in [
        ("\"ways\": 8", "\"ways\": 8, \"sets\": 64", "Json"),
        ("\"ways\": 8", "\"ways\": -8", "Json"),
        (
            "\"ways\": 8",
            "\"ways\": 8, \"replacement\": \"fifo\"",
            "Json",
        ),
        (", \"ways\": 8", "", "Json"),
        ("]}", "]", "Json"),
        ("{\"name\": \"x\"", "{\"name\": \"x\", \"cores\": 4", "Json"),
        ("\"size\": 32768", "\"size\": 0", "Zero"),
    ] {
        let text = short.replacen(from, to, 1);
        assert_ne!(text, short);
        std::fs::write(&path, text).unwrap();
        let found = Geometry::read(&path).unwrap_err();
        assert_eq!(name(&found), error);
        assert!(error != "Json" || found.to_string().contains("geometry.json"));
    }
    let none = Geometry::read(&directory.path().join("none")).unwrap_err();
    assert_eq!(name(&none), "File");
    let unknown = Geometry::named("zen").unwrap_err();
    assert!(unknown.to_string().contains("zen3"), "{unknown}");
}

#[test]
fn prints() {
    let mut geometry = sound();
    geometry.levels[0].replacement = Replacement::TreePlru;
    geometry.tlbs = vec![Tlb {
        entries: 64,
        ways: 64,
    }];
    let expected = "zen3\n\
        L1: 32 KiB, 8 ways, lines of 64 bytes, tree-PLRU\n\
        L2: 512 KiB, 8 ways, lines of 64 bytes, LRU, inclusive\n\
        L3: 32 MiB, 16 ways, lines of 64 bytes, LRU, victim, shared\n\
        TLB 1: 64 entries, fully associative";
    assert_eq!(geometry.to_string(), expected);
}
