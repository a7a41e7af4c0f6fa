//! Flags for single regions with `cere tune`, `cere hybrid` and `cere predict --flags-file`. No test depends on which build is
//! faster.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::instrumented;
use cere_tests::sources::WORK;
use cere_tests::tools::{cere, json, succeed, text};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compensated sum, which -ffast-math makes a plain one of: all but the first and the last value are lost in it. And a
/// region of integers, where no flags matter; `main` has two regions.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define N 20000
static double data[N];
static long words[N];
static __attribute__((noinline)) double compensated(const double *p, long n) {
    double sum = 0, lost = 0;
    for (long i = 0; i < n; i++) {
        double next = p[i] - lost;
        double now = sum + next;
        lost = (now - sum) - next;
        sum = now;
    }
    return sum;
}
static __attribute__((noinline)) long mixes(long *p, long n) {
    long all = 0;
    for (long i = 0; i < n; i++)
        all += p[i] = (p[i] ^ i) * 5 + (p[i] >> 3);
    return all;
}
int main(int argc, char **argv) {
    for (int i = 0; i < N; i++)
        data[i] = i == 0 ? 1e16 : i == N - 1 ? -1e16 : 1;
    double sum = 0;
    long all = 0, rounds = argc > 1 ? atol(argv[1]) : 300;
    for (int i = 0; i < rounds; i++) {
        sum += compensated(data, N);
        all += mixes(words, N);
    }
    printf("sum %.17g\nall %ld\n", sum, all);
}
"#;

/// The sums of -ffast-math are wrong in their first digit, which no tolerance takes for rounding.
const SPACE: &str = r#"
[[group]]
name = "level"
choices = ["-O1", "-O2"]

[[group]]
name = "math"
choices = ["-ffast-math"]
changes-values = true
"#;

fn sums() -> Result<tempfile::TempDir> {
    instrumented(&[("main.c", PROGRAM)], "$CC -g -O1 main.c -o program")
}

/// The same, with the names of two regions.
fn sums_and_regions() -> Result<(tempfile::TempDir, String, String)> {
    let directory = sums()?;
    let mixes = region(directory.path(), "mixes")?;
    let compensated = region(directory.path(), "compensated")?;
    Ok((directory, mixes, compensated))
}

/// The same with a profile and codelets, and with `SPACE`.
fn captured() -> Result<tempfile::TempDir> {
    let directory = sums()?;
    succeed(cere(directory.path()).args(["capture", "--", "./program"]))?;
    std::fs::write(directory.path().join("space.toml"), SPACE)?;
    Ok(directory)
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key]
        .as_array()
        .with_context(|| format!("no list `{key}`: {value}"))
}

/// The region of `function`, the only one.
fn region(directory: &Path, function: &str) -> Result<String> {
    let (list, _) = json(cere(directory).args(["regions", "--json"]))?;
    let regions = list.as_array().context("a list of regions")?.iter();
    let names = regions.filter_map(|r| r["name"].as_str());
    let found: Vec<&str> = names
        .filter(|n| n.split('@').next() == Some(function))
        .collect();
    ensure!(found.len() == 1, "{function}: {found:?} of {list}");
    Ok(found[0].to_owned())
}

/// The entry of the region of `function` in a JSON result.
fn entry_of<'a>(found: &'a Value, function: &str) -> Result<&'a Value> {
    let is = |r: &&Value| {
        r["name"]
            .as_str()
            .is_some_and(|n| n.starts_with(&format!("{function}@")))
    };
    let region = array(found, "regions")?.iter().find(is);
    region.with_context(|| format!("nothing of {function}: {found}"))
}

/// A flags file: names of regions, each with further lines.
fn choices(directory: &Path, regions: &[(&str, &str)]) -> Result<PathBuf> {
    let mut text = "version = 1\n".to_owned();
    for (name, lines) in regions {
        writeln!(text, "[[region]]\nname = {name:?}\n{lines}")?;
    }
    let file = directory.join("choices");
    std::fs::write(&file, text)?;
    Ok(file)
}

