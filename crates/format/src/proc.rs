//! What the kernel writes of processors and memory, for every stage that needs it.

/// The text of `/proc/cpuinfo`; empty where there is none.
pub fn cpuinfo() -> String {
    std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

/// The values of a field of such a text, of all processors: `name : value`.
pub fn field<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .filter(move |(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

/// Available memory in bytes, from the text of `/proc/meminfo`; `None` if it does not say.
pub fn available(meminfo: &str) -> Option<u64> {
    let value = field(meminfo, "MemAvailable").next()?;
    let kilobytes = value.strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        let text = "processor\t: 0\nmodel name\t: A 1\n\nprocessor\t: 1\nmodel name\t: A 1\n";
        assert_eq!(field(text, "processor").collect::<Vec<_>>(), ["0", "1"]);
        assert_eq!(field(text, "model name").next(), Some("A 1"));
        assert_eq!(field(text, "flags").next(), None);
    }

    #[test]
    fn sizes() {
        let text = "MemTotal:  100 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        assert_eq!(available("MemTotal: 10 kB\n"), None);
        assert_eq!(available(""), None);
    }
}
