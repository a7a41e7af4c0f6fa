//! Inputs of a link that the build removes afterwards, as rustc does: recorded links name copies of them in the store.

use crate::state;
use anyhow::{Context, Result};
use cere_format::store::Store;
use std::path::{Path, PathBuf};

/// Set by wrappers whose compilers remove inputs of their links.
pub const ENV_KEEP_INPUTS: &str = "CERE_KEEP_INPUTS";

/// Set by wrappers whose compilers link what serves the build alone: such links are not recorded.
pub const ENV_UNRECORDED: &str = "CERE_UNRECORDED";

/// The ends of objects that rustc removes, of parts of crates.
const PARTS: &str = ".rcgu.o";

/// The arguments of a link to `output`, with copies in place of the inputs that do not stay, and of the objects that were `made` of
/// others, each after what it was made of.
pub fn kept(
    store: &Store,
    arguments: &[String],
    output: &Path,
    made: &[(&str, &Path)],
) -> Result<Vec<String>> {
    let all = std::env::var_os(ENV_KEEP_INPUTS).is_some();
    if !all && made.is_empty() {
        return Ok(arguments.to_vec());
    }
    let directory = store.inputs(&state::hash(&output.display().to_string()));
    let _ = std::fs::remove_dir_all(&directory);
    let copy = |word: &String| -> Result<String> {
        // `-Wl,--version-script=FILE`.
        let (option, file) = match word.rsplit_once('=') {
            Some((option, file)) if word.starts_with('-') => (Some(option), file),
            _ => (None, word.as_str()),
        };
        let object = made.iter().find(|(of, _)| *of == file);
        let file = object.map_or(Path::new(file), |(_, object)| object);
        let stays = !(all && is_temporary(store, file)) && object.is_none();
        if stays || !file.is_file() {
            return Ok(word.clone());
        }
        state::make_directory(&directory)?;
        let to = free(&directory, file);
        std::fs::copy(file, &to)
            .with_context(|| format!("cannot copy {} to {}", file.display(), to.display()))?;
        Ok(match option {
            Some(option) => format!("{option}={}", to.display()),
            None => to.display().to_string(),
        })
    };
    let mut words = Vec::new();
    for word in arguments {
        // An object is what it is, whatever was said of the IR in its place.
        if made.iter().any(|(of, _)| of == word)
            && words.iter().any(|w: &String| w.starts_with("-x"))
        {
            words.push("-xnone".to_owned());
        }
        words.push(copy(word)?);
    }
    Ok(words)
}

/// Whether a compiler removes the file after the link: rustc's parts of a crate and what it keeps in a directory of its own, here or
/// among the system's temporary files, and what wrappers make.
fn is_temporary(store: &Store, file: &Path) -> bool {
    let part = file.to_str().is_some_and(|name| name.ends_with(PARTS));
    let parent = file.parent().and_then(Path::file_name);
    let rustcs = parent
        .and_then(|name| name.to_str()?.strip_prefix("rustc"))
        .is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    part || rustcs || file.starts_with(state::scratch(store))
}

/// A name in `directory` after that of `file` that nothing has.
fn free(directory: &Path, file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut names = (0..).map(|number| match number {
        0 => directory.join(&*name),
        _ => directory.join(format!("{number}-{name}")),
    });
    names
        .find(|path| !path.exists())
        .unwrap_or_else(|| directory.join(&*name))
}