/// `cere hybrid` of the choices in `flags`, linked as `output`.
fn hybrid(directory: &Path, flags: &Path, output: &str) -> Command {
    let mut command = cere(directory);
    command
        .args(["hybrid", "-o", output, "--flags-file"])
        .arg(flags);
    command
}

/// What the program prints.
fn printed(directory: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(directory.join(program));
    command
        .args(arguments)
        .current_dir(directory)
        .env("OMP_NUM_THREADS", "1");
    Ok(String::from_utf8(succeed(&mut command)?.stdout)?)
}

/// Fails unless `program` prints what the plain one does.
fn same(directory: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    let plain = printed(directory, "program", arguments)?;
    let own = printed(directory, program, arguments)?;
    ensure!(plain == own, "{program} prints {own} instead of {plain}");
    Ok(())
}

fn positive(value: &Value, keys: &[&str]) -> Result<()> {
    for key in keys {
        ensure!(
            value[*key].as_f64().is_some_and(|s| s > 0.0),
            "{key}: {value}"
        );
    }
    Ok(())
}

/// `cere tune` in the space of the directory; few repetitions, as nothing is asked of the times.
fn tune(directory: &Path, arguments: &[&str]) -> Result<Value> {
    let mut command = cere(directory);
    command.args(["tune", "--json", "--space", "space.toml", "--reps", "2"]);
    Ok(json(command.arg("--budget").args(arguments))?.0)
}

/// Journals of the searches so far, in the order of their names.
fn journals(directory: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory.join(".cere/tune"))? {
        files.push(entry?.path());
    }
    files.sort();
    files
        .iter()
        .map(|f| Ok(std::fs::read_to_string(f)?))
        .collect()
}

/// Sets of flags of the records of replays of `region`.
fn replayed(directory: &Path, region: &str) -> Result<Vec<String>> {
    let (found, _) = json(cere(directory).args(["results", "--json"]))?;
    let records = found.as_array().context("records")?.iter();
    let own = records.filter(|r| r["region"] == region);
    Ok(own.map(|r| r["setting"]["flags"].to_string()).collect())
}

#[test]
fn a_search_goes_on_where_it_was() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    let first = tune(directory, &["1", "mixes@*"])?;
    ensure!(first["evaluations"] == 1, "{first}");
    let begun = journals(directory)?;
    let found = tune(directory, &["20", "mixes@*"])?;
    ensure!(found["evaluations"] == 2, "{found}");
    ensure!(found["earlier_evaluations"] == 1, "{found}");
    positive(&found, &["reduction"])?;
    let whole = journals(directory)?;
    ensure!(whole.len() == 1 && begun.len() == 1, "{whole:?}");
    ensure!(
        whole[0].starts_with(&begun[0]) && whole != begun,
        "{whole:?}"
    );
    let own = entry_of(&found, "mixes")?;
    ensure!(array(own, "failed")?.is_empty(), "{own}");
    let records = replayed(directory, own["name"].as_str().context("a name")?)?;
    for flags in [r#"["-O2"]"#, "[]"] {
        ensure!(
            records.iter().any(|r| r == flags),
            "no {flags} in {records:?}"
        );
    }
    // As built: the same code is not measured twice.
    ensure!(own["same_code"] == 1, "{own}");

    let again = tune(directory, &["20", "mixes@*"])?;
    ensure!(again["evaluations"] == 2, "{again}");
    ensure!(
        again["reduction"] == 0.0,
        "it counts what it did not evaluate: {again}"
    );
    ensure!(again["spent_seconds"]["compiling"] == 0.0, "{again}");
    ensure!(
        journals(directory)? == whole,
        "it wrote of more evaluations"
    );

    let anew = tune(directory, &["20", "--again", "mixes@*"])?;
    ensure!(anew["evaluations"] == 2, "{anew}");
    positive(&anew["spent_seconds"], &["compiling"])?;
    let journal = journals(directory)?;
    ensure!(
        journal.len() == 1 && !journal[0].starts_with(&begun[0]),
        "{journal:?}"
    );
    Ok(())
}

#[test]
fn a_finished_region_leaves_the_others_their_turns() -> Result<()> {
    let directory = captured()?;
    tune(directory.path(), &["20", "compensated@*"])?;
    let found = tune(directory.path(), &["20"])?;
    for function in ["compensated", "mixes"] {
        let own = entry_of(&found, function)?;
        ensure!(own["evaluations"] == 2, "{found}");
        ensure!(own["ended"] == "all was tried", "{found}");
    }
    Ok(())
}

