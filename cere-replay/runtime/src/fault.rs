//! What an access outside the capture ends with: a message that names page, mapping and cause.

use crate::glue::cere_glue_refusal;
use crate::pages::PAGE;
use crate::{clock, code, constants, heap, lost, space};
use cere_arch::jump::{AFTER_BREAKPOINT, ALIGN};
use cere_arch::register::{Fault, Registers};
use cere_format::package::Manifest;
use cere_format::replay::lacks;
use cere_format::system::taken_fresh;
use libc::c_void;
use std::ffi::CStr;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

static MANIFEST: OnceLock<&'static Manifest> = OnceLock::new();
static IN_HANDLER: AtomicBool = AtomicBool::new(false);
/// Address of the C library's pointer to its last message, or 0.
static ABORT: AtomicUsize = AtomicUsize::new(0);
/// Exit status after such a message.
const STATUS: i32 = 4;

/// The function that holds `address`, of the program or of a library.
fn function(manifest: &Manifest, address: u64) -> Option<String> {
    let of = |size: u64| size.max(1);
    let found = manifest
        .functions
        .iter()
        .find(|f| f.address <= address && address - f.address < of(f.size));
    if let Some(f) = found {
        return Some(f.name.clone());
    }
    let found = manifest
        .library_symbols
        .iter()
        .find(|s| s.address == address);
    found.map(|s| match s.place {
        None => format!("{} of {}", s.name, s.library),
        Some(_) => format!("code of {} that it does not export", s.library),
    })
}

/// Why code of the program with IR cannot be jumped to where it was, if `address` lies in some.
fn stale(manifest: &Manifest, address: u64) -> Option<String> {
    let function = code::stale(manifest, address)?;
    let (name, offset) = (&function.name, address - function.address);
    let labels = manifest.labels.iter().filter(|l| l.function == *name);
    let label = labels.flat_map(|l| &l.addresses).any(|a| *a == address);
    let what = match (offset, label) {
        (0, _) => format!(
            "called {name} at its captured address {address:#x}: the package's code does not lead there, so it was not \
             compiled again (a pointer that the program keeps in another form than an address?)"
        ),
        (_, true) => format!(
            "jumped to a label of {name} ({name}+{offset:#x}) that the compiler has removed under these flags"
        ),
        (_, false) => format!(
            "jumped into {name} ({name}+{offset:#x}) as it was built: these flags make other code of it. An address \
             inside a function that is kept in memory is that of a label in a unit built by an older version of CERE, of a \
             context that was left there (a coroutine, setjmp), or was computed"
        ),
    };
    Some(format!(
        "the region {what}. A replay with the flags of the build can run it"
    ))
}

fn jumped(manifest: &Manifest, address: u64) -> String {
    if let Some(text) = stale(manifest, address) {
        return text;
    }
    let name = function(manifest, address).map_or(String::new(), |n| format!(", in {n}"));
    let mut symbols = manifest.library_symbols.iter();
    let library = symbols.find(|s| s.address == address);
    let cause = if library.is_some_and(|s| s.place.is_some()) {
        "this machine has another build of that library"
    } else if library.is_some() {
        "the libraries of this machine do not have that function"
    } else if let Some(m) = space::place(manifest, address)
        && taken_fresh(Path::new(&m.path))
    {
        return format!(
            "the region jumped to {address:#x}{name}, in {}: no word of the captured memory led there when the package was \
             made (a pointer that the program keeps in another form than an address?), so it is not bound to this \
             machine's library",
            m.path
        );
    } else if manifest.machine.target() != Some(cere_arch::HERE) {
        return format!(
            "the region called {address:#x}{name}: machine code of {} without IR, which {} cannot run (a library of the program's \
             own, or an object that the wrappers did not build)",
            manifest.machine.architecture,
            cere_arch::HERE
        );
    } else if address < 65536 {
        "a null function pointer: likely a pointer that the package lacks"
    } else {
        "code that the captured invocation did not execute and that the package holds no IR of: \
         likely the recompiled region took another path"
    };
    format!("the region jumped to {address:#x}{name}: {cause}")
}

