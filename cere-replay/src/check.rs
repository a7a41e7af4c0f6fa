//! Whether a manifest can be what a capture wrote, as far as the generator relies on it.

use crate::ReplayError;
use cere_format::package::Manifest;

/// End of user addresses.
const TOP: u64 = 1 << 47;
const THREAD_LOCAL: u64 = 1 << 30;

/// Names go into assembly and paths, addresses into arithmetic: refuses those that cannot be.
pub fn check(manifest: &Manifest) -> Result<(), ReplayError> {
    let refuse = |what: String| Err(ReplayError::Hostile(what));
    let (start, end) = manifest.image.range;
    if start >= end || end > TOP {
        return refuse(format!("the image lies at {start:#x}-{end:#x}"));
    }
    let hexadecimal = |id: &str| {
        id.len() == cere_format::abi::UNIT_ID_LENGTH && id.bytes().all(|b| b.is_ascii_hexdigit())
    };
    if let Some(unit) = manifest.units.iter().find(|u| !hexadecimal(&u.id)) {
        return refuse(format!("a unit is called {:?}", unit.id));
    }
    if manifest.units.is_empty() {
        return refuse("it holds no units".to_owned());
    }
    let plain = |name: &str| !name.is_empty() && !name.chars().any(char::is_control);
    let tls = manifest.image.tls.iter().flat_map(|t| &t.variables);
    let names = manifest
        .variables
        .iter()
        .map(|v| &v.name)
        .chain(manifest.functions.iter().map(|f| &f.name))
        .chain(tls.map(|v| &v.name))
        .chain(&manifest.libraries)
        .chain(&manifest.library_directories);
    if let Some(name) = names.into_iter().find(|n| !plain(n)) {
        return refuse(format!("a symbol or library is called {name:?}"));
    }
    if let Some(name) = manifest.libraries.iter().find(|n| n.contains('/')) {
        return refuse(format!("a library is called {name:?}"));
    }
    if let Some(tls) = &manifest.image.tls {
        let align = tls.align.is_power_of_two() && tls.align <= 1 << 16;
        let offsets = tls.variables.iter().all(|v| v.offset <= tls.size);
        if !align || tls.size > THREAD_LOCAL || !offsets {
            return refuse(format!(
                "the thread-local block has {} bytes, alignment {}",
                tls.size, tls.align
            ));
        }
    }
    Ok(())
}
