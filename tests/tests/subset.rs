//! `cere subset`, `cere measure`, `cere predict --machine`, `cere report --subset`: what is alike is clustered, times become
//! predictions by arithmetic alone, work that was interrupted goes on, and what is wrong is named. No clock decides anything here.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::{instrument, refused};
use cere_tests::tools::{cere, json, output, succeed, text};
use serde_json::{Value, json as value};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

const PROGRAM: &str = include_str!("../subset/one.c");
/// Little of everything: the times are not looked at.
const QUICK: [&str; 4] = ["--rounds", "2", "--reps", "3"];

/// Two programs with codelets of the same three loops, and one more in the second; made once.
static STORES: LazyLock<tempfile::TempDir> = LazyLock::new(|| made().expect("two programs"));

fn made() -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir()?;
    for number in ["1", "2"] {
        let at = directory.path().join(number);
        std::fs::create_dir(&at)?;
        let name = format!("program{number}");
        std::fs::write(at.join("one.c"), PROGRAM)?;
        let build = format!("clang-22 -O2 -DONE={number} one.c -o {name}");
        instrument(&at, &build)?;
        let program = format!("./{name}");
        succeed(cere(&at).args(["capture", "--runs", "1", "--", &program]))?;
    }
    Ok(directory)
}

/// A directory of a test's own, and the command in it with the two stores.
fn subset(at: &Path, more: &[&str]) -> Command {
    let mut command = cere(at);
    command.args(["subset"]);
    for number in ["1", "2"] {
        command.arg(STORES.path().join(number).join(".cere"));
    }
    command.args(["--budget", "100000"]).args(QUICK).args(more);
    command
}

fn found(command: &mut Command) -> Result<Value> {
    let (found, run) = json(command)?;
    ensure!(run.status.success(), "{command:?}\n{}", text(&run));
    Ok(found)
}

fn measure(at: &Path, archive: &str, to: &str) -> Command {
    let mut command = cere(at);
    command.args(["measure", archive, "-o", to]).args(QUICK);
    command
}

