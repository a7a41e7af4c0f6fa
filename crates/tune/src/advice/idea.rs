//! Which lines are tried in the place of flags, the most likely first.

use super::place::{Loop, Outline, Place};
use super::wish::{self, Scope, Wish, alternatives};

/// Ideas that are kept of all combinations.
const MOST: usize = 200;

/// What may do what some choices of flags do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Idea {
    /// What lines ask for.
    pub wishes: Vec<Wish>,
    /// Numbers of the choices that stay flags.
    pub kept: Vec<usize>,
    /// How unlikely it is, of those that keep as many.
    rank: usize,
}

/// A line at its place.
pub type Line = (Place, String);
/// Lines that are tried together.
pub type Lines = Vec<Line>;

/// The ideas for `choices`: those that replace most come first.
#[must_use]
pub fn ideas(choices: &[Vec<String>]) -> Vec<Idea> {
    let mut all = vec![Idea::default()];
    for (number, choice) in choices.iter().enumerate() {
        // A line for another choice may do what this one does.
        let mut options = alternatives(choice);
        options.push(Vec::new());
        let each = all.iter().flat_map(|idea| {
            let replaced = options.iter().enumerate().map(|(rank, wishes)| Idea {
                wishes: [&idea.wishes[..], wishes].concat(),
                rank: idea.rank + rank,
                ..idea.clone()
            });
            let mut kept = idea.clone();
            kept.kept.push(number);
            replaced.chain([kept])
        });
        let mut next: Vec<Idea> = each.collect();
        next.sort_by_key(|idea| (idea.kept.len(), idea.rank));
        next.truncate(MOST);
        all = next;
    }
    all.retain(|idea| !idea.wishes.is_empty());
    all
}

/// The sets of lines for an idea: of all innermost loops, then of all loops, then of each one. Empty if the language has no words for it,
/// or the text no place.
#[must_use]
pub fn placed(idea: &Idea, outline: &Outline, fortran: bool) -> Vec<Lines> {
    let Some(lines) = wish::lines(&idea.wishes, fortran) else {
        return Vec::new();
    };
    let at = |scope: Scope, looped: &Loop| match scope {
        Scope::Loop => Some(looped.place),
        Scope::Block => looped.body.or(outline.body),
        Scope::Function => outline.function,
    };
    let of = |loops: &[&Loop]| -> Option<Lines> {
        let mut found: Lines = Vec::new();
        for looped in loops {
            for (scope, text) in &lines {
                let place = at(*scope, looped)?;
                let text = match place.column {
                    Some(_) => wish::inside(text),
                    None => text.clone(),
                };
                let line = (place, text);
                if !found.contains(&line) {
                    found.push(line);
                }
            }
        }
        (!found.is_empty()).then_some(found)
    };
    let all: Vec<&Loop> = outline.loops.iter().collect();
    let inner: Vec<&Loop> = all.iter().copied().filter(|l| l.innermost).collect();
    let one = all.iter().map(|l| vec![*l]);
    let mut sets: Vec<Lines> = Vec::new();
    for loops in [inner, all.clone()].into_iter().chain(one) {
        if let Some(set) = of(&loops)
            && !sets.contains(&set)
        {
            sets.push(set);
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::outline;

    fn choices(texts: &[&str]) -> Vec<Vec<String>> {
        let words = |text: &&str| text.split(' ').map(str::to_owned).collect();
        texts.iter().map(words).collect()
    }

    #[test]
    fn what_replaces_most_comes_first() {
        let found = ideas(&choices(&["-mllvm -misched=x", "-mllvm -unroll-count=4"]));
        let shown: Vec<_> = found.iter().map(|i| (&i.wishes[..], &i.kept[..])).collect();
        let wish = [Wish::Unroll(4)];
        assert_eq!(shown, [(&wish[..], &[][..]), (&wish[..], &[0][..])]);
        assert!(ideas(&choices(&["-mllvm -misched=x"])).is_empty());
        let many = vec!["-O3"; 12];
        assert!(ideas(&choices(&many)).len() <= MOST);
    }

    #[test]
    fn places() {
        let text = "void f() {\n  for (;;) {\n    for (;;) a();\n    for (;;) b();\n  }\n}\n";
        let outline = outline(text, false, (2, 1), "f");
        let idea = |wish| Idea {
            wishes: vec![wish],
            ..Idea::default()
        };
        let of = |wish, fortran| -> Vec<Vec<u32>> {
            let sets = placed(&idea(wish), &outline, fortran).into_iter();
            sets.map(|set| set.iter().map(|(place, _)| place.line).collect())
                .collect()
        };
        let loops = [vec![3, 4], vec![2, 3, 4], vec![2], vec![3], vec![4]];
        assert_eq!(of(Wish::Unroll(4), false), loops);
        assert_eq!(of(Wish::Target("avx2".into()), false), [[1]]);
        // A block for loops without one is the function's.
        assert_eq!(of(Wish::Fast, false), [vec![2], vec![3, 2], vec![3]]);
        assert!(of(Wish::Fast, true).is_empty());
    }
}
