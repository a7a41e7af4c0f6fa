//! The codelet package: one file that holds all that a replay needs, on any machine.
//!
//! A package is a zstd skippable frame with the preamble followed by one zstd frame that holds a tar
//! archive, so `tar --zstd -tf x.codelet` lists it. Members: `manifest.json` first, then those that it names.
//! See `docs/formats.md`.

use crate::answers::Answers;
use crate::build::{Language, Region};
use crate::capture::{EntryState, Mapping, OpenMp, PageTrace, SystemCall};
use crate::clibrary::CLibrary;
use crate::mpi::MpiCalls;
use crate::profile::{FileState, Profile, RegionKey, RunInput, Stdin};
use crate::untrusted::visible;
use cere_arch::target::Target;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the package format.
pub const PACKAGE_VERSION: u32 = 3;
/// Extension of a package's file name.
pub const PACKAGE_EXTENSION: &str = "codelet";

/// Member: the manifest.
pub const MEMBER_MANIFEST: &str = "manifest.json";
/// Member: the page table, [`crate::capture::PageRecord`]s as on disk there.
pub const MEMBER_TABLE: &str = "pages.table";
/// Member: pages at entry.
pub const MEMBER_ENTRY: &str = "pages.entry";
/// Member: pages at exit.
pub const MEMBER_EXIT: &str = "pages.exit";
/// Member: the page trace before entry, as on disk in a raw capture; absent if there is none.
pub const MEMBER_TRACE: &str = "pages.trace";
/// Member: the image's thread-local block at entry; absent if there is none.
pub const MEMBER_TLS_ENTRY: &str = "tls.entry";
/// Member: the image's thread-local block at exit.
pub const MEMBER_TLS_EXIT: &str = "tls.exit";
/// Member: the image's thread-local block in a thread that starts.
pub const MEMBER_TLS_START: &str = "tls.start";
/// Member: the image's thread-local blocks of other threads of the OpenMP runtime at entry; absent if there are none.
pub const MEMBER_TLS_TEAM: &str = "tls.team";
/// Member: what the kernel answered the region, as on disk in a raw capture; absent if it asked nothing.
pub const MEMBER_ANSWERS: &str = "answers";
/// Member: the region's calls of MPI, as on disk in a raw capture; absent if it made none.
pub const MEMBER_MPI: &str = "mpi";
/// Member: the outlined function's machine code in vivo.
pub const MEMBER_CODE: &str = "region.code";

