//! Names of regions and codelets, cut to fit: the one place that does so. What is left out becomes `*`, so that the result is a glob that
//! matches this name alone of those beside it. Template arguments and parameters go first, then inline and anonymous namespaces and Rust's
//! hashes, then the scopes before the function, then the middle of what is left. File and line stay as long as there is room.

use super::screen::{self, of_char, width};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wildmatch::WildMatch;

/// Characters kept from the inside, where names with the same beginning differ.
const INSIDE: usize = 12;
/// Minimum characters kept of the beginning.
const SOME: usize = 5;
/// Arguments up to this length stay.
const ARGUMENTS: usize = 3;
/// Columns of a name in a sentence.
pub const SENTENCE: usize = 60;
/// Characters that names are compared in for one list, at most: what is left then stays whole.
const BUDGET: usize = 50_000_000;

/// Scopes that their users do not write.
const UNWRITTEN: [&str; 8] = [
    "__cxx11::",
    "__1::",
    "__ndk1::",
    "_V2::",
    "(anonymous namespace)::",
    "{anonymous}::",
    "`anonymous namespace'::",
    "_GLOBAL__N_1::",
];

/// Cuts `names` to `width` columns each, as far as each still means one of them; whole if the user asked so.
pub fn names(names: &[&str], width: usize) -> Vec<String> {
    match screen::is_wide() {
        true => names.iter().map(|name| (*name).to_owned()).collect(),
        false => fitting(names, width),
    }
}

/// `name` as in a sentence, where it is not beside others.
pub fn name(name: &str) -> String {
    names(&[name], SENTENCE).concat()
}

/// `names` with commas between them, as in a sentence.
pub fn list(all: &[&str]) -> String {
    names(all, SENTENCE).join(", ")
}

/// The same as [`names`], whatever the user asked for.
pub fn fitting(names: &[&str], width: usize) -> Vec<String> {
    let all = Names::of(names);
    let mut cut: BTreeMap<&str, String> = BTreeMap::new();
    let each = names.iter();
    each.map(|name| {
        cut.entry(name)
            .or_insert_with(|| all.cut(name, width))
            .clone()
    })
    .collect()
}

/// Function, and place with the `@` before it; no place if there is none.
fn parts(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('@').unwrap_or(name.len()))
}

/// Names beside each other.
struct Names<'a> {
    all: Vec<&'a str>,
    /// By place: no other can match a glob that ends with it.
    at: HashMap<&'a str, Vec<&'a str>>,
    /// Characters that may still be compared.
    budget: Cell<usize>,
}