/// As after a search that was killed while it evaluated.
#[test]
fn an_evaluation_that_was_lost_is_of_the_budget() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    let space = SPACE.replace("\"-O2\"", "\"-O2\", \"-O3\", \"-Os\"");
    std::fs::write(directory.join("space.toml"), space)?;
    tune(directory, &["2", "mixes@*"])?;
    for entry in std::fs::read_dir(directory.join(".cere/tune"))? {
        let file = entry?.path();
        let journal = std::fs::read_to_string(&file)?;
        let last = journal
            .trim_end()
            .rfind('\n')
            .context("a line before the last")?;
        ensure!(journal[last..].contains("told"), "{journal}");
        std::fs::write(&file, &journal[..=last])?;
    }
    let found = tune(directory, &["2", "mixes@*"])?;
    ensure!(found["evaluations"] == 2, "{found}");
    Ok(())
}

/// What is found is in the store, for `cere hybrid`.
#[test]
fn what_is_found_is_kept() -> Result<()> {
    let directory = instrumented(&[("main.c", PROGRAM)], "$CC -g -O0 main.c -o program")?;
    let directory = directory.path();
    succeed(cere(directory).args(["capture", "--", "./program"]))?;
    std::fs::write(directory.join("space.toml"), SPACE)?;
    let found = tune(directory, &["20"])?;
    let kept = std::fs::read_to_string(directory.join(".cere/tuned.toml"))?;
    let mut any = false;
    for own in array(&found, "regions")? {
        let name = format!("{}", own["name"]);
        let flags = own["flags"].as_str();
        any |= flags.is_some();
        ensure!(
            kept.contains(&name) == flags.is_some(),
            "{name}: {flags:?} and\n{kept}"
        );
        if flags.is_some() {
            positive(own, &["gain", "gain_low", "gain_high"])?;
        }
    }
    // Built without optimisation, `mixes` is several times faster at -O1.
    ensure!(any, "{found}");
    succeed(cere(directory).args(["hybrid", "-o", "tuned"]))?;
    same(directory, "tuned", &[])
}

#[test]
fn variants_with_another_result() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    let name = region(directory, "compensated")?;
    let tried = |records: &[String]| records.iter().any(|r| r.contains("fast-math"));
    let found = tune(directory, &["20", "compensated@*"])?;
    ensure!(
        found["evaluations"] == 2 && !found.to_string().contains("fast-math"),
        "{found}"
    );
    ensure!(!tried(&replayed(directory, &name)?), "{name} was replayed");

    let found = tune(directory, &["20", "--change-values", "compensated@*"])?;
    ensure!(tried(&replayed(directory, &name)?), "{name}: {found}");
    let own = entry_of(&found, "compensated")?;
    ensure!(own["evaluations"] == 5, "{own}");
    let flags = own["flags"].as_str().unwrap_or("");
    ensure!(!flags.contains("fast-math"), "{own}");
    // Each of -ffast-math failed, be it that another with the same code did.
    let with = |list: &[Value]| {
        let variants = list.iter().filter_map(|v| v["variant"].as_str());
        variants.filter(|v| v.contains("fast-math")).count()
    };
    let failed = array(own, "failed")?;
    ensure!(failed.len() == 3 && with(failed) == 3, "{own}");
    ensure!(with(array(own, "ranked")?) == 0, "{own}");
    let reason = failed[0]["reason"].as_str().unwrap_or("");
    ensure!(
        reason.contains("another result") && reason.contains(&name),
        "{own}"
    );
    Ok(())
}

/// Nobody said that -ffast-math changes values: what it does to one region tells against it in all.
#[test]
fn flags_that_break_code() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    let space = r#"
[[group]]
name = "level"
choices = ["-O1", "-O2", "-O3"]

[[group]]
name = "alignment"
choices = [
    "-mllvm -align-all-blocks=2",
    "-mllvm -align-all-blocks=3",
    "-mllvm -align-all-blocks=4",
    "-mllvm -align-all-blocks=5",
    "-mllvm -align-all-blocks=6",
    "-mllvm -align-all-blocks=7",
    "-mllvm -align-all-blocks=8",
]

