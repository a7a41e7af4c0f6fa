//! A manifest with every list filled, and packages around any members.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;

/// A unit's id.
pub const UNIT: &str = "0123456789abcdef0123456789abcdef";

/// A member's name and bytes.
pub type Member = (String, Vec<u8>);

/// Little-endian bytes of a page table's records.
fn table(pages: &[(u64, u32, u32)]) -> Vec<u8> {
    let record = |p: &(u64, u32, u32)| {
        [
            &p.0.to_le_bytes()[..],
            &p.1.to_le_bytes(),
            &p.2.to_le_bytes(),
        ]
        .concat()
    };
    pages.iter().flat_map(record).collect()
}

/// The members of the sample, the manifest left out.
pub fn members() -> Vec<Member> {
    let trace: [u64; 3] = [0x5000, 0x1000 | 1, 0x7fff_ffff_e000];
    let member = |name: &str, bytes: Vec<u8>| (name.to_owned(), bytes);
    vec![
        member(
            "pages.table",
            table(&[
                (0x1000, 5, 0),
                (0x2000, 15, 1),
                (0x5000, 1, 0),
                (0x7fff_ffff_e000, 65, 0),
            ]),
        ),
        member("pages.entry", vec![7; 8192]),
        member("pages.exit", vec![9; 4096]),
        member(
            "pages.trace",
            trace.iter().flat_map(|t| t.to_le_bytes()).collect(),
        ),
        member("region.code", vec![0xc3]),
        member("tls.entry", vec![1; 64]),
        member("tls.exit", vec![2; 64]),
        member("tls.start", vec![0; 64]),
        member("tls.team", vec![3; 128]),
        member(&format!("units/{UNIT}.bc"), b"BC\xc0\xde".to_vec()),
    ]
}

/// What the manifest says of members.
pub fn listed(members: &[Member]) -> Value {
    let digest = |bytes: &[u8]| {
        Sha256::digest(bytes)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<String>()
    };
    let entry = |(name, bytes): &Member| json!({"name": name, "size": bytes.len(), "sha256": digest(bytes)});
    members.iter().map(entry).collect()
}

