//! Time per touched page under capture against a bare mprotect-and-SIGSEGV round trip: `fault_cost [MIB] [ROUNDS]`.
//!
//! Both in one run, in turn; minima over the rounds; nanoseconds a page.

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::process::Command;

fn main() {
    let number = |n: usize, default: u64| {
        let given = std::env::args().nth(n).and_then(|a| a.parse().ok());
        given.unwrap_or(default)
    };
    let (mib, rounds) = (number(1, 64), number(2, 5));
    let pages = (mib * 256) as f64;
    let hz = cere_clock::calibrate(50);
    let program = support::Program::new("../../bench/faults.c", &["-O2"]);
    let size = mib.to_string();
    println!(
        "{:14} {:>9} {:>9} {:>6}",
        "pattern", "bare", "captured", "ratio"
    );
    for how in ["read", "write", "both"] {
        for order in ["order", "random"] {
            let (mut bare, mut captured) = (f64::MAX, f64::MAX);
            for _ in 0..rounds {
                let output = program.plain(&["bare", &size, how, order]);
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                bare = bare.min(text.trim().parse().expect("nanoseconds a page"));
                let mut command = Command::new(program.path());
                command.args(["plain", &size, how, order]);
                let run = program.run(&[("sweep", &[1])], &mut command);
                let cycles = run.get("sweep", 1).raw.disturbed_cycles as f64;
                captured = captured.min(cycles / hz * 1e9 / pages);
            }
            let ratio = captured / bare;
            println!("{how:7}{order:7} {bare:9.0} {captured:9.0} {ratio:6.2}");
        }
    }
}
