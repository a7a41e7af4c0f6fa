//! Puts another program in this one's place as exec does, but leaves the memory: a replay takes over a restored state.
//!
//! The kernel would throw the memory away. So the segments of the program and of its loader are mapped as the kernel maps
//! them, and the loader starts on a stack that looks like a new process's: it binds the program to libraries of its own.
//! What was here before is never run again.

use crate::error::Error;
use cere_format::PAGE;
use libc::{Elf64_Ehdr, Elf64_Phdr, c_void};
use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Program headers of a file at most.
const HEADERS: u16 = 64;
/// Longest name of a loader.
const NAME: u64 = 4096;
/// Of a word of the auxiliary vector: that of the end.
const AT_NULL: u64 = libc::AT_NULL;

/// An ELF file's headers.
struct Image {
    path: PathBuf,
    file: File,
    entry: u64,
    table: u64,
    headers: Vec<Elf64_Phdr>,
}

fn floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

fn ceil(address: u64) -> u64 {
    floor(address.saturating_add(PAGE - 1))
}

/// Reads a structure of plain numbers.
fn structure<T: Copy>(file: &File, at: u64) -> std::io::Result<T> {
    let mut bytes = vec![0u8; size_of::<T>()];
    file.read_exact_at(&mut bytes, at)?;
    // SAFETY: as many bytes as the structure has, and any bytes are numbers; read without asking for alignment.
    Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

fn map(
    start: u64,
    length: u64,
    protection: i32,
    flags: i32,
    from: Option<(&File, u64)>,
) -> Result<u64, Error> {
    let (file, offset) = from.map_or((-1, 0), |(file, offset)| (file.as_raw_fd(), offset));
    // SAFETY: the callers ask for addresses where nothing is (MAP_FIXED_NOREPLACE), or that they reserved so themselves.
    let at = unsafe {
        libc::mmap(
            start as *mut c_void,
            length as usize,
            protection,
            flags,
            file,
            offset as i64,
        )
    };
    match at {
        libc::MAP_FAILED => Err(Error::system(format!(
            "no memory at {start:#x}-{:#x}",
            start.saturating_add(length)
        ))),
        at => Ok(at as u64),
    }
}

impl Image {
    fn open(path: &Path) -> Result<Self, Error> {
        let failed = Error::file("read", path);
        let file = File::open(path).map_err(&failed)?;
        let header: Elf64_Ehdr = structure(&file, 0).map_err(&failed)?;
        let known = header.e_ident[..5] == *b"\x7fELF\x02"
            && header.e_machine == cere_arch::HERE.facts().machine
            && usize::from(header.e_phentsize) == size_of::<Elf64_Phdr>()
            && header.e_phnum <= HEADERS;
        if !known {
            return Err(Error::Executable {
                path: path.to_owned(),
                why: "not an executable of this kind of processor",
            });
        }
        let size = size_of::<Elf64_Phdr>() as u64;
        let at = |index: u16| header.e_phoff.saturating_add(u64::from(index) * size);
        let headers = (0..header.e_phnum).map(|index| structure(&file, at(index)));
        Ok(Self {
            entry: header.e_entry,
            table: header.e_phoff,
            headers: headers.collect::<Result<_, _>>().map_err(&failed)?,
            path: path.to_owned(),
            file,
        })
    }

    fn loads(&self) -> impl Iterator<Item = &Elf64_Phdr> {
        self.headers.iter().filter(|h| h.p_type == libc::PT_LOAD)
    }

    fn unusable(&self, why: &'static str) -> Error {
        let path = self.path.clone();
        Error::Executable { path, why }
    }

    /// The loader that it asks for.
    fn loader(&self) -> Result<PathBuf, Error> {
        let header = self.headers.iter().find(|h| h.p_type == libc::PT_INTERP);
        let header = header.ok_or_else(|| self.unusable("it names no loader"))?;
        let mut name = vec![0u8; header.p_filesz.min(NAME) as usize];
        self.file
            .read_exact_at(&mut name, header.p_offset)
            .map_err(Error::file("read", &self.path))?;
        name.retain(|byte| *byte != 0);
        Ok(OsString::from_vec(name).into())
    }

    /// Maps it, at its own addresses (`anywhere`: where there is room); returns what is added to its addresses.
    fn map(&self, anywhere: bool) -> Result<u64, Error> {
        let low = self.loads().map(|h| floor(h.p_vaddr)).min();
        let high = self
            .loads()
            .map(|h| ceil(h.p_vaddr.saturating_add(h.p_memsz)))
            .max();
        let (Some(low), Some(high)) = (low, high) else {
            return Err(self.unusable("it has nothing to load"));
        };
        let private = libc::MAP_PRIVATE;
        let (wanted, place) = match anywhere {
            true => (0, 0),
            false => (low, libc::MAP_FIXED_NOREPLACE),
        };
        let length = high.saturating_sub(low);
        let start = map(
            wanted,
            length,
            libc::PROT_NONE,
            private | libc::MAP_ANONYMOUS | place,
            None,
        )?;
        let bias = start.wrapping_sub(low);
        for load in self.loads() {
            let flag = |of: u32, is: i32| if load.p_flags & of != 0 { is } else { 0 };
            let protection = flag(libc::PF_R, libc::PROT_READ)
                | flag(libc::PF_W, libc::PROT_WRITE)
                | flag(libc::PF_X, libc::PROT_EXEC);
            let from = bias.wrapping_add(load.p_vaddr);
            let (begin, filled) = (floor(from), from.saturating_add(load.p_filesz));
            let fixed = private | libc::MAP_FIXED;
            let offset = floor(load.p_offset);
            if load.p_filesz > 0 {
                map(
                    begin,
                    filled - begin,
                    protection,
                    fixed,
                    Some((&self.file, offset)),
                )?;
            }
            let end = ceil(from.saturating_add(load.p_memsz));
            let rest = ceil(filled).max(begin);
            if load.p_memsz > load.p_filesz && load.p_flags & libc::PF_W != 0 && filled < rest {
                // SAFETY: the end of the last page of the file's part, which is open for writing.
                unsafe { std::ptr::write_bytes(filled as *mut u8, 0, (rest - filled) as usize) };
            }
            if rest < end {
                map(
                    rest,
                    end - rest,
                    protection,
                    fixed | libc::MAP_ANONYMOUS,
                    None,
                )?;
            }
        }
        Ok(bias)
    }

    /// Where its program headers are in memory.
    fn table(&self, bias: u64) -> u64 {
        let holds = |h: &&Elf64_Phdr| {
            (h.p_offset..h.p_offset.saturating_add(h.p_filesz)).contains(&self.table)
        };
        let load = self.loads().find(holds);
        load.map_or(0, |h| {
            bias.wrapping_add(h.p_vaddr)
                .wrapping_add(self.table - h.p_offset)
        })
    }
}

/// The auxiliary vector of this process.
fn auxiliary() -> Result<Vec<(u64, u64)>, Error> {
    let path = Path::new("/proc/self/auxv");
    let bytes = std::fs::read(path).map_err(Error::file("read", path))?;
    let words = bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_ne_bytes(*word));
    let words: Vec<u64> = words.collect();
    let pairs = words
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| (pair[0], pair[1]));
    Ok(pairs.take_while(|pair| pair.0 != AT_NULL).collect())
}