fn read(path: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

fn names(value: &Value) -> Vec<&str> {
    let all = value.as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(Value::as_str).collect()
}

/// Loops with the same code in two programs are one cluster, others are not.
#[test]
fn what_is_alike_is_clustered() -> Result<()> {
    let at = tempfile::tempdir()?;
    let found = found(subset(at.path(), &["--json", "--clusters", "3"]).arg("--linear"))?;
    ensure!(found["k"] == 3, "{found:#}");
    let clusters = found["clusters"].as_array().context("clusters")?;
    for function in ["triad", "chain", "scramble"] {
        let with: Vec<&Value> = clusters
            .iter()
            .filter(|c| names(&c["members"]).iter().any(|m| m.contains(function)))
            .collect();
        ensure!(
            with.len() == 1,
            "{function} is in {} clusters: {found:#}",
            with.len()
        );
        let programs = names(&with[0]["members"]);
        for program in ["program1/", "program2/"] {
            ensure!(programs.iter().any(|p| p.starts_with(program)), "{found:#}");
        }
    }
    // The streams of the second program are alike.
    let streams = clusters
        .iter()
        .find(|c| names(&c["members"]).iter().any(|m| m.contains("triad")));
    let streams = names(&streams.context("streams")?["members"]);
    ensure!(streams.iter().any(|m| m.contains("scale")), "{streams:?}");
    let reduction = found["reduction"].as_f64().context("a reduction")?;
    ensure!(reduction > 1.0, "{reduction}");
    ensure!(found["expected_error"].is_null(), "{found:#}");
    Ok(())
}

/// Doubles every time of a measurement of `from`, a multiple of the reference times, and writes it to `to`.
fn scaled(from: &Path, to: &Path, factor: impl Fn(&str) -> f64) -> Result<Value> {
    let mut document = read(from)?;
    let references: Vec<(String, f64)> = document["subset"]["codelets"]
        .as_array()
        .context("codelets")?
        .iter()
        .map(|c| {
            let rounds = c["reference"].as_array().map_or(&[][..], Vec::as_slice);
            let least = rounds
                .iter()
                .filter_map(Value::as_f64)
                .fold(f64::INFINITY, f64::min);
            (c["name"].as_str().unwrap_or_default().to_owned(), least)
        })
        .collect();
    for measured in document["codelets"].as_array_mut().context("codelets")? {
        let number = measured["codelet"].as_u64().context("a number")? as usize;
        let (name, seconds) = &references[number];
        let seconds = seconds * factor(name);
        measured["rounds"] =
            value!([{"seconds": seconds, "built": null}, {"seconds": seconds, "built": null}]);
    }
    std::fs::write(to, serde_json::to_vec(&document)?)?;
    Ok(document)
}

/// Times become predictions: on a machine where all codelets take a multiple, so do the programs; where the kinds of loops differ,
/// each program is the sum of its own.
#[test]
fn predictions_are_arithmetic() -> Result<()> {
    let at = tempfile::tempdir()?;
    let at = at.path();
    let three = ["--json", "--clusters", "3", "--linear"];
    let whole = ["--whole", "-o", "all.cere"];
    let made = found(subset(at, &three).args(whole))?;
    found(measure(at, "all.cere", "here.json").arg("--json"))?;
    ensure!(!at.join("here.json.work").exists(), "the job is left");
    scaled(&at.join("here.json"), &at.join("double.json"), |_| 2.0)?;
    let predict = |file: &str| found(cere(at).args(["predict", "--json", "--machine", file]));
    let double = predict("double.json")?;
    let near = |a: &Value, b: f64| a.as_f64().is_some_and(|a| (a / b - 1.0).abs() < 1e-6);
    for program in double["programs"].as_array().context("programs")? {
        let reference = program["reference_seconds"].as_f64().context("seconds")?;
        ensure!(
            near(&program["predicted_seconds"], 2.0 * reference),
            "{program}"
        );
        // The reference has its own noise, the machine has none.
        let ends = (program["low"].as_f64(), program["high"].as_f64());
        ensure!(
            ends.0 <= Some(2.0 * reference) && ends.1 >= Some(2.0 * reference),
            "{program}"
        );
    }
    ensure!(double["refused"] == value!([]), "{double}");
    ensure!(
        near(&double["point_errors"]["most"], 1.0)
            || double["point_errors"]["most"].as_f64() < Some(1e-9)
    );
    // Chains take three times as long, all else half as long.
    let kinds = |name: &str| if name.contains("chain") { 3.0 } else { 0.5 };
    scaled(&at.join("here.json"), &at.join("kinds.json"), kinds)?;
    let document = read(&at.join("kinds.json"))?;
    let kinds_found = predict("kinds.json")?;
    let points = document["subset"]["points"].as_array().context("points")?;
    for (number, program) in kinds_found["programs"]
        .as_array()
        .context("programs")?
        .iter()
        .enumerate()
    {
        let (mut here, mut there) = (0.0, 0.0);
        for point in points.iter().filter(|p| p["program"] == number) {
            let seconds = point["seconds"].as_f64().context("seconds")?;
            here += seconds;
            there += seconds * kinds(point["name"].as_str().unwrap_or_default());
        }
        let reference = program["reference_seconds"].as_f64().context("seconds")?;
        ensure!(
            near(&program["predicted_seconds"], reference * there / here),
            "{program}"
        );
    }
    ensure!(
        kinds_found["reduction"].as_f64() > Some(1.0),
        "{kinds_found}"
    );
    // Which machine suits which program.
    let mut rank = cere(at);
    rank.args(["predict", "--json", "--rank"]);
    let ranked = found(rank.args(["--machine", "double.json", "here.json"]))?;
    let first = &ranked[0]["machines"];
    ensure!(first[0][1]["predicted_seconds"].as_f64() <= first[1][1]["predicted_seconds"].as_f64());
    // Expected errors: of machines where members do as their representatives, none.
    let machines = ["--machines", "double.json", "kinds.json"];
    // With logarithms, the default. The chain makes three accesses in all: by linear metrics it counts much whether its two constants
    // share a line.
    let logarithms = ["--json", "--clusters", "3"];
    let expected = found(subset(at, &logarithms).args(machines))?;
    let errors = &expected["expected_error"]["programs"];
    ensure!(errors["most"].as_f64() < Some(1e-6), "{errors}");
    // Both are one machine at the same flags: neither can be left out. Trained metrics have seen all programs.
    let train = ["--train", "--population", "8", "--generations", "2"];
    let mut trained = subset(at, &["--json", "--unified"]);
    let trained = found(trained.args(train).args(machines))?;
    for expected in [
        &trained["expected_error"],
        &trained["two_steps"]["expected"],
    ] {
        ensure!(expected["machine_left_out"] == value!([]), "{expected}");
        ensure!(expected["points"].is_null(), "{expected}");
        ensure!(expected["control"].is_object(), "{expected}");
    }
    ensure!(made["id"] == read(&at.join("here.json"))?["subset"]["id"]);
    // The page and its pictures.
    let mut report = cere(at);
    report.args(["report", "--subset", "all.cere"]);
    report.args(["--machine", "double.json", "kinds.json"]);
    succeed(report.args(["-o", "page.html", "--svg", "pictures"]))?;
    let page = std::fs::read_to_string(at.join("page.html"))?;
    for part in ["Dendrogram", "program1", "Random, best", "k-means"] {
        ensure!(page.contains(part), "the page lacks {part}");
    }
    for picture in ["dendrogram", "errors", "machine1", "machine2"] {
        let svg = std::fs::read_to_string(at.join(format!("pictures/{picture}.svg")))?;
        ensure!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>"),
            "{picture}"
        );
    }
    Ok(())
}

