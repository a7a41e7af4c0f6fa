//! `cere hybrid`: links the choices of regions into a binary and compares it with the plain build.

use crate::hybrid::choice::Choice;
use crate::hybrid::decide::{Budget, Decider, Decision, Linking, Tuned, recipe};
use crate::hybrid::{Image, scratch};
use crate::{Choices, Chosen};
use anyhow::{Context, Result};
use cere_capture::input::Input;
use cere_capture::profile::Which;
use cere_capture::selection::Selection;
use cere_capture::whole::over_all_threads;
use cere_catalogue::{OrCoded, bail, codes};
use cere_format::build::{RegionKind, SplitTeam};
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_measure::decide::deciding_rounds;
use cere_measure::{Linked, Ranks, Replays, Trial};
use cere_store::build::image::Program;
use cere_store::current;
use cere_store::names::{self, Named};
use cere_store::state;
use cere_system::events::Events;
use std::path::{Path, PathBuf};

/// What to link, and how to try it.
pub struct Request<'a> {
    /// The store with builds and choices.
    pub store: &'a Store,
    /// The hybrid binary.
    pub output: &'a Path,
    /// Choices to take instead of what `cere tune` found.
    pub flags_file: Option<&'a Path>,
    /// Where the kept choices are written; `None` for the output's name with `.flags` appended.
    pub write_flags: Option<&'a Path>,
    /// Runs of each build; `None` derives it from the program's time.
    pub rounds: Option<u32>,
    /// Seconds that deciding may take; `None` for [`Budget::of`].
    pub budget: Option<f64>,
    /// Whether to compare with the whole program at other levels.
    pub levels: bool,
    /// Lines of the output that contain one of these are not compared.
    pub ignore: &'a [String],
    /// Largest accepted relative error of a number in the output.
    pub tolerance: f64,
    /// Seconds after which a run is killed.
    pub timeout: Option<f64>,
    /// The image to link without running it.
    pub image: Option<&'a Path>,
    /// Program and arguments; empty if it is not run.
    pub command: &'a [String],
    /// What is said meanwhile.
    pub events: &'a Events,
}

/// A hybrid binary.
pub struct Made {
    /// The decision from its runs; `None` if it was not run.
    pub decision: Option<Decision>,
    /// The ranks that were verified, if it ran in several.
    pub ranks: Option<Ranks>,
    /// The regions with their own flags.
    pub tuned: Vec<Tuned>,
    /// The file of what was kept.
    pub flags_file: PathBuf,
}

/// Links the binary. If the program can be run, puts back regions that do not gain.
pub fn make(request: &Request) -> Result<Made> {
    let store = request.store;
    let flags = match request.flags_file {
        Some(file) => Choices::read(file)?,
        None => stored_choices(store)?,
    };
    let written = request.write_flags.map_or_else(
        || {
            let mut name = request.output.as_os_str().to_owned();
            name.push(".flags");
            PathBuf::from(name)
        },
        Path::to_path_buf,
    );
    let program = match request.command {
        [] => None,
        command => Some(Program::open(command, store)?),
    };
    let plain = match (request.image, &program) {
        (Some(file), _) => std::path::absolute(file)?,
        (None, Some(program)) => program.image()?.path.clone(),
        (None, None) => of_profile(store)?,
    };
    places(request, &written, &plain)?;
    let replays = Replays::open(store, request.events)?;
    let image = Image::open(store, &replays, &plain, request.events)?;
    let (mut tuned, rest) = choices(request, &image, &flags, &plain)?;
    let scratch = scratch(store)?;
    let lock = state::lock(store)?;
    let (decision, ranks) = if let Some(program) = &program {
        let others = regions_without_choice(store, &image, &tuned);
        let mut linking = linking(request, program, &image)?;
        let decider = Decider {
            program: &mut linking,
            plain: &plain,
            scratch: scratch.path(),
            others,
            rest,
            rounds: request.rounds.unwrap_or_else(|| rounds(store)),
            levels: request.levels,
            budget: Budget::of(request.budget, seconds(store)),
        };
        let decision = decider.decide(&mut tuned)?;
        (Some(decision), linking.trial.ranks().cloned())
    } else {
        image.make(&recipe(&tuned, None, &rest), &scratch.path().join("hybrid"))?;
        (None, None)
    };
    drop(lock);
    let made = decision
        .as_ref()
        .map_or(scratch.path().join("hybrid"), |d| d.hybrid.clone());
    move_into_place(&made, request.output)?;
    kept_choices(&flags, &tuned, decision.as_ref()).write(&written)?;
    Ok(Made {
        decision,
        ranks,
        tuned,
        flags_file: written,
    })
}

