//! Delta debugging (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, IEEE Trans. Softw. Eng. 28, 2002).

/// A smallest part of `parts` that `does` the same as all of it, as far as leaving out stretches of them shows; one of them can be left
/// out no more.
pub(super) fn minimise<T: Clone>(mut parts: Vec<T>, mut does: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut size = parts.len().max(1);
    loop {
        let (mut at, before) = (0, parts.len());
        while at < parts.len() {
            let end = (at + size).min(parts.len());
            let without = [&parts[..at], &parts[end..]].concat();
            match does(&without) {
                true => parts = without,
                false => at = end,
            }
        }
        match size {
            1 if parts.len() == before => return parts,
            1 => {}
            _ => size = size.div_ceil(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_left() {
        let all: Vec<u32> = (0..20).collect();
        for needed in [vec![], vec![0], vec![19], vec![3, 4, 17], all.clone()] {
            let mut asked = 0;
            let found = minimise(all.clone(), |parts| {
                asked += 1;
                needed.iter().all(|n| parts.contains(n))
            });
            assert_eq!(found, needed);
            assert!(asked <= 80, "{needed:?}: {asked}");
        }
        // 1 does for 2, and 2 for 1: one of them is left.
        let one = minimise(vec![1, 2, 3], |parts| {
            parts.contains(&1) || parts.contains(&2)
        });
        assert_eq!(one, [2]);
        assert_eq!(minimise(Vec::<u32>::new(), |_| true), [0; 0]);
    }
}
