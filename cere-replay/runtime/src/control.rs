//! The control block of the thread that enters the region. It is put where the captured thread had its own, with the
//! thread-local variables below it: so `pthread_self`, addresses of thread-local variables, and whatever the region makes of them
//! (owners of locks, hashes, texts) are the captured ones. While the region runs, the thread has the captured number and guards.
//!
//! Where a library's variables lie follows from all that is linked. So addresses of those, and all of them where the captured place
//! is not free, are translated.

use crate::pages::{PAGE, Pages};
use crate::{images, space};
use cere_arch::thread::{GUARDS, MOVES, SELF, TABLE, set_pointer};
use cere_format::capture::PAGE_FOREIGN;
use cere_format::package::{CapturedThread, Manifest};
use cere_inside::call::{call, thread_pointer};
use std::ffi::CStr;
use std::path::Path;

/// Room for thread-local blocks, at most.
const MOST: u64 = 16 << 20;
/// Alignment of a control block.
const ALIGN: u64 = 64;

/// The calling thread's control block.
pub fn pointer() -> u64 {
    thread_pointer() as u64
}

/// A library's thread-local block in the calling thread.
struct Local {
    name: String,
    start: u64,
    size: u64,
    align: u64,
}

/// The thread-local blocks of the calling thread, this executable's first.
fn locals() -> Vec<Local> {
    let found = images::all().into_iter().filter_map(|image| {
        let header = image.headers.iter().find(|h| h.p_type == libc::PT_TLS)?;
        (image.locals != 0).then_some(Local {
            name: image.name,
            start: image.locals,
            size: header.p_memsz,
            align: header.p_align,
        })
    });
    found.collect()
}

/// What the C library tells debuggers of its control blocks.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes.
    size: u64,
    /// Offset of the thread's number.
    number: u64,
    /// Offset of the links to the blocks of other threads.
    list: u64,
}

impl Layout {
    fn find() -> Option<Self> {
        let find = |name: &CStr| {
            // SAFETY: a null-terminated name; the loader only looks.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found as *const u32)
        };
        // SAFETY: a word, and records of three: bits, their number, offset.
        let layout = unsafe {
            Self {
                size: u64::from(*find(c"_thread_db_sizeof_pthread")?),
                number: u64::from(*find(c"_thread_db_pthread_tid")?.add(2)),
                list: u64::from(*find(c"_thread_db_pthread_list")?.add(2)),
            }
        };
        // SAFETY: words of the calling thread's control block, if that is what it is.
        let known = unsafe {
            let number = call(libc::SYS_gettid, [0; 6]) as i32;
            layout.number.max(layout.list) + 16 <= layout.size
                && layout.size < PAGE
                && *((pointer() + layout.number) as *const i32) == number
        };
        known.then_some(layout)
    }
}

/// The thread's block with its libraries' variables, in this process and in the captured one.
#[derive(Default)]
pub struct Control {
    layout: Option<Layout>,
    thread: Option<&'static CapturedThread>,
    /// Captured address, size and address now of blocks that lie elsewhere now.
    moved: Vec<(u64, u64, u64)>,
}

/// What the calling thread's block held before the region.
#[derive(Clone, Copy)]
pub struct Own {
    guards: [u64; 2],
    number: i32,
}

impl Control {
    /// Moves the calling thread's control block to the captured place, if that is free; `tls` is the address of the block of the
    /// captured image. Captured pages there are given up: they were the C library's.
    ///
    /// # Safety
    /// The thread is the only one, it keeps no address of a thread-local variable, and the captured addresses are reserved.
    pub unsafe fn place(manifest: &'static Manifest, pages: &mut Pages) -> Self {
        let Some(thread) = &manifest.thread else {
            return Self::default();
        };
        let layout = Layout::find().filter(|_| MOVES);
        if let Some(layout) = layout
            && let Some(range) = free(layout, thread.pointer, pages)
        {
            // SAFETY: the thread is the only one and keeps no such address; the range is open, and what it held is nobody's.
            if unsafe { put(layout, thread.pointer) } {
                pages.give_up(range);
            }
        }
        Self {
            layout,
            thread: Some(thread),
            moved: Vec::new(),
        }
    }

