//! Which machine measured.

use cere_format::proc;
use cere_memory::Geometry;
use cere_package::lacks;
use serde::{Deserialize, Serialize};

/// A machine, as far as times depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// `x86_64` or `aarch64`.
    pub architecture: String,
    /// Model name as `/proc/cpuinfo` gives it.
    pub cpu: String,
    /// [`proc::signature`]: two processors may have one name.
    pub signature: String,
    /// The largest of x86-64-v2 to x86-64-v4 whose instructions it has; empty: none of them, or another architecture.
    pub level: String,
    /// Kernel release.
    pub kernel: String,
    /// 16 hexadecimal digits that identify the machine and do not name it.
    pub id: String,
    /// Processors that a process may use.
    pub processors: usize,
    /// Bytes of the caches, the nearest first; empty if the system does not say.
    pub caches: Vec<u64>,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn here() -> Self {
        let record = cere_store::results::this_machine();
        let machine = cere_package::machine();
        let levels = ["x86-64-v4", "x86-64-v3", "x86-64-v2"].into_iter();
        let mut has = levels.filter(|l| lacks(&machine, &[format!("-march={l}")]).is_empty());
        let level = has.next().unwrap_or_default().to_owned();
        let caches = Geometry::here().map_or(Vec::new(), |g| {
            g.levels.iter().map(|level| level.size).collect()
        });
        Self {
            architecture: machine.architecture,
            cpu: machine.cpu,
            signature: proc::signature(&proc::cpuinfo()),
            level,
            kernel: machine.kernel,
            id: record.id,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            caches,
        }
    }

    /// Whether times of both may stand in one measurement: the same kind of processor, not the same machine.
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        let kind = |m: &Self| (m.architecture.clone(), m.cpu.clone(), m.signature.clone());
        kind(self) == kind(other)
    }

    /// For people.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} ({}, machine {})", self.cpu, self.signature, self.id)
    }
}
