//! Inputs of a link that the build removes afterwards, as rustc does: recorded links name copies of them in the store.

use crate::state;
use anyhow::{Context, Result};
use cere_format::store::Store;
use std::path::{Path, PathBuf};

/// Set by wrappers whose compilers remove inputs of their links.
pub const ENV_KEEP_INPUTS: &str = "CERE_KEEP_INPUTS";

/// The ends of objects that rustc removes, of parts of crates.
const PARTS: &str = ".rcgu.o";

/// The arguments of a link to `output`, with copies in place of the inputs that do not stay.
pub fn kept(store: &Store, arguments: &[String], output: &Path) -> Result<Vec<String>> {
    if std::env::var_os(ENV_KEEP_INPUTS).is_none() {
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
        if !(is_temporary(store, file) || file.ends_with(PARTS)) || !Path::new(file).is_file() {
            return Ok(word.clone());
        }
        state::make_directory(&directory)?;
        let to = free(&directory, Path::new(file));
        std::fs::copy(file, &to)
            .with_context(|| format!("cannot copy {file} to {}", to.display()))?;
        Ok(match option {
            Some(option) => format!("{option}={}", to.display()),
            None => to.display().to_string(),
        })
    };
    arguments.iter().map(copy).collect()
}

fn is_temporary(store: &Store, file: &str) -> bool {
    let file = Path::new(file);
    file.starts_with(std::env::temp_dir()) || file.starts_with(state::scratch(store))
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
