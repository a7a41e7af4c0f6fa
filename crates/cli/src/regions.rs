//! `cere regions`.

use crate::options::Common;
use anyhow::Result;
use cere_catalogue::said;
use cere_format::build::RegionKind;
use cere_store::names::Named;
use cere_store::{names, state};
use cere_system::console::print;

/// List the regions of the current build
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cere regions 'solve@*'")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Names, globs or unique prefixes; all if none is given
    patterns: Vec<String>,
}

/// Characters of the live-ins in the table, at most; `--wide` and `--json` have all.
const LIVE_INS: usize = 40;

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let units = state::current_units(&options.common.store()?)?;
    let all = names::named(&units);
    let chosen = names::select(&all, &options.patterns)?;
    if options.common.json {
        print::json(&chosen.iter().map(|n| record(n)).collect::<Vec<_>>())?;
    } else {
        let rows: Vec<_> = chosen.iter().map(|n| row(n)).collect();
        print::text(&print::table_of_names(
            &["region", "<kind", "exits", "<live-ins"],
            rows,
        ))?;
    }
    Ok(0)
}

fn record(n: &Named) -> serde_json::Value {
    serde_json::json!({"name": n.name, "kind": n.region.kind, "file": n.region.file, "line": n.region.line,
        "outlined": n.region.outlined, "reason": n.region.reason,
        "code": n.region.reason.as_deref().and_then(said).map(|entry| entry.code.to_string()), "function": n.region.function,
        "symbol": n.region.symbol, "unit": n.key.unit, "index": n.key.index, "live_ins": n.region.live_ins,
        "exits": n.region.exits})
}

fn kind(kind: RegionKind) -> &'static str {
    match kind {
        RegionKind::Loop => "loop",
        RegionKind::Parallel => "parallel",
        RegionKind::Function => "function",
    }
}

fn row(n: &Named) -> Vec<String> {
    let live_in = |l: &cere_format::build::LiveIn| {
        let direction = if l.output { "-> " } else { "" };
        format!("{direction}{} {}", l.r#type, l.name)
            .trim_end()
            .to_owned()
    };
    let live: Vec<String> = n.region.live_ins.iter().map(live_in).collect();
    let last = match &n.region.reason {
        Some(reason) if !n.region.outlined => format!("refused: {}", print::reason(reason)),
        _ => print::short(&format!("({})", live.join(", ")), LIVE_INS),
    };
    vec![
        n.name.clone(),
        kind(n.region.kind).to_owned(),
        n.region.exits.to_string(),
        last,
    ]
}