/// Starts the program in `path`, whose loader starts anew; returns only if that fails, and says why.
pub fn enter(path: &Path, environment: &[CString]) -> Error {
    match prepare(path, environment) {
        Err(error) => error,
        // SAFETY: `prepare` mapped the program and its loader, and made the words of a new process's stack.
        Ok((entry, stack)) => unsafe { begin(entry, &stack) },
    }
}

fn prepare(path: &Path, environment: &[CString]) -> Result<(u64, Vec<u64>), Error> {
    let program = Image::open(path)?;
    let loader = Image::open(&program.loader()?)?;
    let bias = program.map(false)?;
    let base = loader.map(true)?;
    let name = CString::new(path.as_os_str().as_encoded_bytes());
    let name = name.map_err(|cause| Error::Zero {
        what: "the executable's name",
        cause,
    })?;
    // The new process keeps the string for good.
    let name = name.into_raw() as u64;
    let mut stack = vec![1, name, 0];
    stack.extend(environment.iter().map(|text| text.as_ptr() as u64));
    stack.push(0);
    for (kind, value) in auxiliary()? {
        let value = match kind {
            libc::AT_PHDR => program.table(bias),
            libc::AT_PHNUM => program.headers.len() as u64,
            libc::AT_ENTRY => bias.wrapping_add(program.entry),
            libc::AT_BASE => base,
            libc::AT_EXECFN => name,
            _ => value,
        };
        stack.extend([kind, value]);
    }
    stack.extend([AT_NULL, 0]);
    Ok((base.wrapping_add(loader.entry), stack))
}

/// Jumps to `entry` with `words` on top of the stack.
///
/// # Safety
/// `entry` is that of a loader that is mapped, and the words are those that the kernel gives it.
unsafe fn begin(entry: u64, words: &[u64]) -> ! {
    let bytes = size_of_val(words);
    let here = &raw const bytes as usize;
    // Below this function's frame, so that nothing in use is overwritten.
    let top = (here - bytes - PAGE as usize) & !15;
    // SAFETY: the words go to free stack below. By the contract the entry takes over.
    unsafe { cere_arch::switch::begin(entry, top, words) }
}