    /// Notes which blocks lie elsewhere than in the captured thread; `block` is the address of the captured image's.
    pub fn look(&mut self, manifest: &Manifest, block: u64) {
        let Some(thread) = self.thread else { return };
        let here = locals();
        let named = |name: &str| {
            let same = |l: &&Local| Path::new(&l.name).file_name().is_some_and(|n| n == name);
            here.iter().find(same)
        };
        let libraries = thread.locals.iter().filter_map(|there| {
            let here = named(&there.library).filter(|here| here.size == there.size)?;
            Some((there.address, there.size, here.start))
        });
        let image = manifest.image.tls.iter();
        let image = image.map(|tls| (tls.address, tls.size, block));
        let control = self.layout.map(|l| (thread.pointer, l.size, pointer()));
        self.moved = libraries.chain(image).chain(control).collect();
        self.moved.retain(|m| m.0 != m.2);
    }

    /// Words of captured memory that hold addresses of what lies elsewhere now, with those.
    pub fn words<'a>(&'a self, pages: &'a Pages) -> impl Iterator<Item = (u64, u64)> + 'a {
        let words = self.thread.iter().flat_map(|t| &t.words);
        let words = words.filter(|w| w.is_multiple_of(8) && pages.holds(**w));
        words.filter_map(|at| {
            let value = pages.word(*at)?;
            let inside = |m: &&(u64, u64, u64)| m.0 <= value && value - m.0 < m.1;
            let moved = self.moved.iter().find(inside)?;
            Some((*at, moved.2.wrapping_add(value - moved.0)))
        })
    }

    /// Whether both are the same address in a block, there and here.
    pub fn same(&self, in_vivo: u64, in_vitro: u64) -> bool {
        self.moved.iter().any(|&(there, size, here)| {
            let offset = in_vitro.wrapping_sub(here);
            offset < size && in_vivo == there.wrapping_add(offset)
        })
    }

    /// The code address that the C library has mixed with the guard in `word`.
    pub fn plain(&self, word: u64) -> Option<u64> {
        /// By so many bits the C library turns it.
        const TURN: u32 = 17;
        let guard = self.thread?.guards[1];
        (guard != 0).then(|| word.rotate_right(TURN) ^ guard)
    }

    /// Gives the calling thread the captured number and guards; what it had.
    pub fn exchange(&self) -> Option<Own> {
        let (thread, layout) = (self.thread?, self.layout?);
        let [first, second] = thread.guards;
        // A package may lack the page that held them.
        let guards = if first | second == 0 {
            None
        } else {
            Some([first, second])
        };
        let own = held(layout);
        hold(
            layout,
            Own {
                guards: guards.unwrap_or(own.guards),
                number: thread.number,
            },
        );
        Some(own)
    }

    /// Gives it back what it had.
    pub fn put_back(&self, own: Option<Own>) {
        if let (Some(layout), Some(own)) = (self.layout, own) {
            hold(layout, own);
        }
    }
}

fn held(layout: Layout) -> Own {
    let at = pointer();
    // SAFETY: words of the calling thread's control block.
    unsafe {
        Own {
            guards: ((at + GUARDS) as *const [u64; 2]).read_volatile(),
            number: ((at + layout.number) as *const i32).read_volatile(),
        }
    }
}

fn hold(layout: Layout, own: Own) {
    let at = pointer();
    // SAFETY: words of the calling thread's control block. No function that has put the guard into its frame returns before the
    // region has: this executable's do not do that, and the C library's that started it does not return.
    unsafe {
        ((at + GUARDS) as *mut [u64; 2]).write_volatile(own.guards);
        ((at + layout.number) as *mut i32).write_volatile(own.number);
    }
}

/// Lowest address in use below the calling thread's control block: its thread-local blocks, and the kernel's record.
fn lowest(locals: &[Local]) -> u64 {
    let pointer = pointer();
    let record = pointer.wrapping_add_signed(record().map_or(0, |r| r.0));
    let starts = locals.iter().map(|l| l.start).chain([record]);
    let near = starts.filter(|start| *start <= pointer && pointer - start < MOST);
    near.min().unwrap_or(pointer)
}

/// Offset from the control block of the record of the processor that the kernel keeps (rseq), and its size; none if it is not
/// in use.
fn record() -> Option<(i64, u32)> {
    // SAFETY: plain look-ups of two constants of the C library.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) as *const i64;
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) as *const u32;
        let (offset, size) = (*offset.as_ref()?, *size.as_ref()?);
        (size > 0).then_some((offset, size))
    }
}

