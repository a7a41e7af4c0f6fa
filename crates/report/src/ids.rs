//! The regions with a page in the report, and the anchors of their pages.

use super::data::Data;
use cere_format::profile::Profile;
use std::collections::HashSet;

/// Share of the run time from which on a region has a page.
const LEAST: f64 = 0.0005;
/// Maximum number of pages.
const MOST: usize = 500;

/// Anchors by index in [`Profile::regions`].
pub struct Ids(Vec<Option<String>>);

impl Ids {
    /// The pages of a report: all regions with codelets have one.
    pub fn of_report(data: &Data) -> Self {
        let with_codelets: HashSet<_> = data.codelets.iter().map(|c| &c.manifest.key).collect();
        let regions = data.profile.regions.iter().enumerate();
        let always = regions.filter(|(_, region)| with_codelets.contains(&region.key));
        Self::new(&data.profile, &always.map(|(place, _)| place).collect())
    }

    /// Chooses the pages. Anchors are the same in all reports of a program while the names of its regions are. Regions in
    /// `always` get a page whatever their share.
    fn new(profile: &Profile, always: &HashSet<usize>) -> Self {
        let mut taken = HashSet::new();
        let mut pages = 0;
        let anchor = |(place, region): (usize, &cere_format::profile::RegionProfile)| {
            let time = region.inclusive_seconds / profile.seconds.max(f64::MIN_POSITIVE);
            if pages == MOST || !(time >= LEAST || always.contains(&place)) {
                return None;
            }
            pages += 1;
            let plain = |c: char| {
                if c.is_ascii_alphanumeric() || c == '_' {
                    c
                } else {
                    '-'
                }
            };
            let base: String = region.name.chars().map(plain).take(80).collect();
            let base = format!("r-{base}");
            let mut id = base.clone();
            let mut number = 2;
            while !taken.insert(id.clone()) {
                id = format!("{base}--{number}");
                number += 1;
            }
            Some(id)
        };
        Self(profile.regions.iter().enumerate().map(anchor).collect())
    }

    /// The anchor of the region with index `place`.
    pub fn of(&self, place: usize) -> Option<String> {
        self.0.get(place).cloned().flatten()
    }
}
