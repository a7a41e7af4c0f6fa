//! Why objects cannot be made, and what is read of files on the way.

use std::path::{Path, PathBuf};

/// Why an object could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A flag that a compile of kept IR cannot follow.
    #[error("the flag {flag} cannot be used on kept code: {reason}")]
    Flag {
        /// The flag.
        flag: String,
        /// Why.
        reason: String,
    },
    /// A tool could not be started.
    #[error("cannot start {tool}: {source} (is the package for LLVM 22 installed?)")]
    Tool {
        /// The tool.
        tool: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A process cannot be confined.
    #[error(
        "cannot confine {what}: {source}; --no-sandbox runs it without a sandbox, on packages that you trust"
    )]
    Sandbox {
        /// The program to run.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The compiler refused a unit or the flags.
    #[error("{tool} failed on {what}: {}", first(message))]
    Compile {
        /// The tool.
        tool: String,
        /// The unit's source.
        what: String,
        /// What the tool printed.
        message: String,
        /// The command, for trying by hand.
        command: String,
    },
}

/// The most informative line of a tool's message.
pub(crate) fn first(message: &str) -> &str {
    let mut lines = message.lines().map(str::trim).filter(|l| !l.is_empty());
    // The cause of a crash says more than the line about the crash, which may come first or last.
    let fatal = lines.clone().find(|l| l.starts_with("LLVM ERROR:"));
    let telling = |l: &str| l.contains("error:") || l.starts_with("cere:");
    let found = fatal.or_else(|| lines.clone().find(|l| telling(l)));
    found.or_else(|| lines.next()).unwrap_or(message)
}

/// Turns a failed file operation into an error with the operation and the file.
pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> CompileError {
    let path = path.to_owned();
    move |source| CompileError::Io {
        action,
        path,
        source,
    }
}

/// Distinguishes versions of a file without reading it.
pub fn stamp(path: &Path) -> Result<Vec<u8>, CompileError> {
    use std::os::unix::fs::MetadataExt;
    let data = std::fs::metadata(path).map_err(io("read", path))?;
    let numbers = [
        data.len(),
        data.mtime() as u64,
        data.mtime_nsec() as u64,
        data.ino(),
    ];
    let mut stamp = path.as_os_str().as_encoded_bytes().to_vec();
    stamp.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
    Ok(stamp)
}
