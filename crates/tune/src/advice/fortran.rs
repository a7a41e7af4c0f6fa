//! Loops in Fortran, free or fixed form.

use super::place::{Loop, Place};

/// What a line does to loops.
enum Line {
    /// Begins one, which the statement with this label ends, if it has one.
    Do(Option<String>),
    /// Ends the innermost one.
    End,
    Other,
}

/// The label of a line, and the rest.
fn labelled(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let end = line.find(|c: char| !c.is_ascii_digit());
    let (label, rest) = line.split_at(end.unwrap_or(line.len()));
    (label, rest.trim_start())
}

fn line(text: &str) -> Line {
    let lower = text.to_ascii_lowercase();
    let (_, mut rest) = labelled(&lower);
    let squeezed: String = rest.split_whitespace().collect();
    if squeezed == "enddo" || squeezed.starts_with("enddo!") || rest.starts_with("end do") {
        return Line::End;
    }
    // A name of a construct.
    if let Some((name, after)) = rest.split_once(':')
        && name.trim().chars().all(|c| c.is_alphanumeric() || c == '_')
        && !after.starts_with(':')
    {
        rest = after.trim_start();
    }
    if rest.starts_with("enddo") {
        return Line::End;
    }
    let Some(after) = rest.strip_prefix("do") else {
        return Line::Other;
    };
    let control = after.trim_start();
    let (label, control) = labelled(control);
    let apart = after.is_empty() || after.starts_with([' ', '\t', '!']);
    let counts = control.contains('=') && control.contains(',');
    let endless = control.is_empty() || control.starts_with(['!', 'w', 'c']);
    match apart && (counts || endless) {
        true => Line::Do((!label.is_empty()).then(|| label.to_owned())),
        false => Line::Other,
    }
}

/// The loops of the one that begins in `line` (from 1) of `text`, or of the first one behind it: a parallel region may begin at a
/// directive.
pub fn loops(text: &str, from: u32) -> Vec<Loop> {
    let mut found: Vec<Loop> = Vec::new();
    let mut open: Vec<(usize, Option<String>)> = Vec::new();
    for (number, content) in (1u32..)
        .zip(text.lines())
        .skip(from.saturating_sub(1) as usize)
    {
        if content.starts_with(['c', 'C', '*', '!']) {
            continue;
        }
        match line(content) {
            Line::Do(label) => {
                if let Some((outer, _)) = open.last() {
                    found[*outer].innermost = false;
                }
                open.push((found.len(), label));
                found.push(Loop {
                    place: Place {
                        line: number,
                        column: None,
                    },
                    body: None,
                    innermost: true,
                });
            }
            Line::End => drop(open.pop()),
            Line::Other => {
                let (label, _) = labelled(content);
                while !label.is_empty()
                    && open.last().is_some_and(|o| o.1.as_deref() == Some(label))
                {
                    open.pop();
                }
            }
        }
        if open.is_empty() && !found.is_empty() {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, from: u32) -> Vec<(u32, bool)> {
        let found = loops(text, from).into_iter();
        found.map(|l| (l.place.line, l.innermost)).collect()
    }

    #[test]
    fn nests() {
        let text = "x = 1\n  do k = 1, n\n    outer: DO  j=1,n ! rows\n     a(j) = 0\n    end do outer\n!  do q = 1, 2\n    do i = 1, n\n      double = 1\n    enddo\n  end do\n  do z = 1, n\n  enddo\n";
        assert_eq!(of(text, 2), [(2, false), (3, true), (7, true)]);
        assert_eq!(of(text, 7), [(7, true)]);
        // At a directive.
        assert_eq!(of(text, 1), [(2, false), (3, true), (7, true)]);
    }

    #[test]
    fn labels_end_loops() {
        let text = "      DO 10 J = 1, N\n      DO 10 I = 1, M\n   10 A(I,J) = 0\n      DO 20 I = 1, M\n   20 CONTINUE\n";
        assert_eq!(of(text, 1), [(1, false), (2, true)]);
        assert_eq!(of(text, 4), [(4, true)]);
        assert_eq!(of("      do while (x < 1)\n      enddo\n", 1), [(1, true)]);
        assert!(of("      dots = 1\n", 1).is_empty());
    }
}
