//! Real software: the C sources that registry packages carry, built by their own compile commands under `cere instrument`, driven on
//! real input. `software/Cargo.toml` names the packages; nothing of them is built by cargo, only fetched.

use anyhow::{Context, Result};
use cere_tests::directives::Directives;
use cere_tests::study::Study;
use cere_tests::tools::succeed;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fetches the packages and says where the package `name` lies.
fn source(home: &Path, name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args([
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--manifest-path",
        ])
        .arg(home.join("Cargo.toml"));
    let output = succeed(&mut command)?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let package = packages.iter().find(|p| p["name"] == name);
    let manifest = package
        .and_then(|p| p["manifest_path"].as_str())
        .with_context(|| format!("no package {name}"))?;
    Ok(Path::new(manifest)
        .parent()
        .context("a directory")?
        .to_owned())
}

fn main() -> Result<()> {
    let arguments = Arguments::from_args();
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("software");
    let mut trials = Vec::new();
    for (driver, package) in [
        ("bzip2.c", "bzip2-sys"),
        ("zlib.c", "libz-sys"),
        ("zstd.c", "zstd-sys"),
        ("lz4.c", "lz4-sys"),
        ("sqlite.c", "libsqlite3-sys"),
    ] {
        let program = home.join(driver);
        let directives = Directives::read(&program)?;
        for flags in directives.levels.clone() {
            let (home, program, mut directives) =
                (home.clone(), program.clone(), directives.clone());
            trials.push(Trial::test(format!("{driver} {flags}"), move || {
                let directory = tempfile::tempdir()?;
                let sources = source(&home, package)?;
                directives.build = directives
                    .build
                    .map(|b| b.replace("$SOURCES", &sources.display().to_string()));
                let study = Study {
                    source: &program,
                    directives: &directives,
                    flags: &flags,
                    directory: directory.path(),
                };
                study.run().map_err(|error| {
                    let kept = directory.keep();
                    Failed::from(format!("{error:#}\nkept in {}", kept.display()))
                })
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit()
}
