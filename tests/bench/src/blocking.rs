//! How near are block sizes that follow from the measured machine to the best of all that were tried?

use crate::program::least;
use anyhow::{Context, Result, bail};
use cere_format::machine::Machine;
use cere_machine::blocking::{self, Blocking, Parameters};
use cere_tests::tools::succeed;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Side of the matrices.
const N: u64 = 768;
/// The best points that are timed again, in turns with the model's.
const FINALISTS: usize = 15;
/// Turns.
const TURNS: usize = 15;

/// A running example, which answers a line of sizes with seconds.
struct Kernel {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Kernel {
    fn start(source: &str, name: &str, directory: &Path, defines: &[String]) -> Result<Self> {
        let source = PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../examples/blocking"
        ))
        .join(source);
        let image = directory.join(name);
        let mut compile = Command::new("clang-22");
        compile.args(["-O3", "-march=native", "-o"]).arg(&image);
        succeed(compile.args(defines).arg(source))?;
        let mut child = Command::new(&image)
            .arg(N.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", image.display()))?;
        let (ask, answer) = (child.stdin.take(), child.stdout.take());
        Ok(Self {
            ask: ask.context("its input")?,
            answer: BufReader::new(answer.context("its output")?),
            child,
        })
    }

    fn seconds(&mut self, sizes: &str) -> Result<f64> {
        writeln!(self.ask, "{sizes}")?;
        let mut line = String::new();
        self.answer.read_line(&mut line)?;
        line.trim()
            .parse()
            .with_context(|| format!("{sizes}: {line:?}"))
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A point: a kernel by its index, and sizes for it.
type Point = (usize, String);

/// Times every point twice, then the best ones in turns with the model's. The minimum of the model's point, and of the best one
/// with its description.
fn compare(kernels: &mut [Kernel], points: &[Point], model: &Point) -> Result<(f64, f64, Point)> {
    let mut timed = Vec::new();
    for (kernel, sizes) in points {
        let kernel = &mut kernels[*kernel];
        timed.push(kernel.seconds(sizes)?.min(kernel.seconds(sizes)?));
    }
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| timed[*a].total_cmp(&timed[*b]));
    let best = order.iter().take(FINALISTS).map(|i| &points[*i]);
    let finalists: Vec<&Point> = [model].into_iter().chain(best).collect();
    let mut times = vec![Vec::new(); finalists.len()];
    for _ in 0..TURNS {
        for ((kernel, sizes), times) in finalists.iter().zip(&mut times) {
            times.push(kernels[*kernel].seconds(sizes)?);
        }
    }
    let times: Vec<f64> = times.iter().map(|t| least(t)).collect();
    let first = (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b]));
    let first = first.unwrap_or_default();
    Ok((times[0], times[first], finalists[first].clone()))
}

fn need(blocking: &Blocking, name: &str, most: u64) -> u64 {
    blocking.get(name).unwrap_or(most).min(most)
}

fn dgemm(parameters: &Parameters, directory: &Path) -> Result<()> {
    let model = blocking::dgemm(parameters);
    let lanes = u64::from(parameters.bits) / 64;
    let of = |name| need(&model, name, N);
    let chosen = (of("MR") / lanes, of("NR"));
    // Accumulators, vectors of A and one of B, which instructions can take from memory.
    let fits = |m: u64, n: u64| m * n + m < u64::from(parameters.registers);
    let blocks = (1..=8).flat_map(|m| (1..=14).map(move |n| (m, n)));
    let blocks: Vec<(u64, u64)> = blocks.filter(|(m, n)| fits(*m, *n) && m * n >= 4).collect();
    let mut kernels = Vec::new();
    let mut points = Vec::new();
    for (place, (m, n)) in blocks.iter().enumerate() {
        let defines = [
            format!("-DMR={}", m * lanes),
            format!("-DNR={n}"),
            format!("-DLANES={lanes}"),
        ];
        let wide = format!("-mprefer-vector-width={}", parameters.bits);
        let defines: Vec<String> = defines.into_iter().chain([wide]).collect();
        kernels.push(Kernel::start(
            "dgemm.c",
            &format!("dgemm{m}x{n}"),
            directory,
            &defines,
        )?);
        for kc in [32, 64, 96, 128, 192, 256, 384, N] {
            for mc in [64, 128, 256, 384, N] {
                points.extend([192, N].map(|nc| (place, format!("{kc} {mc} {nc}"))));
            }
        }
    }
    let place = blocks.iter().position(|block| *block == chosen);
    let Some(place) = place else {
        bail!("the model's register block {chosen:?} is not in the space");
    };
    let model = (place, format!("{} {} {}", of("KC"), of("MC"), of("NC")));
    let (own, best, point) = compare(&mut kernels, &points, &model)?;
    let rate = |seconds: f64| 2e-9 * (N * N * N) as f64 / seconds;
    let named = |point: &Point| {
        let (m, n) = blocks[point.0];
        format!("{}x{n}, {}", m * lanes, point.1)
    };
    println!(
        "| dgemm of {N}, MRxNR, KC MC NC | {} | {} | {:.1} Gflop/s | {} | {:.1} Gflop/s | {:.0} % |",
        points.len(),
        named(&model),
        rate(own),
        named(&point),
        rate(best),
        100.0 * best / own
    );
    Ok(())
}

fn stencil(parameters: &Parameters, directory: &Path) -> Result<()> {
    let model = blocking::stencil(parameters);
    let mut kernels = [Kernel::start("stencil.c", "stencil", directory, &[])?];
    let powers = |from: u32, to: u32| (from..=to).map(|p| 1u64 << p);
    let rows: Vec<Point> = powers(6, 14).map(|x| (0, format!("2 {x}"))).collect();
    let planes = powers(5, 9).flat_map(|x| powers(2, 9).map(move |y| (0, format!("3 {x} {y}"))));
    let planes: Vec<Point> = planes.collect();
    let sizes = [
        (
            "stencil of 5 points, BX",
            rows,
            format!("2 {}", need(&model, "BX2_L1", 16384)),
            16384.0 * 510.0,
        ),
        (
            "stencil of 7 points, BX BY",
            planes,
            format!(
                "3 {} {}",
                need(&model, "BX3", 512),
                need(&model, "BY3", 512)
            ),
            512.0 * 512.0 * 30.0,
        ),
    ];
    for (name, points, model, elements) in sizes {
        let (own, best, point) = compare(&mut kernels, &points, &(0, model.clone()))?;
        let rate = |seconds: f64| 1e-6 * elements / seconds;
        println!(
            "| {name} | {} | {} | {:.0} million/s | {} | {:.0} million/s | {:.0} % |",
            points.len(),
            &model[2..],
            rate(own),
            &point.1[2..],
            rate(best),
            100.0 * best / own
        );
    }
    Ok(())
}

/// Prints the table.
pub fn run() -> Result<()> {
    let machine = Machine::kept().context("this machine was not measured: run `cere machine`")?;
    let parameters = Parameters::of(&machine)?;
    println!(
        "### Block sizes\n\nChosen from the measured machine, against all that were tried: each point twice, then the best {FINALISTS} and the \
         model's\nin {TURNS} turns; minima of processor time.\n"
    );
    println!(
        "| kernel, sizes | tried | model | its rate | best | its rate | model / best |\n|---|--:|---|--:|---|--:|--:|"
    );
    let directory = tempfile::tempdir()?;
    dgemm(&parameters, directory.path())?;
    stencil(&parameters, directory.path())?;
    println!();
    Ok(())
}
