//! What a manifest must fulfil.

use super::layout::{
    PAGES_LIMIT, RECORD_LENGTH, TLS_LIMIT, UNITS_LIMIT, WORDS_LIMIT, check_version, invalid,
};
use super::table::{check_page_size, stored};
use super::trace::TRACE_LENGTH;
use cere_format::FormatError;
use cere_format::abi::UNIT_ID_LENGTH;
use cere_format::answers::ANSWERS_MOST;
use cere_format::capture::{PAGE_ENTRY_STORED, PAGE_EXIT_STORED, PageRecord};
use cere_format::mpi::MPI_MOST;
use cere_format::package::*;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that what others allocate by is within bounds.
fn check_lists(manifest: &Manifest) -> Result<(), FormatError> {
    let trace = manifest.trace.as_ref().map_or(0, |trace| trace.pages);
    let tls = manifest.image.tls.as_ref().map_or(0, |tls| tls.size);
    let flags = manifest.units.iter().map(|unit| unit.codegen.len());
    let words = WORDS_LIMIT as u64;
    let numbers = [
        ("pages", manifest.pages, PAGES_LIMIT),
        ("trace.pages", trace, PAGES_LIMIT),
        ("image.tls.size", tls, TLS_LIMIT),
        ("units", manifest.units.len() as u64, UNITS_LIMIT as u64),
        ("units.codegen", flags.max().unwrap_or(0) as u64, words),
        ("libraries", manifest.libraries.len() as u64, words),
        (
            "library_directories",
            manifest.library_directories.len() as u64,
            words,
        ),
        (
            "machine.features",
            manifest.machine.features.len() as u64,
            words,
        ),
    ];
    match numbers.iter().find(|(_, found, most)| found > most) {
        Some((field, found, _)) => Err(invalid(
            MEMBER_MANIFEST,
            field,
            found,
            "it is above the format's limit",
        )),
        None => Ok(()),
    }
}

/// The members that a manifest calls for, and the sizes of those whose size follows from it.
type Called = BTreeMap<String, Option<u64>>;

/// An error of the manifest.
fn wrong(field: &'static str, found: impl ToString, why: &'static str) -> FormatError {
    invalid(MEMBER_MANIFEST, field, found, why)
}

/// Checks all that a manifest says about itself and its members.
pub fn check_manifest(manifest: &Manifest) -> Result<(), FormatError> {
    check_version("codelet manifest", manifest.version)?;
    check_page_size(MEMBER_MANIFEST, manifest.page_size)?;
    if manifest.invocation == 0 {
        return Err(wrong("invocation", 0, "invocations count from 1"));
    }
    check_lists(manifest)?;
    let table = manifest.pages.checked_mul(RECORD_LENGTH);
    let table =
        table.ok_or_else(|| wrong("pages", manifest.pages, "its table's size overflows"))?;
    let mut called = Called::from([
        (MEMBER_TABLE.into(), Some(table)),
        (MEMBER_ENTRY.into(), None),
        (MEMBER_EXIT.into(), None),
        (MEMBER_CODE.into(), None),
    ]);
    call_for_records(manifest, &mut called)?;
    call_for_locals(manifest, &mut called)?;
    call_for_units(manifest, &mut called)?;
    check_ranges(manifest)?;
    check_members(manifest, &called)
}

/// The trace, the answers and the calls of MPI.
fn call_for_records(manifest: &Manifest, called: &mut Called) -> Result<(), FormatError> {
    if let Some(trace) = &manifest.trace {
        let size = trace.pages.checked_mul(TRACE_LENGTH);
        let size =
            size.ok_or_else(|| wrong("trace.pages", trace.pages, "the trace's size overflows"))?;
        called.insert(MEMBER_TRACE.into(), Some(size));
    }
    let bytes = manifest.answers.as_ref().map_or(0, |a| a.bytes);
    if bytes > ANSWERS_MOST {
        let why = "a capture keeps 16 MiB of them at most";
        return Err(wrong("answers.bytes", bytes, why));
    }
    if bytes > 0 {
        called.insert(MEMBER_ANSWERS.into(), Some(bytes));
    }
    if let Some(mpi) = &manifest.mpi {
        if mpi.bytes > MPI_MOST {
            return Err(wrong(
                "mpi.bytes",
                mpi.bytes,
                "a capture keeps 2 GiB of them at most",
            ));
        }
        called.insert(MEMBER_MPI.into(), Some(mpi.bytes));
    }
    Ok(())
}

