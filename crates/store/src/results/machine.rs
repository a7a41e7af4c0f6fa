//! Which machine this is.

use serde::Serialize;
use std::sync::LazyLock;

/// A machine that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Model name as `/proc/cpuinfo` gives it.
    pub cpu: String,
    /// Kernel release.
    pub kernel: String,
    /// 16 hexadecimal digits that identify it.
    pub id: String,
}

/// This machine. The id is a hash over the CPU's model and the system's own id (of `/etc/machine-id`, or the host's
/// name where there is none), so that a record identifies a machine and does not name it.
pub fn this() -> Machine {
    static THIS: LazyLock<Machine> = LazyLock::new(|| {
        let machine = cere_package::machine();
        let system = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
            .iter()
            .filter_map(|file| std::fs::read_to_string(file).ok())
            .find(|text| !text.trim().is_empty())
            .unwrap_or_default();
        let digits = crate::state::hash(&format!("{}\0{}", machine.cpu, system.trim()));
        Machine {
            cpu: machine.cpu,
            kernel: machine.kernel,
            id: digits[..16].to_owned(),
        }
    });
    THIS.clone()
}
