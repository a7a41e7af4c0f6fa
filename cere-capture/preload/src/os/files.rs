//! Files, reached as at the program's start whatever it has done since ([`aside`]). Ordinary code.

use super::{aside, process, sys};
use std::ffi::{CString, OsStr, OsString};
use std::fmt::{self, Display, Formatter};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// An open file.
pub struct File {
    descriptor: usize,
    /// Whether the descriptor is the helper's.
    aside: bool,
}

/// What could not be done with a file, and why.
#[derive(Debug)]
pub struct FileError {
    what: &'static str,
    path: PathBuf,
    cause: Error,
}

/// Makes the cause of a failure to do `what` with a file an error that says so.
pub fn failed(what: &'static str, path: &Path) -> impl Fn(Error) -> FileError {
    let path = path.to_owned();
    move |cause| FileError {
        what,
        path: path.clone(),
        cause,
    }
}

impl Display for FileError {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(
            f,
            "cannot {} {}: {}",
            self.what,
            self.path.display(),
            self.cause
        )
    }
}

fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| Error::from_raw_os_error(-result as i32))
}

/// A call by the helper, or where there is none by this process; and which of them.
///
/// # Safety
/// As the call itself.
unsafe fn perform(number: i64, arguments: [usize; 6]) -> io::Result<(usize, bool)> {
    loop {
        // SAFETY: the caller answers for the call; the helper makes it with the same memory.
        let (result, by_helper) = match unsafe { aside::call(number, arguments) } {
            Some(result) => (result, true),
            // SAFETY: the caller answers for the call.
            None => (unsafe { sys::call(number, arguments) }, false),
        };
        if result != -(libc::EINTR as isize) {
            return Ok((checked(result)?, by_helper));
        }
    }
}

/// A call that this process made was refused for a limit on the size of files: drops the signal of that, which is blocked.
fn drop_signal_of_limit() {
    let ignored = sys::Action {
        handler: libc::SIG_IGN,
        ..sys::Action::default()
    };
    let own = sys::exchange_action(libc::SIGXFSZ, Some(&ignored));
    sys::exchange_action(libc::SIGXFSZ, Some(&own));
}

fn terminated(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| ErrorKind::InvalidInput.into())
}

const HERE: usize = libc::AT_FDCWD as usize;

impl File {
    /// Opens with these `O_` flags; a new file may be read and written by its owner.
    pub fn open(path: &Path, flags: i32) -> io::Result<File> {
        let path = terminated(path)?;
        let flags = (flags | libc::O_CLOEXEC) as usize;
        let arguments = [HERE, path.as_ptr() as usize, flags, 0o666, 0, 0];
        // SAFETY: a string that ends.
        let (descriptor, aside) = unsafe { perform(libc::SYS_openat, arguments) }?;
        Ok(File { descriptor, aside })
    }

    /// Makes a file that is not there yet.
    pub fn create_new(path: &Path) -> io::Result<File> {
        File::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
    }

    /// Makes a file, or empties it.
    pub fn create(path: &Path) -> io::Result<File> {
        File::open(path, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC)
    }

    /// A call on this file: its descriptor is the first argument. Memory that is mapped is everybody's.
    ///
    /// # Safety
    /// As the call itself.
    pub unsafe fn call(&self, number: i64, rest: [usize; 3]) -> io::Result<usize> {
        let arguments = [self.descriptor, rest[0], rest[1], rest[2], 0, 0];
        // SAFETY: the caller answers for the call.
        unsafe { self.perform(number, arguments) }
    }

    /// Where this file is mapped at `wanted` or elsewhere, shared, to be read and written.
    pub fn map(&self, wanted: usize, size: usize) -> io::Result<usize> {
        // SAFETY: a fresh mapping.
        unsafe { self.map_as(0, (wanted, size), 0) }
    }

    /// Maps the `size` bytes of this file from `offset` on in place of what is mapped at `start`, shared, to be read and written.
    ///
    /// # Safety
    /// Nobody relies on what is mapped there.
    pub unsafe fn map_over(&self, start: usize, size: usize, offset: usize) -> io::Result<()> {
        // SAFETY: the caller answers for the call.
        unsafe { self.map_as(libc::MAP_FIXED, (start, size), offset) }.map(drop)
    }

    /// # Safety
    /// As the call itself.
    unsafe fn map_as(
        &self,
        extra: i32,
        (start, size): (usize, usize),
        offset: usize,
    ) -> io::Result<usize> {
        let rights = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE | extra) as usize;
        let arguments = [start, size, rights, flags, self.descriptor, offset];
        // SAFETY: the caller answers for the call.
        unsafe { self.perform(libc::SYS_mmap, arguments) }
    }

    /// Gives the file `size` bytes.
    pub fn set_length(&self, size: usize) -> io::Result<()> {
        // SAFETY: no pointers.
        unsafe { self.call(libc::SYS_ftruncate, [size, 0, 0]) }.map(drop)
    }

    /// Lets the next bytes be written at `offset`.
    pub fn seek(&self, offset: u64) -> io::Result<()> {
        let rest = [offset as usize, libc::SEEK_SET as usize, 0];
        // SAFETY: no pointers.
        unsafe { self.call(libc::SYS_lseek, rest) }.map(drop)
    }

    /// Fills `bytes` from the file at `offset`; an error if it ends before.
    pub fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let rest = [bytes.as_mut_ptr() as usize, bytes.len(), offset as usize];
            // SAFETY: a buffer of this length.
            match unsafe { self.call(libc::SYS_pread64, rest) }? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => {
                    bytes = &mut bytes[read..];
                    offset += read as u64;
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// As the call itself.
    unsafe fn perform(&self, number: i64, arguments: [usize; 6]) -> io::Result<usize> {
        if !self.aside {
            // SAFETY: the caller answers for the call.
            let result = unsafe { sys::call(number, arguments) };
            if result == -(libc::EFBIG as isize) {
                drop_signal_of_limit();
            }
            return checked(result);
        }
        // SAFETY: the caller answers for the call.
        let result = unsafe { aside::call(number, arguments) };
        // Its descriptors went with the helper.
        result.map_or_else(|| Err(Error::from_raw_os_error(libc::EIO)), checked)
    }
}

