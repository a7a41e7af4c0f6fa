//! The architectures that code is made for.

use std::fmt::{Display, Formatter, Write};
use std::path::{Path, PathBuf};

/// An architecture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// x86-64.
    #[default]
    X86_64,
    /// AArch64, little-endian.
    Aarch64,
    /// RISC-V with 64 bits.
    Riscv64,
}

/// What is known of an architecture.
#[derive(Debug)]
pub struct Facts {
    /// As GNU names the system.
    pub name: &'static str,
    /// As LLVM does.
    pub triple: &'static str,
    /// As Rust does.
    pub rust: &'static str,
    /// LLVM's description of data in memory.
    pub layout: &'static str,
    /// Of an ELF file's head (`e_machine`).
    pub machine: u16,
    /// The loader of programs.
    pub loader: &'static str,
    /// Directories of the libraries of a system of its own: a package names those of other libraries only, and a replay looks here too.
    pub directories: &'static [&'static str],
    /// Where a cross compiler's packages have a system for it: its directory there holds the loader and the libraries.
    pub root: &'static str,
    /// The emulator of programs.
    pub emulator: &'static str,
    /// Instructions that a replay's code may hold beside those that all processors have, as the compiler names them.
    pub flags: &'static [&'static str],
    /// Relocations of ELF images that store a symbol's address: through the table of addresses, of calls.
    pub addresses: [u64; 2],
    /// Assembly that ends a process.
    pub trap: &'static str,
    /// Functions of the C library that the runtime of replays defines: those that ask the kernel, where their calls cannot be caught.
    pub questions: &'static [&'static str],
    /// Whether programs are instrumented, profiled and captured there, and hybrids linked.
    pub captures: bool,
}

macro_rules! names {
    ($($function:ident($($argument:ident),*) = $number:ident;)*) => {
        /// As `questions!` defines them.
        const QUESTIONS: &[&str] = &[$(stringify!($function)),*];
    };
}
crate::question_family!(names);

static X86_64: Facts = Facts {
    name: "x86_64-linux-gnu",
    triple: "x86_64-unknown-linux-gnu",
    rust: "x86_64-unknown-linux-gnu",
    layout: "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
    machine: 62,
    loader: "/lib64/ld-linux-x86-64.so.2",
    directories: &[
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/usr/local/lib",
        "/lib",
        "/usr/lib",
    ],
    root: "/usr/x86_64-linux-gnu",
    emulator: "qemu-x86_64",
    flags: &[],
    addresses: [6, 7],
    trap: "int3",
    questions: &[],
    captures: true,
};

static AARCH64: Facts = Facts {
    name: "aarch64-linux-gnu",
    triple: "aarch64-unknown-linux-gnu",
    rust: "aarch64-unknown-linux-gnu",
    layout: "e-m:e-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32",
    machine: 183,
    loader: "/lib/ld-linux-aarch64.so.1",
    directories: &[
        "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/usr/local/lib",
        "/lib",
        "/usr/lib",
    ],
    root: "/usr/aarch64-linux-gnu",
    emulator: "qemu-aarch64",
    flags: &["-mno-outline-atomics"],
    addresses: [1025, 1026],
    trap: "brk #1",
    questions: QUESTIONS,
    captures: false,
};

static RISCV64: Facts = Facts {
    name: "riscv64-linux-gnu",
    triple: "riscv64-unknown-linux-gnu",
    rust: "riscv64gc-unknown-linux-gnu",
    layout: "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128",
    machine: 243,
    loader: "/lib/ld-linux-riscv64-lp64d.so.1",
    directories: &[
        "/lib/riscv64-linux-gnu",
        "/usr/lib/riscv64-linux-gnu",
        "/usr/local/lib",
        "/lib",
        "/usr/lib",
    ],
    root: "/usr/riscv64-linux-gnu",
    emulator: "qemu-riscv64",
    flags: &["-mabi=lp64d", "-march=rv64gc", "-mcmodel=medany"],
    addresses: [2, 5],
    trap: "ebreak",
    questions: QUESTIONS,
    captures: false,
};

