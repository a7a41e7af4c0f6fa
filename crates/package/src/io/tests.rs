use super::layout::header;
use super::write::append;
use super::*;
use cere_format::FormatError;
use cere_format::build::{Language, Region};
use cere_format::capture::{
    EntryState, PAGE_TOUCHED, PageRecord, PageTrace, TRACE_THREAD_SHIFT, TRACE_WRITTEN,
};
use cere_format::capture::{PAGE_ENTRY_STORED, PAGE_EXIT_STORED, PAGE_WRITTEN};
use cere_format::hexadecimal;
use cere_format::package::{
    MEMBER_CODE, MEMBER_ENTRY, MEMBER_EXIT, MEMBER_MANIFEST, MEMBER_TABLE, MEMBER_TLS_ENTRY,
    MEMBER_TLS_EXIT, MEMBER_TLS_START, MEMBER_TRACE,
};
use cere_format::package::{
    Machine, Manifest, Member, PACKAGE_VERSION, PackageImage, PackageUnit, TlsBlock,
};
use cere_format::profile::RegionKey;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::io::{Cursor, Write};
use std::path::Path;

const LIMIT: u64 = 1 << 24;

fn sample() -> (Manifest, Vec<NewMember<'static>>) {
    let id = "0123456789abcdef0123456789abcdef".to_string();
    let manifest = Manifest {
        of_thread: None,
        beside: 0,
        openmp: None,
        answers: None,
        mpi: None,
        c_library: None,
        version: PACKAGE_VERSION,
        name: "f:1:1".into(),
        region_name: "f:1".into(),
        region: Region {
            kind: Default::default(),
            index: 0,
            function: "f".into(),
            symbol: "f".into(),
            file: "/f.c".into(),
            line: 1,
            ordinal: 1,
            outlined: true,
            reason: None,
            live_ins: vec![],
            exits: 1,
            inside: None,
        },
        key: RegionKey {
            unit: id.clone(),
            index: 0,
        },
        invocation: 1,
        machine: Machine {
            architecture: "x86_64".into(),
            cpu: "c".into(),
            features: vec![],
            kernel: "k".into(),
        },
        run: None,
        in_vivo: None,
        represents: None,
        trace: None,
        page_size: 4096,
        entry: EntryState {
            stack_pointer: 0,
            arguments: 0,
            arguments_size: 0,
            mxcsr: 0,
            x87_control: 0,
            frames: None,
        },
        unwound: false,
        image: PackageImage {
            name: "a.out".into(),
            range: (0x1000, 0x9000),
            low: true,
            shared: false,
            tls: Some(TlsBlock {
                size: 8,
                align: 8,
                address: 0x7000,
                variables: vec![],
            }),
        },
        units: vec![PackageUnit {
            id: id.clone(),
            source: "/f.c".into(),
            language: Language::C,
            codegen: vec![],
            overridden: vec![],
        }],
        variables: vec![],
        functions: vec![],
        library_symbols: vec![],
        libraries: vec![],
        library_directories: vec![],
        absent: Vec::new(),
        fresh_libraries: Vec::new(),
        copied: Vec::new(),
        frames: Vec::new(),
        labels: vec![],
        captured_code: None,
        mappings: vec![],
        fresh: vec![],
        heap: (0, 0),
        interposed: vec![],
        program_break: 0,
        freed: vec![],
        thread: None,
        masks: vec![],
        system_calls: vec![],
        pages: 0,
        members: vec![],
    };
    let pages = [
        PageRecord {
            address: 0x1000,
            flags: PAGE_TOUCHED | PAGE_ENTRY_STORED,
            thread: 0,
        },
        PageRecord {
            address: 0x2000,
            flags: PAGE_TOUCHED | PAGE_WRITTEN | PAGE_ENTRY_STORED | PAGE_EXIT_STORED,
            thread: 0,
        },
        PageRecord {
            address: 0x5000,
            flags: PAGE_TOUCHED,
            thread: 0,
        },
    ];
    let members = vec![
        NewMember::bytes(MEMBER_TABLE, encode_table(&pages)),
        NewMember::bytes(MEMBER_ENTRY, vec![7; 8192]),
        NewMember::bytes(MEMBER_EXIT, vec![9; 4096]),
        NewMember::bytes(MEMBER_TLS_ENTRY, vec![1; 8]),
        NewMember::bytes(MEMBER_TLS_EXIT, vec![2; 8]),
        NewMember::bytes(MEMBER_TLS_START, vec![0; 8]),
        NewMember::bytes(MEMBER_CODE, vec![0xc3]),
        NewMember::bytes(format!("units/{id}.bc"), b"BC".to_vec()),
    ];
    (manifest, members)
}

