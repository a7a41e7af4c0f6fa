//! The sources that IR names in its debug information, if they are still as they were compiled.

use anyhow::{Context, Result};
use md5::{Digest, Md5};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Sources that were copied, and those that are gone or have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Where each was, and where its copy is in the folder.
    pub copied: Vec<(PathBuf, PathBuf)>,
    /// Where the others were.
    pub missing: Vec<PathBuf>,
}

/// A file of the debug information.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    path: PathBuf,
    md5: Option<String>,
}

/// The value of a field of a metadata node that is a string.
fn field(line: &str, name: &str) -> Option<String> {
    let rest = line.split_once(&format!("{name}: \""))?.1;
    Some(rest.split_once('"')?.0.to_owned())
}

/// The files that IR, as text, names.
fn named(ir: &str) -> BTreeSet<Named> {
    let files = ir.lines().filter(|line| line.contains("= !DIFile("));
    let file = |line: &str| {
        let (name, directory) = (field(line, "filename")?, field(line, "directory")?);
        let md5 = field(line, "checksum").filter(|_| line.contains("CSK_MD5"));
        let path = Path::new(&directory).join(name);
        Some(Named { path, md5 })
    };
    files.filter_map(file).collect()
}

/// Copies the sources of IR texts into the folder `to`, which is part of an exported folder.
pub fn copy(texts: &[String], to: &Path) -> Result<Sources> {
    let mut sources = Sources::default();
    let all: BTreeSet<Named> = texts.iter().flat_map(|text| named(text)).collect();
    // Headers of the system are everywhere.
    for file in all.iter().filter(|f| !f.path.starts_with("/usr")) {
        let content = std::fs::read(&file.path).ok();
        let same = |content: &Vec<u8>| file.md5.as_ref() == Some(&hexadecimal(content));
        let Some(content) = content.filter(same) else {
            sources.missing.push(file.path.clone());
            continue;
        };
        let plain = file.path.components();
        let plain = plain.filter(|c| matches!(c, std::path::Component::Normal(_)));
        let copy = to.join(plain.collect::<PathBuf>());
        let parent = copy.parent().unwrap_or(to);
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
        std::fs::write(&copy, content)
            .with_context(|| format!("cannot write {}", copy.display()))?;
        sources.copied.push((file.path.clone(), copy));
    }
    Ok(sources)
}

fn hexadecimal(content: &[u8]) -> String {
    cere_format::hexadecimal(&Md5::digest(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_debug_information() {
        let ir = "!1 = !DIFile(filename: \"k.c\", directory: \"/a b\", checksumkind: CSK_MD5, checksum: \"0f\")\n\
                  !2 = !DIFile(filename: \"/c/h.h\", directory: \"/a b\")\n!3 = !{!\"filename\"}\n";
        let file = |path: &str, md5: Option<&str>| Named {
            path: path.into(),
            md5: md5.map(str::to_owned),
        };
        let expected = [file("/a b/k.c", Some("0f")), file("/c/h.h", None)];
        assert_eq!(named(ir), expected.into_iter().collect());
    }
}
