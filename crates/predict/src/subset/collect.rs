//! The programs of several stores, and the codelets of their regions that matter.

use crate::subset::document::{Point, Program};
use crate::subset::programs::{names, program_name};
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::package::Manifest;
use cere_format::profile::Profile;
use cere_format::store::Store;
use cere_measure::Shares;
use cere_measure::matching::counting;
use cere_store::current::{self, Chosen, Codelet, codelets};
use cere_store::names::named;
use cere_store::state;
use cere_system::events::Events;
use std::path::PathBuf;

/// A codelet in a store.
pub struct Found {
    /// Its store, as index.
    pub store: usize,
    /// Its file.
    pub file: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// What the stores hold.
#[derive(Default)]
pub struct Collected {
    /// A program each store.
    pub programs: Vec<Program>,
    /// Codelets of all regions that matter.
    pub codelets: Vec<Found>,
    /// A point each region.
    pub regions: Vec<Point>,
}

/// Collects from `stores`. Regions without a use are named.
///
/// # Errors
/// A store has no profile or no codelets of its build.
pub fn collect(stores: &[Store], events: &Events) -> Result<Collected> {
    let mut all = Collected::default();
    let whose = |store: &Store| format!("the store {}", store.root().display());
    let mut profiles = Vec::new();
    for (number, store) in stores.iter().enumerate() {
        if stores[..number].contains(store) {
            bail!(E6315, "{} is named twice", whose(store));
        }
        profiles.push(current::profile(store).with_context(|| whose(store))?);
    }
    let names = names(&stores.iter().zip(&profiles).collect::<Vec<_>>());
    for (number, (profile, name)) in profiles.iter().zip(names).enumerate() {
        let store = (number, &stores[number]);
        add(&mut all, store, (profile, name), events).with_context(|| whose(store.1))?;
    }
    if all.regions.is_empty() {
        bail!(
            E6401,
            "no region that matters has codelets: `cere capture` takes some"
        );
    }
    Ok(all)
}

fn add(
    all: &mut Collected,
    (number, store): (usize, &Store),
    (profile, name): (&Profile, String),
    events: &Events,
) -> Result<()> {
    let known = named(&state::current_units(store)?);
    let Chosen {
        codelets, notes, ..
    } = codelets(store, profile)?;
    for note in notes {
        events.note(format!("{}: {note}", store.root().display()));
    }
    let shares = Shares::of(profile)?;
    let program = all.programs.len();
    for region in shares.mostly_others(&known) {
        events.note(format!(
            "{name}: {} is mostly the time of regions inside it, and counts as uncovered",
            region.name
        ));
    }
    for region in shares.mostly_own(&known) {
        let own: Vec<&Codelet> = codelets.iter().filter(|c| c.1.key == region.key).collect();
        if own.is_empty() {
            let region = &region.name;
            events.note(format!(
                "{name}: {region} has no codelet and counts as uncovered"
            ));
            continue;
        }
        let chosen = match counting(&own, |c| c.1.represents) {
            Ok((_, chosen)) => chosen,
            Err(why) => {
                let region = &region.name;
                events.note(format!("{name}: {region} counts as uncovered: {why}"));
                continue;
            }
        };
        let known = |manifest: &Manifest| {
            let in_vivo = manifest.in_vivo.map(|v| v.seconds);
            manifest.represents.map(|r| r.seconds).or(in_vivo)
        };
        // Without the time of one the others' say nothing.
        let all_known = chosen.iter().all(|c| known(&c.1).is_some_and(|s| s > 0.0));
        let weight = |manifest: &Manifest| match all_known {
            true => known(manifest).unwrap_or(1.0),
            false => 1.0,
        };
        let whole: f64 = chosen.iter().map(|c| weight(&c.1)).sum();
        let mut members = Vec::new();
        for (file, manifest) in chosen {
            let sha256 = state::hash_file(file)?;
            let twin = all.codelets.iter().position(|c| c.sha256 == sha256);
            members.push((twin.unwrap_or(all.codelets.len()), weight(manifest) / whole));
            if twin.is_none() {
                all.codelets.push(Found {
                    store: number,
                    sha256,
                    file: file.clone(),
                    manifest: manifest.clone(),
                });
            }
        }
        all.regions.push(Point {
            name: region.name.clone(),
            program,
            seconds: shares.of_region(&region.key) * profile.seconds,
            members,
        });
    }
    all.programs.push(Program {
        name,
        command: told_command(&profile.command),
        seconds: profile.seconds,
    });
    Ok(())
}

/// The command without the directory of the program: the archive is for others.
fn told_command(command: &[String]) -> String {
    let mut words = command.to_vec();
    if let Some(program) = words.first_mut() {
        *program = program_name(command);
    }
    cere_format::untrusted::visible(&shell_words::join(&words))
}

impl Collected {
    /// A point for each codelet instead of each region: time and space in one (CERE thesis, 4.5.2).
    #[must_use]
    pub fn unified(&self) -> Vec<Point> {
        let regions = self.regions.iter();
        let each = regions.flat_map(|region| {
            region.members.iter().map(|(codelet, share)| Point {
                name: self.codelets[*codelet].manifest.name.clone(),
                program: region.program,
                seconds: region.seconds * share,
                members: vec![(*codelet, 1.0)],
            })
        });
        each.filter(|point| point.seconds > 0.0).collect()
    }
}