fn sample_bytes() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.codelet");
    let (mut manifest, members) = sample();
    write_package(&path, &mut manifest, &members).unwrap();
    std::fs::read(path).unwrap()
}

fn read(bytes: &[u8]) -> Result<Package, FormatError> {
    read_package_from(&mut Cursor::new(bytes), Path::new("x.codelet"), LIMIT)
}

/// A package around any archive, its preamble and frame right.
fn wrap(archive: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(archive).unwrap();
    let rest = encoder.finish().unwrap();
    [
        header(
            PACKAGE_VERSION,
            rest.len() as u64,
            Sha256::digest(&rest).into(),
        ),
        rest,
    ]
    .concat()
}

fn archive_of(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(&bytes[HEADER_LENGTH as usize..]).unwrap()
}

/// A package from a manifest and members that may not fit each other.
fn lying(change: impl FnOnce(&mut Manifest, &mut Vec<NewMember<'static>>)) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (mut manifest, mut members) = sample();
    write_package(&directory.path().join("x"), &mut manifest, &members).unwrap();
    change(&mut manifest, &mut members);
    let mut archive = tar::Builder::new(Vec::new());
    let json = serde_json::to_vec(&manifest).unwrap();
    append(
        &mut archive,
        MEMBER_MANIFEST,
        json.len() as u64,
        &mut json.as_slice(),
    )
    .unwrap();
    for member in &members {
        let (mut reader, size, _) = member.open().unwrap();
        append(&mut archive, &member.name, size, &mut reader).unwrap();
    }
    wrap(&archive.into_inner().unwrap())
}

#[test]
fn round_trip_in_memory_and_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.codelet");
    let (mut manifest, members) = sample();
    write_package(&path, &mut manifest, &members).unwrap();
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        1,
        "no temporary file stays"
    );
    let package = read_package(&path, LIMIT).unwrap();
    assert_eq!(package.pages.len(), 3);
    assert_eq!(package.member(MEMBER_EXIT), [9; 4096]);
    assert_eq!(package.manifest.members, manifest.members);
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    unpack_package(&path, &out, LIMIT).unwrap();
    assert_eq!(std::fs::read(out.join(MEMBER_ENTRY)).unwrap(), [7; 8192]);
    assert_eq!(
        std::fs::read(out.join(manifest.units[0].member())).unwrap(),
        b"BC"
    );
    assert_eq!(read_manifest(&path).unwrap().name, "f:1:1");
    assert!(read_package(&path, 100).is_err(), "the limit holds");
}

#[test]
fn ordinary_tools_open_it() {
    let archive = archive_of(&sample_bytes());
    let mut archive = tar::Archive::new(archive.as_slice());
    let first = archive.entries().unwrap().next().unwrap().unwrap();
    assert_eq!(first.path().unwrap().to_str(), Some(MEMBER_MANIFEST));
    // The skippable frame is skipped by any zstd.
    assert!(zstd::decode_all(sample_bytes().as_slice()).unwrap().len() > 8192);
}

#[test]
fn every_flipped_byte_is_an_error() {
    let good = sample_bytes();
    for position in 0..good.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[position] ^= flip;
            assert!(read(&bad).is_err(), "byte {position} ^ {flip:#x}");
        }
    }
}

#[test]
fn every_truncation_and_an_extension_is_an_error() {
    let good = sample_bytes();
    for length in 0..good.len() {
        assert!(read(&good[..length]).is_err(), "cut to {length}");
    }
    assert!(read(&[good.as_slice(), &[0]].concat()).is_err());
    let archive = archive_of(&good);
    for length in 0..archive.len() {
        if length % 61 == 0 || length < 1024 || length + 1100 > archive.len() {
            assert!(
                read(&wrap(&archive[..length])).is_err(),
                "archive cut to {length}"
            );
        }
    }
}