/// Thread-local blocks.
fn call_for_locals(manifest: &Manifest, called: &mut Called) -> Result<(), FormatError> {
    let Some(tls) = &manifest.image.tls else {
        return Ok(());
    };
    if !tls.align.is_power_of_two() {
        return Err(wrong("tls.align", tls.align, "it is a power of two"));
    }
    let outside = |v: &&TlsVariable| {
        v.offset
            .checked_add(v.size)
            .is_none_or(|end| end > tls.size)
    };
    if let Some(variable) = tls.variables.iter().find(outside) {
        let why = "it lies outside the block";
        return Err(wrong("tls.variables", &variable.name, why));
    }
    for name in [MEMBER_TLS_ENTRY, MEMBER_TLS_EXIT, MEMBER_TLS_START] {
        called.insert(name.into(), Some(tls.size));
    }
    let openmp = manifest.openmp.as_ref();
    let threads = openmp.map_or(0, |o| o.blocks.len() as u64);
    let size = tls.size.checked_mul(threads);
    let size = size.ok_or_else(|| wrong("openmp.blocks", threads, "the blocks' size overflows"))?;
    if threads > 0 {
        called.insert(MEMBER_TLS_TEAM.into(), Some(size));
    }
    Ok(())
}

/// The IR of units.
fn call_for_units(manifest: &Manifest, called: &mut Called) -> Result<(), FormatError> {
    for unit in &manifest.units {
        let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if unit.id.len() != UNIT_ID_LENGTH || !unit.id.bytes().all(hexadecimal) {
            let found = format!("{:?}", unit.id);
            return Err(wrong("units.id", found, "it is 32 hexadecimal digits"));
        }
        if called.insert(unit.member(), None).is_some() {
            return Err(wrong("units.id", &unit.id, "units are listed once"));
        }
    }
    let own = &manifest.key.unit;
    match manifest.units.first().is_some_and(|unit| unit.id == *own) {
        true => Ok(()),
        false => Err(wrong("units", own, "the region's own unit comes first")),
    }
}

fn check_ranges(manifest: &Manifest) -> Result<(), FormatError> {
    let single = [manifest.heap, manifest.image.range];
    let mut all = (manifest.fresh.iter().copied().chain(single))
        .chain(manifest.mappings.iter().map(|m| (m.start, m.end)))
        .chain(manifest.masks.iter().map(|m| (m.start, m.end)))
        .chain(manifest.freed.iter().copied());
    match all.find(|(start, end)| start > end) {
        None => Ok(()),
        Some((start, end)) => {
            let found = format!("{start:#x}..{end:#x}");
            Err(wrong("range", found, "it ends before it starts"))
        }
    }
}

fn check_members(manifest: &Manifest, called: &Called) -> Result<(), FormatError> {
    let first = manifest.members.first();
    if first.is_none_or(|member| member.name != MEMBER_TABLE) {
        let found = first.map_or("nothing", |member| &member.name);
        return Err(wrong("members", found, "pages.table comes first"));
    }
    let mut seen = BTreeSet::new();
    let mut total = 0u64;
    for member in &manifest.members {
        let Some(size) = called.get(&member.name) else {
            let name = format!("{:?}", member.name);
            let why = "the manifest calls for no such member";
            return Err(wrong("members.name", name, why));
        };
        if !seen.insert(&member.name) {
            return Err(wrong(
                "members.name",
                &member.name,
                "members are listed once",
            ));
        }
        if size.is_some_and(|size| size != member.size) {
            let value = format!("{} for {}", member.size, member.name);
            let why = "the manifest's counts ask for another size";
            return Err(wrong("members.size", value, why));
        }
        total = total
            .checked_add(member.size)
            .ok_or_else(|| wrong("members.size", member.size, "the sum overflows"))?;
    }
    match called.keys().find(|name| !seen.contains(name)) {
        Some(missing) => Err(wrong("members", missing, "this member is missing")),
        None => Ok(()),
    }
}

pub(super) fn check_stored(manifest: &Manifest, pages: &[PageRecord]) -> Result<(), FormatError> {
    for (name, flag) in [
        (MEMBER_ENTRY, PAGE_ENTRY_STORED),
        (MEMBER_EXIT, PAGE_EXIT_STORED),
    ] {
        let expected = stored(pages, flag).checked_mul(manifest.page_size);
        let found = manifest
            .members
            .iter()
            .find(|m| m.name == name)
            .map_or(0, |m| m.size);
        if expected != Some(found) {
            let value = format!("{found} for {name}");
            return Err(invalid(
                MEMBER_MANIFEST,
                "members.size",
                value,
                "the page table stores another number of pages",
            ));
        }
    }
    Ok(())
}
