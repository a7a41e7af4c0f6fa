//! This machine.

/// The name of this machine.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}