impl<'a> Names<'a> {
    fn of(names: &[&'a str]) -> Self {
        let all: BTreeSet<&str> = names.iter().copied().collect();
        let mut at: HashMap<&str, Vec<&str>> = HashMap::new();
        for name in &all {
            at.entry(parts(name).1).or_default().push(name);
        }
        Self {
            all: all.into_iter().collect(),
            at,
            budget: Cell::new(BUDGET),
        }
    }

    /// Whether `pattern` matches none but `name`.
    fn alone(&self, pattern: &str, name: &str) -> bool {
        let (_, place) = parts(name);
        let closed = !place.is_empty() && pattern.ends_with(place) && !place.contains(['*', '?']);
        let among = match closed {
            true => self.at.get(place).map_or(&[][..], Vec::as_slice),
            false => &self.all,
        };
        if among == [name] {
            return true;
        }
        let pattern = WildMatch::new(pattern);
        among.iter().all(|other| {
            let left = self.budget.get().checked_sub(other.len());
            self.budget.set(left.unwrap_or(0));
            left.is_some() && (*other == name || !pattern.matches(other))
        })
    }

    fn cut(&self, name: &str, most: usize) -> String {
        if width(name) <= most {
            return name.to_owned();
        }
        let (function, place) = parts(name);
        let whole = forms(function).map(|form| form + place);
        let in_the_middle = || middle(name, function, place, most);
        let fits = |cut: &String| width(cut) <= most && self.alone(cut, name);
        let mut cuts = whole.chain(std::iter::once_with(in_the_middle).flatten());
        cuts.find(fits).unwrap_or_else(|| self.least(name))
    }

    /// The shortest that is still alone: a few columns too many are better than the whole name.
    fn least(&self, name: &str) -> String {
        let (function, place) = parts(name);
        let forms = forms(function).map(|form| form + place);
        let alone = forms.filter(|cut| self.alone(cut, name));
        let least = alone.min_by_key(|cut| width(cut));
        let least = least.filter(|cut| width(cut) < width(name));
        least.unwrap_or_else(|| name.to_owned())
    }
}

/// A function's name with more and more of it left out.
fn forms(function: &str) -> impl Iterator<Item = String> {
    let plain = without_arguments(function);
    let written = without_unwritten(&plain);
    let scopes: Vec<String> = scopes(&written)
        .into_iter()
        .map(|at| format!("*{}", &written[at..]))
        .collect();
    [plain, written].into_iter().chain(scopes)
}

/// The beginning of a function's name, up to 12 characters from its inside, and the place; last without all of the place.
fn middle(name: &str, function: &str, place: &str, most: usize) -> Vec<String> {
    let mut cuts = Vec::new();
    let characters: Vec<char> = function.chars().collect();
    let part = |from: usize, to: usize| characters[from..to].iter().collect::<String>();
    if let Some(room) = most.checked_sub(width(place) + 1).filter(|room| *room > 0) {
        cuts.push(format!("{}*{place}", beginning(function, room)));
        let head = beginning(function, room.saturating_sub(INSIDE + 1))
            .chars()
            .count();
        let last = characters.len().saturating_sub(INSIDE);
        if head >= SOME {
            let inside = head..last;
            cuts.extend(
                inside
                    .map(|from| format!("{}*{}*{place}", part(0, head), part(from, from + INSIDE))),
            );
        }
    }
    // The end of the place with the line.
    let end: String = {
        let mut taken = 0;
        let fits = |c: &char| {
            taken += of_char(*c);
            taken <= most.saturating_sub(SOME + 1)
        };
        let back: Vec<char> = name.chars().rev().take_while(fits).collect();
        back.into_iter().rev().collect()
    };
    cuts.push(format!("{}*{end}", beginning(name, SOME)));
    cuts
}

/// The beginning of `text` within `columns`.
fn beginning(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let over = text.char_indices().find(|(_, c)| {
        taken += of_char(*c);
        taken > columns
    });
    over.map_or(text, |(at, _)| &text[..at])
}

/// `*` in place of long template arguments and parameters.
fn without_arguments(function: &str) -> String {
    let mut text = String::new();
    let mut rest = function;
    while let Some(c) = rest.chars().next() {
        let operator = rest.strip_prefix("operator").map(symbol);
        if let Some(symbol) = operator.filter(|length| *length > 0) {
            let end = "operator".len() + symbol;
            text += &rest[..end];
            rest = &rest[end..];
            continue;
        }
        let closed = match c {
            '<' | '(' if !UNWRITTEN.iter().any(|scope| rest.starts_with(scope)) => closing(rest),
            _ => None,
        };
        match closed {
            Some(end) if rest[1..end].chars().count() > ARGUMENTS => {
                text.push(c);
                text.push('*');
                rest = &rest[end..];
            }
            Some(end) => {
                text += &rest[..end];
                rest = &rest[end..];
            }
            None => {
                text.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    text
}

/// Bytes of the symbol of an operator: `<<` of `operator<<`.
fn symbol(text: &str) -> usize {
    if text.starts_with("()") {
        return 2;
    }
    let known = [
        "<=>", "->*", "<<=", ">>=", "->", "<<", ">>", "<=", ">=", "<", ">",
    ];
    let found = known.iter().find(|symbol| text.starts_with(**symbol));
    found.map_or(0, |symbol| symbol.len())
}

/// Where the bracket that `text` begins with closes.
fn closing(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => open.push(c),
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => {
                open.pop();
                if open.is_empty() {
                    return Some(at);
                }
            }
            _ => {}
        }
        before = c;
    }
    None
}

/// `*` in place of scopes that users do not write, and of Rust's hashes.
fn without_unwritten(function: &str) -> String {
    let mut text = UNWRITTEN
        .iter()
        .fold(function.to_owned(), |text, scope| text.replace(scope, "*"));
    if let Some((path, hash)) = text.rsplit_once("::h")
        && hash.len() == 16
        && hash.bytes().all(|b| b.is_ascii_hexdigit())
    {
        text = format!("{path}*");
    }
    while text.contains("**") {
        text = text.replace("**", "*");
    }
    text
}

/// Where the scopes of a function's name end, each at its `::`.
fn scopes(function: &str) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (at, c) in function.char_indices() {
        match c {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && at > 0 && function[at..].starts_with("::") => found.push(at),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "std::_Rb_tree<int, std::pair<int const, std::string>, std::_Select1st<int>, std::less<int>>::_M_erase@stl_tree.h:1933:1";

    fn met<'a>(pattern: &str, all: &[&'a str]) -> Vec<&'a str> {
        let pattern = WildMatch::new(pattern);
        let met = all.iter().filter(|name| pattern.matches(name));
        met.copied().collect()
    }

