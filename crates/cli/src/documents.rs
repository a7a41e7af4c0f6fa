//! The documents of the repository: links lead somewhere, the guide's pages are its chapters, and commands exist.

use crate::Cli;
use clap::{CommandFactory, Parser as _};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the tests need of a document.
#[derive(Default)]
struct Document {
    /// Anchors: of its headings, and those it sets itself.
    anchors: BTreeSet<String>,
    links: Vec<String>,
    /// Lines of its code blocks.
    code: Vec<String>,
    /// Pieces of code within sentences and tables.
    inline: Vec<String>,
}

impl Document {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a document");
        let mut document = Self::default();
        let (mut heading, mut in_code) = (None, false);
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    let again = (1..).map(|n| format!("{anchor}-{n}"));
                    let mut names = std::iter::once(anchor.clone()).chain(again);
                    names.find(|name| document.anchors.insert(name.clone()));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::InlineHtml(html) => {
                    let id = html
                        .strip_prefix("<a id=\"")
                        .and_then(|rest| rest.split_once('"'));
                    document.anchors.extend(id.map(|(id, _)| id.to_owned()));
                }
                Event::Text(text) if in_code => {
                    document.code.extend(text.lines().map(str::to_owned));
                }
                Event::Text(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                    document.inline.push(text.into_string());
                }
                _ => {}
            }
        }
        document
    }
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let lower = heading.trim().to_lowercase();
    lower
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

/// Every document of the repository, by its path.
fn documents() -> BTreeMap<PathBuf, Document> {
    fn collect(directory: &Path, deep: bool, found: &mut BTreeMap<PathBuf, Document>) {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && deep {
                collect(&path, deep, found);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.insert(path.clone(), Document::read(&path));
            }
        }
    }
    let root = repository();
    let mut found = BTreeMap::new();
    collect(&root, false, &mut found);
    for directory in ["docs", "examples"] {
        collect(&root.join(directory), true, &mut found);
    }
    found
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let documents = documents();
    let mut broken = Vec::new();
    for (path, document) in &documents {
        for link in &document.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                _ => path.parent().expect("a directory").join(file),
            };
            let found = target.canonicalize().is_ok_and(|target| {
                let known = documents.get(&target);
                anchor.is_empty() || known.is_some_and(|d| d.anchors.contains(anchor))
            });
            if !found {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_of_the_guide_is_a_chapter() {
    let pages = repository().join("docs/guide/src");
    let summary = Document::read(&pages.join("SUMMARY.md"));
    let chapters: BTreeSet<String> = summary.links.iter().cloned().collect();
    assert_eq!(
        chapters.len(),
        summary.links.len(),
        "a chapter stands twice"
    );
    let files = std::fs::read_dir(&pages).expect("the guide");
    let files = files.map(|f| f.expect("a file").file_name().into_string().expect("UTF-8"));
    let files: BTreeSet<String> = files.filter(|f| f != "SUMMARY.md").collect();
    assert_eq!(chapters, files);
}

/// The calls of `cere` in a line of a shell, without what the shell itself takes: comments, pipes, redirections.
fn calls(line: &str) -> Vec<Vec<String>> {
    let line = line.trim();
    let Some(line) = line
        .strip_prefix("$ ")
        .or(Some(line).filter(|l| l.starts_with("cere ") && !l.contains(" -> ")))
    else {
        return Vec::new();
    };
    let line = line.split(" # ").next().unwrap_or_default();
    let parts = line.split(" && ").flat_map(|part| part.split(" | "));
    let parts = parts.filter_map(|part| {
        let start = part.find("cere ").filter(|at| {
            let before = part[..*at].chars().next_back();
            before.is_none_or(|c| matches!(c, ' ' | '('))
        })?;
        let call = part[start..].split(" > ").next().unwrap_or_default();
        let call = call.trim_end().strip_suffix(')').unwrap_or(call);
        Some(shell_words::split(call).unwrap_or_else(|e| panic!("{call}: {e}")))
    });
    parts.collect()
}

#[test]
fn calls_are_found_in_shell_lines() {
    let words = |line| calls(line).concat().join(" ");
    assert_eq!(words("$ A=1 cere check  # why"), "cere check");
    assert_eq!(words("$ x < <(cere select --names)"), "cere select --names");
    assert_eq!(
        words("$ cere regions > a && cere check"),
        "cere regions cere check"
    );
    assert_eq!(words("cere: error: run `cere check`"), "");
}

#[test]
fn every_command_line_parses() {
    let mut wrong = Vec::new();
    let mut parse = |place: &str, line: &str| {
        for words in calls(line) {
            use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
            let outcome = Cli::try_parse_from(&words);
            if let Err(error) = outcome
                && !matches!(error.kind(), DisplayHelp | DisplayVersion)
            {
                wrong.push(format!("{place}: {}: {error}", words.join(" ")));
            }
        }
    };
    let documents = documents();
    for (path, document) in &documents {
        for line in &document.code {
            parse(&path.display().to_string(), line);
        }
    }
    let mut cli = Cli::command();
    cli.build();
    for command in cli.get_subcommands_mut() {
        let help = command.render_long_help().to_string();
        let examples = help.rsplit("\n\n").next().unwrap_or_default();
        examples
            .lines()
            .for_each(|line| parse(command.get_name(), line));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether `option` is one of `command`'s: `--flags`, `--flags=...`, `-o`.
fn has_option(command: &clap::Command, option: &str) -> bool {
    let option = option.split('=').next().unwrap_or_default();
    command.get_arguments().any(|argument| {
        let long = argument.get_long_and_visible_aliases().unwrap_or_default();
        let short = argument.get_short().map(|c| format!("-{c}"));
        short.as_deref() == Some(option)
            || long.iter().any(|l| option.strip_prefix("--") == Some(l))
    })
}

#[test]
fn every_command_in_a_sentence_exists() {
    let mut cli = Cli::command();
    cli.build();
    let mut wrong = Vec::new();
    for (path, document) in documents() {
        for code in document
            .inline
            .iter()
            .filter_map(|c| c.strip_prefix("cere "))
        {
            let mut words = code.split_whitespace().take_while(|w| *w != "--");
            let name = words.next().unwrap_or("--");
            let named = name.chars().all(|c| c.is_ascii_lowercase());
            let command = match named {
                true => cli.find_subcommand(name),
                false => Some(&cli),
            };
            let known = command.is_some_and(|command| {
                let mut options = words.filter(|w| w.starts_with('-'));
                options.all(|option| has_option(command, option.trim_end_matches(',')))
            });
            if !known {
                wrong.push(format!("{}: cere {code}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
