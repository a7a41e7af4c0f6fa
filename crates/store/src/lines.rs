//! The text of source lines, and IR that knows them.

use crate::sources::{self, State};
use crate::state;
use cere_format::build::Unit;
use cere_format::store::Store;
use cere_format::untrusted::visible;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Maximum bytes of a file that is read.
const LARGEST: u64 = 32 << 20;
/// Maximum characters of a line.
const LONGEST: usize = 300;

/// The IR with lines of those of the units `ids` whose kept IR has none.
#[must_use]
pub fn lined<'a>(store: &Store, ids: impl Iterator<Item = &'a str>) -> BTreeMap<String, PathBuf> {
    let named = ids.map(|id| (id.to_owned(), store.unit_lines(id)));
    named.filter(|(_, file)| file.is_file()).collect()
}

/// Sources of units that the store has records of. Others are not read: a package may name any file.
pub struct Sources<'a> {
    store: &'a Store,
    units: Vec<Unit>,
    files: HashMap<String, Option<Vec<String>>>,
    changed: BTreeSet<PathBuf>,
    gone: BTreeSet<PathBuf>,
}

impl<'a> Sources<'a> {
    /// Those of the units `ids`.
    #[must_use]
    pub fn of<'b>(store: &'a Store, ids: impl Iterator<Item = &'b str>) -> Self {
        Self {
            store,
            units: ids.filter_map(|id| state::unit(store, id).ok()).collect(),
            files: HashMap::new(),
            changed: BTreeSet::new(),
            gone: BTreeSet::new(),
        }
    }

    /// The text of a line, from 1, of a file as the compiler names it.
    pub fn line(&mut self, file: &str, number: u32) -> Option<String> {
        if !self.files.contains_key(file) {
            let lines = self.read(file);
            self.files.insert(file.to_owned(), lines);
        }
        let lines = self.files.get(file)?.as_ref()?;
        let line = lines.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        Some(line.clone())
    }

    /// The unit that was compiled of a file, and the file's path in its record.
    fn unit_of(&self, file: &str) -> Option<(&Unit, PathBuf)> {
        self.units.iter().find_map(|unit| {
            let directory = &unit.command.directory;
            let whole: PathBuf = directory.join(file).components().collect();
            let real = whole.canonicalize().ok();
            let own = [unit.source.clone()].into_iter();
            let listed = own.chain(unit.sources.iter().map(|s| s.file.clone()));
            let mut listed = listed.map(|own| directory.join(own));
            let same =
                |own: &PathBuf| *own == whole || real.is_some() && own.canonicalize().ok() == real;
            Some((unit, listed.find(same)?))
        })
    }

    /// The lines of a file; none if it is no source of the units, or gone.
    fn read(&mut self, file: &str) -> Option<Vec<String>> {
        let (unit, path) = self.unit_of(file)?;
        let found = sources::state(self.store, unit, &path);
        match found {
            State::Same => {}
            State::Changed => drop(self.changed.insert(path.clone())),
            State::Gone => drop(self.gone.insert(path.clone())),
        }
        text_lines(&path)
    }

    /// What became of the files that were asked for: a sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let names = |files: &BTreeSet<PathBuf>| {
            let names = files.iter().map(|file| file.display().to_string());
            names.collect::<Vec<_>>().join(", ")
        };
        let changed = (!self.changed.is_empty()).then(|| {
            format!(
                "changed since the build, so that the lines may be others than those that were compiled: {}",
                names(&self.changed)
            )
        });
        let gone = (!self.gone.is_empty()).then(|| {
            format!(
                "gone since the build, so that lines have no text: {}",
                names(&self.gone)
            )
        });
        changed.into_iter().chain(gone).collect()
    }
}

/// The lines of a file of a reasonable size.
fn text_lines(path: &Path) -> Option<Vec<String>> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let shown = |line: &str| {
        let cut: String = line.chars().take(LONGEST).collect();
        visible(&cut.replace('\t', "    "))
    };
    Some(text.lines().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_no_unit_names_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        std::fs::write(&file, "a\n").unwrap();
        let store = Store::new(directory.path());
        let mut sources = Sources::of(&store, ["none"].into_iter());
        assert_eq!(sources.line(&file.to_string_lossy(), 1), None);
        assert!(sources.notes().is_empty());
        assert!(lined(&store, ["none"].into_iter()).is_empty());
    }

    #[test]
    fn lines_of_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.c");
        std::fs::write(&file, "a\n\tb\n").unwrap();
        assert_eq!(text_lines(&file).unwrap(), ["a", "    b"]);
        assert_eq!(text_lines(directory.path()), None);
        assert_eq!(text_lines(Path::new("/dev/zero")), None);
    }
}
