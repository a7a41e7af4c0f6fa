//! Build, run, profile, capture, replay, check.

use crate::directives::{BUILD, Directives, Expectation, Under, matches};
use crate::inject::inject;
use crate::prepare::plain;
use crate::tools::{cere, json, output, shown, succeed, text};
use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program under one set of flags, in a directory of its own.
pub struct Study<'a> {
    /// The main source.
    pub source: &'a Path,
    /// Its directives.
    pub directives: &'a Directives,
    /// Compiler flags.
    pub flags: &'a str,
    /// Scratch directory.
    pub directory: &'a Path,
}

/// A trial for each level of `directives`; `prepare` completes the directives when a trial runs. The directory of a failed
/// trial is kept.
pub fn trials(
    source: &Path,
    directives: &Directives,
    prepare: impl Fn(&mut Directives) -> Result<()> + Clone + Send + 'static,
) -> Vec<Trial> {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let trial = |flags: &String, team: Option<u32>| {
        let (source, flags) = (source.to_owned(), flags.clone());
        let (mut directives, prepare) = (directives.clone(), prepare.clone());
        let mut name = format!("{name} {flags}");
        if let Some(threads) = team {
            name += &format!(" ({threads} threads)");
            let threads = threads.to_string();
            directives.env.push(("OMP_NUM_THREADS".into(), threads));
        }
        Trial::test(name, move || {
            prepare(&mut directives).map_err(|e| format!("{e:#}"))?;
            let directory = tempfile::tempdir()?;
            let study = Study {
                source: &source,
                directives: &directives,
                flags: &flags,
                directory: directory.path(),
            };
            study.run().map_err(|error| {
                let kept = directory.keep();
                Failed::from(format!("{error:#}\nkept in {}", kept.display()))
            })
        })
    };
    let teams: Vec<Option<u32>> = match &directives.teams[..] {
        [] => vec![None],
        teams => teams.iter().copied().map(Some).collect(),
    };
    let levels = directives.levels.iter();
    levels
        .flat_map(|flags| teams.iter().map(|team| trial(flags, *team)))
        .collect()
}

/// The array that `value`, called `what`, has to be.
pub fn array<'v>(value: &'v Value, what: &str) -> Result<&'v Vec<Value>> {
    value
        .as_array()
        .with_context(|| format!("{what} is no array: {value}"))
}

/// The string `key` of an object.
pub fn string<'v>(value: &'v Value, key: &str) -> Result<&'v str> {
    value[key]
        .as_str()
        .with_context(|| format!("no {key} in {value}"))
}

