//! Lines put into a text.

use super::place::Place;

/// `text` with `added`, each at its place. `keep_numbers`: lines that follow a new one keep their numbers, as the compiler counts them.
#[must_use]
pub fn with(text: &str, added: &[(Place, String)], keep_numbers: bool) -> String {
    let mut added: Vec<&(Place, String)> = added.iter().collect();
    added.sort_by_key(|(place, _)| *place);
    let mut new = String::with_capacity(text.len() + 100 * added.len());
    for (number, line) in (1u32..).zip(text.split_inclusive('\n')) {
        let here = added
            .iter()
            .copied()
            .filter(|(place, _)| place.line == number);
        let (inside, above): (Vec<_>, Vec<_>) = here.partition(|(p, _)| p.column.is_some());
        for (_, text) in &above {
            new.push_str(&format!("{text}\n"));
        }
        if keep_numbers && !above.is_empty() {
            new.push_str(&format!("#line {number}\n"));
        }
        let mut from = 0;
        for (place, text) in inside {
            let column = place.column.map_or(0, |column| column as usize - 1);
            let Some((before, _)) = line.split_at_checked(column) else {
                continue;
            };
            new.push_str(&before[from..]);
            new.push_str(&format!("{text} "));
            from = column;
        }
        new.push_str(&line[from..]);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_and_inside() {
        let place = |line, column| Place { line, column };
        let added = [
            (place(2, Some(5)), "X".to_owned()),
            (place(2, None), "above".to_owned()),
            (place(2, Some(3)), "W".to_owned()),
            (place(9, None), "nowhere".to_owned()),
        ];
        assert_eq!(with("a\nb c d\ne", &added, false), "a\nabove\nb W c X d\ne");
        assert_eq!(
            with("a\nb\n", &[(place(2, None), "#p".to_owned())], true),
            "a\n#p\n#line 2\nb\n"
        );
    }
}
