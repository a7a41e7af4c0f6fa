//! `cere study [--build CMD] -- PROGRAM`: everything from the build to the report, taking up where it stopped.

use crate::ask;
use crate::options::{self, Common};
use crate::show;
use anyhow::{Context, Result};
use cere_capture::capture::Forecast;
use cere_capture::input::Input;
use cere_catalogue::{OrCoded, bail, codes};
use cere_measure::study_seconds;
use cere_store::project::origin;
use cere_system::console::{self, note};
use serde::Deserialize;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// From a build to a report in one go
#[derive(clap::Args)]
#[command(after_help = "\
Runs `cere instrument`, `capture` (which profiles first), `check`, `explain` and `report` on one store. Each step uses what is\n\
there: the build compiles what has changed, a profile of the same command is used again, existing codelets are not\n\
captured and existing replays not repeated. So the same command continues an interrupted study. It stops at the first\n\
step that fails and ends with its status. A program that ends with a status other than 0 does not stop it: a warning\n\
says so, and the report.\n\
\n\
After the build it takes six times as long as the program, 5 s at least: profile and captures come first, replays get the\n\
rest, and each codelet is replayed once in any case. `cere check --again` measures longer. Then it looks for why the three\n\
largest regions take their time, for twice the program's time, 8 s at least (not with --quick).\n\
\n\
Examples:\n\
\x20 cere study --build 'make -j2' -- ./app input\n\
\x20 cere study --build 'ninja -C build' -o app.html -- build/app input")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// The build command, for a shell. Without it, CERE finds how the program was built: the last build in the store, build files
    /// in its folder and above, its debug information. It says what it will run, and asks if it has not run it before
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// Do not ask before the build that was found
    #[arg(long)]
    yes: bool,
    /// The report
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Largest error of a region that predictions may use, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "15")]
    max_error: String,
    /// Half the time, with wider intervals
    #[arg(long)]
    quick: bool,
    /// Run codelets and the compilers without the sandbox
    #[arg(long)]
    no_sandbox: bool,
    /// Kill the program after this many seconds
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// What `cere capture --plan --json` says.
#[derive(Deserialize)]
struct Planned {
    plan: Forecast,
}

/// Number of steps.
const STEPS: u32 = 6;

/// The steps, one after the other.
struct Course<'a> {
    options: &'a Options,
    /// For every step that runs the program.
    input: Input,
    begun: u32,
}

/// Where a step's output goes.
enum Told {
    Shown,
    Read,
}

