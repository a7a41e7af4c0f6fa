//! `docs/formats.md` states the numbers that the code uses.

use cere_format::abi::*;
use cere_format::capture::*;
use cere_format::package::*;
use cere_format::profile_raw::*;
use cere_package::io::*;

const PAGE: &str = include_str!("../../../../docs/formats.md");

#[test]
fn the_page_states_the_numbers() {
    let flags = [
        PAGE_TOUCHED,
        PAGE_WRITTEN,
        PAGE_ENTRY_STORED,
        PAGE_EXIT_STORED,
        PAGE_CODE,
        PAGE_FOREIGN,
        PAGE_STACK,
        PAGE_FRESH,
        PAGE_ABSENT,
    ];
    assert_eq!(flags.iter().sum::<u32>(), PAGE_FLAGS);
    let text = |magic: u64| String::from_utf8(magic.to_le_bytes().to_vec()).unwrap();
    let header = size_of::<RawHeader>();
    let mut wanted = vec![
        format!("`{}`", text(UNIT_MAGIC)),
        format!("`{}`", text(REGION_MAGIC)),
        format!("`{}`", text(RAW_MAGIC)),
        format!("`{UNIT_SECTION}`, {} bytes", size_of::<UnitMarker>()),
        format!(
            "`{REGION_SECTION}`, {} bytes",
            size_of::<RegionDescriptor>()
        ),
        format!("| {HOOK_OFFSET} | 8 | hook"),
        format!("| 0 | header, {header} bytes |"),
        format!(
            "| {REGIONS_OFFSET} | regions, {} bytes",
            size_of::<RawRegion>()
        ),
        format!("| {NODES_OFFSET} | nodes, {} bytes", size_of::<RawNode>()),
        format!(
            "| {ACTIVE_OFFSET} | active entries, {} bytes",
            size_of::<RawActive>()
        ),
        format!(
            "| {PASSAGES_OFFSET} | passages, {} bytes",
            size_of::<RawPassage>()
        ),
        format!("| {THREADS_OFFSET} | blocks of threads, {THREAD_SIZE} bytes"),
        format!(
            "| {TRACES_OFFSET} | traces, {} bytes",
            size_of::<RawTrace>()
        ),
        format!(
            "{RAW_REGIONS} regions, {RAW_NODES} nodes, {RAW_DEPTH} active entries, {RAW_PASSAGES} passages, {RAW_THREADS} threads"
        ),
        format!("thread, {} bytes", size_of::<RawThread>()),
        format!(
            "from {TIMES_OFFSET} on its times of each region, {} bytes",
            size_of::<RawTimes>()
        ),
        format!("from {THREAD_ACTIVE_OFFSET} on {THREAD_DEPTH} active entries"),
        format!("| package | {PACKAGE_VERSION} |"),
        format!("| run plan, raw capture | {CAPTURE_VERSION} |"),
        format!("| 0 | 4 | `{SKIPPABLE_MAGIC:#010X}` |").replace("0X", "0x"),
        format!("| 4 | 4 | {PREAMBLE_LENGTH} |"),
        format!("a zstd skippable frame, {HEADER_LENGTH} bytes"),
        format!("at most {} MiB |", MANIFEST_LIMIT >> 20),
    ];
    wanted.extend(flags.iter().map(|flag| format!("| {flag} | ")));
    for member in [
        MEMBER_MANIFEST,
        MEMBER_TABLE,
        MEMBER_ENTRY,
        MEMBER_EXIT,
        MEMBER_TRACE,
        MEMBER_CODE,
        MEMBER_TLS_ENTRY,
        MEMBER_TLS_EXIT,
        MEMBER_TLS_START,
    ] {
        wanted.push(format!("`{member}`"));
    }
    let missing: Vec<_> = wanted
        .iter()
        .filter(|w| !PAGE.contains(w.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/formats.md lacks {missing:#?}");
}

/// Every field of the structures in JSON is on the page.
#[test]
fn the_page_names_the_fields() {
    let sources = [
        include_str!("../../../format/src/build.rs"),
        include_str!("../../../format/src/profile.rs"),
        include_str!("../../../format/src/capture.rs"),
        include_str!("../../../format/src/package.rs"),
        include_str!("../../../format/src/replay.rs"),
    ];
    // What one run hands to the pass, what processes of one command say to each other, and what is computed from other fields, is not
    // kept.
    let private = [
        "BindPlan",
        "BridgePlan",
        "CrossPlan",
        "KeepPlan",
        "KeptRequest",
        "OverRanks",
        "Piece",
        "SplitPlan",
        "SplitTeam",
        "Retarget",
        "TargetAttributes",
    ];
    let mut missing = Vec::new();
    let mut inside = "";
    for line in sources.iter().flat_map(|source| source.lines()) {
        if let Some(rest) = line.strip_prefix("pub struct ") {
            inside = rest.split(' ').next().unwrap_or("");
        }
        let Some((name, _)) = line
            .trim()
            .strip_prefix("pub ")
            .and_then(|l| l.split_once(": "))
        else {
            continue;
        };
        let name = name.trim_start_matches("r#");
        let field = name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        // The page table is binary.
        if field
            && inside != "PageRecord"
            && !private.contains(&inside)
            && !PAGE.contains(&format!("`{name}`"))
        {
            let quoted = format!("\"{name}\"");
            if !PAGE.contains(&quoted) {
                missing.push(format!("{inside}.{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "docs/formats.md lacks {missing:#?}");
}
