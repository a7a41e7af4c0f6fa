//! Processors that are modelled.

use super::error::ModelError;
use crate::mca;
use cere_arch::target::Target;
use cere_sandbox::Sandbox;
use cere_toolchain::command::run_with_input;

/// Where names are looked for, in this order.
const ARCHITECTURES: [Target; 2] = [Target::X86_64, Target::Aarch64];

/// Frequencies of machines that one can rent, in hertz: Graviton 1, 2, 3 and 4, Cobalt 100.
const HERTZ: [(&str, f64); 5] = [
    ("cortex-a72", 2.3e9),
    ("neoverse-n1", 2.5e9),
    ("neoverse-v1", 2.6e9),
    ("neoverse-v2", 2.8e9),
    ("neoverse-n2", 3.4e9),
];

/// Processors with vectors of a length that code does not know, and bits of those.
const VECTORS: [(&str, u32); 2] = [("neoverse-v1", 256), ("a64fx", 512)];

/// A processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// LLVM's name of it.
    pub name: String,
    /// Its architecture.
    pub target: Target,
    /// Cycles a second.
    pub hertz: f64,
}

impl Processor {
    /// The processor that LLVM calls `name`, at `hertz`; none: as in the machines that one can rent.
    ///
    /// # Errors
    /// LLVM has no model of it; its frequency is not known.
    pub fn named(name: &str, hertz: Option<f64>, sandbox: &Sandbox) -> Result<Self, ModelError> {
        let mut found = None;
        for target in ARCHITECTURES {
            if found.is_none() && has_model(target, name, sandbox)? {
                found = Some(target);
            }
        }
        let target = found.ok_or_else(|| ModelError::Processor {
            name: name.to_owned(),
            architectures: ARCHITECTURES.map(Target::processor).join(" or "),
        })?;
        let usual = HERTZ.iter().find(|(known, _)| *known == name);
        let hertz = hertz.or(usual.map(|(_, hertz)| *hertz));
        Ok(Self {
            name: name.to_owned(),
            target,
            hertz: hertz.ok_or_else(|| ModelError::Hertz(name.to_owned()))?,
        })
    }

    /// The flags that make code for it where it is of another architecture than the capture's: there is none as built then.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        match self.target {
            Target::Aarch64 => vec![format!("-mcpu={}", self.name)],
            Target::X86_64 | Target::Riscv64 => Vec::new(),
        }
    }

    /// Arguments of qemu-user that make it run such a processor's code as that does.
    #[must_use]
    pub fn emulation(&self) -> Vec<String> {
        let bits = VECTORS.iter().find(|(name, _)| *name == self.name);
        let bits = bits.map_or(128, |(_, bits)| *bits);
        match self.target {
            Target::Aarch64 => vec!["-cpu".into(), format!("max,sve-max-vq={}", bits / 128)],
            Target::X86_64 | Target::Riscv64 => Vec::new(),
        }
    }
}

/// Whether llvm-mca models the processor `name` of `target`.
fn has_model(target: Target, name: &str, sandbox: &Sandbox) -> Result<bool, ModelError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    if name.is_empty() || name == "help" || !name.chars().all(plain) {
        return Ok(false);
    }
    let line = mca::line(target, name, 1, sandbox).arg("-");
    let input = mca::piece(target, "one", ["nop"].into_iter());
    let unknown = |said: &str| {
        said.contains("is not a recognized processor")
            || said.contains("unable to find instruction-level scheduling information")
    };
    match run_with_input(&line, name, &input) {
        Err(cere_toolchain::CompileError::Compile { message, .. }) if unknown(&message) => {
            Ok(false)
        }
        Ok((_, said)) => Ok(!unknown(&said)),
        Err(error) => Err(error.into()),
    }
}
