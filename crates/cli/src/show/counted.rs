//! The comparison of counts as text and JSON.

use cere_count::fidelity::Fidelity;
use cere_system::console::{color, print};
use cere_tune::hybrid::counted::Compared;

/// `+1.2 %` of what was counted in the program, or the number where that is 0.
fn difference(in_vivo: u64, in_vitro: u64) -> String {
    match in_vivo {
        0 if in_vitro == 0 => "0".into(),
        0 => format!("+{in_vitro}"),
        n => format!("{:+.1} %", 100.0 * (in_vitro as f64 - n as f64) / n as f64),
    }
}

/// For people.
pub fn text(compared: &Compared) -> String {
    let rows: Vec<Vec<String>> = compared
        .done
        .iter()
        .map(|f| {
            vec![
                f.codelet.clone(),
                color::verdict(f.verdict),
                f.in_vivo_instructions.to_string(),
                match f.same_blocks {
                    true => "same".into(),
                    false => difference(f.in_vivo_instructions, f.in_vitro_instructions),
                },
            ]
        })
        .collect();
    let head = ["codelet", "<verdict", "instructions in vivo", "in vitro"];
    let mut text = print::table_of_names(&head, rows);
    let levels: Vec<Vec<String>> = compared.done.iter().flat_map(levels).collect();
    if !levels.is_empty() {
        let head = [
            "codelet",
            "level",
            "misses in vivo",
            "page-trace",
            "working-set",
            "cold",
        ];
        text += "\n";
        text += &print::table_of_names(&head, levels);
    }
    for f in compared.done.iter().filter(|f| !f.same_blocks) {
        text += &format!(
            "\n{}: blocks that ran a different number of times:\n",
            f.codelet
        );
        for d in &f.differences {
            text += &format!(
                "  {} {}:{}: {} in vivo, {} in vitro\n",
                d.function, d.file, d.line, d.in_vivo, d.in_vitro
            );
        }
    }
    for (name, reason) in &compared.skipped {
        text += &format!("not compared: {name}: {reason}\n");
    }
    text
}

fn levels(f: &Fidelity) -> Vec<Vec<String>> {
    let cell = |level: &cere_count::fidelity::LevelMisses, warmup: &str| {
        level
            .in_vitro
            .get(warmup)
            .map_or_else(|| "-".into(), |n| difference(level.in_vivo, *n))
    };
    f.levels
        .iter()
        .map(|level| {
            vec![
                f.codelet.clone(),
                level.name.clone(),
                level.in_vivo.to_string(),
                cell(level, "page-trace"),
                cell(level, "working-set"),
                cell(level, "cold"),
            ]
        })
        .collect()
}

/// For programs.
pub fn json(compared: &Compared, notes: &[String]) -> serde_json::Value {
    let skipped = compared.skipped.iter();
    let skipped: Vec<_> = skipped
        .map(|(codelet, reason)| serde_json::json!({"codelet": codelet, "reason": reason}))
        .collect();
    serde_json::json!({"codelets": compared.done, "skipped": skipped, "notes": notes})
}
