//! Calls of MPI: how long they take is no work of the region that makes them, and a captured one pauses for them.
//!
//! Nothing is exported: a program without MPI must not find its functions here. Where a library of MPI is loaded, the references of
//! all images to functions that communicate or wait are bound to stubs, one a name. A stub calls the function that the program
//! would have called, with the same arguments, those on the stack too.

use super::hook;
use crate::engine::{gate, status};
use crate::os::images::Loaded;
use crate::os::symbols::{find_default, next};
use crate::policy::mpi::{self, Call, bound};
use crate::policy::needs::{self, Needs};
use crate::policy::profile;
use cere_format::mpi::{ARGUMENTS_MOST, FUNCTIONS_MOST};
use cere_inside::rebind;
use std::ffi::{CStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;

/// Whether an image is a library of MPI.
fn is_library(image: &Loaded) -> bool {
    let name = image.path.file_name();
    name.is_some_and(|name| name.as_bytes().starts_with(b"libmpi"))
}

/// Whether it has MPI's standard binary interface.
fn is_standard(image: &Loaded) -> bool {
    let name = image.path.file_name();
    name.is_some_and(|name| name.as_bytes().starts_with(b"libmpi_abi"))
}

/// Has the calls of MPI in `image` go through stubs, if it is no library of MPI itself and one of those is loaded. Ordinary code.
pub fn watch(image: &Loaded, loaded: &[Loaded]) {
    if is_library(image) || !loaded.iter().any(is_library) {
        return;
    }
    mpi::library::find(loaded.iter().any(is_standard), |name| find(name, loaded));
    // SAFETY: a stub does what the function of its name does, and the time of a call is no thread's business.
    unsafe { rebind::replace_by(image.range.0, |name| stub_of(name, loaded)) };
}

/// The stub for the function of this name.
fn stub_of(symbol: &CStr, loaded: &[Loaded]) -> Option<usize> {
    let stub = |number| &raw const cere_mpi_stubs as usize + number * STUB;
    bound::bind(symbol.to_str().ok()?, || find(symbol, loaded), stub)
}

/// The function that the program gets under this name, or that of a library of MPI that is not open to all.
fn find(symbol: &CStr, loaded: &[Loaded]) -> usize {
    type Open = unsafe extern "C" fn(*const c_char, i32) -> *mut c_void;
    let found = find_default(symbol);
    let mut libraries = loaded
        .iter()
        .filter(|image| found == 0 && is_library(image));
    let in_library = libraries.find_map(|image| {
        let path = std::ffi::CString::new(image.path.as_os_str().as_bytes()).ok()?;
        // SAFETY: a library that is loaded already: nothing of it runs.
        let found = unsafe {
            // Not by this library's own: images are being armed.
            let open = next!(c"dlopen", Open);
            let handle = open(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
            if handle.is_null() {
                return None;
            }
            let found = libc::dlsym(handle, symbol.as_ptr()) as usize;
            next!(c"dlclose", unsafe extern "C" fn(*mut c_void) -> i32)(handle);
            found
        };
        (found != 0).then_some(found)
    });
    in_library.unwrap_or(found)
}

/// A stub is about to call: which function. `stack` is the stack pointer of the call; the stub has kept six registers below it.
extern "C" fn begin(number: usize, stack: usize) -> usize {
    if status::paused() && gate::is_captured() && status::paused_at() <= stack {
        hook::end_paused(stack);
    }
    if let Some((function, form)) = bound::function(number)
        && needs::is_captured()
    {
        match mpi::is_answered(function) {
            true => hook::pause(&Call {
                function,
                form,
                number: number as u32,
                // SAFETY: a stub's frame.
                words: unsafe { read_arguments(stack) },
                stack,
            }),
            // Other ranks stand still, or are elsewhere.
            false => needs::refuse_call(needs_of(function.name), function.name),
        }
    }
    profile::mpi::begins(stack as u64);
    bound::real(number)
}

/// Why no replay answers a function.
fn needs_of(name: &str) -> Needs {
    const ONE_SIDED: [&str; 8] = [
        "MPI_Put",
        "MPI_Get",
        "MPI_Get_",
        "MPI_Rput",
        "MPI_Rget",
        "MPI_Accumulate",
        "MPI_Fetch_and_op",
        "MPI_Compare_and_swap",
    ];
    match name {
        "MPI_Abort" => Needs::EndOfAll,
        _ if name.starts_with("MPI_File_") => Needs::Files,
        _ if name.starts_with("MPI_Win_") || ONE_SIDED.iter().any(|n| name.starts_with(n)) => {
            Needs::OneSided
        }
        _ => Needs::OtherRanks,
    }
}

/// Where a stub keeps the first register of arguments, below the stack pointer of its call; the others follow downwards.
const REGISTERS: usize = 24;

/// The arguments of a call: six in registers, the others on the stack.
///
/// # Safety
/// `stack` is the stack pointer of a call by a stub.
unsafe fn read_arguments(stack: usize) -> [usize; ARGUMENTS_MOST] {
    std::array::from_fn(|place| {
        let at = match place {
            0..6 => stack - REGISTERS - 8 * place,
            _ => stack + 8 * (place - 6),
        };
        // SAFETY: the stub's frame, and above it the caller's, which is as long as what the stub passes on.
        unsafe { *(at as *const usize) }
    })
}

/// What a stub has called has returned, and the stub has kept what.
extern "C" fn end(stack: usize) {
    profile::mpi::ends(stack as u64);
    // Calls within the one that it has paused for are part of that.
    if status::paused_at() == stack && gate::is_captured() {
        // SAFETY: the stub's frame.
        hook::resume(stack, unsafe { *((stack - REGISTERS) as *const u64) });
    }
}

/// Bytes between two stubs.
const STUB: usize = 16;

unsafe extern "C" {
    static cere_mpi_stubs: u8;
}

// No function of MPI takes more than 14 arguments, of which 8 are on the stack, or floating point numbers; what is copied beyond
// them is the caller's, and nobody's matter. The frame is described, so that exceptions pass.
std::arch::global_asm!(
    ".pushsection .text.cere_mpi,\"ax\",@progbits",
    ".balign 16",
    ".globl cere_mpi_stubs",
    ".hidden cere_mpi_stubs",
    "cere_mpi_stubs:",
    ".set cere_mpi_number, 0",
    ".rept {stubs}",
    ".balign {stub}",
    "endbr64",
    "movl $cere_mpi_number, %r11d",
    "jmp 77f",
    ".set cere_mpi_number, cere_mpi_number + 1",
    ".endr",
    ".balign 16",
    "77:",
    ".cfi_startproc",
    "pushq %rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset %rbp, -16",
    "movq %rsp, %rbp",
    ".cfi_def_cfa_register %rbp",
    "subq $64, %rsp",
    "movq %rdi, -8(%rbp)",
    "movq %rsi, -16(%rbp)",
    "movq %rdx, -24(%rbp)",
    "movq %rcx, -32(%rbp)",
    "movq %r8, -40(%rbp)",
    "movq %r9, -48(%rbp)",
    "movq %rax, -56(%rbp)",
    "movl %r11d, %edi",
    "leaq 16(%rbp), %rsi",
    "call {begin}",
    "movq %rax, %r10",
    "movq -8(%rbp), %rdi",
    "movq -16(%rbp), %rsi",
    "movq -24(%rbp), %rdx",
    "movq -32(%rbp), %rcx",
    "movq -40(%rbp), %r8",
    "movq -48(%rbp), %r9",
    "movq -56(%rbp), %rax",
    "subq $128, %rsp",
    ".set cere_mpi_word, 0",
    ".rept 16",
    "movq 16 + 8 * cere_mpi_word(%rbp), %r11",
    "movq %r11, 8 * cere_mpi_word(%rsp)",
    ".set cere_mpi_word, cere_mpi_word + 1",
    ".endr",
    "call *%r10",
    "movq %rax, -8(%rbp)",
    "movq %rdx, -16(%rbp)",
    "leaq 16(%rbp), %rdi",
    "call {end}",
    "movq -8(%rbp), %rax",
    "movq -16(%rbp), %rdx",
    "leave",
    ".cfi_def_cfa %rsp, 8",
    "ret",
    ".cfi_endproc",
    ".popsection",
    stubs = const FUNCTIONS_MOST,
    stub = const STUB,
    begin = sym begin,
    end = sym end,
    options(att_syntax),
);
