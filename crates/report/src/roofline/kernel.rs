//! Kernels of the user's own: a file of C is called once for each size, and each call becomes a codelet.
//!
//! The file defines
//!
//! ```c
//! size_t cere_bytes(long n);                /* bytes that the kernel works on */
//! void cere_init(long n, void *memory);     /* fills them; not measured */
//! void cere_kernel(long n, void *memory);   /* what is measured */
//! ```
//!
//! `memory` begins a page. The region is a loop around the call, so that all of the kernel is measured.

use anyhow::{Context, Result};
use cere_catalogue::{bail, ensure};
use cere_store::state;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Sizes of a kernel, at most.
const MOST: usize = 64;

/// How sizes are written.
const FORM: &str = "FROM:TO:FACTOR, FROM:TO:+STEP or one size, as 64:4096:2";

/// The region of the generated program.
const REGION: &str = "cere_once@*";

/// A kernel and how often it is called.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The file.
    pub source: PathBuf,
    /// Sizes, rising.
    pub sizes: Vec<u64>,
    /// Flags of its compiler.
    pub flags: Vec<String>,
}

/// Parses `FROM:TO:FACTOR`, or `FROM:TO:+STEP`, or one size.
///
/// # Errors
/// No such range, more than 64 sizes, or one that exceeds a `long` of C.
pub fn sizes(text: &str) -> Result<Vec<u64>> {
    let size = |word: &str| match word.parse::<u64>() {
        Ok(n) if n > 0 && n <= i64::MAX as u64 => Ok(n),
        Err(_) if word.is_empty() || !word.bytes().all(|b| b.is_ascii_digit()) => {
            bail!(E8002, "`{text}` is no range of sizes: {FORM}")
        }
        _ => bail!(E8002, "`{word}`: a size is from 1 to {}", i64::MAX),
    };
    let parts: Vec<&str> = text.split(':').collect();
    let (from, to, step) = match parts[..] {
        [only] => return Ok(vec![size(only)?]),
        [from, to, step] => (size(from)?, size(to)?, step),
        _ => bail!(E8002, "`{text}` is no range of sizes: {FORM}"),
    };
    ensure!(from <= to, E8002, "`{text}`: {from} is above {to}");
    let next = |n: u64| -> Result<Option<u64>> {
        if let Some(step) = step.strip_prefix('+') {
            return Ok(n.checked_add(size(step)?));
        }
        let factor = step.parse().unwrap_or(f64::NAN);
        ensure!(
            factor > 1.0 && factor.is_finite(),
            E8002,
            "`{text}`: the factor has to be above 1"
        );
        // A factor near 1 still takes the next whole number.
        let next = (n as f64 * factor).round();
        Ok((next < i64::MAX as f64).then_some((next as u64).max(n + 1)))
    };
    let mut found = vec![from];
    let mut last = from;
    while let Some(n) = next(last)?.filter(|n| *n <= to) {
        ensure!(
            found.len() < MOST,
            E8002,
            "`{text}` has more than {MOST} sizes: take a larger step"
        );
        found.push(n);
        last = n;
    }
    Ok(found)
}

/// The program that calls the kernel.
fn program(sizes: &[u64]) -> String {
    let mut text = String::from(
        "#include <stdio.h>\n#include <stdlib.h>\n\
         size_t cere_bytes(long n);\nvoid cere_init(long n, void *memory);\nvoid cere_kernel(long n, void *memory);\n\
         static const long sizes[] = {",
    );
    for n in sizes {
        let _ = write!(text, "{n}L, ");
    }
    text + "};\n\
        __attribute__((noinline)) void cere_once(long n, void *memory, long times) {\n\
        \x20 for (long i = 0; i < times; i++) cere_kernel(n, memory);\n}\n\
        int main(int times, char **arguments) {\n\
        \x20 for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {\n\
        \x20   size_t bytes = cere_bytes(sizes[k]);\n\
        \x20   size_t whole = bytes / 4096 * 4096 + 4096;\n\
        \x20   void *memory = whole > bytes ? aligned_alloc(4096, whole) : NULL;\n\
        \x20   if (!memory) {\n\
        \x20     fprintf(stderr, \"there is no memory for %zu bytes at n = %ld\\n\", bytes, sizes[k]);\n\
        \x20     return 1;\n\
        \x20   }\n\
        \x20   cere_init(sizes[k], memory);\n\
        \x20   cere_once(sizes[k], memory, times);\n\
        \x20   free(memory);\n\
        \x20 }\n\
        \x20 return arguments == NULL;\n}\n"
}

