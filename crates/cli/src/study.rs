//! `cere study --build CMD -- PROGRAM`: everything from the build to the report, taking up where it stopped.

use crate::options;
use crate::options::Common;
use anyhow::{Context, Result, bail};
use cere_system::console::note;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// From a build to a report in one go
#[derive(clap::Args)]
#[command(after_help = "\
Runs `cere instrument`, `capture` (which profiles first), `check` and `report` on one store. Each step uses what is\n\
there: the build compiles what has changed, a profile of the same command is used again, existing codelets are not\n\
captured and existing replays not repeated. So the same command continues an interrupted study. It stops at the first\n\
step that fails and ends with its status. A program that ends with a status other than 0 does not stop it: a warning\n\
says so, and the report.\n\
\n\
Examples:\n\
\x20 cere study --build 'make -j2' -- ./app input\n\
\x20 cere study --build 'ninja -C build' -o app.html -- build/app input")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// The build command, for a shell
    #[arg(long, value_name = "COMMAND")]
    build: String,
    /// The report
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Largest error of a region that predictions may use, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "15")]
    max_error: String,
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

/// A step: its subcommand, its arguments, and whether its status 1 may mean results that are not the original's. The
/// report then shows them.
struct Step {
    name: &'static str,
    arguments: Vec<OsString>,
    tells: bool,
}

impl Options {
    fn steps(&self) -> Vec<Step> {
        let words = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        let mut capture = words(&["--missing", "--ignore-status"]);
        if let Some(timeout) = self.timeout {
            capture.extend(words(&["--timeout", &timeout.to_string()]));
        }
        let mut check = words(&["--max-error", &self.max_error]);
        if self.no_sandbox {
            check.push("--no-sandbox".into());
        }
        capture.push("--".into());
        capture.extend(self.command.iter().map(OsString::from));
        let step = |name, arguments, tells| Step {
            name,
            arguments,
            tells,
        };
        vec![
            step("instrument", words(&["--", "sh", "-c", &self.build]), false),
            step("capture", capture, false),
            step("check", check, true),
            step(
                "report",
                vec!["-o".into(), self.output.clone().into()],
                false,
            ),
        ]
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let own = std::env::current_exe().context("cannot find this command's own file")?;
    let steps = options.steps();
    let mut result = 0;
    for (number, step) in steps.iter().enumerate() {
        note!("[{}/{}] {}", number + 1, steps.len(), step.name);
        let mut command = Command::new(&own);
        command
            .arg(step.name)
            .arg("--store")
            .arg(&options.common.store)
            .args(options::messages());
        if options.common.json && step.name == "check" {
            command.arg("--json");
        } else if options.common.json {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        let status = command
            .args(&step.arguments)
            .status()
            .with_context(|| format!("cannot start {}", own.display()))?;
        match status.code() {
            Some(0) => {}
            Some(code) if step.tells => result = code as u8,
            Some(code) => {
                note!(
                    "the study stopped at `cere {}`; the same command takes it up there",
                    step.name
                );
                return Ok(code as u8);
            }
            None => bail!("`cere {}` was ended: {status}", step.name),
        }
    }
    note!("{}", options.output.display());
    Ok(result)
}
