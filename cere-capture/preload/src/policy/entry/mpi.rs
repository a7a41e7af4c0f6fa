//! Calls of MPI: how long they take is no work of the region that makes them.
//!
//! Nothing is exported: a program without MPI must not find its functions here. Where a library of MPI is loaded, the references of
//! all images to functions that communicate or wait are bound to stubs, one a name. A stub calls the function that the program
//! would have called, with the same arguments, those on the stack too.

use crate::os::images::Loaded;
use crate::os::symbols::find_default;
use crate::policy::needs::{self, Needs};
use crate::policy::profile::mpi;
use cere_inside::rebind;
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Names that fit.
const STUBS: usize = 1024;

/// The functions that the stubs call, by number.
static REAL: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];
/// The places of their names in [`WAITS`].
static PLACE: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];
/// The names that have stubs.
static KNOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Functions that communicate, wait or read and write files. Each has forms for large counts, for Fortran and for tools as well.
const WAITS: &str = "
MPI_Init MPI_Init_thread MPI_Finalize MPI_Session_init MPI_Session_finalize MPI_Send MPI_Bsend MPI_Ssend MPI_Rsend
MPI_Recv MPI_Mrecv MPI_Sendrecv MPI_Sendrecv_replace MPI_Isend MPI_Ibsend MPI_Issend MPI_Irsend MPI_Irecv MPI_Imrecv
MPI_Isendrecv MPI_Isendrecv_replace MPI_Probe MPI_Iprobe MPI_Mprobe MPI_Improbe MPI_Buffer_detach MPI_Cancel MPI_Wait
MPI_Waitall MPI_Waitany MPI_Waitsome MPI_Test MPI_Testall MPI_Testany MPI_Testsome MPI_Request_get_status
MPI_Request_free MPI_Start MPI_Startall MPI_Send_init MPI_Bsend_init MPI_Ssend_init MPI_Rsend_init MPI_Recv_init
MPI_Psend_init MPI_Precv_init MPI_Pready MPI_Pready_list MPI_Pready_range MPI_Parrived MPI_Barrier MPI_Bcast
MPI_Gather MPI_Gatherv MPI_Scatter MPI_Scatterv MPI_Allgather MPI_Allgatherv MPI_Alltoall MPI_Alltoallv MPI_Alltoallw
MPI_Reduce MPI_Allreduce MPI_Reduce_scatter MPI_Reduce_scatter_block MPI_Scan MPI_Exscan MPI_Ibarrier MPI_Ibcast
MPI_Igather MPI_Igatherv MPI_Iscatter MPI_Iscatterv MPI_Iallgather MPI_Iallgatherv MPI_Ialltoall MPI_Ialltoallv
MPI_Ialltoallw MPI_Ireduce MPI_Iallreduce MPI_Ireduce_scatter MPI_Ireduce_scatter_block MPI_Iscan MPI_Iexscan
MPI_Barrier_init MPI_Bcast_init MPI_Gather_init MPI_Gatherv_init MPI_Scatter_init MPI_Scatterv_init MPI_Allgather_init
MPI_Allgatherv_init MPI_Alltoall_init MPI_Alltoallv_init MPI_Alltoallw_init MPI_Reduce_init MPI_Allreduce_init
MPI_Reduce_scatter_init MPI_Reduce_scatter_block_init MPI_Scan_init MPI_Exscan_init MPI_Neighbor_allgather
MPI_Neighbor_allgatherv MPI_Neighbor_alltoall MPI_Neighbor_alltoallv MPI_Neighbor_alltoallw MPI_Ineighbor_allgather
MPI_Ineighbor_allgatherv MPI_Ineighbor_alltoall MPI_Ineighbor_alltoallv MPI_Ineighbor_alltoallw
MPI_Neighbor_allgather_init MPI_Neighbor_allgatherv_init MPI_Neighbor_alltoall_init MPI_Neighbor_alltoallv_init
MPI_Neighbor_alltoallw_init MPI_Comm_dup MPI_Comm_dup_with_info MPI_Comm_idup MPI_Comm_idup_with_info MPI_Comm_create
MPI_Comm_create_group MPI_Comm_create_from_group MPI_Comm_split MPI_Comm_split_type MPI_Comm_free MPI_Comm_spawn
MPI_Comm_spawn_multiple MPI_Comm_accept MPI_Comm_connect MPI_Comm_disconnect MPI_Comm_join MPI_Intercomm_create
MPI_Intercomm_create_from_groups MPI_Intercomm_merge MPI_Cart_create MPI_Cart_sub MPI_Graph_create
MPI_Dist_graph_create MPI_Dist_graph_create_adjacent MPI_Publish_name MPI_Unpublish_name MPI_Lookup_name MPI_Put
MPI_Get MPI_Accumulate MPI_Get_accumulate MPI_Fetch_and_op MPI_Compare_and_swap MPI_Rput MPI_Rget MPI_Raccumulate
MPI_Rget_accumulate MPI_Win_create MPI_Win_allocate MPI_Win_allocate_shared MPI_Win_create_dynamic MPI_Win_free
MPI_Win_fence MPI_Win_start MPI_Win_complete MPI_Win_post MPI_Win_wait MPI_Win_test MPI_Win_lock MPI_Win_lock_all
MPI_Win_unlock MPI_Win_unlock_all MPI_Win_flush MPI_Win_flush_all MPI_Win_flush_local MPI_Win_flush_local_all
MPI_Win_sync MPI_File_open MPI_File_close MPI_File_delete MPI_File_sync MPI_File_set_size MPI_File_preallocate
MPI_File_set_view MPI_File_read MPI_File_read_all MPI_File_read_at MPI_File_read_at_all MPI_File_read_shared
MPI_File_read_ordered MPI_File_write MPI_File_write_all MPI_File_write_at MPI_File_write_at_all MPI_File_write_shared
MPI_File_write_ordered MPI_File_iread MPI_File_iread_all MPI_File_iread_at MPI_File_iread_at_all MPI_File_iread_shared
MPI_File_iwrite MPI_File_iwrite_all MPI_File_iwrite_at MPI_File_iwrite_at_all MPI_File_iwrite_shared
MPI_File_read_all_begin MPI_File_read_all_end MPI_File_read_at_all_begin MPI_File_read_at_all_end
MPI_File_read_ordered_begin MPI_File_read_ordered_end MPI_File_write_all_begin MPI_File_write_all_end
MPI_File_write_at_all_begin MPI_File_write_at_all_end MPI_File_write_ordered_begin MPI_File_write_ordered_end
MPI_File_seek_shared MPI_File_get_position_shared
";

