//! What the package's files may hold, changed at random: read or refused.

use crate::pages::{Bytes, Pages};
use crate::{check, space, trace};
use cere_format::package::Manifest;
use cere_testing::{campaign, change, package};

#[test]
fn packages() {
    let directory = std::env::temp_dir().join(format!("cere-runtime-fuzz.{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let sample = package::members();
    let open = |number: usize, bytes: &[u8]| {
        let path = directory.join(number.to_string());
        std::fs::write(&path, bytes).unwrap();
        Bytes::open(&path).unwrap()
    };
    campaign("packages in a replay", 500, |random| {
        let (mut manifest, mut members) = (package::manifest(), sample.clone());
        for _ in 0..=random.below(3) {
            match random.below(3) {
                0 => change::records(&mut members[0].1, 16, random),
                1 => change::records(&mut members[3].1, 8, random),
                _ => change::json(&mut manifest, random),
            }
        }
        let Ok(manifest) = serde_json::from_value::<Manifest>(manifest) else {
            return false;
        };
        let pages = Pages::new(
            &members[0].1,
            open(1, &members[1].1),
            open(2, &members[2].1),
        );
        let trace = trace::parse(&members[3].1, &manifest);
        let possible = check::check(&manifest).is_ok();
        if let Ok(pages) = &pages {
            for page in &pages.all {
                let _ = (pages.entry(page), pages.exit(page));
            }
            let _ = (pages.word(random.number(0x1000)), space::absent(&pages.all));
            let at = random.number(0x1000);
            let _ = pages.both(at, at.saturating_add(0x3000));
        }
        if possible {
            let ranges = manifest.mappings.iter().map(|m| (m.start, m.end));
            let ranges = space::merge(ranges.chain(manifest.fresh.clone()).collect(), 0);
            let _ = space::without(&ranges, &space::merge(vec![space::stack(&manifest)], 0));
        }
        pages.is_ok() && trace.is_ok() && possible
    });
    let _ = std::fs::remove_dir_all(directory);
}
