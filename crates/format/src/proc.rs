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

/// The fields that tell kinds of processors apart: of x86-64, and of ARM.
pub const KINDS: [&str; 10] = [
    "vendor_id",
    "cpu family",
    "model",
    "stepping",
    "flags",
    "CPU implementer",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "Features",
];

/// ARM's processors: implementer, part, name.
const PARTS: [(u32, u32, &str); 30] = [
    (0x41, 0xd03, "ARM Cortex-A53"),
    (0x41, 0xd05, "ARM Cortex-A55"),
    (0x41, 0xd07, "ARM Cortex-A57"),
    (0x41, 0xd08, "ARM Cortex-A72"),
    (0x41, 0xd09, "ARM Cortex-A73"),
    (0x41, 0xd0a, "ARM Cortex-A75"),
    (0x41, 0xd0b, "ARM Cortex-A76"),
    (0x41, 0xd0c, "ARM Neoverse N1"),
    (0x41, 0xd40, "ARM Neoverse V1"),
    (0x41, 0xd41, "ARM Cortex-A78"),
    (0x41, 0xd44, "ARM Cortex-X1"),
    (0x41, 0xd46, "ARM Cortex-A510"),
    (0x41, 0xd47, "ARM Cortex-A710"),
    (0x41, 0xd48, "ARM Cortex-X2"),
    (0x41, 0xd49, "ARM Neoverse N2"),
    (0x41, 0xd4a, "ARM Neoverse E1"),
    (0x41, 0xd4d, "ARM Cortex-A715"),
    (0x41, 0xd4e, "ARM Cortex-X3"),
    (0x41, 0xd4f, "ARM Neoverse V2"),
    (0x41, 0xd80, "ARM Cortex-A520"),
    (0x41, 0xd81, "ARM Cortex-A720"),
    (0x41, 0xd84, "ARM Neoverse V3"),
    (0x41, 0xd8e, "ARM Neoverse N3"),
    (0x43, 0x0af, "Cavium ThunderX2"),
    (0x46, 0x001, "Fujitsu A64FX"),
    (0x48, 0xd01, "HiSilicon Kunpeng-920"),
    (0x51, 0x001, "Qualcomm Oryon"),
    (0x6d, 0xd49, "Microsoft Azure Cobalt 100"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

/// The first processor's name: as `/proc/cpuinfo` gives it, or where it has ARM's numbers, what they stand for; empty if it has neither.
pub fn processor(cpuinfo: &str) -> String {
    if let Some(name) = field(cpuinfo, "model name").next() {
        return name.to_owned();
    }
    let number = |name| {
        let text = field(cpuinfo, name).next()?;
        u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    };
    let Some((implementer, part)) = number("CPU implementer").zip(number("CPU part")) else {
        return String::new();
    };
    let known = PARTS.iter().find(|p| (p.0, p.1) == (implementer, part));
    known.map_or_else(
        || format!("ARM processor of implementer {implementer:#x}, part {part:#x}"),
        |known| known.2.to_owned(),
    )
}

/// The first processor's instructions beside those that all have, as `/proc/cpuinfo` names them.
pub fn features(cpuinfo: &str) -> impl Iterator<Item = &str> {
    let x86 = field(cpuinfo, "flags").next();
    let all = x86.or_else(|| field(cpuinfo, "Features").next());
    all.unwrap_or_default().split_whitespace()
}

/// What tells processors of one name apart: family, model and stepping; of ARM's, implementer, part, variant and revision. `?` stands
/// for what is not there.
pub fn signature(cpuinfo: &str) -> String {
    let of = |names: &[&str]| {
        let values = names
            .iter()
            .map(|name| field(cpuinfo, name).next().unwrap_or("?"));
        values.collect::<Vec<_>>().join("-")
    };
    match field(cpuinfo, "CPU implementer").next() {
        Some(_) => of(&["CPU implementer", "CPU part", "CPU variant", "CPU revision"]),
        None => of(&["cpu family", "model", "stepping"]),
    }
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
    fn processors_of_arm() {
        let of = |part: &str| {
            format!(
                "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x41\n\
                 CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: {part}\nCPU revision\t: 1\n"
            )
        };
        let known = of("0xd0c");
        assert_eq!(processor(&known), "ARM Neoverse N1");
        assert_eq!(
            features(&known).collect::<Vec<_>>(),
            ["fp", "asimd", "evtstrm"]
        );
        assert_eq!(signature(&known), "0x41-0xd0c-0x3-1");
        assert_eq!(
            processor(&of("0xfff")),
            "ARM processor of implementer 0x41, part 0xfff"
        );
        assert_eq!(processor("processor : 0\n"), "");
        assert_eq!(signature("cpu family : 6\nmodel : 1\n"), "6-1-?");
    }

    #[test]
    fn sizes() {
        let text = "MemTotal:  100 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        assert_eq!(available("MemTotal: 10 kB\n"), None);
        assert_eq!(available(""), None);
    }
}
