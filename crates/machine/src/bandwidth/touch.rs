//! First touch of pages.

use crate::session::Session;
use crate::{Error, document, place};
use cere_format::caches::processors;
use cere_format::machine::{FirstTouch, Found};
use cere_timing::area::{Area, Pages, SMALL};
use std::path::Path;

/// The nodes of memory in a directory such as `/sys/devices/system/node`, with their processors; one with all of `allowed` if the
/// directory names none of them.
#[must_use]
pub fn nodes(directory: &Path, allowed: &[u32]) -> Vec<(u32, Vec<u32>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|n| n.strip_prefix("node"));
        let Some(node) = number.and_then(|n| n.parse().ok()) else {
            continue;
        };
        let list = std::fs::read_to_string(entry.path().join("cpulist")).unwrap_or_default();
        let mut cores = processors(&list);
        cores.retain(|core| allowed.contains(core));
        // A node of memory alone has none: nothing touches from there.
        if !cores.is_empty() {
            found.push((node, cores));
        }
    }
    found.sort();
    if found.is_empty() {
        found.push((0, allowed.to_vec()));
    }
    found
}

/// Seconds a page of 4 KiB of an area of `bytes` that nothing touched; `None` where huge pages were wanted and not given.
fn once(session: &Session, bytes: usize, pages: Pages) -> Result<Option<f64>, Error> {
    let area = Area::untouched(bytes, pages)?;
    let base = area.address() as *mut u8;
    let nanoseconds = session.time(|| {
        for page in (0..bytes).step_by(SMALL) {
            // SAFETY: inside the area, which this function owns.
            unsafe { base.add(page).write_volatile(1) };
        }
    });
    let given = pages != Pages::Huge || area.huge() > 0.9;
    Ok(given.then(|| nanoseconds * 1e-9 / (bytes / SMALL) as f64))
}

/// The three least of `times` tries in `bytes` each.
fn least(session: &Session, bytes: usize, pages: Pages, times: usize) -> Result<Vec<f64>, Error> {
    let tries = (0..times).map(|_| once(session, bytes, pages));
    let mut found: Vec<f64> = tries
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    found.sort_by(f64::total_cmp);
    Ok(found)
}

/// Measures it on each node of `nodes`; without `pinned` where the thread happens to be.
pub fn measure(
    session: &Session,
    nodes: &[(u32, Vec<u32>)],
    pinned: bool,
) -> Result<(Vec<FirstTouch>, Vec<Found>), Error> {
    let (mut touches, mut found) = (Vec::new(), Vec::new());
    for (at, (node, cores)) in nodes.iter().enumerate() {
        let Some(core) = cores.first() else { continue };
        let work = || -> Result<_, Error> {
            let times = session.pick(4, 8);
            let small = least(session, 8 << 20, Pages::Small, times)?;
            Ok((small, least(session, 32 << 20, Pages::Huge, times)?))
        };
        let (small, huge) = match pinned {
            true => place::on(*core, work)??,
            false => work()?,
        };
        let Some(first) = small.first() else { continue };
        touches.push(FirstTouch {
            node: *node,
            seconds_per_page: *first,
            huge_seconds_per_page: huge.first().copied(),
        });
        let rates = small.iter().map(|seconds| 1.0 / seconds).collect();
        let mut how =
            "one byte written to each page of a fresh mapping, least of several".to_owned();
        if huge.is_empty() {
            how += "; the kernel gave no huge pages";
        }
        let confidence = super::window::best(rates).map_or(0.0, |b| b.repeated);
        let what = format!("memory.first_touch[{at}]");
        found.push(document::found(what, confidence, how));
    }
    Ok((touches, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_nodes_there_is_one() {
        assert_eq!(nodes(Path::new("/nowhere"), &[2, 3]), [(0, vec![2, 3])]);
    }

    #[test]
    fn a_page_takes_time() {
        let _quiet = crate::sharing::tests::quiet();
        let session = Session::new(true, 10.0, &|_| {});
        let allowed = place::allowed();
        let nodes = nodes(Path::new("/sys/devices/system/node"), &allowed);
        let (touches, found) = measure(&session, &nodes, true).unwrap();
        assert_eq!((touches.len(), found.len()), (nodes.len(), nodes.len()));
        let touch = &touches[0];
        // A fault costs more than a store.
        assert!(touch.seconds_per_page > 1e-8, "{touch:?}");
        assert!(touch.huge_seconds_per_page.is_none_or(|s| s > 0.0));
    }
}
