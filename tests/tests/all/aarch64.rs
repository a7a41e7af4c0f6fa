//! The command that is made for AArch64, under an emulator: what works there, and what it says of the rest.

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::{capture, codelets, instrumented};
use cere_tests::tools::{built, output, succeed, text};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = r#"
#include <stdio.h>
static double a[5000], b[5000];
__attribute__((noinline)) static void triad(int n) {
    for (int i = 0; i < n; i++)
        a[i] = a[i] * 0.999 + b[i] * 1.3;
}
int main(void) {
    for (int i = 0; i < 5000; i++)
        b[i] = i * 0.1;
    for (int k = 0; k < 3; k++)
        triad(5000);
    printf("%g\n", a[77]);
}
"#;

const EMULATOR: &str = "qemu-aarch64";
const ROOT: &str = "/usr/aarch64-linux-gnu";

/// The command for AArch64.
fn made() -> Result<PathBuf> {
    let profile = built().file_name().context("a profile")?;
    let target = built().parent().context("target/")?;
    let made = target
        .join("aarch64-unknown-linux-gnu")
        .join(profile)
        .join("cere");
    ensure!(
        made.is_file(),
        "{} is not there: run `make test`, or `make arm64`",
        made.display()
    );
    Ok(made)
}

/// It, in `directory`, with the parts in `parts`.
fn there(made: &Path, parts: &Path, directory: &Path) -> Command {
    let mut command = Command::new(EMULATOR);
    command.args(["-L", ROOT]).arg(made).current_dir(directory);
    command.env("CERE_HOME", parts).env("XDG_CACHE_HOME", parts);
    command
}

#[test]
fn the_command_runs_on_aarch64() -> Result<()> {
    let made = made()?;
    let here = instrumented(&[("program.c", PROGRAM)], "$CC -O2 -g program.c -o program")?;
    succeed(&mut capture(here.path(), &["triad@*", "--invocation", "2"]))?;
    let (name, file) = codelets(here.path())?.pop().context("a codelet")?;

    // The compilers are this machine's, and so is what enters them.
    let parts = tempfile::tempdir()?;
    for part in ["libcere_pass.so", "libcere_stay.so"] {
        std::os::unix::fs::symlink(built().join(part), parts.path().join(part))?;
    }
    let runtime = made.with_file_name("libcere_runtime.a");
    std::os::unix::fs::symlink(&runtime, parts.path().join("libcere_runtime.a"))?;
    let away = tempfile::tempdir()?;
    let cere = |arguments: &[&str]| {
        let mut command = there(&made, parts.path(), away.path());
        command.args(arguments);
        command
    };

    let version = succeed(&mut cere(&["--version"]))?;
    ensure!(version.stdout.starts_with(b"cere "), "{}", text(&version));
    let doctor = text(&output(&mut cere(&["doctor"]))?);
    for said in ["does not work on aarch64", "generic timer"] {
        ensure!(doctor.contains(said), "no `{said}`: {doctor}");
    }
    let refused = text(&output(&mut cere(&["capture", "--", "true"]))?);
    ensure!(
        refused.contains("CERE-7005") && refused.contains("this machine is aarch64"),
        "{refused}"
    );

    let store = away.path().join(".cere/codelets");
    std::fs::create_dir_all(&store)?;
    let copy = store.join(file.file_name().context("a name")?);
    std::fs::copy(&file, &copy)?;
    let list = text(&succeed(&mut cere(&["codelets"]))?);
    ensure!(list.contains("triad@"), "{list}");
    let runs = ["--target", "aarch64-linux-gnu", "--runner", EMULATOR];
    let mut replay = cere(&["replay", &name, "--no-sandbox", "--json"]);
    let replay = succeed(replay.args(runs))?;
    let replay: serde_json::Value = serde_json::from_slice(&replay.stdout)?;
    ensure!(replay["verdict"] == "exact", "{replay}");
    ensure!(
        replay["crossed"]["target"] == "aarch64-linux-gnu",
        "{replay}"
    );
    Ok(())
}
