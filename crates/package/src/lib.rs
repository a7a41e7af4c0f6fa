//! Makes a codelet of a raw capture, the images on disk and the store's units.
//!
//! | module | what |
//! |---|---|
//! | [`raw`] | the raw capture on disk |
//! | [`elf`] | what is needed of an image's file |
//! | [`program`] | the loaded images; the one that holds the region |
//! | [`symbols`] | variables and functions by unit |
//! | [`library`] | what captured words mean in libraries |
//! | [`streams`] | the C library's streams, and what waits in them |
//! | [`reach`] | which units a replay compiles, what runs as captured |
//! | [`settle`] | what its link needs beside that |
//! | [`elsewhere`] | what a replay cannot do of the program's other images |
//! | [`pages`] | which pages are kept |
//! | [`thread`] | the captured thread: its control block and thread-local variables |
//! | [`io`] | packages as files |
//! | [`mod@machine`] | this machine, and whether it can run a codelet |

mod elf;
mod elsewhere;
mod error;
pub mod io;
mod library;
mod machine;
mod pages;
mod program;
pub mod raw;
mod reach;
mod settle;
mod streams;
mod symbols;
mod thread;

pub use error::PackError;
pub use machine::{Misfit, fits, lacks, machine};

use cere_format::FormatError;
use cere_format::abi::HOOK_OFFSET;
use cere_format::build::{Region, Unit};
use cere_format::capture::{Mapping, OpenMp, PAGE_CODE, PAGE_FOREIGN, RegionEnd};
use cere_format::clibrary::OPTIONS;
use cere_format::package::*;
use cere_format::replay::left_out;
use cere_format::store::Store;
use cere_format::system::STREAMS;
use io::{NewMember, encode_table, write_package};
use pages::Pages;
use program::{Loaded, RegionImage};
use raw::{Kept, Raw};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Offset of [`cere_format::abi::RegionDescriptor::scratch`].
const SCRATCH_OFFSET: usize = std::mem::offset_of!(cere_format::abi::RegionDescriptor, scratch);

/// What a package is made of.
#[derive(Debug, Clone, Copy)]
pub struct PackInput<'a> {
    /// The store that holds the units.
    pub store: &'a Store,
    /// Metadata of the raw capture, `<n>.json`; its other files lie beside it.
    pub raw: &'a Path,
    /// The region's display name.
    pub region_name: &'a str,
    /// The codelet's name.
    pub name: &'a str,
    /// The run that the capture is of.
    pub run: Option<&'a CapturedRun>,
    /// The undisturbed time of the invocation, if it is known.
    pub in_vivo: Option<InVivo>,
    /// The performance class that the invocation stands for, if it was chosen for one.
    pub represents: Option<Represents>,
    /// The file to write.
    pub destination: &'a Path,
}