/// The place in [`WAITS`] of the function that a symbol names: `MPI_Send`, `MPI_Send_c`, `PMPI_Send`, `mpi_send_`, `mpi_send__`,
/// `mpi_send_f08_`.
fn place_of(symbol: &str) -> Option<usize> {
    let symbol = symbol.strip_prefix(['P', 'p']).unwrap_or(symbol);
    let (name, endings): (_, &[&str]) = match symbol.as_bytes().get(..4)? {
        b"MPI_" => (symbol, &["_c"]),
        b"mpi_" => (symbol.trim_end_matches('_'), &["_large", "_f08ts", "_f08"]),
        _ => return None,
    };
    let name = endings
        .iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
    let exact = symbol.starts_with('M');
    let is = |known: &str| known.eq_ignore_ascii_case(name) && (!exact || known == name);
    WAITS.split_ascii_whitespace().position(is)
}

/// Whether an image is a library of MPI.
fn is_library(image: &Loaded) -> bool {
    let name = image.path.file_name();
    name.is_some_and(|name| name.as_bytes().starts_with(b"libmpi"))
}

/// Has the calls of MPI in `image` go through stubs, if it is no library of MPI itself and one of those is loaded. Ordinary code.
pub fn watch(image: &Loaded, loaded: &[Loaded]) {
    if is_library(image) || !loaded.iter().any(is_library) {
        return;
    }
    // SAFETY: a stub does what the function of its name does, and the time of a call is no thread's business.
    unsafe { rebind::replace_by(image.range.0, |name| stub_of(name, loaded)) };
}

/// The stub for the function of this name.
fn stub_of(symbol: &CStr, loaded: &[Loaded]) -> Option<usize> {
    let name = symbol.to_str().ok()?;
    let place = place_of(name)?;
    let mut known = KNOWN.lock().ok()?;
    let number = match known.iter().position(|k| k == name) {
        Some(number) => number,
        None => {
            let real = find(symbol, loaded);
            if real == 0 || known.len() == STUBS {
                return None;
            }
            let number = known.len();
            REAL[number].store(real, Relaxed);
            PLACE[number].store(place, Relaxed);
            known.push(name.to_owned());
            number
        }
    };
    Some(&raw const cere_mpi_stubs as usize + number * STUB)
}

/// The function that the program gets under this name, or that of a library of MPI that is not open to all.
fn find(symbol: &CStr, loaded: &[Loaded]) -> usize {
    let found = find_default(symbol);
    let mut libraries = loaded
        .iter()
        .filter(|image| found == 0 && is_library(image));
    let in_library = libraries.find_map(|image| {
        let path = std::ffi::CString::new(image.path.as_os_str().as_bytes()).ok()?;
        // SAFETY: a library that is loaded already: nothing of it runs.
        let found = unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
            if handle.is_null() {
                return None;
            }
            let found = libc::dlsym(handle, symbol.as_ptr()) as usize;
            libc::dlclose(handle);
            found
        };
        (found != 0).then_some(found)
    });
    in_library.unwrap_or(found)
}

/// A stub is about to call: which function. `stack` is the stack pointer of the call.
extern "C" fn begin(number: usize, stack: usize) -> usize {
    // Other ranks stand still, or are elsewhere.
    if needs::is_captured() {
        needs::refuse_call(Needs::OtherRanks, name_of(number));
    }
    mpi::begins(stack as u64);
    REAL[number].load(Relaxed)
}

fn name_of(number: usize) -> &'static str {
    let place = PLACE[number].load(Relaxed);
    WAITS
        .split_ascii_whitespace()
        .nth(place)
        .unwrap_or("MPI_Init")
}

/// What a stub has called has returned.
extern "C" fn end(stack: usize) {
    mpi::ends(stack as u64);
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
    stubs = const STUBS,
    stub = const STUB,
    begin = sym begin,
    end = sym end,
    options(att_syntax),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_forms() {
        let forms = [
            "MPI_Sendrecv",
            "PMPI_Sendrecv",
            "MPI_Sendrecv_c",
            "mpi_sendrecv_",
            "mpi_sendrecv__",
            "mpi_sendrecv",
            "pmpi_sendrecv_",
            "mpi_sendrecv_f08_",
            "mpi_sendrecv_f08ts_",
            "mpi_sendrecv_f08ts_large_",
        ];
        let mut all: Vec<&str> = WAITS.split_ascii_whitespace().collect();
        let place = all.iter().position(|name| *name == "MPI_Sendrecv");
        for form in forms {
            assert_eq!(place_of(form), place, "{form}");
        }
        let others = [
            "MPI_Comm_rank",
            "MPI_Abort",
            "MPI_Wtime",
            "mpi_wtime_",
            "MPI_Pcontrol",
            "Sendrecv",
            "MPI_",
        ];
        for other in others {
            assert_eq!(place_of(other), None, "{other}");
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
