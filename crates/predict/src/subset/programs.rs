//! Names of a subset's programs, by what tells them apart: arguments, directory, the program's own directory, the store.

use cere_format::profile::Profile;
use cere_format::store::Store;
use cere_format::untrusted::visible;
use std::collections::BTreeSet;
use std::path::Path;

/// A run by what people know of it.
#[derive(Debug, Clone)]
struct Run {
    /// The program's file name.
    program: String,
    arguments: Vec<String>,
    /// Parts of the paths that it may be known by: the directory it ran in, its program's, its store's.
    paths: [Vec<String>; 3],
}

impl Run {
    fn of(store: &Store, profile: &Profile) -> Self {
        let words = &profile.command;
        let program = Path::new(words.first().map_or("program", String::as_str));
        let parent = |path: &Path| parts(path.parent().unwrap_or(Path::new("")));
        Self {
            program: program_name(words),
            arguments: words.iter().skip(1).map(|word| visible(word)).collect(),
            paths: [
                parts(&profile.directory),
                parent(&profile.directory.join(program)),
                parts(store.root()),
            ],
        }
    }
}

fn parts(path: &Path) -> Vec<String> {
    let each = path.components();
    each.map(|part| visible(&part.as_os_str().to_string_lossy()))
        .collect()
}

/// The file name of the program that a command starts.
pub fn program_name(command: &[String]) -> String {
    let program = command.first().map_or("program", String::as_str);
    let name = Path::new(program).file_name();
    let name = name.map_or(program.to_owned(), |n| n.to_string_lossy().into_owned());
    visible(&name)
}

/// A name for the program of each store, all different: `app` alone; else `app (200)`, `app (in b)`, by the words and directories
/// that not all of them have.
pub fn names(runs: &[(&Store, &Profile)]) -> Vec<String> {
    let runs: Vec<Run> = runs
        .iter()
        .map(|(store, profile)| Run::of(store, profile))
        .collect();
    names_of(&runs)
}

fn names_of(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = runs.iter().map(|run| run.program.clone()).collect();
    for program in runs.iter().map(|run| &run.program).collect::<BTreeSet<_>>() {
        let same: Vec<usize> = (0..runs.len())
            .filter(|n| runs[*n].program == *program)
            .collect();
        if same.len() < 2 {
            continue;
        }
        let group: Vec<&Run> = same.iter().map(|number| &runs[*number]).collect();
        for (number, what) in same.into_iter().zip(apart(&group)) {
            if !what.is_empty() {
                names[number] = format!("{program} ({what})");
            }
        }
    }
    numbered(names)
}

/// What tells runs of programs with one name apart; words that are the same for some if nothing does.
fn apart(runs: &[&Run]) -> Vec<String> {
    let arguments = by_arguments(runs);
    let mut ways = vec![arguments.clone()];
    for path in 0..3 {
        let places = by_path(runs, path);
        let both = arguments.iter().zip(&places).map(|(arguments, place)| {
            let both = [arguments, place]
                .into_iter()
                .filter(|text| !text.is_empty());
            both.map(String::as_str).collect::<Vec<_>>().join(", ")
        });
        let both = both.collect();
        ways.extend([places, both]);
    }
    let different = |way: &&Vec<String>| way.iter().collect::<BTreeSet<_>>().len() == way.len();
    let best = ways.iter().find(different);
    best.unwrap_or(&ways[0]).clone()
}

/// The arguments that not all runs have, paths by the parts that differ.
fn by_arguments(runs: &[&Run]) -> Vec<String> {
    let first = &runs[0].arguments;
    let all = |has: &dyn Fn(&[String]) -> bool| runs.iter().all(|run| has(&run.arguments));
    let alike = all(&|words| words.len() == first.len());
    let begin = first.iter().enumerate();
    let begin = begin
        .take_while(|(at, word)| all(&|words| words.get(*at) == Some(word)))
        .count();
    let differing: Vec<usize> = match alike {
        true => (begin..first.len())
            .filter(|at| !all(&|words| words[*at] == first[*at]))
            .collect(),
        false => Vec::new(),
    };
    let mut texts = vec![Vec::new(); runs.len()];
    for at in &differing {
        let words: Vec<Vec<&str>> = runs
            .iter()
            .map(|run| run.arguments[*at].split('/').collect())
            .collect();
        for (text, word) in texts.iter_mut().zip(ends(&words)) {
            text.push(word);
        }
    }
    if !alike {
        let rest = runs.iter().map(|run| run.arguments[begin..].to_vec());
        texts = rest.collect();
    }
    texts.into_iter().map(|words| words.join(" ")).collect()
}