    #[test]
    fn what_is_left_out_first() {
        for (name, most, short) in [
            ("f@a.c:1", 10, "f@a.c:1"),
            (LONG, 60, "std::_Rb_tree<*>::_M_erase@stl_tree.h:1933:1"),
            (LONG, 40, "*::_M_erase@stl_tree.h:1933:1"),
            (LONG, 28, "std::_Rb_*@stl_tree.h:1933:1"),
            (LONG, 16, "std::*e.h:1933:1"),
            (
                "std::__cxx11::basic_string<char, std::allocator<char>>::find@s.h:4",
                40,
                "std::*basic_string<*>::find@s.h:4",
            ),
            (
                "(anonymous namespace)::solve<double, 3>(double*, int)@a.cc:12",
                44,
                "(anonymous namespace)::solve<*>(*)@a.cc:12",
            ),
            (
                "(anonymous namespace)::solve<double, 3>(double*, int)@a.cc:12",
                24,
                "*solve<*>(*)@a.cc:12",
            ),
            (
                "main::{lambda(double, double, double)#1}::operator()(double, double) const@k.cpp:3",
                50,
                "main::{lambda(*)#1}::operator()(*) const@k.cpp:3",
            ),
            (
                "ns::operator<<<char, traits<char>>@io.h:7",
                30,
                "ns::operator<<<*>@io.h:7",
            ),
            (
                "Matrix::operator->@matrix_with_a_name.h:7",
                36,
                "*::operator->@matrix_with_a_name.h:7",
            ),
            (
                "<alloc::vec::Vec<T> as core::iter::Iterator>::next::h0123456789abcdef@lib.rs:9",
                24,
                "<*>::next*@lib.rs:9",
            ),
            (
                "core::iter::adapters::map::fold::h0123456789abcdef@map.rs:128",
                44,
                "core::iter::adapters::map::fold*@map.rs:128",
            ),
            (
                "atmosphere_dynamics::transport::advect_tracers@advection.f90:210",
                44,
                "*::advect_tracers@advection.f90:210",
            ),
        ] {
            let cut = fitting(&[name], most).concat();
            assert_eq!(cut, short, "{name} in {most}");
            assert_eq!(met(&cut, &[name]), [name]);
        }
    }

    #[test]
    fn every_glob_means_one_name() {
        let other = LONG.replace("less", "greater");
        let third = LONG.replace(":1933:", ":1934:");
        let lambdas =
            ["int", "double"].map(|t| format!("run<{t}, main::$_0, std::tuple<int>>@k.cpp:9"));
        let many: Vec<String> = (0..40)
            .map(|n| format!("apply<std::array<float, {n}ul>, kernel::{n}>@apply.h:3"))
            .collect();
        let mut all = vec![LONG, &other, &third, "short@a.c:1"];
        all.extend(lambdas.iter().chain(&many).map(String::as_str));
        for most in 12..140 {
            let cut = fitting(&all, most);
            for (cut, name) in cut.iter().zip(&all) {
                assert_eq!(met(cut, &all), [*name], "{cut} in {most}");
                assert!(width(cut) <= most.max(width(name)), "{cut}");
            }
            let apart: BTreeSet<&String> = cut.iter().collect();
            assert_eq!(apart.len(), all.len());
        }
        let cut = fitting(&all, 60);
        assert!(cut.iter().all(|cut| width(cut) <= 60), "{cut:#?}");
    }

    #[test]
    fn odd_names() {
        let file = format!("f@{}.c:1", "x".repeat(80));
        assert_eq!(fitting(&[&file], 20), ["f@xxx*xxxxxxxxxx.c:1"]);
        assert_eq!(fitting(&[""], 20), [""]);
        assert_eq!(fitting(&["@@@@"], 2), ["@@@@"]);
        let wide = format!("{}@核.c:1", "計算".repeat(40));
        let cut = fitting(&[&wide], 30).concat();
        assert!(width(&cut) <= 30 && cut.ends_with("@核.c:1"), "{cut}");
        for open in [
            "f<<<<<<<<<<<<<<<<<<<<<<@a.c:1",
            "g>>>>>>>(((((((]]]]@a.c:1",
            "operator@a.c:1",
        ] {
            let cut = fitting(&[open], 14).concat();
            assert_eq!(met(&cut, &[open]), [open]);
        }
        let endless = format!("f<{}>@a.c:1", "int, ".repeat(2000));
        assert_eq!(fitting(&[&endless], 40), ["f<*>@a.c:1"]);
    }

    #[test]
    fn the_same_name_twice_is_one() {
        assert_eq!(
            fitting(&[LONG, LONG], 60),
            ["std::_Rb_tree<*>::_M_erase@stl_tree.h:1933:1"; 2]
        );
    }

    /// 20,000 instances of one loop: what is compared is bounded, and no two are alike.
    #[test]
    fn many_instances_of_one_loop() {
        let name =
            |n: u32| format!("apply<std::vector<double>, kernel::number<{n}>, 4ul>@apply.h:3");
        let all: Vec<String> = (0..20_000).map(name).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let cut = fitting(&all, 40);
        let apart: BTreeSet<&String> = cut.iter().collect();
        assert_eq!(apart.len(), all.len());
    }
}