/// Runs a step of this command's own; an error with what it wrote if it fails.
fn step(own: &Path, directory: &Path, what: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(own)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", own.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!(E6222, "{what}:\n{}", said.trim_end())
}

impl Kernel {
    /// The codelets of all sizes, whose invocations are the sizes' numbers from 1. They are made once and kept in `cache`;
    /// files that the kernel includes are not looked at: `fresh` makes them again. `own`: this command.
    ///
    /// # Errors
    /// The kernel does not compile, or a call of it fails or cannot be captured.
    pub fn codelets(&self, own: &Path, cache: &Path, fresh: bool) -> Result<Vec<PathBuf>> {
        let text = std::fs::read_to_string(&self.source)
            .with_context(|| format!("--kernel {}", self.source.display()))?;
        let source = std::path::absolute(&self.source)?;
        let key = format!(
            "{}\0{}\0{text}\0{}\0{:?}",
            state::hash_file(own)?,
            source.display(),
            program(&self.sizes),
            self.flags
        );
        let kept = cache.join("kernels").join(state::hash(&key));
        if fresh || !kept.is_dir() {
            self.make(own, &source, &kept)?;
        }
        let entries =
            std::fs::read_dir(&kept).with_context(|| format!("cannot read {}", kept.display()))?;
        let files: std::io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut files = files?;
        files.retain(|file| file.extension().is_some_and(|e| e == "codelet"));
        Ok(files)
    }

    fn make(&self, own: &Path, source: &Path, kept: &Path) -> Result<()> {
        let parent = kept.parent().context("a path without a directory")?;
        state::make_directory(parent)?;
        let directory = tempfile::tempdir_in(parent)
            .with_context(|| format!("cannot write in {}", parent.display()))?;
        let path = directory.path();
        state::write_text(&path.join("main.c"), &program(&self.sizes))?;
        let source = source.to_string_lossy();
        let shown = self.source.display();
        let mut build = vec!["instrument", "--quiet", "--all-loops", "--", "clang"];
        build.extend(self.flags.iter().map(String::as_str));
        build.extend(["-o", "kernel", "main.c", &*source, "-lm"]);
        step(
            own,
            path,
            &format!("the kernel {shown} cannot be built"),
            &build,
        )?;
        let all = format!("1-{}", self.sizes.len());
        let capture = [
            "capture",
            "--quiet",
            REGION,
            "--invocation",
            &all,
            "--no-trace",
            "--runs",
            "1",
            "--",
            "./kernel",
        ];
        step(
            own,
            path,
            &format!("the kernel {shown} cannot be captured"),
            &capture,
        )?;
        let _ = std::fs::remove_dir_all(kept);
        match std::fs::rename(path.join(".cere/codelets"), kept) {
            // Another process has made the same.
            Err(_) if kept.is_dir() => Ok(()),
            done => done.with_context(|| format!("cannot write {}", kept.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_sizes() {
        let top = i64::MAX as u64;
        for (text, found) in [
            ("64:512:2", &[64, 128, 256, 512][..]),
            ("100:200:1.5", &[100, 150]),
            ("50:200:+50", &[50, 100, 150, 200]),
            ("7", &[7]),
            ("1:3:1.01", &[1, 2, 3]),
            (&format!("{top}:{top}:2"), &[top]),
        ] {
            assert_eq!(sizes(text).unwrap(), found, "{text}");
        }
    }

    #[test]
    fn what_is_no_range() {
        for (bad, why) in [
            ("", "no range"),
            ("a:b:c", "no range"),
            ("1:2", "no range"),
            ("0:8:2", "from 1 to"),
            ("9223372036854775808", "from 1 to"),
            ("1:99999999999999999999:2", "from 1 to"),
            ("8:4:2", "above 4"),
            ("1:8:1", "above 1"),
            ("1:8:inf", "above 1"),
            ("1:8:+0", "from 1 to"),
            ("1:1000:+1", "more than 64"),
        ] {
            let error = sizes(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
