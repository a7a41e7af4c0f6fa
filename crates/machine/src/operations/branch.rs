//! What a branch costs that is predicted wrongly.

use crate::Error;
use crate::code::Code;
use crate::session::Session;
use iced_x86::code_asm::{byte_ptr, eax, rax, rdi, rsi};

/// Directions in a run: no predictor remembers so many that follow no rule.
const DIRECTIONS: usize = 1 << 18;
/// Runs of each kind.
const RUNS: usize = 8;

/// A loop whose branch goes as the bytes say.
fn code() -> Result<Code, Error> {
    Code::new(|a| {
        let (mut again, mut over) = (a.create_label(), a.create_label());
        a.set_label(&mut again)?;
        a.movzx(eax, byte_ptr(rdi))?;
        a.test(eax, eax)?;
        a.jz(over)?;
        a.add(rax, rsi)?;
        a.set_label(&mut over)?;
        a.inc(rdi)?;
        a.dec(rsi)?;
        a.jnz(again)
    })
}

/// Nanoseconds that a wrong prediction adds: directions at random against directions that never change, half of which are wrong.
///
/// # Errors
/// The code cannot be made.
pub fn wrong_nanoseconds(session: &Session) -> Result<f64, Error> {
    let code = code()?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32 & 1) as u8
    };
    let chance: Vec<u8> = (0..DIRECTIONS).map(|_| random()).collect();
    let time = |bytes: &[u8]| {
        session.least(RUNS, || {
            let arguments = [bytes.as_ptr() as u64, bytes.len() as u64, 0, 0];
            // SAFETY: it reads as many bytes as there are.
            unsafe { code.call(arguments) };
        })
    };
    let always = (time(&[0; DIRECTIONS]) + time(&[1; DIRECTIONS])) / 2.0;
    let wrong = DIRECTIONS as f64 / 2.0;
    Ok(((time(&chance) - always) / wrong).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_at_random_cost_something() {
        let session = Session::new(true, 10.0, &|_| ());
        let found = wrong_nanoseconds(&session).unwrap();
        assert!(found > 0.2 && found < 500.0, "{found}");
    }
}