[[group]]
name = "math"
choices = ["-ffast-math"]
"#;
    std::fs::write(directory.join("space.toml"), space)?;
    let mut command = cere(directory);
    command.args(["tune", "--json", "--space", "space.toml"]);
    command.args(["--reps", "2", "--budget", "120"]);
    let (found, run) = json(&mut command)?;
    let said = text(&run);
    let suspects = array(&found, "suspects")?;
    ensure!(
        suspects.len() == 1 && suspects[0]["flags"] == "-ffast-math",
        "{found}"
    );
    let failed = suspects[0]["failed"].as_u64().unwrap_or(0);
    ensure!(failed >= 4, "{found}");
    ensure!(
        said.contains("variants with -ffast-math failed, 0 of"),
        "{said}"
    );
    for own in array(&found, "regions")? {
        let flags = own["flags"].as_str().unwrap_or("");
        ensure!(!flags.contains("-ffast-math"), "{own}");
    }
    Ok(())
}

#[test]
fn hybrids_that_are_only_linked() -> Result<()> {
    let (directory, mixes, compensated) = sums_and_regions()?;
    let directory = directory.path();
    let flags = choices(
        directory,
        &[
            (&mixes, "flags = \"-O3 -funroll-loops\""),
            (&compensated, "passes = \"function(sroa,instcombine)\""),
        ],
    )?;
    let mut command = hybrid(directory, &flags, "tuned");
    let (found, _) = json(command.args(["--json", "--image", "program"]))?;
    for key in [
        "plain_seconds",
        "hybrid_seconds",
        "best_level",
        "best_level_seconds",
    ] {
        ensure!(found.get(key) == Some(&Value::Null), "{key}: {found}");
    }
    ensure!(array(&found, "regions")?.len() == 2, "{found}");
    let own = entry_of(&found, "mixes")?;
    ensure!(own["name"] == *mixes && own["kept"] == true, "{own}");
    ensure!(own["flags"] == "-O3 -funroll-loops", "{own}");
    ensure!(
        entry_of(&found, "compensated")?["passes"] == "function(sroa,instcombine)",
        "{found}"
    );
    same(directory, "tuned", &[])?;
    let code = |name: &str| std::fs::read(directory.join(name));
    ensure!(code("tuned")? != code("program")?, "it is the plain build");

    // What was written is read again, from elsewhere, and is the same.
    let written = std::fs::read_to_string(directory.join("tuned.flags"))?;
    std::fs::create_dir(directory.join("below"))?;
    let mut command = hybrid(
        &directory.join("below"),
        Path::new("../tuned.flags"),
        "again",
    );
    succeed(command.args(["--store", "../.cere", "--image", "../program"]))?;
    same(directory, "below/again", &[])?;
    let again = std::fs::read_to_string(directory.join("below/again.flags"))?;
    ensure!(again == written, "{again} instead of {written}");

    // Flags of all but the regions.
    std::fs::write(directory.join("rest"), "version = 1\nrest = \"-O3\"\n")?;
    let mut command = hybrid(directory, Path::new("rest"), "other");
    succeed(command.args(["--image", "program", "--write-flags", "kept"]))?;
    same(directory, "other", &[])?;
    let kept = std::fs::read_to_string(directory.join("kept"))?;
    ensure!(kept.contains("rest = \"-O3\""), "{kept}");
    ensure!(
        !directory.join("other.flags").exists(),
        "the default's name"
    );
    Ok(())
}