impl Study<'_> {
    /// Runs all steps.
    pub fn run(&self) -> Result<()> {
        let plain = self.build_plain()?;
        let expected = self.program(&plain)?;
        ensure!(
            expected.status.code() == Some(self.directives.status),
            "the plain program ended with {}\n{}",
            expected.status,
            text(&expected)
        );
        let instrumented = self.build_instrumented()?;
        let dormant = self.program(&instrumented)?;
        same(&expected, &dormant, "the instrumented program")?;
        self.check_regions()?;
        self.profile(&expected)?;
        let codelets = self.capture(&expected)?;
        let mut wrong = Vec::new();
        for codelet in &codelets {
            self.replays(codelet, &mut wrong)?;
        }
        ensure!(
            wrong.is_empty(),
            "{} of {} replays:\n{}",
            wrong.len(),
            codelets.len(),
            wrong.join("\n")
        );
        // At some levels: each build has the same parts.
        let levels = ["-O2", "-O3"];
        if levels.iter().any(|level| self.flags.contains(level)) {
            self.hybrid(&expected)?;
        }
        Ok(())
    }

    /// The profiled program does what the plain one does.
    fn profile(&self, expected: &Output) -> Result<()> {
        let mut command = cere(self.directory);
        command.args(["profile", "--"]);
        let mut profiled = output(self.with_program(&mut command))?;
        // The program's own output, then the table.
        profiled.stdout.truncate(expected.stdout.len());
        if self.directives.status != 0 {
            profiled.status = expected.status;
        }
        same(expected, &profiled, "the profiled program")
    }

    /// The codelets that the directives ask for.
    fn capture(&self, expected: &Output) -> Result<Vec<Value>> {
        let mut command = cere(self.directory);
        command.args(["capture", "--json"]);
        if self.directives.capture.is_empty() {
            command.arg("*");
        }
        command.args(&self.directives.capture);
        let list = self.directives.invocation.as_deref().unwrap_or("1");
        command.args(["--invocation", list, "--runs", "1", "--"]);
        let (captured, run) = json(self.with_program(&mut command))?;
        self.check_capture(&captured, &run, expected)?;
        let codelets = array(&captured["codelets"], "codelets")?;
        ensure!(
            codelets.len() >= self.directives.codelets,
            "{} codelets instead of {}: {captured}\n{}\n{}",
            codelets.len(),
            self.directives.codelets,
            shown(&command),
            text(&run)
        );
        Ok(codelets.clone())
    }

    /// Replays a codelet in all ways, and again with a bit flipped in each word that the region wrote. What is wrong goes to `wrong`.
    fn replays(&self, codelet: &Value, wrong: &mut Vec<String>) -> Result<()> {
        let name = string(codelet, "name")?;
        match self.replay(name, None) {
            // If the replay itself differs, flipped bits show nothing.
            Ok(plain) if plain["verdict"] == "different" || plain["comparison"].is_null() => {}
            Ok(_) if self.directives.unflipped.is_some() => {}
            Ok(_) => {
                let file = Path::new(string(codelet, "file")?);
                // With several threads the excluded words vary from run to run, so counts of two replays cannot be compared.
                let threads = self.in_teams().then_some(1);
                let injected = inject(self.directory, file, threads);
                if let Err(error) = injected.context("a bit flipped in each written word") {
                    wrong.push(format!("{name}: {error:#}"));
                }
            }
            Err(error) => wrong.push(format!("{error:#}")),
        }
        let threads = self.directives.threads.iter();
        let threads = threads.map(|n| self.replay(name, Some(*n)).map(drop));
        let flags = self.directives.flags.iter();
        let flags = flags.map(|flags| self.replay_under(name, flags));
        let failed = threads.chain(flags).filter_map(Result::err);
        wrong.extend(failed.map(|error| format!("{error:#}")));
        Ok(())
    }

    /// Whether the program runs with several threads of OpenMP.
    fn in_teams(&self) -> bool {
        let threads = self
            .directives
            .env
            .iter()
            .find(|e| e.0 == "OMP_NUM_THREADS");
        threads.is_some_and(|(_, n)| n != "1")
    }

    fn home(&self) -> &Path {
        self.source.parent().unwrap_or(Path::new("."))
    }

    fn script(&self) -> String {
        if let Some(build) = &self.directives.build {
            return build.clone();
        }
        let compiler = |source: &Path| match source.extension().and_then(|e| e.to_str()) {
            Some("cpp") => "$CXX",
            Some("f90" | "f") => "$FC",
            _ => "$CC",
        };
        let more = self.directives.files.iter().map(|f| self.home().join(f));
        let (mut lines, mut objects) = (String::new(), String::new());
        for (number, source) in std::iter::once(self.source.to_owned())
            .chain(more)
            .enumerate()
        {
            let (own, source) = (compiler(&source), source.display());
            lines += &format!("{own} $FLAGS -c {source} -o o{number}.o && ");
            objects += &format!(" o{number}.o");
        }
        let linker = compiler(self.source);
        format!("{lines}{linker} $FLAGS{objects} -o program -lm -lpthread -ldl")
    }

    fn built(&self, directory: &Path, command: &mut Command) -> Result<PathBuf> {
        command
            .env("FLAGS", self.flags)
            .env("DIR", self.home())
            .current_dir(directory);
        succeed(command)?;
        Ok(directory.join("program"))
    }

    fn build_plain(&self) -> Result<PathBuf> {
        let directory = self.directory.join("plain");
        std::fs::create_dir_all(&directory)?;
        self.built(&directory, &mut plain(&self.script()))
    }

    fn build_instrumented(&self) -> Result<PathBuf> {
        let mut command = cere(self.directory);
        command.arg("instrument");
        if !self.directives.short_loops {
            command.arg("--all-loops");
        }
        for pattern in &self.directives.functions {
            command.args(["--functions", pattern]);
        }
        command.args(["--", "sh", "-ec", &self.script()]);
        self.built(self.directory, &mut command)
    }

    fn with_program<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .arg("./program")
            .args(&self.directives.args)
            .envs(self.directives.env.iter().cloned())
    }

    /// Runs the program in the file `path`.
    pub fn program(&self, path: &Path) -> Result<Output> {
        let mut command = Command::new(path);
        command
            .args(&self.directives.args)
            .envs(self.directives.env.iter().cloned())
            .current_dir(path.parent().unwrap_or(Path::new(".")));
        output(&mut command)
    }

    fn check_regions(&self) -> Result<()> {
        let (regions, _) = json(cere(self.directory).args(["regions", "--json"]))?;
        let regions = array(&regions, "regions")?;
        let mut met = vec![false; self.directives.loop_refused.len()];
        for region in regions {
            let name = string(region, "name")?;
            if region["outlined"] == true {
                continue;
            }
            let reason = string(region, "reason")?;
            let found = expected(&self.directives.loop_refused, name, reason)
                .with_context(|| format!("the loop {name} was not outlined: {reason}"))?;
            met[found] = true;
        }
        if let Some(i) = met.iter().position(|met| !met) {
            bail!(
                "no loop was refused as {:?} says",
                self.directives.loop_refused[i]
            );
        }
        let outlined = regions.iter().filter(|r| r["outlined"] == true).count();
        if let Some(wanted) = self.directives.regions {
            ensure!(outlined == wanted, "{outlined} regions instead of {wanted}");
        }
        Ok(())
    }

    fn check_capture(&self, captured: &Value, run: &Output, wanted: &Output) -> Result<()> {
        let program_output = String::from_utf8_lossy(&wanted.stdout);
        // With --json the program's output goes to standard error, among the command's own lines.
        let shown = String::from_utf8_lossy(&run.stderr);
        ensure!(
            program_output.lines().all(|line| shown.contains(line)),
            "the captured run did not print what the plain run prints\n{}",
            text(run)
        );
        let skipped = array(&captured["skipped"], "skipped")?;
        // It is the command's own where a region that was named gives no codelet, or none does.
        let globs = self
            .directives
            .capture
            .iter()
            .all(|name| name.contains('*'));
        let complete = !array(&captured["codelets"], "codelets")?.is_empty();
        ensure!(
            !complete || !(globs || skipped.is_empty()) || shell_code(run) == shell_code(wanted),
            "the captured run ended with {} instead of {}\n{}",
            run.status,
            wanted.status,
            text(run)
        );
        let mut met = vec![false; self.directives.refused.len()];
        for skipped in skipped {
            let (name, reason) = (string(skipped, "region")?, string(skipped, "reason")?);
            // A region that the run never entered cannot be captured.
            if reason.contains("never ran") || reason.contains("never came") {
                continue;
            }
            let found = expected(&self.directives.refused, name, reason)
                .with_context(|| format!("{name} was not captured: {reason}"))?;
            met[found] = true;
        }
        if let Some(i) = met.iter().position(|met| !met) {
            bail!(
                "no capture was refused as {:?} says: {captured}",
                self.directives.refused[i]
            );
        }
        Ok(())
    }

    fn replay(&self, codelet: &str, threads: Option<u32>) -> Result<Value> {
        let mut command = cere(self.directory);
        command.args(["replay", "--json", "--reps", "3", codelet]);
        if let Some(threads) = threads {
            command.args(["--threads", &threads.to_string()]);
        }
        let (result, run) = json(&mut command)?;
        let (verdict, reason) = (string(&result, "verdict")?, string(&result, "reason")?);
        ensure!(
            verdict == "exact" && run.status.success()
                || self.allowed(BUILD, codelet, verdict, reason),
            "{codelet}: {} ({})\n{}\n{}",
            result["verdict"],
            result["reason"],
            shown(&command),
            text(&run)
        );
        let identical = &result["identical_code"];
        if *identical != true
            && expected(&self.directives.other_code, codelet, "").is_none()
            && !self
                .directives
                .other_code
                .iter()
                .any(|e| matches(&e.glob, codelet))
        {
            bail!(
                "{codelet}: the machine code is not the one in vivo (identical_code: {identical})\n{}",
                shown(&command)
            );
        }
        Ok(result)
    }
}