impl Read for File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let rest = [bytes.as_mut_ptr() as usize, bytes.len(), 0];
        // SAFETY: a buffer of this length.
        unsafe { self.call(libc::SYS_read, rest) }
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let rest = [bytes.as_ptr() as usize, bytes.len(), 0];
        // SAFETY: a buffer of this length.
        unsafe { self.call(libc::SYS_write, rest) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: nobody else has the descriptor.
        let _ = unsafe { self.call(libc::SYS_close, [0; 3]) };
    }
}

/// `/proc/self/<name>`, for what belongs to the process and not to its memory, which it shares with the helper.
pub fn of_process(name: &str) -> PathBuf {
    match aside::is_running() {
        true => format!("/proc/{}/{name}", process::id()).into(),
        false => format!("/proc/self/{name}").into(),
    }
}

/// Makes the file of the first number that has none, and which that is.
pub fn create_first(path: &dyn Fn(u32) -> PathBuf) -> Result<(u32, File), FileError> {
    let mut number = 0;
    loop {
        let path = path(number);
        match File::create_new(&path) {
            Ok(file) => return Ok((number, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(e) => return Err(failed("create", &path)(e)),
        }
    }
}

/// Content of a file.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut file = File::open(path.as_ref(), libc::O_RDONLY)?;
    // Files of `/proc` have no size.
    let (mut bytes, mut end) = (vec![0; 1 << 16], 0);
    loop {
        match file.read(&mut bytes[end..])? {
            0 => break,
            read => end += read,
        }
        if end == bytes.len() {
            bytes.resize(2 * end, 0);
        }
    }
    bytes.truncate(end);
    Ok(bytes)
}

/// Content of a file that is text.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read(path)?).into_owned())
}

/// Makes or replaces a file.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    File::create(path.as_ref())?.write_all(bytes.as_ref())
}

/// Gives a file another name.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (terminated(from)?, terminated(to)?);
    let arguments = [from.as_ptr() as usize, to.as_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: strings that end.
    unsafe { perform(libc::SYS_rename, arguments) }.map(drop)
}

/// Removes a file.
pub fn remove(path: &Path) -> io::Result<()> {
    let path = terminated(path)?;
    // SAFETY: a string that ends.
    unsafe { perform(libc::SYS_unlink, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Whether there is a file of this name.
pub fn exists(path: &Path) -> bool {
    let found = terminated(path).and_then(|path| {
        // SAFETY: a string that ends.
        unsafe { perform(libc::SYS_access, [path.as_ptr() as usize, 0, 0, 0, 0, 0]) }
    });
    found.is_ok()
}

/// What a symbolic link names.
pub fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = terminated(path.as_ref())?;
    let mut bytes = vec![0u8; libc::PATH_MAX as usize];
    let (at, most) = (bytes.as_mut_ptr() as usize, bytes.len());
    let arguments = [path.as_ptr() as usize, at, most, 0, 0, 0];
    // SAFETY: a string that ends, and a buffer of this length.
    let (length, _) = unsafe { perform(libc::SYS_readlink, arguments) }?;
    bytes.truncate(length);
    Ok(OsString::from_vec(bytes).into())
}

/// The file's own path, without symbolic links.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path).or_else(|_| {
        let file = File::open(path, libc::O_PATH)?;
        read_link(format!("/proc/self/fd/{}", file.descriptor))
    })
}

/// Names in a directory.
pub fn list(path: &Path) -> io::Result<Vec<OsString>> {
    /// Offsets in the kernel's `linux_dirent64`.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let directory = File::open(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let (mut bytes, mut names) = (vec![0u8; 1 << 15], Vec::new());
    loop {
        let rest = [bytes.as_mut_ptr() as usize, bytes.len(), 0];
        // SAFETY: a buffer of this length.
        let end = unsafe { directory.call(libc::SYS_getdents64, rest) }?;
        let mut entries = &bytes[..end];
        if entries.is_empty() {
            return Ok(names);
        }
        while let Some(&[low, high]) = entries.get(LENGTH..LENGTH + 2) {
            let length = usize::from(u16::from_le_bytes([low, high])).max(NAME);
            let (entry, rest) = entries.split_at(length.min(entries.len()));
            let name = entry[NAME..].split(|byte| *byte == 0).next().unwrap_or(&[]);
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
            entries = rest;
        }
    }
}
