//! Names of regions cut to fit a table: the middle of a long function name (templates) becomes `*`. The result is still a glob
//! that matches this region alone, and file and line stay.

use std::os::fd::AsRawFd;
use wildmatch::WildMatch;

/// Columns without a terminal.
const PLAIN: usize = 100;
/// Minimum columns of a name.
const LEAST: usize = 45;
/// Characters kept from the inside, where names with the same beginning differ.
const INSIDE: usize = 12;
/// Minimum characters kept of the beginning.
const SOME: usize = 5;

/// Columns of the terminal on stdout, or a default for files.
pub fn columns() -> usize {
    // SAFETY: all-zero is a valid winsize; the result is written to `size`.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(std::io::stdout().as_raw_fd(), libc::TIOCGWINSZ, &mut size) == 0)
            .then_some(size)
    };
    match size {
        Some(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => PLAIN,
    }
}

/// Cuts `names` to `width` columns each (45 at least), as long as they stay distinct.
pub fn names(names: &[&str], width: usize) -> Vec<String> {
    let width = width.max(LEAST);
    names.iter().map(|name| one(name, names, width)).collect()
}

fn one<'a>(name: &str, all: &[&'a str], width: usize) -> String {
    let characters: Vec<char> = name.chars().collect();
    let place = characters.iter().rposition(|c| *c == '@').unwrap_or(0);
    let tail: String = characters[place..].iter().collect();
    let Some(room) = width.checked_sub(characters.len() - place + 1) else {
        return name.to_owned();
    };
    if characters.len() <= width {
        return name.to_owned();
    }
    let part = |from: usize, to: usize| characters[from..to].iter().collect::<String>();
    // Other names that the pattern matches too.
    let rivals = |pattern: &str, among: &[&'a str]| -> Vec<&'a str> {
        let met = among
            .iter()
            .filter(|n| **n != name && WildMatch::new(pattern).matches(n));
        met.copied().collect()
    };
    let cut = format!("{}*{tail}", part(0, room));
    if rivals(&cut, all).is_empty() {
        return cut;
    }
    // A few columns too many are better than the whole name.
    let head = room.saturating_sub(INSIDE + 1).max(SOME);
    let among = rivals(&format!("{}*{tail}", part(0, head)), all);
    let cuts = (head..(place + 1).saturating_sub(INSIDE))
        .map(|from| format!("{}*{}*{tail}", part(0, head), part(from, from + INSIDE)));
    let mut alone = cuts.filter(|cut| rivals(cut, &among).is_empty());
    alone.next().unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "std::_Rb_tree<int, std::pair<int const, std::string>, std::_Select1st<int>, std::less<int>>::_M_erase@stl_tree.h:1933:1";

    #[test]
    fn the_place_stays_and_the_glob_means_one() {
        let other = LONG.replace("less", "greater");
        let third = "short@a.c:1";
        let all = [LONG, other.as_str(), third];
        let cut = names(&all, 60);
        assert_eq!(cut[2], third);
        for (cut, name) in cut.iter().zip(all) {
            assert!(cut.chars().count() <= 60, "{cut}");
            let met: Vec<&str> = all
                .into_iter()
                .filter(|n| WildMatch::new(cut).matches(n))
                .collect();
            assert_eq!(met, [name]);
        }
        assert!(cut[0].starts_with("std::_Rb_tree<") && cut[0].ends_with("*@stl_tree.h:1933:1"));
    }

    #[test]
    fn what_cannot_be_told_apart_stays() {
        let other = LONG.replace(":1933:", ":1934:");
        let all = [LONG, other.as_str()];
        assert!(names(&all, 60).iter().all(|n| n.len() <= 60));
        let file = format!("f@{}.c:1", "x".repeat(80));
        assert_eq!(names(&[&file], 60), [file.as_str()]);
    }
}