impl Study<'_> {
    /// Whether the verdict of a replay under these flags is one that the directives name.
    fn allowed(&self, flags: &str, codelet: &str, verdict: &str, reason: &str) -> bool {
        let named = |u: &Under| {
            u.flags == flags
                && matches(&u.glob, codelet)
                && u.verdict == verdict
                && reason.contains(&u.text)
        };
        self.directives.under.iter().any(named)
    }

    fn replay_under(&self, codelet: &str, flags: &str) -> Result<()> {
        let mut command = cere(self.directory);
        command.args(["replay", "--json", "--reps", "2", codelet, "--flags", flags]);
        let (result, run) = json(&mut command)?;
        let (verdict, reason) = (string(&result, "verdict")?, string(&result, "reason")?);
        ensure!(
            self.allowed(flags, codelet, verdict, reason) || verdict == "exact",
            "{codelet} under {flags}: {verdict} ({reason})\n{}\n{}",
            shown(&command),
            text(&run)
        );
        Ok(())
    }
}

/// The status that a shell would report.
fn shell_code(run: &Output) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let signal = run.status.signal().map(|signal| 128 + signal);
    run.status.code().or(signal)
}

fn expected(list: &[Expectation], name: &str, reason: &str) -> Option<usize> {
    list.iter()
        .position(|e| matches(&e.glob, name) && reason.contains(&e.text))
}

/// Fails unless two runs ended alike and printed the same.
pub fn same(expected: &Output, found: &Output, who: &str) -> Result<()> {
    ensure!(
        expected.status == found.status,
        "{who} ended with {} instead of {}\n{}",
        found.status,
        expected.status,
        text(found)
    );
    ensure!(
        expected.stdout == found.stdout,
        "{who} printed something else:\n{}\ninstead of\n{}",
        String::from_utf8_lossy(&found.stdout),
        String::from_utf8_lossy(&expected.stdout)
    );
    Ok(())
}
