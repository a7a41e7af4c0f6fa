//! The programs of a Meson project, and of a file of ninja.

use super::text::{calls, read, without_comments};
use std::path::{Path, PathBuf};

/// Most files that are read.
const MOST: usize = 200;

/// The programs in the build directory `build` of the project in `directory`; none if it is no Meson project.
pub fn programs(directory: &Path, build: &Path) -> Option<Vec<PathBuf>> {
    read(&directory.join("meson.build"))?;
    let (mut programs, mut pending, mut seen) = (Vec::new(), vec![PathBuf::new()], 0);
    while let Some(below) = pending.pop() {
        seen += 1;
        let file = directory.join(&below).join("meson.build");
        let Some(text) = read(&file).filter(|_| seen <= MOST) else {
            continue;
        };
        let text = without_comments(&text);
        let names = calls(&text, "executable").into_iter();
        let names = names.filter_map(|call| call.into_iter().next());
        programs.extend(names.map(|name| build.join(&below).join(name)));
        for call in calls(&text, "subdir").into_iter().rev() {
            if let Some(name) = call.first().filter(|_| pending.len() < MOST) {
                pending.push(below.join(name));
            }
        }
    }
    Some(programs)
}

/// The programs that a file of ninja links: outputs of rules of CMake, Meson or a hand that link programs.
pub fn linked(text: &str) -> Vec<PathBuf> {
    let line = |line: &str| {
        let (outputs, rule) = line.strip_prefix("build ")?.split_once(": ")?;
        let rule = rule.split_whitespace().next()?.to_uppercase();
        let library = ["SHARED", "STATIC", "MODULE"]
            .iter()
            .any(|w| rule.contains(w));
        let output = outputs.split_whitespace().next()?;
        let library = library || output.contains(".so") || output.ends_with(".a");
        (rule.contains("LINK") && !library).then(|| PathBuf::from(output))
    };
    text.lines().filter_map(line).collect()
}