/// `manifest.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// [`PACKAGE_VERSION`].
    pub version: u32,
    /// Codelet name: the region's name, and `:<invocation>` after it.
    pub name: String,
    /// The region's display name.
    pub region_name: String,
    /// The region.
    pub region: Region,
    /// Its identity.
    pub key: RegionKey,
    /// Invocation, from 1.
    pub invocation: u64,
    /// The thread that it was captured in, if that is not the program's first one.
    #[serde(default)]
    pub of_thread: Option<OfThread>,
    /// Other threads of the program, OpenMP's apart, that computed when it was entered.
    #[serde(default)]
    pub beside: u32,
    /// Where it was captured.
    pub machine: Machine,
    /// The run that it was captured in; none if the writer did not record it.
    #[serde(default)]
    pub run: Option<CapturedRun>,
    /// The time of this invocation in vivo, undisturbed, if it is known.
    pub in_vivo: Option<InVivo>,
    /// The performance class that this invocation stands for, if it was chosen for one.
    #[serde(default)]
    pub represents: Option<Represents>,
    /// Metadata of [`MEMBER_TRACE`], if the package has one.
    #[serde(default)]
    pub trace: Option<PageTrace>,
    /// The OpenMP runtime of the captured process, if it had one.
    #[serde(default)]
    pub openmp: Option<OpenMp>,
    /// The kernel's answers to the region, if the capture kept them.
    #[serde(default)]
    pub answers: Option<Answers>,
    /// The region's calls of MPI, if it made some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<MpiCalls>,
    /// What the C library kept at entry and at exit, if the capture tells.
    #[serde(default)]
    pub c_library: Option<[CLibrary; 2]>,
    /// Bytes in a page.
    pub page_size: u64,
    /// The processor's state at entry.
    pub entry: EntryState,
    /// Whether an exception left the region.
    pub unwound: bool,
    /// The image that holds the region; its units are compiled again in a replay. Code of other images of
    /// the program, and code without IR, runs as captured.
    pub image: PackageImage,
    /// Units of the image that the region executed code of, the region's own first.
    pub units: Vec<PackageUnit>,
    /// Data of the image by symbol, and what other images of the program export, at its captured addresses.
    pub variables: Vec<Variable>,
    /// Functions of the image and of other images of the program, at their captured addresses.
    pub functions: Vec<Function>,
    /// What the units refer to and a replay does not have, as the captured invocation did not use it.
    #[serde(default)]
    pub absent: Vec<Absent>,
    /// Labels of functions of the units whose address is taken, at their captured addresses.
    #[serde(default)]
    pub labels: Vec<Labels>,
    /// Functions of the program that may have run and that a replay does not compile, so that they run as captured:
    /// they lie on executed pages, and executed code refers to them. `None` if the writer did not determine them.
    #[serde(default)]
    pub captured_code: Option<Vec<CapturedFunction>>,
    /// Addresses of library functions and library variables that the captured memory or code refers to.
    pub library_symbols: Vec<LibrarySymbol>,
    /// Shared libraries to link, by soname, in order.
    pub libraries: Vec<String>,
    /// Directories to search for them in addition to the system's.
    pub library_directories: Vec<String>,
    /// The libraries that a replay takes fresh, as they were loaded: their constants are the same in the same build.
    #[serde(default)]
    pub fresh_libraries: Vec<FreshLibrary>,
    /// Variables of libraries that the linker had copied into the program, by name: where they were. A replay uses its library's.
    #[serde(default)]
    pub copied: Vec<(String, u64)>,
    /// Tables of frames that the unwinder looked at in the captured process.
    #[serde(default)]
    pub frames: Vec<FrameTable>,
    /// Everything that was mapped at entry, to reserve and to explain stray accesses with.
    pub mappings: Vec<Mapping>,
    /// Ranges mapped while the region ran.
    pub fresh: Vec<(u64, u64)>,
    /// Reserved range of the region heap (see `cere-inside` (`heap`)).
    pub heap: (u64, u64),
    /// Names and addresses of the preload library's functions, `malloc` and family among them, at capture.
    #[serde(default)]
    pub interposed: Vec<(String, u64)>,
    /// End of the program's data at entry, which `sbrk` moves; 0 if it is not known.
    #[serde(default)]
    pub program_break: u64,
    /// Blocks that are older than the region and that it freed, [start, end), rising.
    #[serde(default)]
    pub freed: Vec<(u64, u64)>,
    /// The captured thread, if the capture tells.
    #[serde(default)]
    pub thread: Option<CapturedThread>,
    /// Offset ranges in written pages that a comparison excludes, with the reason.
    pub masks: Vec<Mask>,
    /// System calls made inside the region.
    pub system_calls: Vec<SystemCall>,
    /// Number of pages in the table.
    pub pages: u64,
    /// Members with their sizes and checksums, the manifest left out.
    pub members: Vec<Member>,
}

/// The run that a codelet was captured in. Texts have no control characters: those of the originals are escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedRun {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Directory that it ran in.
    pub directory: String,
    /// SHA-256 of the program's file, in hexadecimal.
    pub program: String,
    /// The captured process among those of a parallel program: see [`crate::rank::own`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<String>,
    /// Its standard input.
    pub stdin: Stdin,
    /// The files that arguments named, whole or after a `=`.
    pub files: Vec<(String, FileState)>,
}

impl CapturedRun {
    /// A run of `command`, which could read `input`, by the process `rank` of a parallel program.
    pub fn of(
        command: &[String],
        directory: &Path,
        program: &str,
        rank: Option<&str>,
        input: &RunInput,
    ) -> Self {
        let file = |(name, state): &(String, Option<FileState>)| Some((visible(name), (*state)?));
        Self {
            command: command.iter().map(|word| visible(word)).collect(),
            directory: visible(&directory.to_string_lossy()),
            program: program.to_owned(),
            rank: rank.map(visible),
            stdin: input.stdin,
            files: input.files.iter().filter_map(file).collect(),
        }
    }

    /// Whether it is of the process of `profile` in its command, with the same input, as far as that is known.
    pub fn is_of(&self, profile: &Profile) -> bool {
        let read = |(name, then): &(String, Option<FileState>)| {
            let name = visible(name);
            let now = self.files.iter().find(|(of, _)| *of == name);
            now.map(|(_, state)| *state) == *then
        };
        let unknown = |stdin: Stdin| stdin == Stdin::Unknown;
        let same_stdin = self.stdin == profile.input.stdin
            || unknown(self.stdin)
            || unknown(profile.input.stdin);
        self.is_command(profile)
            && self.is_rank(profile)
            && same_stdin
            && profile.input.files.iter().all(read)
    }