/// `in b`: the end of a path that differs.
fn by_path(runs: &[&Run], path: usize) -> Vec<String> {
    let paths: Vec<Vec<&str>> = runs
        .iter()
        .map(|run| run.paths[path].iter().map(String::as_str).collect())
        .collect();
    let begin = ["in", "from", "store"][path];
    let each = ends(&paths).into_iter();
    each.map(|end| match end.as_str() {
        "" => end,
        end => format!("{begin} {end}"),
    })
    .collect()
}

/// The shortest ends of paths that are different where the paths are, without what all end with; empty if all are the same.
fn ends(paths: &[Vec<&str>]) -> Vec<String> {
    let end = |path: &[&str], count: usize| path[path.len() - count.min(path.len())..].join("/");
    let most = paths.iter().map(Vec::len).max().unwrap_or(0);
    let kinds = |count: usize| {
        paths
            .iter()
            .map(|path| end(path, count))
            .collect::<BTreeSet<_>>()
            .len()
    };
    let shared = (0..=most)
        .take_while(|count| kinds(*count) == 1)
        .last()
        .unwrap_or(0);
    let whole = kinds(most);
    let needed = (shared..=most)
        .find(|count| kinds(*count) == whole)
        .unwrap_or(most);
    let shown = paths.iter().map(|path| {
        let kept = &path[..path.len() - shared.min(path.len())];
        end(kept, needed - shared)
            .trim_start_matches('/')
            .to_owned()
    });
    shown.collect()
}

/// Names with numbers where they are the same: one run in several stores.
fn numbered(names: Vec<String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    let unique = |name: String| {
        let numbers = (2..).map(|number| format!("{name} ({number})"));
        let mut all = std::iter::once(name.clone()).chain(numbers);
        let found = all.find(|name| !known.contains(name)).unwrap_or(name);
        known.insert(found.clone());
        found
    };
    names.into_iter().map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, directory: &str, store: &str) -> Run {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let program = Path::new(directory).join(&words[0]);
        Run {
            program: program_name(&words),
            arguments: words[1..].to_vec(),
            paths: [
                parts(Path::new(directory)),
                parts(program.parent().expect("a directory")),
                parts(Path::new(store)),
            ],
        }
    }

    fn named(runs: &[(&str, &str, &str)]) -> Vec<String> {
        let runs = runs
            .iter()
            .map(|(command, directory, store)| run(command, directory, store));
        names_of(&runs.collect::<Vec<_>>())
    }

    #[test]
    fn what_tells_programs_apart() {
        for (runs, names) in [
            (vec![("./app 1", "/w", "/w/s")], vec!["app"]),
            (
                vec![("./app 1", "/w", "/s"), ("./other 1", "/w", "/t")],
                vec!["app", "other"],
            ),
            (
                vec![
                    ("./app -n 100 in", "/w", "/s"),
                    ("./app -n 200 in", "/w", "/t"),
                ],
                vec!["app (100)", "app (200)"],
            ),
            (
                vec![
                    ("./app d/x/in.txt", "/w", "/s"),
                    ("./app d/y/in.txt", "/w", "/t"),
                ],
                vec!["app (x)", "app (y)"],
            ),
            (
                vec![("./app", "/w", "/s"), ("./app --fast", "/w", "/t")],
                vec!["app", "app (--fast)"],
            ),
            (
                vec![
                    ("./app 1", "/w/a", "/s"),
                    ("./app 1", "/w/b", "/t"),
                    ("./more", "/w", "/u"),
                ],
                vec!["app (in a)", "app (in b)", "more"],
            ),
            (
                vec![("old/app", "/w", "/s"), ("new/app", "/w", "/t")],
                vec!["app (from old)", "app (from new)"],
            ),
            (
                vec![
                    ("./app 1", "/w/a", "/s"),
                    ("./app 1", "/w/b", "/t"),
                    ("./app 2", "/w/b", "/u"),
                ],
                vec!["app (1, in a)", "app (1, in b)", "app (2, in b)"],
            ),
            (
                vec![("./app", "/w", "/w/s1"), ("./app", "/w", "/w/s2")],
                vec!["app (store s1)", "app (store s2)"],
            ),
            (
                vec![("./app", "/w", "/w/a/.cere"), ("./app", "/w", "/w/b/.cere")],
                vec!["app (store a)", "app (store b)"],
            ),
            (
                vec![("./app", "/w", "/s"), ("./app", "/w", "/s")],
                vec!["app", "app (2)"],
            ),
        ] {
            assert_eq!(named(&runs), names);
        }
    }
}