#[test]
fn hybrids_that_are_run() -> Result<()> {
    let (directory, mixes, compensated) = sums_and_regions()?;
    let directory = directory.path();
    let flags = choices(
        directory,
        &[
            (&mixes, "flags = \"-O3\""),
            (&compensated, "flags = \"-O2\""),
        ],
    )?;
    let mut command = hybrid(directory, &flags, "tuned");
    command.args(["--json", "--rounds", "2", "--", "./program", "100"]);
    let (found, run) = json(&mut command)?;
    ensure!(run.status.success(), "{}", text(&run));
    let times = ["plain_seconds", "hybrid_seconds"];
    positive(&found, &times)?;
    positive(&found, &["best_level_seconds"])?;
    let level = found["best_level"].as_str();
    ensure!(
        ["-O1", "-O2", "-O3"].map(Some).contains(&level),
        "{level:?}"
    );
    for own in array(&found, "regions")? {
        positive(own, &times)?;
        ensure!(
            own["kept"].as_bool() == Some(own["reason"].is_null()),
            "{own}"
        );
    }
    same(directory, "tuned", &["100"])?;

    let mut command = hybrid(directory, &flags, "told");
    command.args(["--explain", "--no-levels", "--rounds", "2", "--"]);
    let run = succeed(command.args(["./program", "100"]))?;
    let table = String::from_utf8_lossy(&run.stdout);
    for part in [&mixes, &compensated, "-O3", "-O2", "of 2 regions"] {
        ensure!(table.contains(part), "no {part} in {table}");
    }
    same(directory, "told", &[])
}

#[test]
fn nothing_is_told_as_nothing() -> Result<()> {
    let directory = sums()?;
    let directory = directory.path();
    let mixes = region(directory, "mixes")?;
    let flags = choices(directory, &[(&mixes, "flags = \"-O0\"")])?;
    let mut command = hybrid(directory, &flags, "tuned");
    let run = succeed(command.args(["--explain", "--image", "program"]))?;
    let table = String::from_utf8_lossy(&run.stdout);
    ensure!(!table.contains("-0 ns"), "{table}");
    Ok(())
}

/// A pipeline of a whole level, for one of two regions of a unit.
#[test]
fn pipelines_of_levels() -> Result<()> {
    let directory = sums()?;
    let directory = directory.path();
    let names = [
        region(directory, "mixes")?,
        region(directory, "compensated")?,
    ];
    let lines = "passes = \"default<O1>\"";
    let flags = choices(directory, &names.each_ref().map(|n| (&**n, lines)))?;
    succeed(hybrid(directory, &flags, "tuned").args(["--image", "program"]))?;
    same(directory, "tuned", &[])
}

#[test]
fn regions_that_change_the_output_are_put_back() -> Result<()> {
    let (directory, mixes, compensated) = sums_and_regions()?;
    let directory = directory.path();
    let flags = choices(
        directory,
        &[
            (&mixes, "flags = \"-O3\""),
            (&compensated, "flags = \"-ffast-math\""),
        ],
    )?;
    // Without a run nobody notices, which shows that the flags arrive.
    succeed(hybrid(directory, &flags, "wrong").args(["--image", "program"]))?;
    let wrong = printed(directory, "wrong", &[])?;
    ensure!(wrong != printed(directory, "program", &[])?, "{wrong}");

    let mut command = hybrid(directory, &flags, "tuned");
    command.args(["--json", "--no-levels", "--rounds", "2", "--", "./program"]);
    let (found, run) = json(&mut command)?;
    ensure!(run.status.success(), "{}", text(&run));
    let own = entry_of(&found, "compensated")?;
    let reason = own["reason"].as_str().unwrap_or("");
    ensure!(own["kept"] == false, "{own}");
    ensure!(
        reason.contains("output") && reason.contains("sum"),
        "{reason}"
    );
    let other = entry_of(&found, "mixes")?["reason"].as_str().unwrap_or("");
    ensure!(!other.contains("output"), "{found}");
    same(directory, "tuned", &[])?;
    let kept = std::fs::read_to_string(directory.join("tuned.flags"))?;
    ensure!(!kept.contains("fast-math"), "{kept}");

    // Another number is right, where a user says so; in vectors half of the sum is left.
    let flags = choices(directory, &[(&compensated, "flags = \"-O2 -ffast-math\"")])?;
    for (tolerance, right) in [("0.01", false), ("0.9", true)] {
        let mut command = hybrid(directory, &flags, "near");
        command.args(["--json", "--no-levels", "--rounds", "2"]);
        command.args(["--tolerance", tolerance, "--", "./program"]);
        let (found, _) = json(&mut command)?;
        let reason = entry_of(&found, "compensated")?["reason"].as_str();
        let wrong = reason.is_some_and(|r| r.contains("output"));
        ensure!(wrong != right, "{tolerance}: {found}");
    }
    Ok(())
}

