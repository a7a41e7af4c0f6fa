//! Captures that are killed, that come several at once, or whose disk is full: the store stays readable, nothing in it is
//! half, and a capture after that works.
//!
//! `CERE_INSTANTS=1000` kills at so many instants, `CERE_WRITES=1000` fails at so many writes (as many as there are, if fewer).

use anyhow::{Context, Result, ensure};
use cere_tests::prepare::instrumented;
use cere_tests::tools::{cere, json, output, succeed, text};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = r#"
#include <stdio.h>
static double grid[3][40000];
static __attribute__((noinline)) void fill(void) {
    for (int i = 0; i < 40000; i++)
        grid[0][i] = i * 0.5;
}
static __attribute__((noinline)) void step(double *to, const double *from) {
    for (int i = 1; i < 39999; i++)
        to[i] = from[i - 1] * 0.5 + from[i] + from[i + 1] * 0.25;
}
int main(void) {
    fill();
    step(grid[1], grid[0]);
    step(grid[2], grid[1]);
    printf("%g\n", grid[2][777]);
    return 0;
}
"#;

/// Fails the `CERE_FAIL_AT`th write and all after it, of whichever process, as a full disk does. Directories and names still
/// find room, and so does what the program prints.
const FULL: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int full(int file) {
    static long *count;
    struct stat found;
    char *at = getenv("CERE_FAIL_AT"), *name = getenv("CERE_FAIL_COUNT");
    if (!at || !name || fstat(file, &found) || !S_ISREG(found.st_mode))
        return 0;
    if (!count) {
        int counter = open(name, O_RDWR | O_CLOEXEC);
        void *mapped = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, counter, 0);
        close(counter);
        if (mapped == MAP_FAILED)
            return 0;
        count = mapped;
    }
    if (__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) < atol(at))
        return 0;
    errno = ENOSPC;
    return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
ssize_t write(int f, const void *b, size_t n) { return full(f) ? -1 : NEXT(write)(f, b, n); }
ssize_t writev(int f, const struct iovec *v, int n) { return full(f) ? -1 : NEXT(writev)(f, v, n); }
ssize_t pwrite(int f, const void *b, size_t n, off_t o) { return full(f) ? -1 : NEXT(pwrite)(f, b, n, o); }
ssize_t pwrite64(int f, const void *b, size_t n, off64_t o) { return full(f) ? -1 : NEXT(pwrite64)(f, b, n, o); }
ssize_t copy_file_range(int a, off64_t *i, int b, off64_t *o, size_t n, unsigned flags) {
    return full(b) ? -1 : NEXT(copy_file_range)(a, i, b, o, n, flags);
}
ssize_t sendfile(int b, int a, off_t *o, size_t n) { return full(b) ? -1 : NEXT(sendfile)(b, a, o, n); }
ssize_t sendfile64(int b, int a, off64_t *o, size_t n) { return full(b) ? -1 : NEXT(sendfile64)(b, a, o, n); }
"#;

/// A directory with the instrumented program and a store without codelets.
fn built() -> Result<tempfile::TempDir> {
    instrumented(&[("main.c", PROGRAM)], "$CC -O2 main.c -o program")
}

fn capture(directory: &Path) -> Command {
    let mut command = cere(directory);
    command.args(["capture", "fill@*", "step@*", "--invocation", "1"]);
    command.args(["--", "./program"]);
    command
}

fn copy(from: &Path, to: &Path) -> Result<Output> {
    succeed(Command::new("cp").arg("-a").args([from, to]))
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}

/// Files of the store that are not its own: parts of what was not finished.
fn parts(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let half = name.starts_with('.') || name.ends_with(".part") || name.starts_with("run");
        if half && name != "runs" {
            found.push(path.clone());
        }
        if path.is_dir() && !path.is_symlink() {
            parts(&path, found)?;
        }
    }
    Ok(())
}

/// Every command that lists what the store has does so, and what it has is whole.
fn readable(directory: &Path) -> Result<usize> {
    let (list, run) = json(cere(directory).args(["codelets", "--json"]))?;
    ensure!(run.status.success(), "cere codelets\n{}", text(&run));
    let list = list.as_array().context("no list of codelets")?;
    for codelet in list {
        ensure!(codelet["error"].is_null(), "{codelet}");
    }
    succeed(cere(directory).arg("regions"))?;
    let usual = [
        ("results", "there are no"),
        ("select", "there is no profile"),
        ("select", "no regions were chosen"),
    ];
    for command in ["results", "select"] {
        let run = output(cere(directory).arg(command))?;
        let message = String::from_utf8_lossy(&run.stderr);
        let usual = usual
            .iter()
            .any(|(of, why)| *of == command && message.contains(why));
        ensure!(
            run.status.success() || usual,
            "cere {command}\n{}",
            text(&run)
        );
    }
    Ok(list.len())
}

