//! Which layers this system has.

use crate::child::Maps;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

/// The first landlock that keeps files from being cut short.
const LANDLOCK: i64 = 3;
/// What the trial child ends with when all went well: it is not to run anything.
const WELL: i32 = libc::EOWNERDEAD;

/// Each layer, or the kernel's reason why it is not there.
pub(crate) struct Layers {
    pub namespaces: io::Result<()>,
    pub files: io::Result<()>,
    /// Files are confined, but by an older landlock.
    pub older: Option<i64>,
    pub calls: io::Result<()>,
}

fn namespaces() -> io::Result<()> {
    let maps = Maps::new();
    let mut trial = Command::new("/proc/self/exe");
    let enter = move || {
        maps.enter()?;
        Err(io::Error::from_raw_os_error(WELL))
    };
    // SAFETY: `enter` makes system calls only.
    unsafe { trial.pre_exec(enter) };
    match trial.spawn() {
        Err(error) if error.raw_os_error() == Some(WELL) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::other("the trial went on")),
    }
}

fn landlock() -> io::Result<i64> {
    const VERSION: u32 = 1;
    // SAFETY: no ruleset: it asks for the version.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, VERSION) };
    match version {
        1.. => Ok(version),
        _ => Err(io::Error::last_os_error()),
    }
}

fn seccomp() -> io::Result<()> {
    let action = libc::SECCOMP_RET_TRAP;
    // SAFETY: reads one word.
    let known = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    match known {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Layers {
    /// Those of this system, tried once.
    pub(crate) fn here() -> &'static Self {
        static HERE: OnceLock<Layers> = OnceLock::new();
        HERE.get_or_init(|| {
            let version = landlock();
            Self {
                namespaces: namespaces(),
                older: version.as_ref().ok().copied().filter(|v| *v < LANDLOCK),
                files: version.map(drop),
                calls: seccomp(),
            }
        })
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Err(why) = &self.namespaces {
            found.push(format!(
                "this system has no user namespace for the sandbox ({why}): what a codelet is kept from on the network is up \
                 to the filter of system calls alone"
            ));
        }
        if let Err(why) = &self.files {
            found.push(format!(
                "this system has no landlock for the sandbox ({why}): a codelet can read and write the files that you can"
            ));
        }
        if let Some(version) = self.older {
            found.push(format!(
                "the landlock of this system is version {version}, {LANDLOCK} is needed: a codelet can cut your files short"
            ));
        }
        if let Err(why) = &self.calls {
            found.push(format!(
                "this system has no seccomp for the sandbox ({why}): a codelet can make any system call"
            ));
        }
        found
    }
}