/// Makes the package and gives its manifest. Nothing is left at the destination after an error.
pub fn pack(input: &PackInput<'_>) -> Result<Manifest, PackError> {
    let raw = Raw::open(input.raw, input.region_name)?;
    let capture = &raw.capture;
    let images = program::load(&raw)?;
    let image = RegionImage::find(&raw, &images, input.store)?;
    let mut functions = image.functions(&images, &raw)?;
    let mut masks = masks(&raw, &images)?;
    let mut variables = image.variables(&images)?;
    for variable in &mut variables {
        variable.untouched = !raw.holds(variable.address, variable.size);
    }
    masks.extend(openmp_words(&variables, &image, &images, input.store)?);
    let locks = capture.openmp.iter().flat_map(|o| &o.lock_words);
    masks.extend(locks.map(|at| mask((*at, at + 8), left_out::OPENMP)));
    let probes: Vec<(u64, u64)> = masks.iter().map(|m| (m.start, m.end)).collect();
    let frames = capture.entry.frames;
    masks.extend(frames.map(|at| mask((at, capture.entry.stack_pointer), left_out::OWN_STACK)));

    let mut libraries = library::Symbols::collect(&raw, &images)?;
    let mut locals = thread::Locals::find(&raw, &images, &image)?;
    let without_ir = image.without_ir(&images)?;
    let starts: HashSet<u64> = functions
        .iter()
        .chain(without_ir.iter().map(|(_, f)| f))
        .map(|f| f.address)
        .collect();
    let range = image.loaded.image.range;
    let (kept, pointed) = keep_pages(&raw, &images, &probes, &starts, |at, value, foreign| {
        libraries.word(at, value, foreign);
        locals.word(at, value, foreign);
    })?;
    let reach::Reached {
        units,
        captured,
        places,
    } = reach::reach(&raw, &images, &image, &functions, &without_ir, &pointed);
    let refuse = |reason| PackError::Refused {
        region: input.region_name.into(),
        reason,
    };
    let (mut tls, blocks) = thread::block(&raw, &image)?;
    let known = settle::Known {
        variables: &variables,
        functions: &functions,
        thread_locals: tls.as_ref().map_or(&[], |t| &t.variables),
    };
    let settled = settle::settle(&raw, &images, &image, &units, &known)?.map_err(refuse)?;
    let lacking = elsewhere::thread_locals(&raw, &images, range, &settled.absent, &places)?;
    let on_stack = units.iter().find_map(|u| settle::code_on_stack(u));
    if let Some(reason) = lacking.or(on_stack) {
        return Err(refuse(reason));
    }
    variables.extend(settled.variables);
    functions.extend(settled.functions);
    if let Some(tls) = &mut tls {
        tls.variables.extend(settled.thread_locals);
    }
    let apart = tls
        .as_ref()
        .map(|tls| (tls.address, tls.address + tls.size));
    masks.extend(apart.map(|range| mask(range, left_out::APART)));
    let copied = program::copied(&images)?;
    let apart = copied.iter().filter(|(name, ..)| is_compared_apart(name));
    let apart = apart.map(|(_, at, size)| (*at, at + size));
    masks.extend(apart.map(|range| mask(range, left_out::LIBRARY)));
    let streams = streams::Streams::find(&images)?;
    let buffers = streams.buffers(&raw)?.into_iter();
    masks.extend(buffers.map(|range| mask(range, left_out::STREAM)));
    let (mut answers, mut answer_list) = (capture.answers.clone(), raw.answers.clone());
    if let Some(answers) = &mut answers {
        streams.describe(&raw, answers, &mut answer_list)?;
    }
    let library_symbols = libraries.finish();
    let (linked, library_directories) = library::linked(&images)?;

    let own: &Unit = units.first().copied().ok_or_else(|| PackError::NoRegion {
        key: capture.key.clone(),
        images: image.loaded.image.path.display().to_string(),
    })?;
    let region = captured_region(own, capture.key.index, input.store)?;
    let mut manifest = Manifest {
        version: PACKAGE_VERSION,
        name: input.name.into(),
        region_name: input.region_name.into(),
        region,
        key: capture.key.clone(),
        invocation: capture.invocation,
        machine: machine(),
        run: input.run.cloned(),
        in_vivo: input.in_vivo,
        represents: input.represents,
        trace: capture.trace.clone(),
        openmp: openmp(&raw, &images, tls.is_some())?,
        answers,
        c_library: capture.c_library.clone(),
        page_size: capture.page_size,
        entry: capture.entry,
        unwound: capture.end == RegionEnd::Unwound,
        image: PackageImage {
            name: file_name(&image.loaded.image.path),
            range,
            low: range.1 <= 1 << 31,
            shared: range != images[0].image.range,
            tls,
        },
        units: units.iter().map(|unit| package_unit(unit)).collect(),
        variables,
        functions,
        absent: settled.absent,
        labels: image.labels(&units),
        captured_code: Some(captured),
        mappings: mappings(&raw, &library_symbols),
        library_symbols,
        libraries: linked,
        library_directories,
        fresh_libraries: library::fresh(&images)?,
        copied: copied.into_iter().map(|(name, at, _)| (name, at)).collect(),
        frames: program::frame_tables(&raw, &images)?,
        fresh: capture.fresh.clone(),
        heap: capture.heap,
        interposed: capture.interposed.clone(),
        program_break: capture.program_break,
        freed: capture.freed.clone(),
        thread: locals.finish(&raw)?,
        masks,
        system_calls: capture.system_calls.clone(),
        pages: 0,
        members: Vec::new(),
    };
    let members = members(
        &raw,
        &image,
        &manifest.units,
        input.store,
        Own {
            kept: &kept,
            blocks,
            answers: answer_list,
        },
    )?;
    write_package(input.destination, &mut manifest, &members)?;
    Ok(manifest)
}