#[test]
fn predictions() -> Result<()> {
    let directory = captured()?;
    let directory = directory.path();
    std::fs::write(
        directory.join("sets"),
        "# two sets\n-O1\n\n-O2 -fno-vectorize\n",
    )?;
    let mut command = cere(directory);
    command.args(["predict", "--flags-file", "sets", "--json", "--measure"]);
    let (found, run) = json(command.args(["--reps", "2", "--rounds", "2"]))?;
    ensure!(run.status.success(), "{}", text(&run));
    let rows = array(&found, "rows")?;
    let sets: Vec<&Value> = rows.iter().map(|r| &r["flags"]).collect();
    ensure!(sets == ["-O1", "-O2 -fno-vectorize"], "{found}");
    for row in rows {
        positive(row, &["predicted_seconds", "measured_seconds"])?;
        ensure!(row["reason"].is_null(), "{row}");
    }
    positive(&found, &["plain_seconds", "covered"])?;

    // Without a run; what gives another result is not foretold, and what has the code of the build takes its time.
    let sets = "-O2\n# as built\n-O1\n-O2 -mllvm -enable-newgvn=false\n-ffast-math\n";
    std::fs::write(directory.join("sets"), sets)?;
    let mut command = cere(directory);
    command.args(["predict", "--flags-file", "sets", "--json"]);
    let (found, _) = json(command.args(["--reps", "2", "--rounds", "1"]))?;
    let rows = array(&found, "rows")?;
    let lines: Vec<&Value> = rows.iter().map(|r| &r["line"]).collect();
    ensure!(lines == [1, 3, 4, 5], "{found}");
    let predicted = |row: usize| &rows[row]["predicted_seconds"];
    positive(&rows[0], &["predicted_seconds"])?;
    ensure!(rows[0]["measured_seconds"].is_null(), "{found}");
    ensure!(*predicted(1) == found["plain_seconds"], "{found}");
    ensure!(predicted(0) != predicted(1), "{found}");
    ensure!(predicted(0) == predicted(2), "{found}");
    let reason = rows[3]["reason"].as_str().unwrap_or("");
    ensure!(predicted(3).is_null(), "{found}");
    ensure!(reason.contains("another result"), "{found}");
    Ok(())
}

const CALLS: &str = r#"
#include <stdio.h>
long work(long n);
int main(void) { printf("%ld\n", work(100000)); }
"#;

/// Builds by other commands than a compile and a link of its object.
#[test]
fn images_of_several_kinds() -> Result<()> {
    let archive = "$CC -O1 -c work.c && ar rcs libx.a work.o && rm work.o && $CC -O1 main.c";
    for (build, image) in [
        (format!("{archive} libx.a -o program"), "program"),
        (format!("{archive} -L. -lx -o program"), "program"),
        ("$CC -O1 main.c work.c -o program".into(), "program"),
        (
            "$CC -O1 -fPIC -shared work.c -o libx.so && $CC -O1 main.c -L. -lx -Wl,-rpath,$PWD -o program".into(),
            "libx.so",
        ),
    ] {
        let directory = instrumented(&[("main.c", CALLS), ("work.c", WORK)], &build)?;
        linked_again(directory.path(), image).with_context(|| build)?;
    }
    Ok(())
}

#[test]
fn regions_of_another_image_are_named() -> Result<()> {
    let build = "$CC -O1 -fPIC -shared work.c -o libx.so && $CC -O1 main.c -L. -lx -o program";
    let directory = instrumented(&[("main.c", CALLS), ("work.c", WORK)], build)?;
    let directory = directory.path();
    let work = region(directory, "work")?;
    let flags = choices(directory, &[(&work, "flags = \"-O3\"")])?;
    let run = succeed(hybrid(directory, &flags, "tuned").args(["--image", "program"]))?;
    let all = text(&run);
    ensure!(all.contains(&work) && all.contains("--image"), "{all}");
    Ok(())
}