/// A cluster whose check does otherwise than its representative is refused, and counts as not covered.
#[test]
fn disagreement_is_refused() -> Result<()> {
    let at = tempfile::tempdir()?;
    let at = at.path();
    let few = ["--json", "--clusters", "3", "--linear", "-o", "few.cere"];
    found(&mut subset(at, &few))?;
    found(measure(at, "few.cere", "here.json").arg("--json"))?;
    let document = read(&at.join("here.json"))?;
    let clusters = document["subset"]["clusters"]
        .as_array()
        .context("clusters")?;
    let streams = clusters
        .iter()
        .find(|c| c["members"].as_array().is_some_and(|m| m.len() == 3))
        .context("the streams are three")?;
    let check = streams["checks"][0].as_u64().context("a check")? as usize;
    let members = document["subset"]["points"][check]["members"].as_array();
    let members = members.context("its codelets")?;
    let own: Vec<u64> = members.iter().filter_map(|m| m[0].as_u64()).collect();
    let place = std::cell::Cell::new(0);
    scaled(&at.join("here.json"), &at.join("apart.json"), |_| {
        let number = place.replace(place.get() + 1);
        let codelet = document["codelets"][number]["codelet"].as_u64();
        match codelet.is_some_and(|c| own.contains(&c)) {
            true => 4.0,
            false => 1.0,
        }
    })?;
    let found = found(cere(at).args(["predict", "--json", "--machine", "apart.json"]))?;
    let refused = found["refused"].as_array().context("refused")?;
    ensure!(refused.len() == 1, "{found:#}");
    let reason = refused[0]["reason"].as_str().context("a reason")?;
    ensure!(
        reason.contains("4.00") && reason.contains("1.00"),
        "{reason}"
    );
    let lenient =
        output(cere(at).args(["predict", "--machine", "apart.json", "--disagree", "400"]))?;
    ensure!(!text(&lenient).contains("refused"), "{}", text(&lenient));
    Ok(())
}