/// Reduces the pages, and shows the words of those at entry that hold no code to `look`: address, value, whether they are a library's.
/// The addresses of `starts` that these words hold.
fn keep_pages(
    raw: &Raw,
    images: &[Loaded],
    zeroed: &[(u64, u64)],
    starts: &HashSet<u64>,
    mut look: impl FnMut(u64, u64, bool),
) -> Result<(Pages, HashSet<u64>), PackError> {
    let program = images.iter().filter(|l| l.image.program);
    let program: Vec<(u64, u64)> = program.map(|l| l.image.range).collect();
    let mut pointed = HashSet::new();
    let kept = pages::reduce(raw, zeroed, |record, page| {
        if record.flags & PAGE_CODE != 0 {
            return;
        }
        let foreign = record.flags & PAGE_FOREIGN != 0;
        for (number, word) in page.as_chunks::<8>().0.iter().enumerate() {
            let value = u64::from_le_bytes(*word);
            look(record.address + 8 * number as u64, value, foreign);
            for address in addresses_in(value) {
                let inside = |r: &(u64, u64)| r.0 <= address && address < r.1;
                if program.iter().any(inside) && starts.contains(&address) {
                    pointed.insert(address);
                }
            }
        }
    })?;
    Ok((kept, pointed))
}

fn captured_region(own: &Unit, index: u32, store: &Store) -> Result<Region, FormatError> {
    let region = own.regions.iter().find(|r| r.index == index);
    region.cloned().ok_or_else(|| FormatError::Invalid {
        what: store.unit_record(&own.id).display().to_string(),
        field: "regions",
        value: format!("without index {index}"),
        why: "the captured region is one of its regions: build again with `cere instrument`",
    })
}

/// What a package holds of the invocation itself.
struct Own<'a> {
    kept: &'a Pages,
    /// The thread-local block at entry and at exit.
    blocks: Option<(Vec<u8>, Vec<u8>)>,
    answers: Vec<u8>,
}

/// The members in their order.
fn members<'a>(
    raw: &'a Raw,
    image: &RegionImage<'_>,
    units: &[PackageUnit],
    store: &Store,
    own: Own<'a>,
) -> Result<Vec<NewMember<'a>>, PackError> {
    let bytes = |pages: &Kept| pages.indices.len() as u64 * raw.capture.page_size;
    let (entry, exit) = (&own.kept.entry, &own.kept.exit);
    let mut members = vec![
        NewMember::bytes(MEMBER_TABLE, encode_table(&own.kept.table)),
        NewMember::stream(MEMBER_ENTRY, bytes(entry), || Ok(entry.stream(&raw.entry))),
        NewMember::stream(MEMBER_EXIT, bytes(exit), || Ok(exit.stream(&raw.exit))),
    ];
    if raw.capture.trace.is_some() {
        members.push(NewMember::bytes(MEMBER_TRACE, raw.trace.as_slice()));
    }
    if !own.answers.is_empty() {
        members.push(NewMember::bytes(MEMBER_ANSWERS, own.answers));
    }
    let code = image.region_code(raw.capture.key.index);
    members.push(NewMember::bytes(MEMBER_CODE, code));
    if let Some((entry, exit)) = own.blocks {
        let start = image.loaded.elf.template_bytes()?;
        members.push(NewMember::bytes(MEMBER_TLS_ENTRY, entry));
        members.push(NewMember::bytes(MEMBER_TLS_EXIT, exit));
        members.push(NewMember::bytes(MEMBER_TLS_START, start));
        if !raw.blocks.is_empty() {
            members.push(NewMember::bytes(MEMBER_TLS_TEAM, raw.blocks.as_slice()));
        }
    }
    for unit in units {
        let path = store.unit_ir(&unit.id);
        if !path.is_file() {
            return Err(PackError::Stale {
                image: image.loaded.image.path.clone(),
                unit: unit.id.clone(),
                store: store.root().into(),
            });
        }
        members.push(NewMember::file(unit.member(), path));
    }
    Ok(members)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

