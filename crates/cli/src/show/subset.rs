//! A subset as text and JSON.

use cere_predict::subset::expect::{Alternative, Expected};
use cere_predict::subset::train::Trained;
use cere_predict::subset::validate::Errors;
use cere_predict::subset::{Measurement, Subset};
use cere_system::console::print;
use serde_json::{Value, json};

/// A subset, and what is known of it.
pub struct Shown {
    pub subset: Subset,
    /// Expected errors, if machines are known.
    pub expected: Option<Expected>,
    /// What the two steps give instead of a unified subset.
    pub two_steps: Option<Alternative>,
    /// The trained metrics, if there are some.
    pub trained: Option<Trained>,
}

/// The share of all programs' time that the points of a cluster stand for.
fn share(subset: &Subset, members: &[usize]) -> f64 {
    let all: f64 = subset.programs.iter().map(|p| p.seconds).sum();
    let own: f64 = members.iter().map(|p| subset.points[*p].seconds).sum();
    own / all
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn errors(what: &str, of: Option<&Errors>) -> String {
    match of {
        None => format!("  {what}: not known\n"),
        Some(e) => format!(
            "  {what}: median {}, mean {}, 90th percentile {} ({} predictions)\n",
            percent(e.median),
            percent(e.mean),
            percent(e.p90),
            e.of
        ),
    }
}

fn promises(expected: Option<&Expected>) -> String {
    let Some(expected) = expected else {
        return "expected error: not known; --machines names files of machines that measured all codelets\n".to_owned();
    };
    let mut text = format!(
        "expected error, by leaving out one program ({}):\n",
        expected.machines.join("; ")
    );
    text += &errors("points", expected.points.as_ref());
    text += &errors("programs", expected.programs.as_ref());
    if let Some(c) = &expected.control {
        text += &format!(
            "  points, nothing left out: median {} (of 1,000 random partitions the best {}, the median {}; {} are as good)\n",
            percent(c.points.median),
            percent(c.random[0]),
            percent(c.random[2]),
            percent(c.random_as_good)
        );
    }
    for (machine, e) in &expected.machine_left_out {
        text += &errors(&format!("points, trained without {machine}"), Some(e));
    }
    text
}

/// For people.
pub fn text(shown: &Shown) -> String {
    let subset = &shown.subset;
    let rows: Vec<Vec<String>> = subset
        .clusters
        .iter()
        .map(|c| {
            let seconds = subset.points[c.representative].members.iter();
            let seconds: f64 = seconds.map(|m| subset.reference_seconds(m.0)).sum();
            let checks = c.checks.iter().map(|p| subset.point_name(*p));
            vec![
                subset.point_name(c.representative),
                c.members.len().to_string(),
                percent(share(subset, &c.members)),
                print::time(seconds),
                checks.collect::<Vec<_>>().join(", "),
            ]
        })
        .collect();
    let heading = [
        "<representative",
        "points",
        "of all time",
        "replay",
        "<checks",
    ];
    let mut text = print::table_of_names(&heading, rows);
    let covered: Vec<usize> = (0..subset.points.len()).collect();
    text += &format!(
        "\n{} programs, {} codelets in {} {}, which take {} of the time; {} metrics\n",
        subset.programs.len(),
        subset.codelets.len(),
        subset.points.len(),
        match subset.choice.unified {
            true => "points of their own",
            false => "regions",
        },
        percent(share(subset, &covered)),
        subset.choice.metrics.len()
    );
    if !subset.choice.dropped.is_empty() {
        let (name, why) = &subset.choice.dropped[0];
        text += &format!(
            "{} metrics do not count ({name}: {why})\n",
            subset.choice.dropped.len()
        );
    }
    text += &format!(
        "{} clusters (the elbow is at {}), {} codelets to measure; reduction {:.1}\n",
        subset.clusters.len(),
        subset.elbow,
        subset.measured().len(),
        subset.reduction()
    );
    text += &promises(shown.expected.as_ref());
    if let Some(other) = &shown.two_steps {
        text += &format!(
            "time first, then space, with at most as many codelets of representatives: {} clusters, {} codelets; reduction with checks {:.1}\n",
            other.k, other.measured, other.reduction
        );
        text += &promises(other.expected.as_ref());
    }
    if let Some(trained) = &shown.trained {
        text += &format!(
            "trained in {} evaluations, found in generation {}: {}\n",
            trained.evaluations,
            trained.generation,
            trained.metrics.join(",")
        );
    }
    text
}

/// For programs.
pub fn json(shown: &Shown) -> Value {
    let subset = &shown.subset;
    let labels = subset.labels();
    let clusters: Vec<Value> = subset
        .clusters
        .iter()
        .map(|c| {
            let names = |points: &[usize]| -> Vec<String> {
                points.iter().map(|p| subset.point_name(*p)).collect()
            };
            json!({
                "representative": subset.point_name(c.representative),
                "members": names(&c.members),
                "checks": names(&c.checks),
                "share": share(subset, &c.members),
            })
        })
        .collect();
    let mut of_codelets = vec![0; subset.codelets.len()];
    for (point, of) in subset.points.iter().enumerate() {
        for (codelet, _) in &of.members {
            of_codelets[*codelet] = labels[point];
        }
    }
    let measured = subset.measured();
    let codelets: Vec<Value> = subset
        .codelets
        .iter()
        .enumerate()
        .map(|(number, codelet)| {
            json!({
                "name": codelet.name,
                "program": subset.programs[codelet.program].name,
                "cluster": of_codelets[number],
                "measured": measured.contains(&number),
                "seconds": subset.reference_seconds(number),
            })
        })
        .collect();
    json!({
        "id": subset.id,
        "programs": subset.programs,
        "codelets": codelets,
        "unified": subset.choice.unified,
        "metrics": subset.choice.metrics,
        "dropped": subset.choice.dropped,
        "k": subset.clusters.len(),
        "elbow": subset.elbow,
        "variance": subset.variance,
        "clusters": clusters,
        "reduction": subset.reduction(),
        "expected_error": shown.expected,
        "two_steps": shown.two_steps,
        "trained": shown.trained,
    })
}

/// What a machine measured, for people.
pub fn measured_text(of: &Measurement) -> String {
    let failed = of.codelets.iter().filter(|m| m.rounds.is_empty()).count();
    let mut text = format!(
        "{}: {}\n{}\n{} codelets {} in {}, {failed} failed",
        of.label,
        of.machine.describe(),
        of.basis(),
        of.codelets.len() - failed,
        match of.model {
            Some(_) => "modelled",
            None => "measured",
        },
        print::time(of.wall_seconds)
    );
    if let Some(noise) = of.noise {
        text += &format!("; noise {:.1} %", 100.0 * noise);
    }
    text.push('\n');
    for (name, seconds) in &of.programs {
        text += &format!("{name}: {}\n", print::time(*seconds));
    }
    text
}

/// The same for programs.
pub fn measured_json(of: &Measurement) -> Value {
    let each = of.codelets.iter().map(|m| {
        let codelet = &of.subset.codelets[m.codelet];
        json!({
            "name": codelet.name,
            "program": of.subset.programs[codelet.program].name,
            "rounds": m.rounds,
            "reason": m.reason,
        })
    });
    json!({
        "label": of.label,
        "machine": of.machine,
        "machines": of.machines,
        "basis": of.basis(),
        "model": of.model,
        "flags": of.flags,
        "prebuilt": of.prebuilt,
        "noise": of.noise,
        "wall_seconds": of.wall_seconds,
        "codelets": each.collect::<Vec<_>>(),
        "programs": of.programs,
        "subset": of.subset.id,
    })
}
