//! Keys that people press while a command runs, and the signals that end it.

use crate::process::inherited;
use anyhow::{Context, Result};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, Read};

/// What people do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A key, or a byte of stdin where that is no terminal.
    Pressed(u8),
    /// A signal to end came, or stdin ended.
    End,
}

/// Keys are read without the return key and not shown, as long as this lives.
pub struct Keys {
    /// How the terminal was; none without one.
    before: Option<Termios>,
}

impl Keys {
    /// Hands keys and signals to `tell`, each in a thread of its own.
    pub fn listen(tell: impl Fn(Key) + Clone + Send + 'static) -> Result<Self> {
        let ending = [SIGHUP, SIGINT, SIGTERM].into_iter();
        // What this command's parent had ignored stays ignored.
        let ending = ending.filter(|signal| !inherited::is_ignored(*signal));
        let mut signals = Signals::new(ending).context("cannot wait for signals")?;
        let keys = Self {
            before: is_terminal().then(single_keys).transpose()?,
        };
        let told = tell.clone();
        std::thread::spawn(move || signals.forever().for_each(|_| told(Key::End)));
        std::thread::spawn(move || {
            for byte in std::io::stdin().lock().bytes().map_while(Result::ok) {
                tell(Key::Pressed(byte));
            }
            tell(Key::End);
        });
        Ok(keys)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Whether people see what the command prints, and type what it reads.
pub fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Has the terminal hand over each key at once; how it was before.
fn single_keys() -> Result<Termios> {
    let failed = "cannot have the terminal hand over single keys";
    let before = rustix::termios::tcgetattr(std::io::stdin()).context(failed)?;
    let mut single = before.clone();
    single.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    single.special_codes[SpecialCodeIndex::VMIN] = 1;
    single.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(std::io::stdin(), OptionalActions::Now, &single).context(failed)?;
    Ok(before)
}

/// Empties the terminal.
pub fn clear() -> Result<()> {
    let terminal = console::Term::stdout();
    terminal.clear_screen().context("cannot write to stdout")
}
