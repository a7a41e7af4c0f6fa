//! Results for CI: JUnit, Markdown, annotations of GitHub.

use crate::check::{Checked, State};
use cere_system::console::print;
use cere_timing::stats::Gain;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::fmt::Write;

/// The results as JUnit's XML.
pub fn junit(all: &[Checked]) -> Result<String, quick_junit::SerializeError> {
    let mut suite = TestSuite::new("cere guard");
    for checked in all {
        let mut status = match checked.state {
            State::Slower | State::Wrong => TestCaseStatus::non_success(NonSuccessKind::Failure),
            State::Failed => TestCaseStatus::non_success(NonSuccessKind::Error),
            _ => TestCaseStatus::success(),
        };
        if !checked.state.is_good() {
            status.set_type(checked.state.name());
            status.set_message(first_line(&checked.reason));
            status.set_description(checked.reason.clone());
        }
        let mut case = TestCase::new(checked.name.clone(), status);
        case.set_classname("cere.guard");
        case.extra
            .insert("file".into(), checked.file.display().to_string().into());
        case.extra
            .insert("line".into(), checked.line.to_string().into());
        if !checked.notes.is_empty() {
            case.set_system_out(checked.notes.join("\n"));
        }
        suite.add_test_case(case);
    }
    let mut report = Report::new("cere guard");
    report.add_test_suite(suite);
    report.to_string()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The results as a table in Markdown, with the reasons below it.
pub fn markdown(all: &[Checked]) -> String {
    let bad = all.iter().filter(|c| !c.state.is_good()).count();
    let mut text = match bad {
        0 => format!("### cere guard: {} regions, none slower\n\n", all.len()),
        _ => format!("### cere guard: {bad} of {} regions failed\n\n", all.len()),
    };
    text += "| region | result | time | instructions |\n|---|---|---|---|\n";
    for checked in all {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            cell(&checked.name),
            match checked.state.is_good() {
                true => checked.state.name().to_owned(),
                false => format!("**{}**", checked.state.name()),
            },
            time(checked),
            change(checked, "instructions")
        );
    }
    for checked in all.iter().filter(|c| !c.reason.is_empty()) {
        let _ = write!(
            text,
            "\n`{}` ({}:{}):\n\n```\n{}\n```\n",
            cell(&checked.name),
            checked.file.display(),
            checked.line,
            checked.reason.replace("```", "'''")
        );
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('`', "'")
}

/// Time over that of the baseline, with its interval.
pub fn time(checked: &Checked) -> String {
    let within = |gain: Gain| print::within(gain.ratio, gain.low, gain.high);
    checked.gain.map_or_else(|| "-".to_owned(), within)
}

/// By how much the count `what` is another one than that of the baseline.
pub fn change(checked: &Checked, what: &str) -> String {
    let of = |side: usize| checked.counts[side].as_ref()?.0.get(what).copied();
    match (of(0), of(1)) {
        (Some(before), Some(now)) if before == now => "=".to_owned(),
        (Some(0), Some(now)) => print::number(now),
        (Some(before), Some(now)) => {
            format!("{:+.2} %", 100.0 * (now as f64 / before as f64 - 1.0))
        }
        _ => "-".to_owned(),
    }
}

/// Annotations of GitHub on the lines of the regions that failed, one a line.
pub fn annotations(all: &[Checked]) -> String {
    let mut text = String::new();
    for checked in all.iter().filter(|c| !c.state.is_good()) {
        let _ = writeln!(
            text,
            "::error file={},line={},title={}::{}",
            property(&checked.file.display().to_string()),
            checked.line,
            property(&format!(
                "cere guard: {} is {}",
                checked.name,
                checked.state.name()
            )),
            data(&checked.reason)
        );
    }
    text
}

fn data(text: &str) -> String {
    let text = text.replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Limits;

    fn checked(state: State, reason: &str) -> Checked {
        Checked {
            name: "solve@a,b.c:3".into(),
            file: "src/a,b.c".into(),
            line: 5,
            codelets: vec!["solve@a,b.c:3:1".into()],
            state,
            reason: reason.into(),
            verdict: None,
            limits: Limits {
                time: 2.0,
                counts: 1.0,
            },
            counts: [None, None],
            grown: Vec::new(),
            gain: None,
            seconds: [None, None],
            notes: Vec::new(),
        }
    }

    #[test]
    fn annotations_are_one_line_each_and_name_the_source() {
        let all = [
            checked(State::Passed, ""),
            checked(State::Slower, "time +4 %\nand more"),
        ];
        assert_eq!(
            annotations(&all),
            "::error file=src/a%2Cb.c,line=5,title=cere guard%3A solve@a%2Cb.c%3A3 is slower::time +4 %25%0Aand more\n"
        );
    }

    #[test]
    fn junit_tells_failures_from_errors() {
        let all = [
            checked(State::Passed, ""),
            checked(State::Slower, "time <+4 %>"),
            checked(State::Failed, "error: expected ';'"),
        ];
        let text = junit(&all).unwrap();
        assert!(
            text.contains("tests=\"3\"")
                && text.contains("failures=\"1\"")
                && text.contains("errors=\"1\""),
            "{text}"
        );
        assert!(
            text.contains("type=\"slower\"") && text.contains("time &lt;+4 %&gt;"),
            "{text}"
        );
        assert!(text.contains("file=\"src/a,b.c\""), "{text}");
    }

    #[test]
    fn markdown_has_a_row_each() {
        let text = markdown(&[
            checked(State::Passed, ""),
            checked(State::Wrong, "3 bytes | differ"),
        ]);
        assert_eq!(text.lines().filter(|l| l.starts_with("| `")).count(), 2);
        assert!(
            text.contains("1 of 2 regions failed") && text.contains("3 bytes | differ"),
            "{text}"
        );
    }
}
