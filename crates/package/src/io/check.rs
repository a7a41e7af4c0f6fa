//! What a manifest must fulfil.

use super::table::{check_page_size, stored};
use super::{
    PAGES_LIMIT, RECORD_LENGTH, TLS_LIMIT, TRACE_LENGTH, UNITS_LIMIT, WORDS_LIMIT, check_version,
    invalid,
};
use cere_format::FormatError;
use cere_format::abi::UNIT_ID_LENGTH;
use cere_format::answers::ANSWERS_MOST;
use cere_format::capture::{PAGE_ENTRY_STORED, PAGE_EXIT_STORED, PageRecord};
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

/// Checks all that a manifest says about itself and its members.
pub fn check_manifest(manifest: &Manifest) -> Result<(), FormatError> {
    let what = MEMBER_MANIFEST;
    check_version("codelet manifest", manifest.version)?;
    check_page_size(what, manifest.page_size)?;
    if manifest.invocation == 0 {
        return Err(invalid(what, "invocation", 0, "invocations count from 1"));
    }
    check_lists(manifest)?;
    let table = manifest.pages.checked_mul(RECORD_LENGTH);
    let mut known: BTreeMap<String, Option<u64>> = BTreeMap::from([
        (MEMBER_TABLE.into(), table),
        (MEMBER_ENTRY.into(), None),
        (MEMBER_EXIT.into(), None),
        (MEMBER_CODE.into(), None),
    ]);
    if table.is_none() {
        return Err(invalid(
            what,
            "pages",
            manifest.pages,
            "its table's size overflows",
        ));
    }
    if let Some(trace) = &manifest.trace {
        let Some(size) = trace.pages.checked_mul(TRACE_LENGTH) else {
            return Err(invalid(
                what,
                "trace.pages",
                trace.pages,
                "the trace's size overflows",
            ));
        };
        known.insert(MEMBER_TRACE.into(), Some(size));
    }
    if let Some(answers) = &manifest.answers {
        if answers.bytes > ANSWERS_MOST {
            return Err(invalid(
                what,
                "answers.bytes",
                answers.bytes,
                "a capture keeps 16 MiB of them at most",
            ));
        }
        if answers.bytes > 0 {
            known.insert(MEMBER_ANSWERS.into(), Some(answers.bytes));
        }
    }
    if let Some(tls) = &manifest.image.tls {
        if !tls.align.is_power_of_two() {
            return Err(invalid(
                what,
                "tls.align",
                tls.align,
                "it is a power of two",
            ));
        }
        for variable in &tls.variables {
            if variable
                .offset
                .checked_add(variable.size)
                .is_none_or(|end| end > tls.size)
            {
                return Err(invalid(
                    what,
                    "tls.variables",
                    &variable.name,
                    "it lies outside the block",
                ));
            }
        }
        known.insert(MEMBER_TLS_ENTRY.into(), Some(tls.size));
        known.insert(MEMBER_TLS_EXIT.into(), Some(tls.size));
        known.insert(MEMBER_TLS_START.into(), Some(tls.size));
        let threads = manifest
            .openmp
            .as_ref()
            .map_or(0, |o| o.blocks.len() as u64);
        let Some(size) = tls.size.checked_mul(threads) else {
            return Err(invalid(
                what,
                "openmp.blocks",
                threads,
                "the blocks' size overflows",
            ));
        };
        if threads > 0 {
            known.insert(MEMBER_TLS_TEAM.into(), Some(size));
        }
    }
    for unit in &manifest.units {
        let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if unit.id.len() != UNIT_ID_LENGTH || !unit.id.bytes().all(hexadecimal) {
            return Err(invalid(
                what,
                "units.id",
                format!("{:?}", unit.id),
                "it is 32 hexadecimal digits",
            ));
        }
        if known.insert(unit.member(), None).is_some() {
            return Err(invalid(what, "units.id", &unit.id, "units are listed once"));
        }
    }
    if manifest
        .units
        .first()
        .is_none_or(|unit| unit.id != manifest.key.unit)
    {
        return Err(invalid(
            what,
            "units",
            &manifest.key.unit,
            "the region's own unit comes first",
        ));
    }
    for (start, end) in manifest
        .fresh
        .iter()
        .copied()
        .chain([manifest.heap, manifest.image.range])
        .chain(manifest.mappings.iter().map(|m| (m.start, m.end)))
        .chain(manifest.masks.iter().map(|m| (m.start, m.end)))
        .chain(manifest.freed.iter().copied())
    {
        if start > end {
            return Err(invalid(
                what,
                "range",
                format!("{start:#x}..{end:#x}"),
                "it ends before it starts",
            ));
        }
    }
    if manifest
        .members
        .first()
        .is_none_or(|member| member.name != MEMBER_TABLE)
    {
        let found = manifest
            .members
            .first()
            .map_or("nothing", |member| &member.name);
        return Err(invalid(what, "members", found, "pages.table comes first"));
    }
    let mut seen = BTreeSet::new();
    let mut total = 0u64;
    for member in &manifest.members {
        let Some(size) = known.get(&member.name) else {
            let name = format!("{:?}", member.name);
            return Err(invalid(
                what,
                "members.name",
                name,
                "the manifest calls for no such member",
            ));
        };
        if !seen.insert(&member.name) {
            return Err(invalid(
                what,
                "members.name",
                &member.name,
                "members are listed once",
            ));
        }
        if size.is_some_and(|size| size != member.size) {
            let value = format!("{} for {}", member.size, member.name);
            return Err(invalid(
                what,
                "members.size",
                value,
                "the manifest's counts ask for another size",
            ));
        }
        total = total
            .checked_add(member.size)
            .ok_or_else(|| invalid(what, "members.size", member.size, "the sum overflows"))?;
    }
    if let Some(missing) = known.keys().find(|name| !seen.contains(name)) {
        return Err(invalid(what, "members", missing, "this member is missing"));
    }
    Ok(())
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