/// The regions of the image `plain` that `flags` choose something for, and what all other code is compiled with.
fn choices(
    request: &Request,
    image: &Image,
    flags: &Choices,
    plain: &Path,
) -> Result<(Vec<Tuned>, Choice)> {
    let known = names::named(&state::current_units(request.store)?);
    let mut tuned = Vec::new();
    for (named, chosen) in flags.find(&known, request.events)? {
        let choice = choice(image, named, chosen, plain);
        tuned.push(match request.flags_file {
            Some(file) => choice.with_context(|| format!("the flags file {}", file.display()))?,
            None => choice?,
        });
    }
    let rest = Choice {
        flags: cere_toolchain::flags::split(&flags.rest).context("the flags of the rest")?,
        ..Choice::default()
    };
    if tuned.is_empty() && rest.flags.is_empty() {
        match request.flags_file {
            Some(file) => bail!(
                E6502,
                "the flags file {} has no choices to link",
                file.display()
            ),
            None => bail!(
                E6502,
                "there are no choices to link: `cere tune` finds some, or name a file with --flags-file"
            ),
        }
    }
    Ok((tuned, rest))
}

/// The program that is linked and run.
fn linking<'a>(
    request: &Request<'a>,
    program: &'a Program,
    image: &'a Image,
) -> Result<Linking<'a>> {
    let profile = state::profile(request.store).ok();
    let rank = profile.and_then(|profile| profile.process.rank);
    Ok(Linking {
        image,
        trial: Trial::new(
            request.store,
            program,
            request.command,
            request.timeout,
            request.ignore,
            request.tolerance,
            request.events,
        )?,
        linked: Linked {
            store: request.store,
            program,
            which: rank.map_or(Which::Main, Which::Rank),
            command: request.command,
            input: Input::open(request.events)?,
            timeout: request.timeout,
            events: request.events,
        },
    })
}

/// The choices of `cere tune` in the store.
fn stored_choices(store: &Store) -> Result<Choices> {
    let file = store.tuned();
    if !file.is_file() {
        bail!(
            E6502,
            "nothing in {} is tuned: `cere tune` finds flags for its regions, or name a file with --flags-file",
            store.root().display()
        );
    }
    Choices::read(&file)
}

/// The program of the store's profile.
fn of_profile(store: &Store) -> Result<PathBuf> {
    let profile = state::profile(store)
        .or_coded(codes::E6503, || "which program is meant? Name it after --")?;
    state::profiled_program(&profile).with_context(|| {
        format!(
            "the program of the profile, {}, is not there any more: profile again, or name it after --",
            profile.process.program.display()
        )
    })
}

fn choice(image: &Image, named: &Named, chosen: &Chosen, program: &Path) -> Result<Tuned> {
    let name = &named.name;
    if !named.region.outlined {
        let reason = named.region.reason.as_deref().unwrap_or("unknown");
        let noun = named.region.kind.noun();
        bail!(
            E6508,
            "the {noun} {name} is no region, so that it cannot have flags of its own: {reason}"
        );
    }
    let elsewhere = (!image.holds(&named.key)).then(|| {
        format!(
            "its code is not in {}: name the file that holds it by --image",
            program.display()
        )
    });
    let bind = match chosen.bind.as_deref() {
        None => None,
        Some("primary") => Some(2),
        Some("close") => Some(3),
        Some("spread") => Some(4),
        Some(other) => bail!(
            E6510,
            "{name}: bind = {other:?} is none of primary, close and spread"
        ),
    };
    if let Some(n) = chosen.threads.filter(|n| !(1..=4096).contains(n)) {
        bail!(E6510, "{name}: threads = {n} is no number from 1 to 4096");
    }
    let team = chosen.threads.is_some() || bind.is_some();
    if team && named.region.kind != RegionKind::Parallel {
        bail!(
            E6509,
            "{name} is no parallel region, so that it forks no team: leave threads and bind out for it"
        );
    }
    let flags = || -> Result<Vec<String>> {
        let flags = cere_toolchain::flags::split(&chosen.flags)?;
        cere_toolchain::flags::check(&flags)?;
        cere_toolchain::flags::known(&flags)?;
        Ok(flags)
    };
    let team = SplitTeam {
        threads: chosen.threads,
        bind,
    };
    Ok(Tuned {
        // Lines may have moved since it was chosen.
        chosen: Chosen {
            name: name.clone(),
            ..chosen.clone()
        },
        key: named.key.clone(),
        choice: Choice {
            flags: flags().with_context(|| format!("the flags of {name}"))?,
            passes: chosen.passes.clone(),
            team: (team != SplitTeam::default()).then_some(team),
        },
        back: elsewhere,
        times: None,
    })
}