fn package_unit(unit: &Unit) -> PackageUnit {
    PackageUnit {
        id: unit.id.clone(),
        source: unit.source.display().to_string(),
        language: unit.language,
        codegen: unit.command.codegen.clone(),
        overridden: unit.weak.clone(),
    }
}

/// The words of region descriptors that the preload library writes, where their pages were captured: a replay's
/// regions are dormant.
fn masks(raw: &Raw, images: &[Loaded]) -> Result<Vec<Mask>, PackError> {
    let mut masks = Vec::new();
    for loaded in images.iter().filter(|l| l.image.instrumented) {
        for descriptor in program::descriptors(loaded)? {
            if raw.index(descriptor).is_none() {
                continue;
            }
            for offset in [HOOK_OFFSET, SCRATCH_OFFSET] {
                let start = descriptor + offset as u64;
                masks.push(mask((start, start + 8), left_out::PROBE));
            }
        }
    }
    Ok(masks)
}

/// The OpenMP runtime, by its soname; `blocks`: the region's image has thread-local variables.
fn openmp(raw: &Raw, images: &[Loaded], blocks: bool) -> Result<Option<OpenMp>, PackError> {
    let Some(mut openmp) = raw.capture.openmp.clone() else {
        return Ok(None);
    };
    if !blocks {
        openmp.blocks.clear();
    }
    let is = |l: &&Loaded| l.image.path.as_os_str() == openmp.runtime.as_str();
    if let Some(loaded) = images.iter().find(is) {
        openmp.runtime = loaded.elf.soname()?;
    }
    Ok(Some(openmp))
}

/// Variables in which the OpenMP runtime keeps what belongs to the threads that run, as the units of the program's images name them.
/// A replay's runtime finds them as they are before their first use.
fn openmp_words(
    variables: &[Variable],
    image: &RegionImage<'_>,
    images: &[Loaded],
    store: &Store,
) -> Result<Vec<Mask>, PackError> {
    let others = program::units_beside(images, image.loaded, store)?;
    let mut named = HashMap::new();
    for unit in image.units.iter().chain(&others) {
        let defines: HashSet<&str> = unit.defines.iter().map(String::as_str).collect();
        for word in &unit.runtime_words {
            let local = !defines.contains(word.symbol.as_str());
            named.insert(
                (word.symbol.as_str(), local.then_some(unit.id.as_str())),
                word.bytes,
            );
        }
    }
    let of_runtime = |v: &Variable| {
        let bytes = named.get(&(v.name.as_str(), v.unit.as_deref()))?;
        Some(mask(
            (v.address, v.address + v.size.min(*bytes)),
            left_out::OPENMP,
        ))
    };
    Ok(variables.iter().filter_map(of_runtime).collect())
}

/// Whether a library's variable, which the linker may have copied into the program, is compared by what it says, not as memory:
/// all others hide results.
fn is_compared_apart(name: &str) -> bool {
    let stream = STREAMS.iter().any(|stream| stream.0 == name);
    stream || OPTIONS.iter().any(|option| option.0.to_str() == Ok(name))
}

fn mask((start, end): (u64, u64), reason: &str) -> Mask {
    let reason = reason.into();
    Mask { start, end, reason }
}

/// The captured mappings, and pages for jumps to where the preload library had put functions of its own
/// (`malloc`) in a library's place: its mappings are not among the captured ones.
fn mappings(raw: &Raw, symbols: &[LibrarySymbol]) -> Vec<Mapping> {
    let mut mappings = raw.capture.mappings.clone();
    // A file that the program mapped may have any name.
    for mapping in &mut mappings {
        mapping.path = cere_format::untrusted::visible(&mapping.path);
    }
    let page_size = raw.capture.page_size;
    for symbol in symbols
        .iter()
        .filter(|s| s.kind == LibrarySymbolKind::Function)
    {
        // A jump takes up to 14 bytes.
        for at in [symbol.address, symbol.address + 13] {
            if !mappings.iter().any(|m| m.start <= at && at < m.end) {
                let start = at & !(page_size - 1);
                mappings.push(Mapping {
                    start,
                    end: start + page_size,
                    permissions: "r-xp".into(),
                    offset: 0,
                    path: "[interposed functions]".into(),
                    huge: false,
                });
            }
        }
    }
    mappings.sort_by_key(|m| m.start);
    mappings
}
