//! `cere hybrid -o FILE`: the binary in which each tuned region has its own flags, tried against the plain build.

mod choices;
mod decide;
mod image;
mod linked;
mod output;
mod show;
mod trial;

pub use choices::{Choices, Chosen};
pub use image::{Image, Recipe};
pub use trial::{Build, Trial, middle};

use crate::input::Input;
use crate::names::{self, Named};
use crate::options::{self, Common};
use crate::replay::Replays;
use crate::selection::Selection;
use crate::{image as program, print, state, words};
use anyhow::{Context, Result, bail};
use cere_format::build::{RegionKind, SplitTeam};
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_hybrid::Choice;
use decide::{Decider, Decision, Tuned, recipe};
use linked::Linked;
use std::path::{Path, PathBuf};

/// Link the binary in which each tuned region has its own flags
#[derive(clap::Args)]
#[command(after_help = "\
Each region with flags of its own is compiled as in its replays, the rest as the user built it, from what\n\
`cere instrument` kept, and linked by the recorded link command. The choices are those of `cere tune`, or of a file.\n\
\n\
With a program to run, it is run: the output must be the plain build's, and the time is compared with the plain build's and\n\
with the whole program's at -O1, -O2 and -O3, in alternation. A region that does not gain in the linked program is\n\
put back to the build's flags; so is one that makes others lose more than it gains. If nothing gains, the output is the\n\
plain program. Words of the output that differ between runs of the plain build are not compared.\n\
\n\
What was kept is written to a flags file: keep it with the source, and a later build needs no tuning.\n\
\n\
Examples:\n\
\x20 cere hybrid -o app.tuned -- ./app input\n\
\x20 cere hybrid -o app.tuned --flags-file app.flags\n\
\x20 cere hybrid -o app.tuned --explain --ignore 'Time in seconds' -- ./app input")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// The hybrid binary
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Choices to take instead of what `cere tune` found
    #[arg(long, value_name = "FILE")]
    flags_file: Option<PathBuf>,
    /// Where the kept choices are written [default: the output's name with .flags behind it]
    #[arg(long, value_name = "FILE")]
    write_flags: Option<PathBuf>,
    /// Tell what each region contributes
    #[arg(long)]
    explain: bool,
    /// Runs of each build [default: by the program's time, 3 to 11]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Do not compare with the whole program at -O1, -O2 and -O3
    #[arg(long)]
    no_levels: bool,
    /// Lines of the output that hold TEXT are not compared; may stand several times
    #[arg(long, value_name = "TEXT")]
    ignore: Vec<String>,
    /// Largest relative error of a number in the output that is still accepted: of flags that change values
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = options::tolerance)]
    tolerance: f64,
    /// Kill a run of the program after this many seconds
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// The shared library or program to link again, without running it
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    image: Option<PathBuf>,
    /// The program and its arguments, for runs of it
    #[arg(last = true)]
    command: Vec<String>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.existing_store()?;
    let flags = match &options.flags_file {
        Some(file) => Choices::read(file)?,
        None => tuned(&store)?,
    };
    let written = options.write_flags.clone().unwrap_or_else(|| {
        let mut name = options.output.clone().into_os_string();
        name.push(".flags");
        name.into()
    });
    let plain = match (&options.image, options.command.first()) {
        (Some(file), _) => std::path::absolute(file)?,
        (None, Some(name)) => program::locate(name)?,
        (None, None) => of_profile(&store)?,
    };
    places(options, &written, &plain)?;
    let replays = Replays::open(&store)?;
    let image = Image::open(&store, &replays, &plain)?;
    let known = names::named(&state::current_units(&store)?);
    let mut tuned = Vec::new();
    for (named, chosen) in flags.find(&known)? {
        let choice = choice(&image, named, chosen, &plain);
        tuned.push(match &options.flags_file {
            Some(file) => choice.with_context(|| format!("the flags file {}", file.display()))?,
            None => choice?,
        });
    }
    let rest = Choice {
        flags: words::split(&flags.rest).context("the flags of the rest")?,
        ..Choice::default()
    };
    if tuned.is_empty() && rest.flags.is_empty() {
        match &options.flags_file {
            Some(file) => bail!("the flags file {} has no choices to link", file.display()),
            None => bail!(
                "there are no choices to link: `cere tune` finds some, or name a file with --flags-file"
            ),
        }
    }
    let scratch = scratch(&store)?;
    let lock = state::lock(&store)?;
    let decision = if options.command.is_empty() {
        image.make(&recipe(&tuned, None, &rest), &scratch.path().join("hybrid"))?;
        None
    } else {
        let decider = Decider {
            image: &image,
            plain: &plain,
            scratch: scratch.path(),
            trial: Trial::new(
                &options.command,
                options.timeout,
                &options.ignore,
                options.tolerance,
            )?,
            linked: Linked {
                store: &store,
                command: &options.command,
                input: Input::open()?,
                timeout: options.timeout,
            },
            others: others(&store, &image, &tuned),
            rest: rest.clone(),
            rounds: options.rounds.unwrap_or_else(|| rounds(&store)),
            levels: !options.no_levels,
        };
        Some(decider.decide(&mut tuned)?)
    };
    drop(lock);
    let made = decision
        .as_ref()
        .map_or(scratch.path().join("hybrid"), |d| d.hybrid.clone());
    place(&made, &options.output)?;
    kept(&flags, &tuned, decision.as_ref()).write(&written)?;
    for note in decision.iter().flat_map(|d| &d.notes) {
        eprintln!("cere: {note}");
    }
    for (region, why) in tuned.iter().filter_map(|t| Some((t, t.back.as_ref()?))) {
        eprintln!("cere: {} keeps the flags of the build: {why}", region.name);
    }
    if options.common.json {
        print::json(&show::json(decision.as_ref(), &tuned))?;
    } else {
        print::out(&show::text(decision.as_ref(), &tuned, options.explain))?;
    }
    eprintln!("cere: {}, {}", options.output.display(), written.display());
    Ok(0)
}