/// The pages for a control block at `to`, opened for writing; none if something of the program is there.
fn free(layout: Layout, to: u64, pages: &Pages) -> Option<(u64, u64)> {
    let locals = locals();
    let from = pointer();
    let align = locals.iter().map(|l| l.align).fold(ALIGN, u64::max);
    if to == from || !to.wrapping_sub(from).is_multiple_of(align) {
        return None;
    }
    let below = from - lowest(&locals);
    let start = to.checked_sub(below)? & !(PAGE - 1);
    let end = to.checked_add(layout.size)?.next_multiple_of(PAGE);
    let mut all = (start..end).step_by(PAGE as usize);
    let fits = all.all(|page| {
        let captured = pages.at(page);
        space::reserved(page) && captured.is_none_or(|page| page.is(PAGE_FOREIGN))
    });
    let open = || space::protect(start, end, libc::PROT_READ | libc::PROT_WRITE).ok();
    fits.then(open)?.map(|()| (start, end))
}

/// Moves the calling thread's control block and thread-local blocks to `to`. False if the kernel refuses.
///
/// # Safety
/// The memory there is open and nobody's; the thread is the only one, and keeps no address of a thread-local variable.
unsafe fn put(layout: Layout, to: u64) -> bool {
    let from = pointer();
    let low = lowest(&locals());
    let end = from + layout.size;
    let shift = to.wrapping_sub(from);
    let moved = |address: u64| match (low..end).contains(&address) {
        true => address.wrapping_add(shift),
        false => address,
    };
    // SAFETY: memory that is open and nobody's; between the copy and the system call nothing changes thread-local variables.
    unsafe {
        let place = low.wrapping_add(shift);
        std::ptr::copy_nonoverlapping(low as *const u8, place as *mut u8, (end - low) as usize);
        for word in (place.next_multiple_of(8)..end.wrapping_add(shift)).step_by(8) {
            let word = word as *mut u64;
            *word = moved(*word);
        }
        debug_assert_eq!(*((to + SELF) as *const u64), to);
        if set_pointer(to as usize) != 0 {
            return false;
        }
        // The table of thread-local blocks: pairs, with their number before the first.
        let table = *((to + TABLE) as *const *mut [u64; 2]);
        let count = (*table.sub(1))[0];
        for entry in 1..=count as usize {
            let entry = table.add(entry);
            (*entry)[0] = moved((*entry)[0]);
        }
        // The blocks before and behind this one in the C library's list.
        let node = to + layout.list;
        let [next, last] = *(node as *const [u64; 2]);
        if next != 0 && last != 0 {
            *((next + 8) as *mut u64) = node;
            *(last as *mut u64) = node;
        }
        tell_kernel(layout, from, to);
    }
    true
}

/// Has the kernel use the block at `to` in place of that at `from`.
///
/// # Safety
/// `to` holds what `from` held, and the calling thread uses it.
unsafe fn tell_kernel(layout: Layout, from: u64, to: u64) {
    /// Signature of the C library's sequences.
    const SIGNATURE: usize = 0x5305_3053;
    const UNREGISTER: usize = 1;
    /// Bytes that the C library registers at least.
    const RECORD: usize = 32;
    /// "Not registered", for those who look for the processor in the record.
    const NONE: u32 = u32::MAX;
    // SAFETY: addresses in the calling thread's block, which is there as long as it.
    unsafe {
        let number = (to + layout.number) as usize;
        call(libc::SYS_set_tid_address, [number, 0, 0, 0, 0, 0]);
        let (mut head, mut length) = (0usize, 0usize);
        let arguments = [0, &raw mut head as usize, &raw mut length as usize, 0, 0, 0];
        if call(libc::SYS_get_robust_list, arguments) == 0 && head != 0 {
            let head = head.wrapping_add(to.wrapping_sub(from) as usize);
            call(libc::SYS_set_robust_list, [head, length, 0, 0, 0, 0]);
        }
        if let Some((offset, size)) = record() {
            let size = (size as usize).max(RECORD);
            let old = from.wrapping_add_signed(offset) as usize;
            let new = to.wrapping_add_signed(offset) as usize;
            let call = |at, flags| call(libc::SYS_rseq, [at, size, flags, SIGNATURE, 0, 0]);
            if call(old, UNREGISTER) != 0 || call(new, 0) != 0 {
                *((new + 4) as *mut u32) = NONE;
            }
        }
    }
}