/// A capture works, leaves nothing but what belongs there, and what it took replays.
fn works_again(directory: &Path, replayed: bool) -> Result<()> {
    succeed(&mut capture(directory))?;
    ensure!(readable(directory)? == 2, "not two codelets");
    let mut left = Vec::new();
    parts(&directory.join(".cere"), &mut left)?;
    ensure!(left.is_empty(), "left over: {left:?}");
    if replayed {
        let run = succeed(cere(directory).args(["replay", "*"]))?;
        let exact = String::from_utf8_lossy(&run.stdout)
            .matches("exact")
            .count();
        ensure!(exact >= 2, "{}", text(&run));
    }
    Ok(())
}

/// Numbers that look like chance (xorshift64), below 1.
fn chance(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as f64 / u64::MAX as f64
}

#[test]
fn captures_that_are_killed() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let fresh = directory.join("fresh");
    copy(&directory.join(".cere"), &fresh)?;
    let began = Instant::now();
    works_again(directory, false)?;
    let whole = began.elapsed();
    let instants = number("CERE_INSTANTS", 6);
    let (mut state, mut counts) = (0x9e37_79b9_7f4a_7c15, [0u32; 3]);
    for instant in 0..instants {
        // The store has nothing, or the codelets that are taken again.
        if instant % 2 == 0 {
            std::fs::remove_dir_all(directory.join(".cere"))?;
            copy(&fresh, &directory.join(".cere"))?;
        }
        let mut running = capture(directory);
        running
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut running = running.spawn()?;
        std::thread::sleep(
            whole
                .mul_f64(chance(&mut state))
                .min(Duration::from_secs(60)),
        );
        let group = format!("-{}", running.id());
        succeed(Command::new("kill").args(["-KILL", "--", &group]))?;
        running.wait()?;
        let found = readable(directory).with_context(|| format!("killed at instant {instant}"))?;
        counts[found.min(2)] += 1;
        if instant % 10 == 5 {
            works_again(directory, instant % 100 == 5)
                .with_context(|| format!("after a kill at instant {instant}"))?;
        }
    }
    println!("killed at {instants} instants: {counts:?} with 0, 1 and 2 codelets");
    works_again(directory, true)
}

#[test]
fn eight_captures_at_once() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let start = || -> Result<_> {
        let mut command = capture(directory);
        Ok(command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?)
    };
    let running = (0..8).map(|_| start()).collect::<Result<Vec<_>>>()?;
    let done = running.into_iter().map(|one| one.wait_with_output());
    let done = done.collect::<std::io::Result<Vec<Output>>>()?;
    ensure!(
        done.iter().any(|run| run.status.success()),
        "none succeeded\n{}",
        text(&done[0])
    );
    for run in &done {
        let message = String::from_utf8_lossy(&run.stderr);
        let refused = message.contains("is in use by") && message.contains("another --store");
        ensure!(run.status.success() || refused, "{}", text(run));
    }
    ensure!(readable(directory)? == 2, "not two codelets");
    works_again(directory, true)
}

#[test]
fn a_disk_that_is_full_from_any_write_on() -> Result<()> {
    let directory = built()?;
    let directory = directory.path();
    let at = |name: &str| directory.join(name);
    std::fs::write(at("full.c"), FULL)?;
    let build = ["-O1", "-shared", "-fPIC", "-o", "full.so", "full.c"];
    succeed(Command::new("clang-22").args(build).current_dir(directory))?;
    copy(&at(".cere"), &at("fresh"))?;
    let failing = |write: u64| -> Result<(Output, u64)> {
        std::fs::remove_dir_all(at(".cere"))?;
        copy(&at("fresh"), &at(".cere"))?;
        std::fs::write(at("count"), [0; 8])?;
        let mut command = capture(directory);
        command
            .env("LD_PRELOAD", at("full.so"))
            .env("CERE_FAIL_AT", write.to_string())
            .env("CERE_FAIL_COUNT", at("count"));
        let run = output(&mut command)?;
        let count = std::fs::read(at("count"))?;
        let count = count.try_into().map(u64::from_le_bytes).unwrap_or_default();
        Ok((run, count))
    };
    let (run, writes) = failing(u64::MAX >> 1)?;
    ensure!(
        run.status.success() && writes > 10,
        "{writes} writes\n{}",
        text(&run)
    );
    let tried = number("CERE_WRITES", 8).min(writes);
    for i in 0..tried {
        let write = 1 + i * writes / tried;
        let (run, _) = failing(write)?;
        let message = String::from_utf8_lossy(&run.stderr).into_owned();
        let context = || format!("full from write {write} of {writes} on\n{}", text(&run));
        ensure!(run.status.code().is_some(), "a signal: {}", context());
        ensure!(!message.contains("panicked"), "{}", context());
        ensure!(
            run.status.success() || message.contains("No space left"),
            "{}",
            context()
        );
        readable(directory).with_context(context)?;
        works_again(directory, false).with_context(context)?;
    }
    println!("full from {tried} of {writes} writes on");
    Ok(())
}
