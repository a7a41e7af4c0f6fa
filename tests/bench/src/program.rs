//! The measured programs, and how they are built and timed.

use anyhow::{Context, Result};
use cere_tests::prepare::{instrument, plain};
use cere_tests::tools::succeed;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The kernels of `kernels/` but the probes of single costs.
pub const KERNELS: [&str; 10] = [
    "gemm.c",
    "jacobi.c",
    "lu.c",
    "spmv.c",
    "nbody.c",
    "hash.c",
    "sort.c",
    "text.c",
    "fft.cpp",
    "triad.f90",
];

/// A program: one source of `kernels/`, or an example with its Makefile.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name.
    pub name: String,
    source: PathBuf,
    example: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The kernel in `kernels/<file>`.
pub fn kernel(file: &str) -> Program {
    let name = file.split('.').next().unwrap_or(file).to_owned();
    let source = root().join("tests/bench/kernels").join(file);
    Program {
        name,
        source,
        example: false,
    }
}

/// Examples and kernels.
pub fn all() -> Vec<Program> {
    let examples = ["wave", "particles", "heat"].map(|name| Program {
        name: name.to_owned(),
        source: root().join("examples").join(name),
        example: true,
    });
    examples.into_iter().chain(KERNELS.map(kernel)).collect()
}

/// The machine in the headings of tables: processor, number of cores, kernel.
pub fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .map_or("unknown processor", |l| {
            l.trim_start_matches([' ', '\t', ':'])
        });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} cores, Linux {}", kernel.trim())
}

impl Program {
    fn script(&self, flags: &str) -> String {
        if self.example {
            return format!(
                "cp -r {0}/. . && make CC=\"$CC\" CXX=\"$CXX\" FC=\"$FC\" CFLAGS='{flags}' CXXFLAGS='{flags}' FFLAGS='{flags}' >/dev/null && mv {1} program",
                self.source.display(),
                self.name
            );
        }
        let compiler = match self.source.extension().and_then(|e| e.to_str()) {
            Some("cpp") => "$CXX",
            Some("f90") => "$FC",
            _ => "$CC",
        };
        format!(
            "{compiler} {flags} {} -o program -lm",
            self.source.display()
        )
    }

    /// Builds it plainly in `directory`; the executable.
    pub fn plain(&self, directory: &Path, flags: &str) -> Result<PathBuf> {
        std::fs::create_dir_all(directory)?;
        succeed(plain(&self.script(flags)).current_dir(directory))?;
        Ok(directory.join("program"))
    }

    /// Builds it instrumented in `directory`, with a store there; the executable.
    pub fn instrumented(&self, directory: &Path, flags: &str) -> Result<PathBuf> {
        std::fs::create_dir_all(directory)?;
        instrument(directory, &self.script(flags))?;
        Ok(directory.join("program"))
    }
}

/// Seconds of one run, without its output.
pub fn seconds(command: &mut Command) -> Result<f64> {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    let start = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(seconds)
}

/// The minimum of the values.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The geometric mean.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}
