//! This machine, and whether it can run a codelet.

use cere_arch::target::Target;
use cere_format::package::{Machine, Manifest};
use cere_format::proc;
use std::collections::BTreeSet;

/// The flags of `/proc/cpuinfo` that stand for instructions which compilers emit.
const INSTRUCTIONS: [&str; 52] = [
    "sse3",
    "pni",
    "ssse3",
    "sse4_1",
    "sse4_2",
    "sse4a",
    "popcnt",
    "cx16",
    "lahf_lm",
    "avx",
    "avx2",
    "fma",
    "fma4",
    "f16c",
    "bmi1",
    "bmi2",
    "abm",
    "movbe",
    "adx",
    "aes",
    "vaes",
    "pclmulqdq",
    "vpclmulqdq",
    "gfni",
    "sha_ni",
    "rdrand",
    "rdseed",
    "xop",
    "tbm",
    "3dnowprefetch",
    "clflushopt",
    "clwb",
    "movdiri",
    "movdir64b",
    "avx_vnni",
    "avx512f",
    "avx512cd",
    "avx512dq",
    "avx512bw",
    "avx512vl",
    "avx512ifma",
    "avx512vbmi",
    "avx512_vbmi2",
    "avx512_vnni",
    "avx512_bitalg",
    "avx512_vpopcntdq",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vp2intersect",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
];

const V2: [&str; 7] = [
    "cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3",
];
const V3: [&str; 8] = ["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"];
const V4: [&str; 5] = ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];

/// Names of clang's `-m` flags that `/proc/cpuinfo` calls something else.
const RENAMED: [(&str, &str); 14] = [
    ("sse3", "pni"),
    ("sse4.1", "sse4_1"),
    ("sse4.2", "sse4_2"),
    ("sse4", "sse4_2"),
    ("bmi", "bmi1"),
    ("lzcnt", "abm"),
    ("pclmul", "pclmulqdq"),
    ("sha", "sha_ni"),
    ("avx512vbmi2", "avx512_vbmi2"),
    ("avx512vnni", "avx512_vnni"),
    ("avx512bitalg", "avx512_bitalg"),
    ("avx512vpopcntdq", "avx512_vpopcntdq"),
    ("avx512bf16", "avx512_bf16"),
    ("avxvnni", "avx_vnni"),
];

/// Why a machine cannot run a codelet.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// Another architecture.
    #[error("{codelet} was captured on {needed}, this machine is {found}: replay it on {needed}")]
    Architecture {
        /// The codelet.
        codelet: String,
        /// Its machine's.
        needed: String,
        /// This one's.
        found: String,
    },
    /// Another page size.
    #[error(
        "{codelet} was captured with pages of {needed} bytes, this machine has {found}: replay it where they are {needed}"
    )]
    PageSize {
        /// The codelet.
        codelet: String,
        /// Its machine's.
        needed: u64,
        /// This one's.
        found: u64,
    },
    /// Instructions that this processor lacks.
    #[error(
        "{codelet} was built with {flag} and captured on {cpu}; this processor lacks {missing}: replay it on one \
         that has it, or build the program for a smaller set of instructions and capture again"
    )]
    Instructions {
        /// The codelet.
        codelet: String,
        /// The flag that asked for them.
        flag: String,
        /// The processor that it was captured on.
        cpu: String,
        /// What is missing, as in `/proc/cpuinfo`.
        missing: String,
    },
}

/// The record of this machine.
pub fn machine() -> Machine {
    let info = proc::cpuinfo();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        architecture: std::env::consts::ARCH.to_owned(),
        cpu: proc::processor(&info),
        features: proc::features(&info).map(Into::into).collect(),
        kernel: kernel.trim().to_owned(),
    }
}