fn accessed(manifest: &Manifest, address: u64, rip: u64, write: bool) -> String {
    let page = address & !(PAGE - 1);
    let how = if write { "wrote" } else { "read" };
    let mut text =
        format!("the region {how} {address:#x} (page {page:#x}) at instruction {rip:#x}");
    if let Some(name) = function(manifest, rip) {
        text += &format!(" in {name}");
    }
    match space::place(manifest, address) {
        Some(m) => {
            let name = match m.path.as_str() {
                "" => "anonymous memory",
                path => path,
            };
            text += &format!(
                ", in {name} ({:#x}-{:#x} {}), which the captured invocation did not touch there: ",
                m.start, m.end, m.permissions
            );
            text += if code::executable(address) {
                "captured code cannot be written"
            } else {
                "likely the recompiled region took another path or reads further (a wider vector, a load ahead of its test)"
            };
        }
        None if address < 65536 => {
            text += ", a null pointer: likely a symbol or pointer that the package lacks";
        }
        None => {
            text += ", which was not mapped when the region was captured: likely a wild pointer";
        }
    }
    text
}

/// What the C library said before it aborted, if it did.
fn last_words() -> Option<String> {
    // SAFETY: null, or the library's pointer to the size of the record, size included, and the text.
    unsafe {
        let record = *(ABORT.load(Relaxed) as *const *const u32).as_ref()?;
        let text = CStr::from_ptr(record.as_ref().map(|_| record.add(1))?.cast());
        Some(text.to_string_lossy().trim().to_owned())
    }
}

fn aborted(words: Option<&str>) -> String {
    match words {
        Some(words) if words.contains("invalid stdio handle") => {
            "the region uses a stream that was opened before it by open_memstream, fmemopen, fopencookie or popen: such a stream \
             holds addresses that only the C library of the captured process knows; regions that open theirs can be \
             replayed"
                .to_owned()
        }
        Some(words) => format!("the C library aborted in the region: {words}"),
        None => "the region aborted: abort, std::terminate, or an exception that would have to pass captured code \
                 without IR"
            .to_owned(),
    }
}

/// Why code of another architecture could not go on, if it says so: the function's name and the reason, a line each.
fn refusal(manifest: &Manifest) -> Option<String> {
    // SAFETY: the glue's word; what it holds is 0 or the address of a string in the code.
    let text = unsafe {
        let at = (&raw const cere_glue_refusal).read_volatile() as *const std::ffi::c_char;
        (!at.is_null()).then(|| CStr::from_ptr(at).to_string_lossy())?
    };
    let (function, why) = text.split_once('\n')?;
    let function = match function.starts_with("cere.") {
        true => "its own code",
        false => function,
    };
    Some(format!(
        "the region reached {function}, which cannot run on {} as it was captured on {}: {why}",
        cere_arch::HERE,
        manifest.machine.architecture
    ))
}

fn message(manifest: &Manifest, signal: i32, fault: Fault) -> String {
    let Fault {
        address,
        pc,
        write,
        protection,
    } = fault;
    let trapped = pc.wrapping_sub(AFTER_BREAKPOINT);
    if let Some(text) = refusal(manifest) {
        return text;
    }
    // What a lost variable held may lead anywhere.
    let lost: Vec<String> = match lost::name_at(address) {
        Some(name) if !protection => vec![name],
        _ => lost::used_names(),
    };
    if let Some(absent) = lost::absent_at(address).filter(|_| !protection) {
        return format!(
            "the region uses {absent}: the captured invocation cannot have used it, so likely the recompiled region took \
             another path"
        );
    }
    match signal {
        libc::SIGILL
            if manifest.machine.target() != Some(cere_arch::HERE) && space::reserved(pc) =>
        {
            jumped(manifest, pc)
        }
        libc::SIGILL => format!(
            "the region executed an instruction at {pc:#x} that this processor does not have (or a trap that the \
             compiler put where the program's behaviour is undefined); captured on: {}",
            manifest.machine.cpu
        ),
        libc::SIGTRAP if let Some(text) = stale(manifest, trapped) => text,
        _ if !lost.is_empty() => lacks(&lost, manifest.machine.target() != Some(cere_arch::HERE)),
        libc::SIGFPE => {
            format!("the region divided by zero, or trapped in arithmetic, at {pc:#x}")
        }
        libc::SIGABRT => aborted(last_words().as_deref()),
        libc::SIGTRAP => jumped(manifest, trapped),
        _ if pc == address && !protection => jumped(manifest, pc),
        _ if protection => format!(
            "the region used, at instruction {pc:#x}, a non-canonical address, or one that is no multiple of the size \
             that a vector instruction needs: likely the recompiled code takes something to be aligned further than it \
             was in vivo"
        ),
        _ => accessed(manifest, address, pc, write),
    }
}