    /// Whether both are of the same process in the same command in the same directory, whatever the input.
    pub fn is_command_of(&self, other: &Self) -> bool {
        (&self.command, &self.directory, &self.rank)
            == (&other.command, &other.directory, &other.rank)
    }

    /// Whether it is of the rank of `profile`.
    pub fn is_rank(&self, profile: &Profile) -> bool {
        self.rank == profile.process.rank.as_deref().map(visible)
    }

    /// Whether it ran the command of `profile`, whatever the input.
    pub fn is_command(&self, profile: &Profile) -> bool {
        let words = profile.command.iter().map(|word| visible(word));
        self.command.iter().cloned().eq(words)
            && self.directory == visible(&profile.directory.to_string_lossy())
    }
}

/// The machine that a codelet was captured on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// `x86_64`.
    pub architecture: String,
    /// Model name as `/proc/cpuinfo` gives it.
    pub cpu: String,
    /// Flags as `/proc/cpuinfo` gives them.
    pub features: Vec<String>,
    /// Kernel release.
    pub kernel: String,
}

impl Machine {
    /// Its architecture; none if it is not known here.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        Target::named(&self.architecture)
    }
}

/// A performance class of a region's invocations (CERE thesis, 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Represents {
    /// Classes of the region.
    pub classes: u32,
    /// This class, from 1, by falling total time.
    pub class: u32,
    /// Invocations in it; an estimate where the profile kept a sample.
    pub invocations: u64,
    /// Seconds that they took in vivo together, regions called included.
    pub seconds: f64,
}

/// A thread other than the program's first one, and the region over all threads in vivo. Which thread does what may be chance, so
/// an invocation in vivo is one of many: [`InVivo`] is their median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OfThread {
    /// Its number among the threads that were started, OpenMP's apart, from 1.
    pub number: u64,
    /// Threads that entered the region; 0: not known.
    pub threads: u64,
    /// Seconds that a fifth of the invocations in threads other than the first took at most, and another fifth at least; 0 if that is
    /// not known.
    pub seconds: [f64; 2],
}

/// The undisturbed time of an invocation in the application.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InVivo {
    /// Cycles of the time stamp counter.
    pub cycles: u64,
    /// Seconds.
    pub seconds: f64,
}

/// The image that holds the region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageImage {
    /// File name of the image, for messages.
    pub name: String,
    /// [start, end) of its loaded segments.
    pub range: (u64, u64),
    /// Whether its code must stay in the low 2 GiB (it was linked at a fixed low address).
    pub low: bool,
    /// Whether it is a shared library.
    pub shared: bool,
    /// Size, alignment and captured address of its thread-local block.
    pub tls: Option<TlsBlock>,
}

/// A thread-local block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsBlock {
    /// Bytes.
    pub size: u64,
    /// Bytes; a power of two.
    pub align: u64,
    /// Address in the captured thread.
    pub address: u64,
    /// Its variables: name as in the IR, unit for local ones, offset in the block, size.
    pub variables: Vec<TlsVariable>,
}

/// A thread-local variable of the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsVariable {
    /// Name in the symbol table.
    pub name: String,
    /// The unit of a local symbol (any unit of the image, packaged or not, or none if it has no IR).
    pub unit: Option<String>,
    /// Offset in the block.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// What the C library keeps of the captured thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedThread {
    /// Address of its control block, which is what `pthread_self` gives.
    pub pointer: u64,
    /// Its number in the kernel, which locks keep of their owner.
    pub number: i32,
    /// What the C library mixes into stack frames, and into code addresses that it keeps.
    pub guards: [u64; 2],
    /// Thread-local blocks of libraries that a replay takes fresh.
    pub locals: Vec<LibraryLocals>,
    /// Addresses of the captured 8-byte words (in pages not foreign) that hold an address in the control block or in a
    /// thread-local block.
    pub words: Vec<u64>,
}

/// A library's thread-local block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryLocals {
    /// Soname of the library.
    pub library: String,
    /// Address in the captured thread.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// A unit in a package; its IR is the member `units/<id>.bc`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PackageUnit {
    /// The unit's id.
    pub id: String,
    /// Source file, for messages.
    pub source: String,
    /// Language.
    pub language: Language,
    /// Code generation flags of the original compile.
    pub codegen: Vec<String>,
    /// Functions of the unit that another definition stands in for in the program.
    #[serde(default)]
    pub overridden: Vec<String>,
}

