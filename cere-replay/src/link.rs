//! The executable, within reach of the captured image.

use crate::compile::{CLANG, hash, tool};
use crate::{Options, ReplayError, io};
use cere_format::package::Manifest;
use std::path::PathBuf;
use std::process::Command;

const GIB2: u64 = 1 << 31;
/// Distance kept to captured mappings: the kernel puts the break up to 32 MiB after an executable.
const ROOM: u64 = 64 << 20;

/// A base for an executable of `size` bytes, all of it within reach of the captured image.
pub fn base(manifest: &Manifest, size: u64) -> Result<u64, ReplayError> {
    let (start, end) = manifest.image.range;
    let (lowest, highest) = if manifest.image.low {
        (0x1_0000, GIB2)
    } else {
        (
            end.saturating_sub(GIB2 - (1 << 20)).max(0x1_0000),
            start.saturating_add(GIB2 - (1 << 20)),
        )
    };
    let mut taken: Vec<(u64, u64)> = manifest
        .mappings
        .iter()
        .map(|m| (m.start, m.end))
        .chain(manifest.fresh.iter().copied())
        .chain([manifest.heap, manifest.image.range])
        .filter(|r| r.0 < r.1)
        .collect();
    taken.sort_unstable();
    // Free gaps by falling size: the break has the more room.
    let mut gaps = Vec::new();
    let mut at = lowest;
    for &(start, end) in &taken {
        if start > at && at < highest {
            gaps.push((at, start.min(highest)));
        }
        at = at.max(end);
    }
    if at < highest {
        gaps.push((at, highest));
    }
    gaps.sort_by_key(|g| std::cmp::Reverse(g.1 - g.0));
    for (start, end) in gaps {
        for room in [ROOM, 1 << 20, 0x1000] {
            let from = (start.max(0x1_0000) + room.min(end - start) + 0xffff) & !0xffff;
            if from + size + room <= end {
                return Ok(from);
            }
        }
    }
    Err(ReplayError::NoRoom {
        size,
        image: manifest.image.name.clone(),
        start,
        end,
    })
}

/// Assembles the glue and links.
pub fn link(
    manifest: &Manifest,
    objects: &[PathBuf],
    glue: &str,
    options: &Options,
) -> Result<PathBuf, ReplayError> {
    let runtime = std::fs::metadata(&options.runtime).map_err(io("read", &options.runtime))?;
    let stamp = runtime
        .modified()
        .ok()
        .and_then(|m| m.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |d| d.as_nanos());
    let mut size = 16u64 << 20;
    for object in objects {
        size += std::fs::metadata(object).map_err(io("read", object))?.len();
    }
    let base = base(manifest, size)?;
    let names: Vec<String> = objects.iter().map(|o| o.display().to_string()).collect();
    let key = hash(&[
        glue.as_bytes(),
        names.join("\0").as_bytes(),
        options.runtime.display().to_string().as_bytes(),
        &stamp.to_le_bytes(),
        &runtime.len().to_le_bytes(),
        &base.to_le_bytes(),
        manifest.libraries.join("\0").as_bytes(),
    ]);
    let executable = options.cache.join(format!("{key}.replay"));
    if executable.exists() {
        return Ok(executable);
    }
    let assembly = options
        .cache
        .join(format!("{key}.{}.s", std::process::id()));
    let temporary = options
        .cache
        .join(format!("{key}.{}.replay", std::process::id()));
    std::fs::write(&assembly, glue).map_err(io("write", &assembly))?;
    let mut command = Command::new(CLANG);
    command
        .args(["-no-pie", "-fuse-ld=lld", "-w"])
        .arg(format!("-Wl,--image-base={base:#x}"))
        .args(["-Wl,-z,now", "-Wl,-z,nognustack"])
        .args(objects)
        .arg(&assembly)
        .arg(&options.runtime);
    for directory in &manifest.library_directories {
        command.arg(format!("-L{directory}"));
        command.arg(format!("-Wl,-rpath,{directory}"));
    }
    command.arg("-Wl,--no-as-needed");
    for library in &manifest.libraries {
        if !library.starts_with("ld-linux") {
            command.arg(format!("-l:{library}"));
        }
    }
    command
        .args(["-lgcc_s", "-lm", "-lpthread", "-ldl", "-lc", "-o"])
        .arg(&temporary);
    let result = tool(&mut command, &format!("the link of {}", manifest.name));
    let _ = std::fs::remove_file(&assembly);
    if let Err(error) = result {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    std::fs::rename(&temporary, &executable).map_err(io("write", &executable))?;
    Ok(executable)
}
