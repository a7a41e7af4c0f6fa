//! The replay generator: an unpacked package and compiler flags become an executable, a time and a verdict.
//!
//! | module | what |
//! |---|---|
//! | [`settings`] | what is to be replayed how |
//! | [`finished`] | what a replay found |
//! | [`mod@energy`] | what an invocation takes of energy |
//! | [`error`] | why there is none |
//! | [`apart`] | the runtime's names and the program's |
//! | [`mod@bridge`] | edited units in the place of captured ones |
//! | [`check`] | whether a manifest can be what a capture wrote |
//! | [`objects`] | a package to an executable |
//! | [`mod@compile`] | units to objects, under the pass's bind mode |
//! | [`glue`] | what the units need from the captured process, as assembly |
//! | [`link`] | the executable, within reach of the captured image |
//! | [`counters`] | counters of the kernel that measure a replay |
//! | `target`, [`cross`], `crossed` | another architecture than that of the capture; its code; replays there |
//! | [`edited`] | code whose assembly is edited before it is assembled |
//! | [`operand`] | parts of a codelet's memory whose place in the caches is given |
//! | [`plain`] | units as IR that needs no plugin, for folders that build without CERE |
//! | [`plan`] | the plan that the executable reads |
//! | [`mod@process`] | starts it in the sandbox and reads the outcome |
//! | [`kept`] | processes that keep captured states for replays that follow one another |
//! | [`place`] | the files of a replay that runs |
//! | [`run`] | what the outcome means |
//! | [`judge`] | whether what differs is rounding |
//! | `unset` | whether what differs was never set |
//! | [`names`] | names of C++ functions in the source's terms |
//! | [`code`] | whether the machine code is the one that ran in vivo |
//! | [`unread`] | what code that nobody has read may not hold |
//! | [`keep`] | all of it in one directory, for someone who wants to read or debug it |

pub mod apart;
mod beside;
pub mod bridge;
pub mod check;
pub mod code;
pub mod compile;
pub mod counters;
pub mod cross;
mod crossed;
pub mod edited;
mod energy;
mod error;
mod finished;
pub mod glue;
mod judge;
pub mod keep;
pub mod kept;
pub mod limit;
pub mod link;
mod memory;
mod named;
pub mod names;
pub mod objects;
pub mod operand;
mod place;
pub mod plain;
pub mod plan;
mod process;
pub mod run;
mod settings;
mod survival;
mod target;
pub mod unread;
mod unset;
pub mod wrong;

pub use cere_format::verdict::Tolerance;
pub use compile::Code;
pub use energy::{Energy, ROUNDS};
pub use error::{OperandError, ReplayError};
pub use finished::{Replay, SameCode};
pub use judge::{judge, may_be_rounding};
pub use kept::Keepers;
pub use objects::{Built, Objects, build, compile};
pub use settings::{EditedUnit, Options, Settings, Team};

use cere_format::package::Manifest;
use cere_toolchain::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Reads the manifest of an unpacked package.
pub fn manifest(package: &Path) -> Result<Manifest, ReplayError> {
    Ok(cere_package::io::unpacked_manifest(package)?)
}

/// Builds and runs.
pub fn replay(package: &Path, options: &Options) -> Result<Replay, ReplayError> {
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let manifest = manifest(&package)?;
    if let Some(cross) = &options.settings.cross {
        return crossed::replay(&package, &manifest, cross, options);
    }
    let built = build(&package, &manifest, options)?;
    let mut replay = run::run(&package, &manifest, &built, options)?;
    judge(&package, &manifest, &built, &mut replay, options)?;
    Ok(replay)
}

/// Builds counted code and runs it once, untimed, writing its stream to `stream`; the verdict is on the state that it leaves.
/// `begin` gets the executable before it starts.
pub fn count(
    package: &Path,
    stream: OwnedFd,
    begin: impl FnOnce(&Path) -> Result<(), ReplayError>,
    options: &Options,
) -> Result<Replay, ReplayError> {
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let manifest = manifest(&package)?;
    let objects = objects::objects(&package, &manifest, Code::Counted, options)?;
    let built = objects.link(&package, &manifest, options)?;
    begin(&built.executable)?;
    let mut replay = run::run_counted(&package, &manifest, &built, stream, options)?;
    judge(&package, &manifest, &built, &mut replay, options)?;
    Ok(replay)
}

/// Builds the code as it is timed and runs it while the kernel counts `events`, each in as many invocations as `options` have
/// minimum repetitions, or as fit into their seconds. The replay has no times, and its verdict is on all invocations.
pub fn measure(
    package: &Path,
    events: &[counters::Event],
    options: &Options,
) -> Result<(Replay, counters::Measured), ReplayError> {
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let manifest = manifest(&package)?;
    let built = build(&package, &manifest, options)?;
    let (mut replay, measured) = run::run_measured(&package, &manifest, &built, events, options)?;
    judge(&package, &manifest, &built, &mut replay, options)?;
    Ok((replay, measured))
}