extern "C" fn fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's record.
    if signal == libc::SIGSEGV && clock::counter(unsafe { &mut *context.cast() }) {
        return;
    }
    // SAFETY: the kernel hands over valid pointers.
    let mut registers = Registers::of(unsafe { &mut *(context as *mut libc::ucontext_t) });
    // SAFETY: the record of the same signal.
    let fault = unsafe { registers.fault(info) };
    let led = match signal {
        libc::SIGTRAP => code::trap(fault.pc.wrapping_sub(AFTER_BREAKPOINT)),
        // Where code cannot be executed.
        _ if !fault.pc.is_multiple_of(ALIGN) => code::trap(fault.pc),
        _ => None,
    };
    if let Some(new) = led {
        registers.set_pc(new);
        return;
    }
    let Fault {
        address,
        pc,
        write,
        protection,
    } = fault;
    let active = heap::ACTIVE.load(Relaxed);
    if signal == libc::SIGSEGV && active && !protection && lost::open(address) {
        return;
    }
    let reads = !write && pc != address;
    if signal == libc::SIGSEGV && active && !protection && reads && constants::open(address) {
        return;
    }
    end(|| match MANIFEST.get() {
        Some(manifest) if active => message(manifest, signal, fault),
        _ => format!(
            "the runtime itself got signal {signal} at instruction {pc:#x}, address {address:#x}"
        ),
    })
}

/// Ends the replay, which cannot go on, with what `text` says. From the region as well: what is allocated then is not the region's.
pub fn end(text: impl FnOnce() -> String) -> ! {
    if IN_HANDLER.swap(true, Relaxed) {
        // SAFETY: ends the process.
        unsafe { libc::_exit(STATUS) }
    }
    heap::ACTIVE.store(false, Relaxed);
    let text = format!("replay: {}\n", text());
    // SAFETY: writes to standard error and ends the process.
    unsafe {
        libc::write(2, text.as_ptr() as *const c_void, text.len());
        libc::_exit(STATUS)
    }
}

/// Installs the handler on a stack of its own.
pub fn watch(manifest: &'static Manifest) {
    let _ = MANIFEST.set(manifest);
    constants::find(manifest);
    // SAFETY: a plain look-up.
    let abort = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr()) };
    ABORT.store(abort as usize, Relaxed);
    // SAFETY: fresh memory for the stack, which stays.
    unsafe {
        let size = 256 << 10;
        let stack = space::fresh(size, 0).unwrap_or(libc::MAP_FAILED);
        let alternate = libc::stack_t {
            ss_sp: stack,
            ss_flags: 0,
            ss_size: size,
        };
        libc::sigaltstack(&alternate, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        for signal in [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGILL,
            libc::SIGFPE,
            libc::SIGTRAP,
            libc::SIGABRT,
        ] {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abort_is_told_by_its_cause() {
        assert!(
            aborted(Some("Fatal error: glibc detected an invalid stdio handle"))
                .contains("open_memstream")
        );
        assert!(
            aborted(Some("free(): invalid pointer"))
                .ends_with("in the region: free(): invalid pointer")
        );
        assert!(aborted(None).contains("std::terminate"));
        // The C library of this process has the record, and said nothing yet.
        // SAFETY: a plain look-up.
        let abort = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr()) };
        assert!(!abort.is_null());
        ABORT.store(abort as usize, Relaxed);
        assert_eq!(last_words(), None);
    }
}
