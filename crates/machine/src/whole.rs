//! The whole machine: all probes, one document.

use crate::session::{Progress, Session};
use crate::{Error, bandwidth, hierarchy, operations, place, sharing, system};
use cere_arch::target::Target;
use cere_format::caches;
use cere_format::machine::{Cache, Identity, MACHINE_VERSION, Machine, Memory, USABLE};

/// Seconds of a quick and of a full measurement.
pub const SECONDS: (f64, f64) = (10.0, 60.0);
/// Seconds below which nothing useful can be measured.
pub const LEAST: f64 = 3.0;
/// The share of the time that caches and TLBs take.
const HIERARCHY: f64 = 0.4;

/// Measures this machine in about `seconds`, told to `progress`. It should be quiet: what others do lowers confidences.
pub fn measure(quick: bool, seconds: f64, progress: &Progress) -> Result<Machine, Error> {
    let session = Session::new(quick, seconds, progress);
    let told = caches::of(place::allowed().first().copied().unwrap_or(0));
    let available = system::free_memory();
    let found = hierarchy::read::measure(&session, HIERARCHY * seconds, available, &told)?;
    let mut machine = Machine {
        version: MACHINE_VERSION,
        identity: Identity::here(),
        quick,
        line_bytes: found.line_bytes,
        page_bytes: found.page_bytes,
        caches: found.caches,
        tlb: found.tlb,
        memory: Memory {
            latency_ns: found.memory_ns,
            latency_adds: found.memory_adds,
            huge_pages: found.huge_pages,
            ..Memory::default()
        },
        found: found.found,
        notes: found.notes,
        curves: found.curves,
        ..Machine::default()
    };
    add_operations(&session, &mut machine)?;
    add_bandwidths(&session, &mut machine)?;
    add_cores(&session, &mut machine)?;
    let lines = told.first().map(|c| u64::from(c.line));
    machine.notes.extend(against_the_system(&machine, lines));
    machine.notes.extend(left_out(cere_arch::HERE));
    machine.seconds = session.elapsed();
    Ok(machine)
}

fn add_operations(session: &Session, machine: &mut Machine) -> Result<(), Error> {
    let found = operations::measure(session)?;
    machine.add_ns = Some(found.add_ns);
    machine.operations = found.operations;
    machine.peaks = found.peaks;
    machine.cores = found.cores;
    machine.found.extend(found.found);
    machine.curves.extend(found.curves);
    Ok(())
}

/// The caches, of which those count as known whose end was not seen but that hold much more than the one before: a working set within
/// them has their bandwidth.
fn reachable(caches: &[Cache]) -> Vec<Cache> {
    let mut found = caches.to_vec();
    for at in 1..found.len() {
        if found[at].size_bytes >= 4 * found[at - 1].size_bytes {
            found[at].confidence = found[at].confidence.max(USABLE);
        }
    }
    found
}

fn add_bandwidths(session: &Session, machine: &mut Machine) -> Result<(), Error> {
    let found = bandwidth::measure(session, &reachable(&machine.caches))?;
    machine.bandwidths = found.bandwidths;
    machine.memory.first_touch = found.first_touch;
    machine.found.extend(found.found);
    machine.curves.extend(found.curves);
    Ok(())
}

fn add_cores(session: &Session, machine: &mut Machine) -> Result<(), Error> {
    let found = sharing::measure(session, &machine.caches, machine.line_bytes.unwrap_or(64))?;
    for (cache, shared) in machine.caches.iter_mut().zip(found.shared_by) {
        cache.shared_by = shared;
    }
    machine.memory.contention = found.contention;
    machine.cores.measured = found.measured;
    machine.cores.layers = found.layers;
    machine.cores.tree = found.tree;
    machine.found.extend(found.found);
    machine.curves.extend(found.curves);
    machine.notes.extend(found.notes);
    Ok(())
}

/// What has no probe on an architecture: a sentence.
fn left_out(here: Target) -> Option<String> {
    (here != Target::X86_64).then(|| {
        format!(
            "operations, peaks, bandwidths and contention of memory were not measured: their probes are machine code for x86-64, this \
             machine is {}",
            here.processor()
        )
    })
}

/// Where what was measured reliably differs from what the system tells: sentences.
fn against_the_system(machine: &Machine, line: Option<u64>) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(found), Some(told)) = (machine.line_bytes, line)
        && found != told
        && told > 0
    {
        notes.push(format!(
            "a line has {found} bytes here; the system says {told}"
        ));
    }
    for correction in machine.corrections() {
        let told = machine.caches.iter().find(|c| c.level == correction.level);
        notes.push(match told.and_then(|cache| cache.system_bytes) {
            None => format!(
                "the system does not tell of a cache of level {}",
                correction.level
            ),
            Some(told) => format!(
                "L{}: {} KiB can be used; the system says {} KiB",
                correction.level,
                correction.bytes >> 10,
                told >> 10
            ),
        });
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_probe_is_named() {
        assert_eq!(left_out(Target::X86_64), None);
        let note = left_out(Target::Aarch64).unwrap();
        assert!(
            note.contains("bandwidths") && note.contains("aarch64"),
            "{note}"
        );
    }

    #[test]
    fn what_the_system_tells_otherwise() {
        let cache = |level, size_bytes, system_bytes| Cache {
            level,
            size_bytes,
            system_bytes,
            confidence: 0.9,
            ..Cache::default()
        };
        let machine = Machine {
            line_bytes: Some(64),
            caches: vec![
                cache(1, 48 << 10, Some(48 << 10)),
                cache(2, 1 << 20, Some(2 << 20)),
                cache(3, 1 << 24, None),
            ],
            ..Machine::default()
        };
        let notes = against_the_system(&machine, Some(128));
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].contains("the system says 128") && notes[1].starts_with("L2: 1024 KiB"));
        assert!(notes[2].contains("does not tell"));
    }
}
