//! Whether replays of odd programs are right.

use super::feature::Feature;
use super::odd::Odd;
use crate::outcome::{Finding, Outcome};
use crate::study::string;
use crate::subject::{Subject, keep};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Output;

/// Writes the program of this seed to `directory`.
pub fn write<'f>(seed: u64, features: &'f [Feature], directory: &Path) -> Result<Odd<'f>> {
    let odd = Odd::new(seed, features);
    for file in &odd.files {
        std::fs::write(directory.join(&file.name), &file.text)?;
    }
    std::fs::write(
        directory.join("build.sh"),
        format!("# {}\n{}\n", odd.flags, odd.script),
    )?;
    Ok(odd)
}

/// Builds the program of this seed, runs it plainly, dormant and captured, replays its codelets.
pub fn study(seed: u64, features: &[Feature], directory: &Path) -> Result<Vec<Finding>> {
    let odd = write(seed, features, directory)?;
    let subject = Subject {
        seed,
        flags: odd.flags.clone(),
        script: format!("SOURCES='{}'\n{}", directory.display(), odd.script),
        runs: vec![Vec::new()],
        directory,
    };
    let expected = subject.plain("")?.context("the program runs too long")?;
    let mut findings = vec![subject.compare(&expected)?];
    if !findings[0].is_right() {
        return Ok(findings);
    }
    let codelets = subject.capture(&expected, &mut findings)?;
    if !codelets.is_empty() {
        // Of those of library code, which all programs have, one.
        let features =
            |name: &str| usize::from(feature_of(name).is_none() && !name.starts_with("main@"));
        let mut own = 0;
        for codelet in &codelets {
            own += 1 - features(string(codelet, "name")?);
        }
        keep(&codelets, own + 1, features)?;
        findings.extend(subject.replay("")?);
        for flags in &odd.replays {
            let mut found = subject.replay(flags)?;
            let doubted =
                |f: &Finding| matches!(f.outcome, Outcome::Different | Outcome::Tolerance);
            if Odd::rounds(flags) || found.iter().any(doubted) {
                let plain = subject.plain(flags)?.context("the program runs too long")?;
                judge(&odd, &expected[0], &plain[0], &mut found);
            }
            findings.extend(found);
        }
    }
    for finding in &mut findings {
        finding.allowed = allows(&odd, finding);
        if let Some(feature) = feature_of(&finding.of).and_then(|own| odd.features.get(own)) {
            finding.reason = format!("{}: {}", feature.name, finding.reason);
        }
    }
    Ok(findings)
}

/// The number of the feature that a region belongs to; none if it is around them, or the library's.
fn feature_of(region: &str) -> Option<usize> {
    let unit = region.split('@').nth(1)?.strip_prefix('u')?;
    let digits: String = unit.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn allows(odd: &Odd<'_>, finding: &Finding) -> bool {
    let own = feature_of(&finding.of);
    let text = match (finding.outcome, finding.flags.as_deref()) {
        (Outcome::Refused, _) => &finding.reason,
        (Outcome::Unchecked, Some(flags)) if !flags.is_empty() => &finding.reason,
        (Outcome::Partly, _) => "partly",
        // Of flags that let it round, some are the front end's to follow.
        (Outcome::WrongExact, Some(flags)) if Odd::rounds(flags) => &finding.reason,
        // Flags that let the compiler round.
        (Outcome::Tolerance, Some(flags)) => return Odd::rounds(flags),
        _ => return false,
    };
    let features = odd.features.iter().enumerate();
    let mut features = features.filter(|(number, _)| own.is_none_or(|own| own == *number));
    features.any(|(_, feature)| feature.allowed.iter().any(|allowed| text.contains(allowed)))
}

/// Compares verdicts of replays with what the plain program does with the same flags.
fn judge(odd: &Odd<'_>, expected: &Output, changed: &Output, found: &mut [Finding]) {
    let other: Vec<bool> = (0..odd.features.len())
        .map(|number| line(expected, number) != line(changed, number))
        .collect();
    let any = expected.stdout != changed.stdout || expected.status != changed.status;
    for finding in found.iter_mut().filter(|f| f.outcome == Outcome::Different) {
        let own = feature_of(&finding.of).filter(|_| !odd.around);
        if own.and_then(|own| other.get(own).copied()).unwrap_or(any) {
            finding.outcome = Outcome::Changed;
        }
    }
    if odd.around {
        return;
    }
    // Where a feature computes something else, the replay of one of its codelets at least has to differ.
    for number in (0..other.len()).filter(|number| other[*number]) {
        let exact = |f: &&mut Finding| f.outcome == Outcome::Exact;
        let all: Vec<&mut Finding> = found
            .iter_mut()
            .filter(|f| feature_of(&f.of) == Some(number))
            .collect();
        if all.iter().all(exact) {
            for finding in all {
                finding.outcome = Outcome::WrongExact;
                finding.reason =
                    "the plain program computes something else with these flags".into();
            }
        }
    }
}

/// What the program printed for a feature.
fn line(run: &Output, number: usize) -> Option<String> {
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let start = format!("f{number} ");
    text.lines()
        .find(|line| line.starts_with(&start))
        .map(str::to_owned)
}