/// Instructions that `flag` lets the compiler use, given those of the processor that it ran on.
fn needs(flag: &str, captured: &[String]) -> Vec<String> {
    let named = |lists: &[&[&str]]| lists.concat().iter().map(|f| (*f).to_owned()).collect();
    if let Some(cpu) = flag.strip_prefix("-march=") {
        return match cpu {
            "x86-64" => Vec::new(),
            "x86-64-v2" => named(&[&V2]),
            "x86-64-v3" => named(&[&V2, &V3]),
            "x86-64-v4" => named(&[&V2, &V3, &V4]),
            // The program ran there, so it needs no more than what was there.
            _ => captured
                .iter()
                .filter(|f| INSTRUCTIONS.contains(&f.as_str()))
                .cloned()
                .collect(),
        };
    }
    let Some(name) = flag.strip_prefix("-m") else {
        return Vec::new();
    };
    let name = RENAMED
        .iter()
        .find(|(clang, _)| *clang == name)
        .map_or(name, |(_, linux)| linux);
    if INSTRUCTIONS.contains(&name) {
        vec![name.to_owned()]
    } else {
        Vec::new()
    }
}

/// Instructions that `flag` lets the compiler use, given those of the processor `captured`, and that `here` lacks.
fn missing(flag: &str, captured: &[String], here: &[String]) -> Vec<String> {
    let here: BTreeSet<&str> = here.iter().map(String::as_str).collect();
    let mut all = needs(flag, captured);
    all.retain(|f| !here.contains(f.as_str()));
    all
}

/// Instructions that `flags` let the compiler use and `machine` lacks, as in `/proc/cpuinfo`; none of flags that name
/// another processor, of which nothing is known.
pub fn lacks(machine: &Machine, flags: &[String]) -> Vec<String> {
    let there = &machine.features;
    flags
        .iter()
        .flat_map(|f| missing(f, there, there))
        .collect()
}

/// Whether `machine` with pages of `page_size` bytes can run the codelet.
pub fn fits(manifest: &Manifest, machine: &Machine, page_size: u64) -> Result<(), Misfit> {
    let codelet = || manifest.name.clone();
    let other = manifest.machine.architecture != machine.architecture;
    if other {
        can_cross(manifest)?;
    }
    if manifest.page_size != page_size {
        return Err(Misfit::PageSize {
            codelet: codelet(),
            needed: manifest.page_size,
            found: page_size,
        });
    }
    // What is compiled for another architecture needs none of the capture's instructions.
    let flags = manifest.units.iter().flat_map(|unit| &unit.codegen);
    for flag in flags.filter(|_| !other) {
        let missing = missing(flag, &manifest.machine.features, &machine.features);
        if !missing.is_empty() {
            return Err(Misfit::Instructions {
                codelet: codelet(),
                flag: flag.clone(),
                cpu: manifest.machine.cpu.clone(),
                missing: missing.join(", "),
            });
        }
    }
    Ok(())
}

/// Whether the IR of a codelet can be made that of another architecture.
///
/// # Errors
/// It was captured on one whose IR is not known.
pub fn can_cross(manifest: &Manifest) -> Result<(), Misfit> {
    match manifest.machine.target() {
        Some(Target::X86_64) => Ok(()),
        _ => Err(Misfit::Architecture {
            codelet: manifest.name.clone(),
            needed: manifest.machine.architecture.clone(),
            found: std::env::consts::ARCH.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(flag: &str, captured: &[&str], here: &[&str]) -> Vec<String> {
        let owned = |all: &[&str]| all.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
        super::missing(flag, &owned(captured), &owned(here))
    }

    #[test]
    fn flags_need_instructions() {
        let new = ["fpu", "pni", "avx2", "avx512f"];
        assert_eq!(
            missing("-march=native", &new, &["pni", "avx2"]),
            ["avx512f"]
        );
        assert_eq!(missing("-march=znver5", &new, &new), [""; 0]);
        assert_eq!(missing("-march=x86-64", &new, &[]), [""; 0]);
        assert_eq!(
            missing("-march=x86-64-v2", &new, &["pni"]).len(),
            V2.len() - 1
        );
        assert_eq!(missing("-mavx512vnni", &new, &[]), ["avx512_vnni"]);
        assert_eq!(missing("-mbmi", &new, &[]), ["bmi1"]);
        assert_eq!(missing("-mtune=native", &new, &[]), [""; 0]);
        assert_eq!(missing("-O3", &new, &[]), [""; 0]);
    }

    #[test]
    fn this_machine_is_known() {
        let machine = machine();
        assert!(!machine.cpu.is_empty() && !machine.kernel.is_empty());
        assert!(machine.features.iter().any(|f| f == "sse2"));
    }
}