/// The hybrid of `image` in its place.
fn linked_again(directory: &Path, image: &str) -> Result<()> {
    let work = region(directory, "work")?;
    let flags = choices(directory, &[(&work, "flags = \"-O3 -funroll-loops\"")])?;
    let plain = printed(directory, "program", &[])?;
    let mut command = hybrid(directory, &flags, "tuned");
    let (found, _) = json(command.args(["--json", "--image", image]))?;
    ensure!(entry_of(&found, "work")?["kept"] == true, "{found}");
    let [before, tuned] = [image, "tuned"].map(|name| std::fs::read(directory.join(name)));
    ensure!(before? != tuned?, "it is the plain build");
    std::fs::rename(directory.join("tuned"), directory.join(image))?;
    let own = printed(directory, "program", &[])?;
    ensure!(own == plain, "{own} instead of {plain}");
    if image != "program" {
        // The program itself has none of the region's code.
        let mut command = hybrid(directory, &flags, "other");
        let (found, _) = json(command.args(["--json", "--image", "program"]))?;
        let reason = entry_of(&found, "work")?["reason"].as_str().unwrap_or("");
        ensure!(reason.contains("--image"), "{found}");
    }
    Ok(())
}

/// Regions that tell how many threads run them.
const TEAMS: &str = r#"
#include <omp.h>
#include <stdio.h>
static __attribute__((noinline)) void first(int *count) {
    #pragma omp parallel
    {
        #pragma omp single
        *count = omp_get_num_threads();
    }
}
static __attribute__((noinline)) void second(int *count) {
    #pragma omp parallel
    {
        #pragma omp single
        *count = omp_get_num_threads();
    }
}
int main(void) {
    int one = 0, other = 0;
    first(&one);
    second(&other);
    printf("%d %d\n", one, other);
}
"#;

#[test]
fn teams_of_regions() -> Result<()> {
    let directory = instrumented(
        &[("main.c", TEAMS)],
        "$CC -fopenmp -g -O1 main.c -o program",
    )?;
    let directory = directory.path();
    let first = region(directory, "first")?;
    let plain = printed(directory, "program", &[])?;
    ensure!(plain == "1 1\n", "{plain}");
    for (lines, expected) in [
        ("threads = 3", "3 1\n"),
        ("threads = 3\nbind = \"spread\"", "3 1\n"),
        ("bind = \"close\"\nflags = \"-O3\"", "1 1\n"),
    ] {
        let flags = choices(directory, &[(&first, lines)])?;
        let mut command = hybrid(directory, &flags, "tuned");
        let (found, _) = json(command.args(["--json", "--image", "program"]))?;
        let threads = lines.starts_with("threads").then_some(3);
        ensure!(
            entry_of(&found, "first")?["threads"].as_u64() == threads,
            "{found}"
        );
        let own = printed(directory, "tuned", &[])?;
        ensure!(own == expected, "{lines}: {own}");
        let kept = std::fs::read_to_string(directory.join("tuned.flags"))?;
        for line in lines.lines() {
            ensure!(kept.contains(line), "no {line} in {kept}");
        }
    }
    // What counts its threads prints something else with more of them.
    let flags = choices(directory, &[(&first, "threads = 3")])?;
    let mut command = hybrid(directory, &flags, "tuned");
    command.args(["--json", "--no-levels", "--rounds", "2", "--", "./program"]);
    let (found, _) = json(command.env("OMP_NUM_THREADS", "1"))?;
    let own = entry_of(&found, "first")?;
    let reason = own["reason"].as_str().unwrap_or("");
    ensure!(own["kept"] == false && reason.contains("output"), "{found}");
    // Nothing is left of it: what its runs took is the plain build's time.
    ensure!(found["hybrid_seconds"] == found["plain_seconds"], "{found}");
    same(directory, "tuned", &[])?;
    // A region that has moved since keeps its team.
    let moved = [("first@main.c:999", "threads = 3\nbind = \"spread\"")];
    let flags = choices(directory, &moved)?;
    succeed(hybrid(directory, &flags, "tuned").args(["--image", "program"]))?;
    let kept = std::fs::read_to_string(directory.join("tuned.flags"))?;
    ensure!(kept.contains("bind = \"spread\""), "{kept}");
    Ok(())
}
