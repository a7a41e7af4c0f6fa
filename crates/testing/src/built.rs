//! What `make build` has built, for tests that run it: never a file that is older than its sources.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What lies beside the command.
const PARTS: [&str; 6] = [
    "libcere_pass.so",
    "libcere_preload.so",
    "libcere_stay.so",
    "libcere_exec.so",
    "libcere_counted.so",
    "libcere_runtime.a",
];

/// The file `name` of the profile that runs the test, in `target/<profile>`.
///
/// # Panics
/// If it is missing, or a source of it has changed since.
pub fn part(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    // A test lies in target/<profile>/deps, the benchmark in target/<profile>.
    let mut places = test.ancestors().skip(1).take(2).map(|d| d.join(name));
    let Some(path) =
        places.find(|p| p.is_file() && !p.parent().is_some_and(|d| d.ends_with("deps")))
    else {
        panic!("{name} is not built: run `make build` first");
    };
    if let Some(source) = newer(&path) {
        panic!(
            "{} is older than {}: run `make build` first",
            path.display(),
            source.display()
        );
    }
    path
}

/// The command, with all that it takes from beside it.
///
/// # Panics
/// As [`part`].
pub fn command() -> PathBuf {
    for name in PARTS {
        part(name);
    }
    part("cere")
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|m| m.modified()).ok()
}

/// A source of the file that has changed since it was built, by cargo's list of them.
fn newer(path: &Path) -> Option<PathBuf> {
    let list = std::fs::read_to_string(path.with_extension("d")).ok()?;
    let built = changed(path)?;
    let all = list.lines().filter_map(|line| line.split_once(": "));
    let sources = all.flat_map(|(_, sources)| names(sources));
    let mut late = sources.filter(|source| changed(source).is_some_and(|at| at > built));
    late.next()
}

/// The names of a list, in which a blank that belongs to one stands behind a backslash.
fn names(list: &str) -> Vec<PathBuf> {
    let list = list.replace("\\ ", "\0");
    let each = list.split(' ').filter(|name| !name.is_empty());
    each.map(|name| name.replace('\0', " ").into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_source_that_changed_since_is_found() {
        let directory = std::env::temp_dir().join(format!("cere-testing-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let [library, first, second] =
            ["lib x.so", "first.rs", "second one.rs"].map(|n| directory.join(n));
        let escaped = |p: &Path| p.display().to_string().replace(' ', "\\ ");
        let list = format!(
            "{}: {} {}\n",
            escaped(&library),
            escaped(&first),
            escaped(&second)
        );
        std::fs::write(library.with_extension("d"), list).unwrap();
        let now = SystemTime::now();
        for (path, age) in [(&library, 5), (&first, 9), (&second, 9)] {
            std::fs::write(path, "").unwrap();
            let file = std::fs::File::open(path).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
        }
        assert_eq!(newer(&library), None);
        std::fs::write(&second, "changed").unwrap();
        assert_eq!(newer(&library), Some(second));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