/// A call that ended before all was measured goes on: what has a result is not replayed again.
#[test]
fn an_interrupted_measurement_goes_on() -> Result<()> {
    let at = tempfile::tempdir()?;
    let at = at.path();
    let few = ["--json", "--clusters", "3", "-o", "few.cere"];
    found(&mut subset(at, &few))?;
    let mut first = measure(at, "few.cere", "here.json");
    let mut child = first.args(["--chunk", "1"]).spawn()?;
    let result = at.join("here.json.work/results/0.json");
    while !result.exists() {
        ensure!(
            child.try_wait()?.is_none(),
            "it ended before its first result"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    ensure!(!at.join("here.json").exists());
    let before = std::fs::metadata(&result)?.modified()?;
    // Another subset or other settings are another job.
    refused(
        measure(at, "few.cere", "here.json").args(["--chunk", "1", "--flags", "-O1"]),
        "here.json.work",
    )?;
    std::fs::hard_link(&result, at.join("kept"))?;
    let mut again = measure(at, "few.cere", "here.json");
    succeed(again.args(["--chunk", "1"]))?;
    ensure!(std::fs::metadata(at.join("kept"))?.modified()? == before);
    let document = read(&at.join("here.json"))?;
    let measured = document["codelets"].as_array().context("codelets")?;
    let rounds = |m: &Value| m["rounds"].as_array().map_or(0, Vec::len);
    ensure!(measured.iter().all(|m| rounds(m) == 2), "{document:#}");
    Ok(())
}

/// Executables that were linked when the subset was made run without a compiler.
#[test]
fn linked_replays_need_no_compiler() -> Result<()> {
    let at = tempfile::tempdir()?;
    let at = at.path();
    let linked = ["--json", "--clusters", "2", "--prebuilt"];
    found(subset(at, &linked).args(["-o", "linked.cere"]))?;
    let mut command = measure(at, "linked.cere", "here.json");
    // Nothing in PATH, and nothing built before.
    command
        .args(["--prebuilt", "--json"])
        .env("PATH", "/nowhere");
    let found = found(&mut command)?;
    let codelets = found["codelets"].as_array().context("codelets")?;
    ensure!(codelets.iter().all(|c| c["reason"].is_null()), "{found:#}");
    ensure!(found["prebuilt"] == true);
    let mut other = measure(at, "linked.cere", "other.json");
    refused(
        other.args(["--prebuilt", "--flags", "-O1"]),
        "leave out --flags, or --prebuilt",
    )?;
    Ok(())
}

fn model(at: &Path, to: &str, more: &[&str]) -> Command {
    let mut command = cere(at);
    command.args(["measure", "few.cere", "-o", to, "--model"]);
    command.args(more);
    command
}

/// A model of a processor stands for a machine that is not there, and is called no measurement wherever its times go.
#[test]
fn a_model_is_no_measurement() -> Result<()> {
    let at = tempfile::tempdir()?;
    let at = at.path();
    let few = ["--json", "--clusters", "3", "-o", "few.cere"];
    found(&mut subset(at, &few))?;
    let slow = ["icelake-server", "--hertz", "2e9", "--json"];
    let slow = found(&mut model(at, "slow.json", &slow))?;
    ensure!(slow["model"]["cpu"] == "icelake-server", "{slow:#}");
    let basis = slow["basis"].as_str().context("a basis")?;
    ensure!(basis.ends_with("no measurement"), "{basis}");
    // What runs is counted, so that a frequency is all that changes a time.
    let fast = ["icelake-server", "--hertz", "4e9", "--json"];
    let fast = found(&mut model(at, "fast.json", &fast))?;
    let seconds = |of: &Value| -> Vec<f64> {
        let all = of["codelets"].as_array().map_or(&[][..], Vec::as_slice);
        let each = all.iter().map(|c| c["rounds"][0]["seconds"].as_f64());
        each.map(Option::unwrap_or_default).collect()
    };
    let pairs: Vec<(f64, f64)> = seconds(&slow).into_iter().zip(seconds(&fast)).collect();
    let twice = |(slow, fast): &(f64, f64)| *fast > 0.0 && (slow / fast - 2.0).abs() < 1e-9;
    ensure!(!pairs.is_empty() && pairs.iter().all(twice), "{pairs:?}");
    let predict = |files: &[&str]| {
        let mut command = cere(at);
        command.args(["predict", "--machine"]).args(files);
        command
    };
    let said = succeed(&mut predict(&["slow.json"]))?;
    ensure!(text(&said).contains("no measurement"), "{}", text(&said));
    let told = found(&mut predict(&["slow.json", "--json"]))?;
    ensure!(told["model"]["hertz"] == 2e9, "{told:#}");
    // The code as built over itself is 1, whatever the model.
    let itself = [
        "icelake-server",
        "--hertz",
        "2e9",
        "--baseline",
        "icelake-server@2e9",
    ];
    let itself = found(model(at, "itself.json", &itself).arg("--json"))?;
    let rounds = &itself["codelets"][0]["rounds"][0];
    ensure!(rounds["seconds"] == rounds["built"], "{itself:#}");
    // Beside measurements it has its name.
    let here = found(measure(at, "few.cere", "here.json").arg("--json"))?;
    ensure!(
        here["model"].is_null() && here["basis"] == "measured on x86_64",
        "{here:#}"
    );
    let ranked = found(&mut predict(&[
        "here.json",
        "slow.json",
        "--rank",
        "--json",
    ]))?;
    ensure!(
        ranked[0]["modelled"] == value!([slow["label"]]),
        "{ranked:#}"
    );
    ensure!(ranked[0]["sure"] == false, "{ranked:#}");
    for (arguments, part) in [
        (&["nosuch"][..], "has no model"),
        (&["znver4"], "--hertz"),
        (&["znver4", "--hertz", "3"], "2.5e9"),
        (&["neoverse-n1", "--baseline", "icelake-server"], "--hertz"),
        (&["neoverse-n1", "--prebuilt"], "--prebuilt"),
    ] {
        refused(&mut model(at, "x.json", arguments), part)?;
    }
    // Of another architecture: with its runtime and an emulator, or a word on what is missing.
    let run = output(&mut model(at, "arm.json", &["neoverse-n1"]))?;
    let said = text(&run);
    match run.status.success() {
        true => ensure!(
            read(&at.join("arm.json"))?["model"]["architecture"] == "aarch64",
            "{said}"
        ),
        false => ensure!(
            said.contains("make cross") || said.contains("install"),
            "{said}"
        ),
    }
    Ok(())
}

#[test]
fn what_is_wrong_is_named() -> Result<()> {
    let at = tempfile::tempdir()?;
    let at = at.path();
    let few = ["--json", "--clusters", "3", "-o", "few.cere"];
    found(&mut subset(at, &few))?;
    for (arguments, part) in [
        (&["--clusters", "99"][..], "cannot make 99 clusters"),
        (&["--clusters", "0"], "--clusters"),
        (&["--metrics", "nonsense"], "cere metrics --list"),
        (&["--metrics", "masked_share"], "tells the"),
        (&["--geometry", "none"], "--geometry"),
        (&["--train"], "--machines"),
        (&["--machines", "no.json"], "no.json"),
    ] {
        refused(&mut subset(at, arguments), part)?;
    }
    refused(
        cere(at).args(["subset", "nowhere/.cere"]),
        "cere instrument",
    )?;
    // Metrics without a use are named, and why.
    let some = found(&mut subset(at, &["--json", "--metrics", "mix"]))?;
    let dropped = some["dropped"].as_array().context("dropped")?;
    ensure!(
        dropped
            .iter()
            .any(|d| d[1].as_str().is_some_and(|w| !w.is_empty())),
        "{some:#}"
    );
    // One program says nothing of others.
    let mut one = cere(at);
    one.arg("subset").arg(STORES.path().join("1/.cere"));
    let run = succeed(one.args(["--budget", "100000"]).args(QUICK))?;
    ensure!(text(&run).contains("one program only"), "{}", text(&run));

    // Archives that are none, cut off, changed.
    refused(&mut measure(at, "none.cere", "x.json"), "none.cere")?;
    let whole = std::fs::read(at.join("few.cere"))?;
    let mut damaged = whole.clone();
    // Within a package: what fills a tar's blocks up means nothing.
    let header = whole.chunks(512).rposition(|b| b.starts_with(b"codelets/"));
    damaged[(header.context("a package")? + 1) * 512 + 1000] ^= 1;
    let name = whole.windows(8).position(|w| w == b"program1");
    let mut changed = whole.clone();
    changed[name.context("a program's name")? + 7] = b'9';
    for (name, bytes, to, part) in [
        ("text.cere", &b"hello"[..], "x.json", "cere subset"),
        (
            "cut.cere",
            &whole[..whole.len() / 2],
            "cut.json",
            "cut.cere",
        ),
        ("damaged.cere", &damaged, "damaged.json", "checksum"),
        ("changed.cere", &changed, "x.json", "changed after"),
    ] {
        std::fs::write(at.join(name), bytes)?;
        refused(&mut measure(at, name, to), part)?;
    }

    // Places and programs that are not there.
    for (arguments, part) in [
        (&["--on", "pbs"][..], "--on"),
        (&["--partition", "p"], "--on slurm"),
        (&["--run", "nobody=true"], "program1"),
        (&["--run", "program1=false"], "failed"),
        (&["--flags", "-not-a-flag"], "-not-a-flag"),
        (&["--prebuilt"], "cere subset --prebuilt"),
    ] {
        refused(measure(at, "few.cere", "x.json").args(arguments), part)?;
    }

    // Results of other subsets.
    ensure!(
        !at.join("x.json.work").exists(),
        "a job without a use is left"
    );
    found(measure(at, "few.cere", "here.json").arg("--json"))?;
    let predict_refused = |arguments: &[&str], part: &str| {
        refused(
            cere(at).args(["predict", "--machine"]).args(arguments),
            part,
        )
    };
    predict_refused(&["few.cere"], "cere measure")?;
    predict_refused(&["here.json", "--rank"], "--machine")?;
    predict_refused(&["here.json", "--threads", "2"], "cannot be used with")?;
    let mut alone = cere(at);
    alone
        .arg("subset")
        .arg(STORES.path().join("1/.cere"))
        .args(QUICK);
    alone.args(["--json", "--budget", "100000", "--clusters", "1"]);
    found(alone.args(["-o", "alone.cere"]))?;
    found(measure(at, "alone.cere", "alone.json").arg("--json"))?;
    let both = ["here.json", "alone.json", "--rank"];
    predict_refused(&both, "different subsets")?;
    // Measurements that were changed by hand.
    let measured = read(&at.join("here.json"))?;
    let changed = |change: &dyn Fn(&mut Value), part: &str| {
        let mut document = measured.clone();
        change(&mut document);
        std::fs::write(at.join("changed.json"), serde_json::to_vec(&document)?)?;
        predict_refused(&["changed.json"], part)
    };
    changed(&|document| document["version"] = value!(99), "version 99")?;
    let nobody = |document: &mut Value| document["programs"] = value!({"nobody": 1.0});
    changed(&nobody, "no program of its subset")?;
    let twice = |document: &mut Value| {
        let first = document["codelets"][0].clone();
        document["codelets"]
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.push(first.clone()));
    };
    changed(&twice, "twice")?;
    let hot = |document: &mut Value| {
        for measured in document["codelets"].as_array_mut().into_iter().flatten() {
            measured["rounds"] = value!([]);
            measured["reason"] = value!("it was too hot");
        }
    };
    changed(&hot, "too hot")?;
    let negative = |document: &mut Value| {
        document["codelets"][0]["rounds"][0]["seconds"] = value!(-1.0);
    };
    changed(&negative, "impossible time")?;
    Ok(())
}
