//! Times that a model of a processor gives in the place of a machine that is not there.

use crate::subset::machine::Machine;
use anyhow::{Context, Result};
use cere_arch::target::Target;
use cere_catalogue::{OrCoded, codes};
use cere_count::modelled;
use cere_measure::{Replays, Settings, emulated};
use cere_replay::cross::Cross;
use cere_sandbox::Sandbox;
use cere_store::state;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A processor as llvm-mca models it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// LLVM's name of it.
    pub cpu: String,
    /// Its architecture, e.g. `aarch64`.
    pub architecture: String,
    /// Cycles a second.
    pub hertz: f64,
}

/// What was modelled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The machine that is not there.
    #[serde(flatten)]
    pub processor: Processor,
    /// The reference machine, if the code as built was modelled for it as well: ratios are then those of two models.
    pub baseline: Option<Processor>,
}

impl From<modelled::Processor> for Processor {
    fn from(of: modelled::Processor) -> Self {
        Self {
            cpu: of.name,
            architecture: of.target.processor().to_owned(),
            hertz: of.hertz,
        }
    }
}

impl Processor {
    /// The processor that LLVM calls `cpu`: see [`modelled::Processor::named`].
    ///
    /// # Errors
    /// LLVM has no model of it; its frequency is not known.
    pub fn named(cpu: &str, hertz: Option<f64>, sandbox: &Sandbox) -> Result<Self> {
        Ok(modelled::Processor::named(cpu, hertz, sandbox)?.into())
    }

    /// Flags of code for it: see [`modelled::Processor::flags`].
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        self.known()
            .map_or(Vec::new(), |processor| processor.flags())
    }

    fn known(&self) -> Result<modelled::Processor> {
        Ok(modelled::Processor {
            name: self.cpu.clone(),
            target: self.target()?,
            hertz: self.hertz,
        })
    }

    fn target(&self) -> Result<Target> {
        let known = Target::named(&self.architecture);
        known.or_coded(codes::E6328, || {
            format!(
                "{}: {} is no architecture that is modelled",
                self.cpu, self.architecture
            )
        })
    }

    /// For people.
    fn describe(&self) -> String {
        format!("{} at {} GHz", self.cpu, self.hertz / 1e9)
    }

    /// Seconds of one invocation of the codelet in `file`.
    fn seconds(&self, replays: &Replays, settings: &Settings, file: &Path) -> Result<f64> {
        let processor = self.known()?;
        let mut settings = settings.clone();
        if processor.target != Target::X86_64 {
            settings.cross = Some(self.cross(&processor)?);
        }
        let (package, manifest, _) = replays.unpacked(file, settings.cross.is_some())?;
        let found = modelled::model(&package, &processor, &replays.options(&settings, None)?)
            .with_context(|| format!("no model of it for {}", self.cpu))?;
        if !found.calls.is_empty() {
            let names: Vec<&str> = found.calls.iter().map(|(name, _)| name.as_str()).collect();
            replays.events().note(format!(
                "{}: calls of {} count as nothing",
                manifest.name,
                names.join(", ")
            ));
        }
        Ok(found.seconds)
    }

    /// How its code is made and run here: as a compiler makes it there.
    fn cross(&self, processor: &modelled::Processor) -> Result<Cross> {
        let mut cross = match processor.target == cere_arch::HERE {
            true => Cross::here(),
            false => emulated::cross(processor.target, None, None)?,
        };
        cross.split = false;
        if let Some(emulator) = &mut cross.emulator {
            emulator.arguments = processor.emulation();
        }
        Ok(cross)
    }
}

impl Model {
    /// What a time is that comes of it, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let of = self.processor.describe();
        let over = match &self.baseline {
            Some(baseline) => format!(", over the model of {}", baseline.describe()),
            None => String::new(),
        };
        format!("modelled by llvm-mca for {of}{over}, caches not simulated: no measurement")
    }

    /// It as a machine.
    #[must_use]
    pub fn machine(&self) -> Machine {
        let processor = &self.processor;
        Machine {
            architecture: processor.architecture.clone(),
            cpu: format!("{} (modelled)", processor.cpu),
            signature: format!("llvm-mca at {} GHz", processor.hertz / 1e9),
            id: state::hash(&self.describe()).chars().take(16).collect(),
            processors: 1,
            ..Machine::default()
        }
    }

    /// Seconds of one invocation of the codelet in `file`, and those of the baseline if there is one. `settings` have the flags of the modelled code; the baseline's is
    /// as built.
    ///
    /// # Errors
    /// As those of [`modelled::model`].
    pub fn seconds(
        &self,
        replays: &Replays,
        settings: &Settings,
        file: &Path,
    ) -> Result<(f64, Option<f64>)> {
        let built = self.baseline.as_ref().map(|baseline| {
            let as_built = Settings {
                flags: Vec::new(),
                ..settings.clone()
            };
            baseline.seconds(replays, &as_built, file)
        });
        Ok((
            self.processor.seconds(replays, settings, file)?,
            built.transpose()?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_says_what_it_is() {
        let processor = |cpu: &str, hertz| Processor {
            cpu: cpu.to_owned(),
            architecture: "aarch64".to_owned(),
            hertz,
        };
        let mut model = Model {
            processor: processor("neoverse-n1", 2.5e9),
            baseline: None,
        };
        assert_eq!(
            model.describe(),
            "modelled by llvm-mca for neoverse-n1 at 2.5 GHz, caches not simulated: no measurement"
        );
        let alone = model.machine();
        model.baseline = Some(processor("icelake-server", 2.6e9));
        assert!(
            model
                .describe()
                .contains("over the model of icelake-server")
        );
        assert!(alone.is_alike(&model.machine()) && alone.id != model.machine().id);
        let text = serde_json::to_string(&model).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Model>(&text).expect("a model"),
            model
        );
    }
}