/// The choices that `cere tune` left.
fn tuned(store: &Store) -> Result<Choices> {
    let file = store.tuned();
    if !file.is_file() {
        bail!(
            "nothing in {} is tuned: `cere tune` finds flags for its regions, or name a file with --flags-file",
            store.root().display()
        );
    }
    Choices::read(&file)
}

/// The program of the store's profile.
fn of_profile(store: &Store) -> Result<PathBuf> {
    let profile = state::profile(store).context("which program is meant? Name it after --")?;
    let name = profile
        .command
        .first()
        .context("the profile names no program")?;
    program::locate(&profile.directory.join(name).to_string_lossy())
}

fn choice(image: &Image, named: &Named, chosen: &Chosen, program: &Path) -> Result<Tuned> {
    let name = &named.name;
    if !named.region.outlined {
        let reason = named.region.reason.as_deref().unwrap_or("unknown");
        bail!("the loop {name} is no region, so that it cannot have flags of its own: {reason}");
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
        Some(other) => bail!("{name}: bind = {other:?} is none of primary, close and spread"),
    };
    if let Some(n) = chosen.threads.filter(|n| !(1..=4096).contains(n)) {
        bail!("{name}: threads = {n} is no number from 1 to 4096");
    }
    let team = chosen.threads.is_some() || bind.is_some();
    if team && named.region.kind != RegionKind::Parallel {
        bail!(
            "{name} is no parallel region, so that it forks no team: leave threads and bind out for it"
        );
    }
    let flags = words::split(&chosen.flags).and_then(|flags| {
        cere_compile::flags::check(&flags)?;
        cere_compile::flags::known(&flags)?;
        Ok(flags)
    });
    let team = SplitTeam {
        threads: chosen.threads,
        bind,
    };
    Ok(Tuned {
        name: name.clone(),
        key: named.key.clone(),
        choice: Choice {
            flags: flags.with_context(|| format!("the flags of {name}"))?,
            passes: chosen.passes.clone(),
            team: (team != SplitTeam::default()).then_some(team),
        },
        back: elsewhere,
        seconds: None,
        bind: chosen.bind.clone(),
        gain: chosen.gain,
    })
}

