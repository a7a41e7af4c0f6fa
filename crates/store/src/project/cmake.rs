//! The programs of a CMake project: `add_executable` in its lists.

use super::text::{Variables, calls, expand, read, without_comments};
use std::path::{Path, PathBuf};

/// Most lists that are read.
const MOST: usize = 200;

/// The programs in the build directory `build` of the project in `directory`; none if it is no CMake project.
pub fn programs(directory: &Path, build: &Path) -> Option<Vec<PathBuf>> {
    read(&directory.join("CMakeLists.txt"))?;
    let at = build.to_string_lossy().into_owned();
    let mut variables = Variables::new();
    for name in [
        "CMAKE_BINARY_DIR",
        "PROJECT_BINARY_DIR",
        "CMAKE_CURRENT_BINARY_DIR",
    ] {
        variables.insert(name.to_owned(), at.clone());
    }
    for name in ["CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR"] {
        variables.insert(name.to_owned(), ".".to_owned());
    }
    let (mut programs, mut pending, mut seen) = (Vec::new(), vec![PathBuf::new()], 0);
    while let Some(below) = pending.pop() {
        seen += 1;
        let list = directory.join(&below).join("CMakeLists.txt");
        let Some(text) = read(&list).filter(|_| seen <= MOST) else {
            continue;
        };
        let text = without_comments(&text);
        assign(&text, &mut variables);
        let output = variables.get("CMAKE_RUNTIME_OUTPUT_DIRECTORY");
        let place = match output.map(|value| expand(value, &variables)) {
            Some(place) if !place.is_empty() => PathBuf::from(place),
            _ => build.join(&below),
        };
        for call in calls(&text, "add_executable") {
            let elsewhere = call
                .iter()
                .any(|word| word == "IMPORTED" || word == "ALIAS");
            let name = expand(call.first().map_or("", String::as_str), &variables);
            if !elsewhere && !name.is_empty() {
                programs.push(place.join(name));
            }
        }
        for call in calls(&text, "add_subdirectory").into_iter().rev() {
            let name = expand(call.first().map_or("", String::as_str), &variables);
            if !name.is_empty() && Path::new(&name).is_relative() && pending.len() < MOST {
                pending.push(below.join(name));
            }
        }
    }
    Some(programs)
}

/// `project` and `set`, as far as their values are words.
fn assign(text: &str, variables: &mut Variables) {
    for call in calls(text, "project") {
        if let Some(name) = call.first() {
            for variable in ["PROJECT_NAME", "CMAKE_PROJECT_NAME"] {
                variables.insert(variable.to_owned(), name.clone());
            }
        }
    }
    for call in calls(text, "set") {
        if let [name, value, ..] = &call[..] {
            variables.insert(name.clone(), value.clone());
        }
    }
}