impl PackageUnit {
    /// Name of the member that holds the unit's IR.
    pub fn member(&self) -> String {
        format!("units/{}.bc", self.id)
    }
}

/// A variable of the program. One whose address lies outside [`PackageImage::range`] belongs to another image of
/// the program and may be out of reach of 32-bit offsets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Name in the symbol table.
    pub name: String,
    /// For a local symbol, the id of the unit beside whose marker it stands; none for a global one.
    pub unit: Option<String>,
    /// Captured address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Whether the captured invocation did not touch all of its pages, so that the package lacks some.
    #[serde(default)]
    pub untouched: bool,
}

/// A function of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Name in the symbol table.
    pub name: String,
    /// For a local symbol, the id of its unit; none for a global one or one without IR.
    pub unit: Option<String>,
    /// Captured address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Whether it belongs to another image than the region's.
    pub other_image: bool,
    /// Whether a unit of the image defines it: under other flags a replay never runs its machine code in vivo.
    #[serde(default)]
    pub ir: bool,
}

/// Labels of a function (`&&label`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// Name of the function in the symbol table.
    pub function: String,
    /// For a local function, the id of its unit; none for a global one.
    pub unit: Option<String>,
    /// Captured addresses, in the order of the unit's table; 0 for a label that the build removed.
    pub addresses: Vec<u64>,
}

/// A function that a replay runs as captured, whatever the flags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedFunction {
    /// Name in the symbol table; empty for code of an image that no symbol names.
    pub name: String,
    /// File name of the image that holds it.
    pub image: String,
    /// Whether that is another image than the region's; if not, the function has no IR.
    pub other_image: bool,
}

/// A symbol of a library that captured memory points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibrarySymbol {
    /// Address in the captured process.
    pub address: u64,
    /// Soname of the library.
    pub library: String,
    /// Name in its dynamic symbol table; empty for code that it does not name.
    pub name: String,
    /// Version in its dynamic symbol table, if it has one.
    pub symbol_version: Option<String>,
    /// For code without a name: where it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<LibraryPlace>,
    /// Function or variable.
    pub kind: LibrarySymbolKind,
    /// For a variable: addresses of the captured 8-byte words (in pages not foreign) that hold its address,
    /// to be rewritten to the fresh variable. Empty for functions: a jump at the old address serves them.
    pub words: Vec<u64>,
}

/// A place in a library, the same in each process that loads the same build of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryPlace {
    /// Distance from the first address of its segments.
    pub offset: u64,
    /// Build id of the library, in hexadecimal.
    pub build_id: String,
}

/// The kind of a [`LibrarySymbol`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LibrarySymbolKind {
    /// Code.
    Function,
    /// Data.
    Variable,
}

/// Bytes that a comparison of exit states excludes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Why, e.g. "probe slot", "dead stack".
    pub reason: String,
}

/// A member of the package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Name in the archive.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// Where the unwinder finds the frames of an image of the program: its `.eh_frame_hdr`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameTable {
    /// Captured addresses of the image, [start, end).
    pub range: (u64, u64),
    /// Captured address of the table.
    pub table: u64,
}

/// A library that a replay takes fresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreshLibrary {
    /// What loading added to the addresses of its file.
    pub bias: u64,
    /// The number of its build, in hexadecimal.
    pub build: String,
}

/// A symbol that units of a package refer to and a replay does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Its name.
    pub name: String,
    /// Bytes, if they are known.
    pub size: u64,
    /// Whether it is a thread-local variable of another image of the program; if not, the captured image has no such symbol.
    pub thread_local: bool,
}

/// Libraries of the system that a replay links if something needs them: other flags can call for functions that the program
/// did not.
pub const OFFERED_LIBRARIES: [&str; 4] = [
    "libgcc_s.so.1",
    "libm.so.6",
    "libmvec.so.1",
    "libpthread.so.0",
];

/// The addresses of code that a captured word may hold: itself; without a tag in its lowest bits, or in its highest ones;
/// its halves, where programs keep addresses below 4 GiB.
#[inline]
pub fn addresses_in(word: u64) -> [u64; 4] {
    const UNTAGGED: u64 = (1 << 48) - 8;
    [word, word & UNTAGGED, word & 0xffff_ffff, word >> 32]
}