/// The regions of the profile that matter and have no choice.
fn others(store: &Store, image: &Image, tuned: &[Tuned]) -> Vec<RegionKey> {
    let of = |profile: &Profile| -> Result<Vec<RegionKey>> {
        let kept = Selection::of(profile)?.kept.into_iter();
        let keys = kept.map(|kept| profile.regions[kept.region].key.clone());
        let own = |key: &RegionKey| tuned.iter().any(|t| t.key == *key);
        Ok(keys.filter(|key| image.holds(key) && !own(key)).collect())
    };
    let profile = state::current_profile(store);
    profile.and_then(|p| of(&p)).unwrap_or_default()
}

/// Runs for a program as long as that of the profile.
fn rounds(store: &Store) -> u32 {
    match state::profile(store).map_or(10.0, |p| p.seconds) {
        ..2.0 => 11,
        ..10.0 => 7,
        ..60.0 => 5,
        _ => 3,
    }
}

/// A directory for builds that goes when this command ends.
pub fn scratch(store: &Store) -> Result<tempfile::TempDir> {
    let directory = store.cache();
    state::make_directory(&directory)?;
    tempfile::Builder::new()
        .prefix("hybrid.")
        .tempdir_in(&directory)
        .with_context(|| format!("cannot write in {}", directory.display()))
}

/// Fails if one of the files that are written cannot be, or is one that is read, before anything long is done.
fn places(options: &Options, written: &Path, plain: &Path) -> Result<()> {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    };
    if same(&options.output, written) {
        bail!(
            "the hybrid binary and the flags file cannot both be {}",
            written.display()
        );
    }
    for (path, option) in [(&options.output as &Path, "-o"), (written, "--write-flags")] {
        writable(path)?;
        if same(path, plain) {
            bail!(
                "{option} names the program itself, {}: name another file",
                plain.display()
            );
        }
        if let Some(file) = options.flags_file.as_ref().filter(|f| same(path, f))
            && option == "-o"
        {
            bail!(
                "-o names the flags file {}: name another file",
                file.display()
            );
        }
    }
    Ok(())
}

/// Fails if `path` cannot be written.
fn writable(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    if path.is_dir() {
        bail!("{} is a directory: name a file", path.display());
    }
    if path.exists() && !path.is_file() {
        bail!("{} is no ordinary file: name another one", path.display());
    }
    tempfile::tempfile_in(parent)
        .map(drop)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Puts a finished build in its place, whole or not at all.
fn place(made: &Path, output: &Path) -> Result<()> {
    let failed = || format!("cannot write {}", output.display());
    let mut name = output.file_name().with_context(failed)?.to_owned();
    name.push(".new");
    let beside = output.with_file_name(name);
    std::fs::copy(made, &beside).with_context(failed)?;
    std::fs::rename(&beside, output).with_context(failed)
}

/// The file of what was kept.
fn kept(flags: &Choices, tuned: &[Tuned], decision: Option<&Decision>) -> Choices {
    let regions = tuned.iter().filter(|t| t.back.is_none()).map(|t| Chosen {
        name: t.name.clone(),
        flags: words::join(&t.choice.flags),
        passes: t.choice.passes.clone(),
        threads: t.choice.team.and_then(|team| team.threads),
        bind: t.bind.clone(),
        gain: match t.seconds {
            Some((plain, hybrid)) if hybrid > 0.0 => Some(plain / hybrid),
            _ => t.gain,
        },
    });
    let mut kept = Choices::of(regions.collect());
    kept.rest = match decision {
        Some(decision) => words::join(&decision.recipe.rest.flags),
        None => flags.rest.clone(),
    };
    kept
}