/// The regions of the profile that matter and have no choice.
fn regions_without_choice(store: &Store, image: &Image, tuned: &[Tuned]) -> Vec<RegionKey> {
    let of = |profile: &Profile| -> Result<Vec<RegionKey>> {
        let profile = &*over_all_threads(profile);
        let selection = Selection::of(profile)?;
        let keys = selection
            .large(profile)
            .map(|kept| profile.regions[kept.region].key.clone());
        let own = |key: &RegionKey| tuned.iter().any(|t| t.key == *key);
        Ok(keys.filter(|key| image.holds(key) && !own(key)).collect())
    };
    let profile = current::profile(store);
    profile.and_then(|p| of(&p)).unwrap_or_default()
}

/// Default number of rounds, from the time in the profile.
fn rounds(store: &Store) -> u32 {
    deciding_rounds(seconds(store))
}

/// Seconds of a run of the program, by the profile.
fn seconds(store: &Store) -> f64 {
    state::profile(store).map_or(10.0, |p| p.seconds)
}

/// Fails early if an output file is not writable, or is one of the files that are read.
fn places(request: &Request, written: &Path, plain: &Path) -> Result<()> {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    };
    if same(request.output, written) {
        bail!(
            E6524,
            "the hybrid binary and the flags file cannot both be {}",
            written.display()
        );
    }
    for (path, option) in [(request.output, "-o"), (written, "--write-flags")] {
        check_writable(path)?;
        if same(path, plain) {
            bail!(
                E6524,
                "{option} names the program itself, {}: name another file",
                plain.display()
            );
        }
        if let Some(file) = request.flags_file.filter(|f| same(path, f))
            && option == "-o"
        {
            bail!(
                E6524,
                "-o names the flags file {}: name another file",
                file.display()
            );
        }
    }
    Ok(())
}

/// Fails if `path` cannot be written.
fn check_writable(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    if path.is_dir() {
        bail!(E6524, "{} is a directory: name a file", path.display());
    }
    if path.exists() && !path.is_file() {
        bail!(
            E6524,
            "{} is not a regular file: name another one",
            path.display()
        );
    }
    tempfile::tempfile_in(parent)
        .map(drop)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Moves a finished build to its destination atomically.
fn move_into_place(made: &Path, output: &Path) -> Result<()> {
    let failed = || format!("cannot write {}", output.display());
    let mut name = output.file_name().with_context(failed)?.to_owned();
    name.push(".new");
    let beside = output.with_file_name(name);
    std::fs::copy(made, &beside).with_context(failed)?;
    std::fs::rename(&beside, output).with_context(failed)
}

/// The file of what was kept.
fn kept_choices(flags: &Choices, tuned: &[Tuned], decision: Option<&Decision>) -> Choices {
    let regions = tuned.iter().filter(|t| t.back.is_none()).map(|t| Chosen {
        flags: shell_words::join(&t.choice.flags),
        gain: (t.times.map(|times| 1.0 / times.gain.ratio)).or(t.chosen.gain),
        ..t.chosen.clone()
    });
    let mut kept = Choices::of(regions.collect());
    kept.rest = match decision {
        Some(decision) => shell_words::join(&decision.recipe.rest.flags),
        None => flags.rest.clone(),
    };
    kept
}
