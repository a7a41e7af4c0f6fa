//! The binary interface between an instrumented program and the preload library.
//!
//! The pass puts one [`UnitMarker`] into the section [`UNIT_SECTION`] of every object and one
//! [`RegionDescriptor`] a region into [`REGION_SECTION`]. The linker concatenates both, so a linked image
//! lists its units and regions. A region is dormant while [`RegionDescriptor::hook`] is null.
//!
//! The module also has the functions of an OpenMP runtime that both the preload library and a replay call.

use std::ffi::{CStr, c_char, c_void};

/// Section that holds the unit markers of an image, [`UnitMarker`] after [`UnitMarker`].
pub const UNIT_SECTION: &str = "cere_units";
/// Section that holds the region descriptors of an image. Linkers may leave zero bytes between them.
pub const REGION_SECTION: &str = "cere_regions";
/// Prefix of the local symbol that names a unit marker; the unit's id follows. It stands among the local
/// symbols of its object, and so identifies the unit of every static variable and function beside it.
pub const UNIT_SYMBOL_PREFIX: &str = "cere.unit.";
/// Prefix of the local symbol of a region descriptor; the region's index follows.
pub const REGION_SYMBOL_PREFIX: &str = "cere.region.";
/// Prefix of the local symbol of a region's trampoline `void (void *arguments)`; the index follows.
pub const INVOKE_SYMBOL_PREFIX: &str = "cere.invoke.";
/// Prefix of the local symbol of a region's outlined function; the index follows.
pub const OUTLINED_SYMBOL_PREFIX: &str = "cere.outlined.";
/// Prefix of the local symbol of the slow path that calls the hook around a region; the index follows.
pub const PROBED_SYMBOL_PREFIX: &str = "cere.probed.";

/// Prefix of the local symbol of the table of a function's labels whose address is taken; the function's name follows. Each
/// entry is the distance, in 8 bytes, from itself to the label; 0 if the label is gone.
pub const LABELS_SYMBOL_PREFIX: &str = "cere.labels.";

/// Prefix of the local symbols of the constants that give the OpenMP runtime the source location of a call. Their addresses
/// do not matter.
pub const IDENT_SYMBOL_PREFIX: &str = "cere.ident";

/// What stands behind a unit's prefix in the names of what the pass adds for variables that the captured image lacks: no variable's name
/// begins so, whatever the optimiser makes of it (parts of `bytes` are `bytes.0`, `bytes.1`).
pub const OWN: &str = "/";

/// Forks a team: each OpenMP runtime with LLVM's interface (openmp/runtime/src/kmp.h) exports it.
pub const FORK_SYMBOL: &CStr = c"__kmpc_fork_call";
/// `ident_t` of that interface: where in the source the runtime is called.
#[repr(C)]
#[derive(Debug)]
pub struct Ident {
    reserved: i32,
    flags: i32,
    reserved_too: [i32; 2],
    source: *const c_char,
}
/// The function that each thread of a team runs: its number, its number within the team, and the arguments of the fork.
pub type Microtask = unsafe extern "C" fn(*const i32, *const i32, *const c_void);
/// The function of [`FORK_SYMBOL`]: source location, number of further arguments, function to run, those arguments.
pub type Fork = unsafe extern "C" fn(*const Ident, i32, Microtask, ...);

impl Ident {
    /// A call without a source location, as in code that a compiler made.
    pub const fn unknown() -> Self {
        /// `KMP_IDENT_KMPC`.
        const COMPILED: i32 = 2;
        Self {
            reserved: 0,
            flags: COMPILED,
            reserved_too: [0; 2],
            source: c";unknown;unknown;0;0;;".as_ptr(),
        }
    }
}

/// First eight bytes of a unit marker.
pub const UNIT_MAGIC: u64 = u64::from_le_bytes(*b"CEREUNI1");
/// First eight bytes of a region descriptor.
pub const REGION_MAGIC: u64 = u64::from_le_bytes(*b"CEREREG1");

/// Length of a unit id: 32 lower-case hexadecimal digits.
pub const UNIT_ID_LENGTH: usize = 32;

/// Event for the hook: the region is about to run.
pub const EVENT_ENTER: u32 = 0;
/// Event for the hook: the region returned; its return value is in the argument block.
pub const EVENT_LEAVE: u32 = 1;
/// Event for the hook: an exception is leaving the region.
pub const EVENT_UNWIND: u32 = 2;

/// The probe. Called with the descriptor, one of the `EVENT_` values and the argument block, from the
/// region's slow path, which afterwards calls `invoke(arguments)` with the very same stack pointer.
pub type Hook = extern "C" fn(region: *mut RegionDescriptor, event: u32, arguments: *mut u8);

/// Marks the presence of one translation unit in an image. 48 bytes, aligned to 16.
#[repr(C, align(16))]
#[derive(Debug, Clone, Copy)]
pub struct UnitMarker {
    /// [`UNIT_MAGIC`].
    pub magic: u64,
    /// The unit's id, in ASCII.
    pub id: [u8; UNIT_ID_LENGTH],
    /// Zero.
    pub reserved: u64,
}

/// One region of an image. 64 bytes, aligned to 64.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct RegionDescriptor {
    /// [`REGION_MAGIC`].
    pub magic: u64,
    /// Null while the region is dormant; else the probe that the region's slow path calls.
    pub hook: Option<Hook>,
    /// The unit that the region belongs to.
    pub unit: *const UnitMarker,
    /// Index of the region among those of its unit, as in `build::Unit::regions`.
    pub index: u32,
    /// Size of the argument block in bytes.
    pub arguments_size: u32,
    /// The trampoline: loads the live-ins from the argument block, calls the outlined function, stores its
    /// return value at the start of the block.
    pub invoke: *const u8,
    /// The outlined function.
    pub outlined: *const u8,
    /// Zero; free for the preload library while the region is armed.
    pub scratch: u64,
    /// [`KIND_LOOP`], [`KIND_PARALLEL`] or [`KIND_FUNCTION`].
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
}

/// [`RegionDescriptor::kind`] of a loop.
pub const KIND_LOOP: u32 = 0;
/// [`RegionDescriptor::kind`] of a parallel region of OpenMP.
pub const KIND_PARALLEL: u32 = 1;
/// [`RegionDescriptor::kind`] of a whole function: a call of it within another one is part of that.
pub const KIND_FUNCTION: u32 = 2;

/// Byte offset of [`RegionDescriptor::hook`].
pub const HOOK_OFFSET: usize = std::mem::offset_of!(RegionDescriptor, hook);

const _: () = assert!(size_of::<RegionDescriptor>() == 64);
const _: () = assert!(size_of::<UnitMarker>() == 48);
const _: () = assert!(HOOK_OFFSET == 8);