impl Course<'_> {
    /// Runs a subcommand on the store, as the next step; its status, and its output if that is read.
    fn step(
        &mut self,
        name: &str,
        how: &str,
        told: Told,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<(ExitStatus, Vec<u8>)> {
        self.begun += 1;
        note!("[{}/{STEPS}] {how}", self.begun);
        let own = std::env::current_exe().context("cannot find this command's own file")?;
        let mut feed = self.input.for_next_run()?;
        let mut command = Command::new(&own);
        command
            .arg(name)
            .arg("--store")
            .arg(&self.options.common.store)
            .args(options::messages())
            .args(arguments);
        if let Some(stdin) = feed.stdin.take() {
            command.stdin(stdin);
        }
        // SAFETY: between fork and exec one system call without pointers.
        unsafe {
            // A study that is killed takes its step with it, which would hold the store else.
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        match told {
            Told::Read => drop(command.stdout(Stdio::piped())),
            Told::Shown if self.options.common.json && name != "check" => {
                command.stdout(Stdio::from(std::io::stderr()));
            }
            Told::Shown => {}
        }
        let output = command
            .spawn()
            .and_then(std::process::Child::wait_with_output);
        // What a step started may hold its end of a pipe: the rest of the input is the next step's.
        drop(command);
        let output = output.with_context(|| format!("cannot start {}", own.display()))?;
        Ok((output.status, output.stdout))
    }
}

/// The status with which a study stops at `name`; none: it goes on.
fn stops(name: &str, status: ExitStatus) -> Result<Option<u8>> {
    match status.code() {
        Some(0) => Ok(None),
        Some(code) => {
            note!("the study stopped at `cere {name}`; the same command takes it up there");
            Ok(Some(code as u8))
        }
        None => bail!(
            E4023,
            "`cere {name}` was ended: {status}; the same command goes on there"
        ),
    }
}

/// The build command: what the user says, else what is found and said; none if the user declines.
fn build(options: &Options) -> Result<Option<String>> {
    if let Some(build) = &options.build {
        return Ok(Some(build.clone()));
    }
    let origin = origin::of(&options.command, &options.common.store()?)?;
    let here = std::env::current_dir().context("the working directory is gone")?;
    let line = origin.line(&here);
    note!(
        "{} is built by `{line}`: {}",
        origin::program_of(&options.command),
        origin.why
    );
    let question = "cere: run it under CERE?";
    let runs = origin.recorded || options.yes || ask::agrees(question, "--yes")?;
    Ok(runs.then_some(line))
}

/// Says what is planned: `seconds` in all.
fn announce(plan: &Forecast, seconds: f64) {
    note!(
        "the program takes {:.2} s; planned: {} (about {:.1} s), then replays between runs of the program; with the profile about {seconds:.0} s",
        plan.program_seconds,
        show::codelets::planned(plan),
        plan.seconds
    );
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let Some(build) = build(options)? else {
        return Ok(1);
    };
    let mut course = Course {
        options,
        input: Input::open(&console::events())?,
        begun: 0,
    };
    let (status, _) = course.step(
        "instrument",
        "instrument",
        Told::Shown,
        ["--", "sh", "-c", &build],
    )?;
    if let Some(code) = stops("instrument", status)? {
        return Ok(code);
    }
    course.input.settle()?;
    let began = Instant::now();
    let timeout = options.timeout.map(|seconds| seconds.to_string());
    let mut capture = vec!["--missing", "--ignore-status"];
    if let Some(timeout) = &timeout {
        capture.extend(["--timeout", timeout]);
    }
    let words: Vec<&str> = std::iter::once("--")
        .chain(options.command.iter().map(String::as_str))
        .collect();
    let planned = [&["--plan", "--json"], &capture[..], &words].concat();
    let (status, output) = course.step("capture", "profile", Told::Read, planned)?;
    if let Some(code) = stops("capture", status)? {
        return Ok(code);
    }
    let planned: Planned =
        serde_json::from_slice(&output).context("`cere capture --plan` said nothing")?;
    let plan = planned.plan;
    let seconds = study_seconds(plan.program_seconds, options.quick);
    // What has to be done in any case, with a replay of each codelet.
    let replays = plan.program_seconds + plan.codelets as f64 * REPLAY;
    let least = began.elapsed().as_secs_f64() + plan.seconds + replays;
    announce(&plan, seconds.max(least));
    let (status, _) = course.step(
        "capture",
        "capture",
        Told::Shown,
        [&capture[..], &words].concat(),
    )?;
    if let Some(code) = stops("capture", status)? {
        return Ok(code);
    }
    let left = (seconds - began.elapsed().as_secs_f64()).max(LEAST);
    let within = left.to_string();
    // Times of the profile suffice where time is short.
    let extent = match options.quick && left < plan.program_seconds {
        true => ["--rounds", "0"],
        false => ["--within", &within],
    };
    let mut check = vec!["--max-error", &options.max_error];
    check.extend(extent);
    check.extend(options.no_sandbox.then_some("--no-sandbox"));
    check.extend(options.common.json.then_some("--json"));
    let (status, _) = course.step(
        "check",
        &format!("check, about {:.0} s", left.max(replays)),
        Told::Shown,
        check,
    )?;
    // Status 1 may mean results that are not the original's. The report then shows them.
    let result = status
        .code()
        .or_coded(codes::E4023, || format!("`cere check` was ended: {status}"))?
        as u8;
    explain(&mut course, plan.program_seconds)?;
    let report = [OsStr::new("-o"), options.output.as_os_str()];
    let (status, _) = course.step("report", "report", Told::Shown, report)?;
    if let Some(code) = stops("report", status)? {
        return Ok(code);
    }
    note!("{}", options.output.display());
    Ok(result)
}

/// Says why the largest regions take their time, as far as there is time for that. The report then shows what was found.
fn explain(course: &mut Course, program_seconds: f64) -> Result<()> {
    let seconds = (EXPLAINED * program_seconds).max(LEAST_EXPLAINED);
    if course.options.quick {
        course.begun += 1;
        note!(
            "--quick: why regions take their time is not looked at; `cere explain REGION` says it"
        );
        return Ok(());
    }
    let within = seconds.to_string();
    let mut arguments = vec!["--top", REGIONS, "--brief", "--within", &within];
    arguments.extend(course.options.no_sandbox.then_some("--no-sandbox"));
    let how = format!("explain the {REGIONS} largest regions, about {seconds:.0} s");
    course
        .step("explain", &how, Told::Shown, arguments)
        .map(drop)
}

/// Regions that are explained.
const REGIONS: &str = "3";
/// Times of the program that this may take, and seconds at least.
const EXPLAINED: f64 = 2.0;
const LEAST_EXPLAINED: f64 = 8.0;
/// Seconds to build and to replay a codelet once, about.
const REPLAY: f64 = 0.08;
/// Seconds that a check gets in any case.
const LEAST: f64 = 0.1;
