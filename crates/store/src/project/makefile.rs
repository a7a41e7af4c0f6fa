//! The programs that a Makefile links. Only what its text shows: functions of make and included files are not evaluated.

use super::text::{Variables, expand, without_comments};
use std::collections::BTreeSet;
use std::path::PathBuf;

struct Rule {
    targets: Vec<String>,
    needs: Vec<String>,
    recipe: Vec<String>,
}

/// The programs, those that the first target needs first.
pub fn programs(text: &str) -> Vec<PathBuf> {
    let (rules, variables) = parse(text);
    let mut order: Vec<&str> = Vec::new();
    let mut seen = BTreeSet::new();
    let goal = rules.iter().flat_map(|rule| &rule.targets);
    let goal = goal
        .map(String::as_str)
        .find(|t| !t.starts_with('.') && !t.contains('%'));
    let mut pending: Vec<&str> = goal.into_iter().collect();
    while let Some(target) = pending.pop() {
        if !seen.insert(target) {
            continue;
        }
        order.push(target);
        let own = rules
            .iter()
            .filter(|rule| rule.targets.iter().any(|t| t == target));
        let needs: Vec<&str> = own
            .flat_map(|rule| &rule.needs)
            .map(String::as_str)
            .collect();
        pending.extend(needs.into_iter().rev());
    }
    let all = rules
        .iter()
        .flat_map(|rule| &rule.targets)
        .map(String::as_str);
    order.extend(all.filter(|target| !seen.contains(target)));
    let linked = |target: &&str| {
        let mut own = rules
            .iter()
            .filter(|rule| rule.targets.iter().any(|t| t == target));
        own.any(|rule| links(rule, target, &variables))
    };
    let mut programs: Vec<PathBuf> = Vec::new();
    for target in order.into_iter().filter(linked).map(PathBuf::from) {
        if !programs.contains(&target) {
            programs.push(target);
        }
    }
    programs
}

/// A command that compiles everything again. With `-B`, make remakes the makefiles that are included without end.
pub fn from_anew(text: &str) -> &'static str {
    let begins = |words: &[&str]| {
        let first = text
            .lines()
            .filter_map(|line| line.split([' ', '\t', ':']).next());
        first.into_iter().any(|word| words.contains(&word))
    };
    match (
        begins(&["clean"]),
        begins(&["include", "-include", "sinclude"]),
    ) {
        (true, _) => "make clean && make",
        (false, false) => "make -B",
        // What is up to date is said by `cere instrument`.
        (false, true) => "make",
    }
}

/// Whether a rule makes the program `target`.
fn links(rule: &Rule, target: &str, variables: &Variables) -> bool {
    let made_otherwise = [".o", ".a", ".so", ".d", ".c", ".h", ".mod"];
    if target.contains('%') || made_otherwise.iter().any(|e| target.ends_with(e)) {
        return false;
    }
    let mut variables = variables.clone();
    variables.insert("@".to_owned(), target.to_owned());
    let recipe = rule.recipe.iter().map(|line| {
        let line = line.replace("$@", target);
        expand(&line, &variables)
    });
    let to_target = |line: String| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let named = words
            .windows(2)
            .any(|pair| pair[0] == "-o" && same(pair[1], target));
        named && !words.contains(&"-c") && !words.contains(&"-shared")
    };
    // Without a recipe, make links a program of the objects or the source of that name.
    let of_itself = rule.needs.iter().any(|need| {
        let stem = need
            .rsplit_once('.')
            .map_or(need.as_str(), |(stem, _)| stem);
        need.ends_with(".o") || (stem == target && need != target)
    });
    let implicit = rule.recipe.is_empty() && of_itself && !target.contains('.');
    implicit || recipe.into_iter().any(to_target)
}

fn same(one: &str, other: &str) -> bool {
    one.trim_start_matches("./") == other.trim_start_matches("./")
}

fn parse(text: &str) -> (Vec<Rule>, Variables) {
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut variables: Variables = [
        ("MAKE", "make"),
        ("CC", "cc"),
        ("CXX", "c++"),
        ("FC", "f77"),
        ("RM", "rm -f"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let mut rules: Vec<Rule> = Vec::new();
    for line in text.lines() {
        if let Some(step) = line.strip_prefix('\t') {
            if let Some(rule) = rules.last_mut() {
                rule.recipe.push(step.to_owned());
            }
            continue;
        }
        let line = without_comments(line);
        match assignment(&line) {
            Some((name, operator, value)) => assign(&mut variables, name, operator, value),
            None => rules.extend(rule(&line, &variables)),
        }
    }
    (rules, variables)
}

/// Name, operator and value, if a line assigns.
fn assignment(line: &str) -> Option<(&str, &str, &str)> {
    let at = line.find('=')?;
    let (before, value) = (&line[..at], line[at + 1..].trim());
    let name = before.trim_end_matches([':', '?', '+', '!']);
    let operator = &before[name.len()..];
    let name = name.trim().trim_start_matches("export ").trim();
    let plain = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == ':');
    plain.then_some((name, operator, value))
}

fn assign(variables: &mut Variables, name: &str, operator: &str, value: &str) {
    let known = variables.get(name);
    let value = match (operator, known) {
        ("?", Some(known)) => known.clone(),
        ("+", Some(known)) => format!("{known} {value}"),
        _ => value.to_owned(),
    };
    // One that names itself would grow with each expansion.
    let value = match value.contains(&format!("$({name})")) {
        true => expand(&value, variables),
        false => value,
    };
    variables.insert(name.to_owned(), value);
}

fn rule(line: &str, variables: &Variables) -> Option<Rule> {
    let (targets, needs) = line.split_once(':')?;
    let (needs, step) = match needs.split_once(';') {
        Some((needs, step)) => (needs, Some(step.to_owned())),
        None => (needs, None),
    };
    let words = |text: &str| -> Vec<String> {
        let text = expand(text, variables);
        text.split_whitespace().map(str::to_owned).collect()
    };
    Some(Rule {
        targets: words(targets),
        needs: words(needs.trim_start_matches(':')),
        recipe: step.into_iter().collect(),
    })
}