/// All that there are.
pub const ALL: [Target; 3] = [Target::X86_64, Target::Aarch64, Target::Riscv64];

impl Target {
    /// What is known of it.
    #[must_use]
    pub fn facts(self) -> &'static Facts {
        match self {
            Target::X86_64 => &X86_64,
            Target::Aarch64 => &AARCH64,
            Target::Riscv64 => &RISCV64,
        }
    }

    /// The architecture of this name: the system as GNU or LLVM names it, or the processor alone.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let processor = name.split('-').next().unwrap_or(name);
        let known = |target: &Target| {
            let facts = target.facts();
            let own = facts.name.split('-').next();
            let arm = *target == Target::Aarch64 && name == "arm64";
            [facts.name, facts.triple].contains(&name)
                || own == Some(name)
                || own == Some(processor) && name.ends_with("-linux-gnu")
                || arm
        };
        ALL.into_iter().find(known)
    }

    /// The processor's name, e.g. `aarch64`.
    #[must_use]
    pub fn processor(self) -> &'static str {
        let name = self.facts().name;
        name.split_once('-')
            .map_or(name, |(processor, _)| processor)
    }

    /// Directories with its libraries on this machine: those of a system of its own, else of a cross compiler's.
    #[must_use]
    pub fn directories(self) -> Vec<PathBuf> {
        let facts = self.facts();
        let mut all: Vec<PathBuf> = facts.directories.iter().map(PathBuf::from).collect();
        if self != crate::HERE {
            all.push(Path::new(facts.root).join("lib"));
        }
        all
    }

    /// Assembly of a jump to the address `to`, at a label that is there.
    #[must_use]
    pub fn thunk(self, to: u64) -> String {
        match self {
            Target::X86_64 => format!("jmp *0f(%rip)\n0: .quad {to:#x}\n"),
            Target::Aarch64 => format!("ldr x16, 0f\nbr x16\n0: .quad {to:#x}\n"),
            Target::Riscv64 => {
                format!("1: auipc t1, 0\nld t1, 16(t1)\njr t1\nnop\n.balign 8\n0: .quad {to:#x}\n")
            }
        }
    }

    /// Assembly of a function's end that returns 0.
    #[must_use]
    pub fn nothing(self) -> &'static str {
        match self {
            Target::X86_64 => "xorl %eax, %eax\nret\n",
            Target::Aarch64 => "mov x0, #0\nret\n",
            Target::Riscv64 => "li a0, 0\nret\n",
        }
    }

    /// Assembly of a function's end that returns the calling thread's address of the thread-local `symbol` of the executable.
    #[must_use]
    pub fn thread_local(self, symbol: &str) -> String {
        let mut text = String::new();
        let _ = match self {
            Target::X86_64 => writeln!(
                text,
                "movq %fs:0, %rax\nleaq {symbol}@tpoff(%rax), %rax\nret"
            ),
            Target::Aarch64 => writeln!(
                text,
                "mrs x0, tpidr_el0\nadd x0, x0, :tprel_hi12:{symbol}\nadd x0, x0, :tprel_lo12_nc:{symbol}\nret"
            ),
            Target::Riscv64 => writeln!(
                text,
                "lui a0, %tprel_hi({symbol})\nadd a0, a0, tp, %tprel_add({symbol})\naddi a0, a0, %tprel_lo({symbol})\nret"
            ),
        };
        text
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str(self.facts().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_systems_are_known() {
        for name in [
            "aarch64-linux-gnu",
            "aarch64-unknown-linux-gnu",
            "aarch64",
            "arm64",
        ] {
            assert_eq!(Target::named(name), Some(Target::Aarch64), "{name}");
        }
        for name in [
            "aarch64_be-linux-gnu",
            "powerpc64le-linux-gnu",
            "aarch64-apple-darwin",
            "",
        ] {
            assert_eq!(Target::named(name), None, "{name}");
        }
        assert_eq!(Target::named(crate::HERE.facts().name), Some(crate::HERE));
    }
}