#[test]
fn versions_and_kinds_are_told_apart() {
    let mut bytes = sample_bytes();
    bytes[20] = 9;
    assert!(matches!(
        read(&bytes),
        Err(FormatError::TooNew { found: 9, .. })
    ));
    for old in 0..PACKAGE_VERSION {
        bytes[20] = old as u8;
        let error = read(&bytes).unwrap_err();
        assert!(matches!(error, FormatError::TooOld { found, .. } if found == old));
        assert!(error.to_string().contains("again"), "{error}");
    }
    assert!(matches!(
        read(b"#!/bin/sh"),
        Err(FormatError::WrongMagic { .. })
    ));
    assert!(matches!(
        read(&bytes[..30]),
        Err(FormatError::TooShort { .. })
    ));
    let newer = lying(|manifest, _| manifest.version = PACKAGE_VERSION + 1);
    assert!(matches!(read(&newer), Err(FormatError::TooNew { .. })));
}

#[test]
fn lies_are_errors() {
    let table = |pages: &[PageRecord]| {
        let bytes = encode_table(pages);
        lying(|manifest, members| {
            manifest.pages = bytes.len() as u64 / 16;
            manifest.members[0].size = bytes.len() as u64;
            manifest.members[0].sha256 = hexadecimal(&Sha256::digest(&bytes));
            members[0] = NewMember::bytes(MEMBER_TABLE, bytes);
        })
    };
    let page = |address, flags| PageRecord {
        address,
        flags,
        thread: 0,
    };
    let (e, x, w) = (PAGE_ENTRY_STORED, PAGE_EXIT_STORED, PAGE_WRITTEN);
    assert!(read(&lying(|_, _| {})).is_ok());
    assert!(read(&table(&[page(0x1000, e), page(0x2000, e | x | w)])).is_ok());
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("order", table(&[page(0x2000, e), page(0x1000, e | x | w)])),
        ("twice", table(&[page(0x1000, e), page(0x1000, e | x | w)])),
        (
            "alignment",
            table(&[page(0x1001, e), page(0x2000, e | x | w)]),
        ),
        (
            "last page",
            table(&[page(0x1000, e), page(!0xfff, e | x | w)]),
        ),
        (
            "flag",
            table(&[page(0x1000, e | 512), page(0x2000, e | x | w)]),
        ),
        (
            "absent and full",
            table(&[page(0x1000, e | 256), page(0x2000, e | x | w)]),
        ),
        (
            "exit of an unwritten page",
            table(&[page(0x1000, e), page(0x2000, e | x)]),
        ),
        (
            "entry count",
            table(&[page(0x1000, 0), page(0x2000, e | x | w)]),
        ),
        ("exit count", table(&[page(0x1000, e), page(0x2000, e)])),
        ("pages", lying(|m, _| m.pages = 1 << 60)),
        ("pages overflow", lying(|m, _| m.pages = u64::MAX)),
        ("page size", lying(|m, _| m.page_size = 0)),
        ("huge member", lying(|m, _| m.members[1].size = 1 << 62)),
        (
            "overflowing members",
            lying(|m, _| m.members.iter_mut().skip(1).for_each(|m| m.size = u64::MAX)),
        ),
        (
            "member sha",
            lying(|m, _| m.members[2].sha256 = "0".repeat(64)),
        ),
        (
            "member missing from the archive",
            lying(|_, members| {
                members.pop();
            }),
        ),
        (
            "member missing from the manifest",
            lying(|m, _| {
                m.members.pop();
            }),
        ),
        (
            "unlisted member",
            lying(|_, members| members.push(NewMember::bytes("x", vec![]))),
        ),
        (
            "foreign name",
            lying(|m, members| {
                m.members[2].name = "etc/passwd".into();
                members[2].name = "etc/passwd".into();
            }),
        ),
        ("unit id", lying(|m, _| m.units[0].id = "../../x".into())),
        ("no units", lying(|m, _| m.units.clear())),
        ("tls", lying(|m, _| m.image.tls = None)),
        (
            "limit",
            lying(|m, members| {
                m.members[5].size = LIMIT + 1;
                members[5] = NewMember::bytes(MEMBER_CODE, vec![0; LIMIT as usize + 1]);
            }),
        ),
    ];
    for (name, bytes) in cases {
        assert!(read(&bytes).is_err(), "{name}");
    }
}

