//! The metrics: `metrics.tsv` has one row for each.

use serde::Serialize;
use std::sync::LazyLock;

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Its name: a column of the CSV, a field of the JSON.
    pub name: &'static str,
    /// What it is about: `mix`, `reuse` and so on.
    pub group: &'static str,
    /// Unit; 1 for a share or ratio.
    pub unit: &'static str,
    /// What it is.
    pub definition: &'static str,
    /// What it is made of, and who proposed it.
    pub source: &'static str,
}

/// All metrics, in the order of the columns.
pub static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let rows = include_str!("metrics.tsv").lines().skip(1);
    rows.filter_map(|row| {
        let mut fields = row.split('\t');
        Some(Metric {
            name: fields.next()?,
            group: fields.next()?,
            unit: fields.next()?,
            definition: fields.next()?,
            source: fields.next()?,
        })
    })
    .collect()
});

#[cfg(test)]
mod tests {
    use super::METRICS;
    use std::collections::HashSet;

    #[test]
    fn documents_list_them_all() {
        let guide = include_str!("../../../../docs/guide/src/metrics.md");
        for m in METRICS.iter() {
            let row = format!(
                "| `{}` | {} | {} | {} |",
                m.name, m.unit, m.definition, m.source
            );
            assert!(guide.contains(&row), "the guide lacks {row}");
        }
        assert_eq!(guide.matches("\n| `").count(), METRICS.len());
    }

    #[test]
    fn rows_are_whole_and_names_unique() {
        assert_eq!(
            METRICS.len(),
            include_str!("metrics.tsv").lines().count() - 1
        );
        let names: HashSet<&str> = METRICS.iter().map(|m| m.name).collect();
        assert_eq!(names.len(), METRICS.len());
        assert!(METRICS.len() >= 76);
        for m in METRICS.iter() {
            for field in [m.name, m.group, m.unit, m.definition, m.source] {
                assert!(!field.is_empty() && field.trim() == field, "{m:?}");
            }
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(m.name.chars().all(plain), "{m:?}");
        }
    }
}
