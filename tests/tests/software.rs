//! Real software: the C sources that registry packages carry, built by their own compile commands under `cere instrument`, driven on
//! real input. `software/Cargo.toml` names the packages; nothing of them is built by cargo, only fetched.

use anyhow::{Context, Result, anyhow};
use cere_tests::directives::Directives;
use cere_tests::study::trials;
use cere_tests::tools::succeed;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Fetches the packages, once, and tells what cargo knows of them.
static METADATA: LazyLock<Result<serde_json::Value, String>> =
    LazyLock::new(|| fetch().map_err(|e| format!("{e:#}")));

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("software")
}

fn fetch() -> Result<serde_json::Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["metadata", "--locked", "--format-version", "1"])
        .arg("--manifest-path")
        .arg(home().join("Cargo.toml"));
    Ok(serde_json::from_slice(&succeed(&mut command)?.stdout)?)
}

/// Where the sources of the package `name` lie.
fn source(name: &str) -> Result<PathBuf> {
    let metadata = METADATA.as_ref().map_err(|e| anyhow!("{e}"))?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let package = packages.iter().find(|p| p["name"] == name);
    let manifest = package
        .and_then(|p| p["manifest_path"].as_str())
        .with_context(|| format!("no package {name}"))?;
    let directory = Path::new(manifest).parent().context("a directory")?;
    Ok(directory.to_owned())
}

fn main() -> Result<()> {
    let arguments = cere_tests::arguments();
    let mut all = Vec::new();
    for (driver, package) in [
        ("bzip2.c", "bzip2-sys"),
        ("zlib.c", "libz-sys"),
        ("zstd.c", "zstd-sys"),
        ("lz4.c", "lz4-sys"),
        ("sqlite.c", "libsqlite3-sys"),
    ] {
        let program = home().join(driver);
        let directives = Directives::read(&program)?;
        all.extend(trials(&program, &directives, move |directives| {
            let sources = source(package)?.display().to_string();
            let build = directives.build.take();
            directives.build = build.map(|b| b.replace("$SOURCES", &sources));
            Ok(())
        }));
    }
    libtest_mimic::run(&arguments, all).exit()
}
