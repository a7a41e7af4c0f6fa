//! What the context of a timing changes: the speed of a dot product, and which of four checksums is the fastest.
//!
//!     cargo run --release -p cere-timer --example dot

use cere_timer::{Measurement, Operand, State, Timer, TimerError};
use std::hint::black_box;

/// Times a dot product of `n` doubles with both vectors in `state`.
fn dot(n: usize, state: State) -> Result<Measurement, TimerError> {
    Timer::new()
        .operand(Operand::new(8 * n, 64, 0, state)?)
        .operand(Operand::new(8 * n, 64, 0, state)?)
        .time(|operands| {
            let (x, y) = (operands.values::<f64>(0), operands.values::<f64>(1));
            let mut sums = [0.0; 8];
            for (x, y) in x.chunks_exact(8).zip(y.chunks_exact(8)) {
                for (sum, (a, b)) in sums.iter_mut().zip(x.iter().zip(y)) {
                    *sum += a * b;
                }
            }
            black_box(sums.iter().sum::<f64>());
        })
}

fn dots() -> Result<(), TimerError> {
    println!(
        "Dot product, Mflop/s\n\n{:>9} {:>9} {:>9} {:>7}",
        "n", "warm", "cold", "ratio"
    );
    for n in [128, 512, 2048, 8192, 32768, 131072, 524288, 2097152] {
        let (warm, cold) = (dot(n, State::Warm)?.seconds, dot(n, State::Cold)?.seconds);
        let speed = |seconds: f64| 2e-6 * n as f64 / seconds;
        let ratio = cold / warm;
        println!(
            "{n:>9} {:>9.0} {:>9.0} {ratio:>7.2}",
            speed(warm),
            speed(cold)
        );
    }
    Ok(())
}

/// CRC-32 of a message, continued from `crc`, with the help of a table.
type Checksum = fn(crc: u32, table: &[u32], message: &[u8]) -> u32;

/// The polynomial, its bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// One bit of the message.
fn bit(crc: u32) -> u32 {
    crc >> 1 ^ (POLYNOMIAL & (crc & 1).wrapping_neg())
}

fn bits(mut crc: u32, _: &[u32], message: &[u8]) -> u32 {
    for &byte in message {
        crc = (0..8).fold(crc ^ u32::from(byte), |crc, _| bit(crc));
    }
    crc
}

fn nibbles(mut crc: u32, table: &[u32], message: &[u8]) -> u32 {
    for &byte in message {
        crc ^= u32::from(byte);
        crc = crc >> 4 ^ table[(crc & 15) as usize];
        crc = crc >> 4 ^ table[(crc & 15) as usize];
    }
    crc
}

fn bytes(mut crc: u32, table: &[u32], message: &[u8]) -> u32 {
    for &byte in message {
        crc = crc >> 8 ^ table[((crc ^ u32::from(byte)) & 255) as usize];
    }
    crc
}

/// Eight bytes at once, by eight tables (Kounavis and Berry, 2005).
fn slices(mut crc: u32, table: &[u32], message: &[u8]) -> u32 {
    for eight in message.chunks_exact(8) {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        let word = u64::from_le_bytes(word) ^ u64::from(crc);
        crc = 0;
        for byte in 0..8 {
            crc ^= table[(7 - byte) * 256 + (word >> (8 * byte) & 255) as usize];
        }
    }
    crc
}

/// `rows` tables of `width` entries: entry `i` of row `r` is the checksum of `i` with `r` bytes of zeros behind it.
fn write_table(table: &mut [u8], width: u32) {
    let steps = width.trailing_zeros();
    for (at, entry) in table.chunks_exact_mut(4).enumerate() {
        let (row, index) = (at as u32 / width, at as u32 % width);
        let value = (0..steps + 8 * row).fold(index, |crc, _| bit(crc));
        entry.copy_from_slice(&value.to_le_bytes());
    }
}

/// Name, function, entries of a table and of all tables.
const CHECKSUMS: [(&str, Checksum, u32, usize); 4] = [
    ("bits, no table", bits, 1, 1),
    ("nibbles, 64 B", nibbles, 16, 16),
    ("bytes, 1 KiB", bytes, 256, 256),
    ("slices, 8 KiB", slices, 256, 8 * 256),
];

/// Times a checksum of a message of 64 bytes that has just arrived, with the table in `state`.
fn checksum(
    (_, function, width, entries): (&str, Checksum, u32, usize),
    state: State,
) -> Result<Measurement, TimerError> {
    let table = Operand::new(4 * entries, 64, 0, state)?.filled(|t| write_table(t, width));
    let message = |to: &mut [u8]| {
        to.iter_mut()
            .zip(1u8..)
            .for_each(|(to, n)| *to = n.wrapping_mul(151))
    };
    let message = Operand::new(64, 64, 0, State::Warm)?.filled(message);
    let mut crc = !0;
    Timer::new()
        .operand(table)
        .operand(message)
        .time(|operands| {
            crc = black_box(function)(crc, operands.values(0), operands.values(1));
        })
}

fn fastest(times: &[Measurement]) -> usize {
    let order = |a: &usize, b: &usize| times[*a].seconds.total_cmp(&times[*b].seconds);
    (0..times.len()).min_by(order).unwrap_or(0)
}

fn checksums() -> Result<(), TimerError> {
    println!(
        "\nCRC-32 of 64 bytes, ns\n\n{:<16} {:>9} {:>9}",
        "kernel", "warm", "cold"
    );
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for kernel in CHECKSUMS {
        warm.push(checksum(kernel, State::Warm)?);
        cold.push(checksum(kernel, State::Cold)?);
        let ns = |all: &[Measurement]| all.last().map_or(0.0, |m| m.seconds * 1e9);
        println!("{:<16} {:>9.1} {:>9.1}", kernel.0, ns(&warm), ns(&cold));
    }
    let (in_cache, out) = (fastest(&warm), fastest(&cold));
    let name = |at: usize| CHECKSUMS[at].0;
    println!(
        "\nWarm timing picks \"{}\", cold timing \"{}\".",
        name(in_cache),
        name(out)
    );
    // Only what lies outside the noise of both is claimed.
    if cold[in_cache].spread.min > cold[out].spread.upper {
        let loss = cold[in_cache].seconds / cold[out].seconds;
        println!("Callers whose table is cold lose a factor of {loss:.2} by the first.");
    } else {
        println!("On this machine the context does not change the choice.");
    }
    Ok(())
}

fn main() -> Result<(), TimerError> {
    // The four agree.
    let of = |(_, function, width, entries): (&str, Checksum, u32, usize)| {
        let mut table = vec![0; 4 * entries];
        write_table(&mut table, width);
        let table: Vec<u32> = table
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        !function(!0, &table, b"12345678")
    };
    assert!(
        CHECKSUMS.map(of).iter().all(|&crc| crc == 0x9ae0_daaf),
        "{:x?}",
        CHECKSUMS.map(of)
    );
    dots()?;
    checksums()
}