/// The sample's manifest.
pub fn manifest() -> Value {
    json!({
        "version": 3, "name": "f@f.c:1:1", "region_name": "f@f.c:1",
        "region": {"kind": "loop", "index": 0, "function": "f", "symbol": "f", "file": "/f.c", "line": 1, "ordinal": 1,
            "outlined": true, "reason": null, "live_ins": [{"name": "n", "type": "i32", "output": false}, {"name": "p", "type": "ptr", "output": true}], "exits": 1},
        "key": {"unit": UNIT, "index": 0}, "invocation": 1,
        "machine": {"architecture": "x86_64", "cpu": "c", "features": ["sse2", "avx"], "kernel": "6.1"},
        "in_vivo": {"cycles": 1000, "seconds": 1e-6},
        "represents": {"classes": 2, "class": 1, "invocations": 7, "seconds": 0.5},
        "trace": {"pages": 3, "touched": 4, "slots": 64, "faults": 9, "began": "the program's start", "cut": null},
        "openmp": {"runtime": "libomp.so.5", "threads": 2,
            "locks": [{"address": 0x2008, "nested": false, "hint": 0, "held": 0}], "lock_words": [0x2010], "blocks": [1, 2]},
        "page_size": 4096,
        "entry": {"stack_pointer": 0x7fff_ffff_e000u64, "arguments": 0x7fff_ffff_e040u64, "arguments_size": 16, "mxcsr": 0x1f80,
            "x87_control": 0x37f},
        "unwound": false,
        "image": {"name": "a.out", "range": [0x1000, 0x9000], "low": true, "shared": false,
            "tls": {"size": 64, "align": 8, "address": 0x7000,
                "variables": [{"name": "t", "unit": null, "offset": 0, "size": 8}, {"name": "u", "unit": UNIT, "offset": 8, "size": 8}]}},
        "units": [{"id": UNIT, "source": "/f.c", "language": "c", "codegen": ["-O2", "-fPIC"]}],
        "variables": [{"name": "v", "unit": null, "address": 0x2000, "size": 64}, {"name": "w", "unit": UNIT, "address": 0x2040, "size": 8}],
        "functions": [{"name": "g", "unit": null, "address": 0x1000, "size": 32, "other_image": false, "ir": true}],
        "labels": [{"function": "g", "unit": null, "addresses": [0x1008, 0]}],
        "captured_code": [{"name": "h", "image": "a.out", "other_image": false}],
        "library_symbols": [{"address": 0x7f00_0000_1000u64, "library": "libc.so.6", "name": "environ", "symbol_version": "GLIBC_2.2.5",
            "kind": "variable", "words": [0x2008]},
            {"address": 0x7f00_0000_2000u64, "library": "libc.so.6", "name": "", "symbol_version": null, "kind": "function", "words": [],
            "place": {"offset": 0x2000, "build_id": "00ff"}}],
        "libraries": ["libc.so.6", "libm.so.6"], "library_directories": ["/opt/lib"],
        "mappings": [
            {"start": 0x1000, "end": 0x9000, "permissions": "rwxp", "offset": 0, "path": "/a.out", "huge": false},
            {"start": 0x7fff_fff0_0000u64, "end": 0x7fff_ffff_f000u64, "permissions": "rw-p", "offset": 0, "path": "[stack]", "huge": true}],
        "copied": [["stdout", 0x2000]],
        "frames": [{"range": [0x1000, 0x9000], "table": 0x2000}],
        "fresh": [[0x10000, 0x20000]], "heap": [0x1000_0000, 0x2000_0000],
        "c_library": [{"locale": [], "keys": [[1, 0x2000]], "random": {"address": 0x2000, "state": [0, 7]}, "series": [1, 2, 3], "options": [1, 1, 63, 0]},
            {"locale": [], "keys": [], "random": null, "series": []}],
        "interposed": [["malloc", 0x7e00_0000_1000u64]],
        "program_break": 0x20000, "freed": [[0x2010, 0x2020]],
        "thread": {"pointer": 0x7040, "number": 7, "guards": [5, 6],
            "locals": [{"library": "libc.so.6", "address": 0x6f00, "size": 128}], "words": [0x2008]},
        "masks": [{"start": 0x2000, "end": 0x2008, "reason": "probe slot"}],
        "system_calls": [{"number": 1, "name": "write", "count": 2}],
        "pages": 4, "members": listed(&members()),
    })
}

/// The package's file around an archive.
fn wrap(archive: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.write_all(archive).expect("memory");
    let rest = encoder.finish().expect("memory");
    let mut bytes = Vec::new();
    bytes.extend(0x184D_2A50u32.to_le_bytes());
    bytes.extend(56u32.to_le_bytes());
    bytes.extend(b"CERE-CODELET");
    bytes.extend(3u32.to_le_bytes());
    bytes.extend((rest.len() as u64).to_le_bytes());
    bytes.extend(Sha256::digest(&rest));
    bytes.extend(rest);
    bytes
}

/// A package of these members, with every checksum right; `claim` may lie about a member's size in the archive.
pub fn package(manifest: &[u8], members: &[Member], claim: Option<(usize, u64)>) -> Vec<u8> {
    let mut archive = Vec::new();
    let first = ("manifest.json", manifest);
    let others = members.iter().map(|m| (m.0.as_str(), m.1.as_slice()));
    for (number, (name, bytes)) in std::iter::once(first).chain(others).enumerate() {
        let mut header = tar::Header::new_ustar();
        let size = match claim {
            Some((at, size)) if at == number => size,
            _ => bytes.len() as u64,
        };
        header.set_size(size);
        header.set_mode(0o644);
        if header.set_path(name).is_err() {
            header.set_path("odd").expect("a short name");
        }
        header.set_cksum();
        archive.extend(header.as_bytes());
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    wrap(&archive)
}
