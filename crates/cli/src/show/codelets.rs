//! Codelets as a table, for `cere codelets` and `cere capture`.

use cere_store::codelets::Listed;
use cere_store::commands;
use cere_system::console::print;

/// Codelets as a table.
pub fn table(codelets: &[Listed]) -> String {
    let rows: Vec<Vec<String>> = codelets
        .iter()
        .map(|c| {
            vec![
                c.name.clone(),
                c.pages.to_string(),
                format!("{:.1} KiB", c.bytes as f64 / 1024.0),
                c.in_vivo_seconds.map_or("-".into(), print::time),
                c.verdict
                    .map_or("-", cere_format::replay::Verdict::name)
                    .to_owned(),
                match c.current {
                    Some(true) => "current",
                    Some(false) => "older",
                    None => "-",
                }
                .to_owned(),
                c.command.as_deref().map_or("-".into(), commands::shown),
            ]
        })
        .collect();
    print::table_of_names(
        &[
            "codelet",
            "pages",
            "size",
            "in vivo",
            "<last verdict",
            "<build",
            "<command",
        ],
        rows,
    )
}