/// A package with a page trace of these entries; the manifest tells of `pages`.
fn traced(entries: &[u64], pages: u64, listed: bool) -> Vec<u8> {
    let bytes = encode_trace(entries);
    lying(|manifest, members| {
        manifest.trace = listed.then(|| PageTrace {
            pages,
            touched: pages,
            slots: 64,
            faults: 100,
            began: "the program's start".into(),
            cut: None,
        });
        let member = Member {
            name: MEMBER_TRACE.into(),
            size: bytes.len() as u64,
            sha256: hexadecimal(&Sha256::digest(&bytes)),
        };
        manifest.members.insert(3, member);
        members.insert(3, NewMember::bytes(MEMBER_TRACE, bytes));
    })
}

#[test]
fn page_traces() {
    let entries = [0x5000, 0x1000 | TRACE_WRITTEN, 0x7fff_ffff_e000];
    let good = read(&traced(&entries, 3, true)).unwrap();
    let trace = decode_trace("t", good.member(MEMBER_TRACE), 4096, false).unwrap();
    assert_eq!(trace, entries);
    assert!(read(&traced(&[], 0, true)).is_ok());
    let cases = [
        ("alignment", traced(&[0x5008], 1, true)),
        ("thread", traced(&[0x5002], 1, true)),
        (
            "twice",
            traced(&[0x5000, 0x1000, 0x5000 | TRACE_WRITTEN], 3, true),
        ),
        ("last page", traced(&[!0xfff], 1, true)),
        ("fewer", traced(&entries, 4, true)),
        ("more", traced(&entries, 2, true)),
        ("overflow", traced(&entries, u64::MAX / 4, true)),
        ("not in the manifest", traced(&entries, 3, false)),
    ];
    for (name, bytes) in cases {
        assert!(read(&bytes).is_err(), "{name}");
    }
    let missing = lying(|manifest, _| {
        manifest.trace = Some(PageTrace {
            pages: 0,
            touched: 0,
            slots: 64,
            faults: 0,
            began: String::new(),
            cut: None,
        });
    });
    assert!(read(&missing).is_err());
    assert!(decode_trace("t", &[0; 12], 4096, false).is_err());
    let thread = (0x5000u64 | 7 << TRACE_THREAD_SHIFT).to_le_bytes();
    assert!(decode_trace("t", &thread, 4096, false).is_err());
    assert!(decode_trace("t", &thread, 4096, true).is_ok());
    assert!(decode_trace("t", &thread, 16384, true).is_err());
}

#[test]
fn nothing_is_left_when_a_write_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (mut manifest, mut members) = sample();
    members[5] = NewMember::file(MEMBER_CODE, directory.path().join("absent"));
    assert!(write_package(&directory.path().join("x"), &mut manifest, &members).is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

proptest! {
    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(read(&bytes).is_err());
        prop_assert!(read(&wrap(&bytes)).is_err());
    }

    /// Behind a right checksum, a changed byte of the archive is an error or changes nothing that counts.
    #[test]
    fn flips_behind_the_checksum_never_panic(position in 0usize..20000, flip in 1u8..) {
        let mut archive = archive_of(&traced(&[0x5000, 0x1000], 2, true));
        let position = position % archive.len();
        archive[position] ^= flip;
        let _ = read(&wrap(&archive));
    }

    #[test]
    fn any_table_round_trips(numbers in proptest::collection::btree_set(0u64..1 << 50, 0..50), flags in 0u32..256) {
        let flags = if flags & PAGE_WRITTEN == 0 { flags & !PAGE_EXIT_STORED } else { flags };
        let pages: Vec<_> = numbers.iter().map(|n| PageRecord { address: n * 4096, flags, thread: 0 }).collect();
        prop_assert_eq!(decode_table("t", &encode_table(&pages), 4096).unwrap(), pages);
    }
}
