//! The steps from a raw capture to a codelet.

use crate::io::{NewMember, encode_table, write_package};
use crate::pages::{self, Pages};
use crate::program::{self, Loaded, RegionImage};
use crate::raw::{Kept, Raw};
use crate::reach::{self, Place, Reached};
use crate::settle::{self, Settled};
use crate::{PackError, elsewhere, library, machine, masks, streams, thread};
use cere_format::FormatError;
use cere_format::answers::Answers;
use cere_format::build::{Region, Unit};
use cere_format::capture::{Mapping, OpenMp, PAGE_CODE, PAGE_FOREIGN, RegionEnd};
use cere_format::package::*;
use cere_format::store::Store;
use std::collections::HashSet;
use std::path::Path;

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
    /// The thread that it was captured in, if that is not the program's first one.
    pub thread: Option<OfThread>,
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
    let images = program::load(&raw)?;
    let image = RegionImage::find(&raw, &images, input.store)?;
    let source = Source {
        input,
        raw: &raw,
        images: &images,
        image: &image,
    };
    let mut names = source.names()?;
    let mut masks = masks::zeroed(&raw, &images, &image, &names.variables, input.store)?;
    let without_ir = image.without_ir(&images)?;
    let walked = source.walk(&masks, &names.functions, &without_ir)?;
    let Reached {
        units,
        captured,
        places,
    } = reach::reach(
        &raw,
        &images,
        &image,
        &names.functions,
        &without_ir,
        &walked.pointed,
    );
    let (mut tls, blocks) = thread::block(&raw, &image)?;
    let settled = source.settle(&names, tls.as_ref(), &units, &places)?;
    names.variables.extend(settled.variables);
    names.functions.extend(settled.functions);
    if let Some(tls) = &mut tls {
        tls.variables.extend(settled.thread_locals);
    }
    let copied = program::copied(&images)?;
    let streams = streams::Streams::find(&images)?;
    masks.extend(masks::apart(&raw, tls.as_ref(), &copied, &streams)?);
    let (mut answers, mut answer_list) = (raw.capture.answers.clone(), raw.answers.clone());
    if let Some(answers) = &mut answers {
        streams.describe(&raw, answers, &mut answer_list)?;
    }
    let mut manifest = source.manifest(Parts {
        names,
        masks,
        units: &units,
        captured,
        tls,
        absent: settled.absent,
        answers,
        copied: copied.into_iter().map(|(name, at, _)| (name, at)).collect(),
        library_symbols: walked.library_symbols,
        thread: walked.thread,
    })?;
    let own = Own {
        kept: &walked.kept,
        blocks,
        answers: answer_list,
    };
    let members = members(&raw, &image, &manifest.units, input.store, own)?;
    write_package(input.destination, &mut manifest, &members)?;
    Ok(manifest)
}

/// What a codelet is made from.
struct Source<'a> {
    input: &'a PackInput<'a>,
    raw: &'a Raw,
    images: &'a [Loaded],
    image: &'a RegionImage<'a>,
}

/// What a replay may need by name.
struct Names {
    variables: Vec<Variable>,
    functions: Vec<Function>,
}

/// What the captured memory shows.
struct Walked {
    kept: Pages,
    /// Functions whose address is in it.
    pointed: HashSet<u64>,
    library_symbols: Vec<LibrarySymbol>,
    thread: Option<CapturedThread>,
}

/// What a manifest says beyond what stands in the raw capture.
struct Parts<'a> {
    names: Names,
    masks: Vec<Mask>,
    /// The units to compile, the region's own first.
    units: &'a [&'a Unit],
    captured: Vec<CapturedFunction>,
    tls: Option<TlsBlock>,
    absent: Vec<Absent>,
    answers: Option<Answers>,
    copied: Vec<(String, u64)>,
    library_symbols: Vec<LibrarySymbol>,
    thread: Option<CapturedThread>,
}

impl Source<'_> {
    /// Variables and functions that the units of the region's image define or use.
    fn names(&self) -> Result<Names, PackError> {
        let functions = self.image.functions(self.images, self.raw)?;
        let mut variables = self.image.variables(self.images)?;
        for variable in &mut variables {
            variable.untouched = !self.raw.holds(variable.address, variable.size);
        }
        Ok(Names {
            variables,
            functions,
        })
    }

    /// Reduces the pages, in which `zeroed` words are zeros, and follows the addresses in them.
    fn walk(
        &self,
        zeroed: &[Mask],
        functions: &[Function],
        without_ir: &[(&Loaded, Function)],
    ) -> Result<Walked, PackError> {
        let mut libraries = library::Symbols::collect(self.raw, self.images)?;
        let mut locals = thread::Locals::find(self.raw, self.images, self.image)?;
        let all = functions.iter().chain(without_ir.iter().map(|(_, f)| f));
        let starts: HashSet<u64> = all.map(|f| f.address).collect();
        let zeroed: Vec<(u64, u64)> = zeroed.iter().map(|m| (m.start, m.end)).collect();
        let look = |at, value, foreign| {
            libraries.word(at, value, foreign);
            locals.word(at, value, foreign);
        };
        let (kept, pointed) = keep_pages(self.raw, self.images, &zeroed, &starts, look)?;
        Ok(Walked {
            kept,
            pointed,
            library_symbols: libraries.finish(),
            thread: locals.finish(self.raw)?,
        })
    }

    /// What the link of a replay finds beside the `names`. Refuses a region that leads to what no replay can run.
    fn settle(
        &self,
        names: &Names,
        tls: Option<&TlsBlock>,
        units: &[&Unit],
        places: &[Place<'_>],
    ) -> Result<Settled, PackError> {
        let region = self.input.region_name;
        let known = settle::Known {
            variables: &names.variables,
            functions: &names.functions,
            thread_locals: tls.map_or(&[], |t| &t.variables),
        };
        let settled = settle::settle(region, self.raw, self.images, self.image, units, &known)?;
        let range = self.image.loaded.image.range;
        let lacking =
            elsewhere::thread_locals(self.raw, self.images, range, &settled.absent, places)?;
        let on_stack = || units.iter().find_map(|u| settle::code_on_stack(u));
        match lacking.or_else(on_stack) {
            None => Ok(settled),
            Some(reason) => Err(PackError::Refused {
                region: region.into(),
                reason,
            }),
        }
    }

    /// The manifest, without its members.
    fn manifest(&self, parts: Parts<'_>) -> Result<Manifest, PackError> {
        let (input, capture) = (self.input, &self.raw.capture);
        let own = *parts.units.first().ok_or_else(|| PackError::NoRegion {
            key: capture.key.clone(),
            images: self.image.loaded.image.path.display().to_string(),
        })?;
        let (libraries, library_directories) = library::linked(self.images)?;
        Ok(Manifest {
            version: PACKAGE_VERSION,
            name: input.name.into(),
            region_name: input.region_name.into(),
            region: captured_region(own, capture.key.index, input.store)?,
            key: capture.key.clone(),
            invocation: capture.invocation,
            of_thread: input.thread,
            beside: capture.beside,
            machine: machine(),
            run: input.run.cloned(),
            in_vivo: input.in_vivo,
            represents: input.represents,
            trace: capture.trace.clone(),
            openmp: openmp(self.raw, self.images, parts.tls.is_some())?,
            answers: parts.answers,
            mpi: capture.mpi.clone(),
            c_library: capture.c_library.clone(),
            page_size: capture.page_size,
            entry: capture.entry,
            unwound: capture.end == RegionEnd::Unwound,
            image: self.package_image(parts.tls),
            units: parts.units.iter().map(|unit| package_unit(unit)).collect(),
            variables: parts.names.variables,
            functions: parts.names.functions,
            absent: parts.absent,
            labels: self.image.labels(parts.units),
            captured_code: Some(parts.captured),
            mappings: mappings(self.raw, &parts.library_symbols),
            library_symbols: parts.library_symbols,
            libraries,
            library_directories,
            fresh_libraries: library::fresh(self.images)?,
            copied: parts.copied,
            frames: program::frame_tables(self.raw, self.images)?,
            fresh: capture.fresh.clone(),
            heap: capture.heap,
            interposed: capture.interposed.clone(),
            program_break: capture.program_break,
            freed: capture.freed.clone(),
            thread: parts.thread,
            masks: parts.masks,
            system_calls: capture.system_calls.clone(),
            pages: 0,
            members: Vec::new(),
        })
    }

    fn package_image(&self, tls: Option<TlsBlock>) -> PackageImage {
        let range = self.image.loaded.image.range;
        PackageImage {
            name: self.image.loaded.file_name(),
            range,
            low: range.1 <= 1 << 31,
            shared: range != self.images[0].image.range,
            tls,
        }
    }
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
    if raw.capture.mpi.is_some() {
        members.push(NewMember::bytes(MEMBER_MPI, raw.mpi.as_slice()));
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

fn package_unit(unit: &Unit) -> PackageUnit {
    PackageUnit {
        id: unit.id.clone(),
        source: unit.source.display().to_string(),
        language: unit.language,
        codegen: unit.command.codegen.clone(),
        overridden: unit.weak.clone(),
    }
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

/// The captured mappings, and pages for jumps to where the preload library had put functions of its own
/// (`malloc`) in a library's place: its mappings are not among the captured ones.
fn mappings(raw: &Raw, symbols: &[LibrarySymbol]) -> Vec<Mapping> {
    let mut mappings = raw.capture.mappings.clone();
    // A file that the program mapped may have any name.
    for mapping in &mut mappings {
        mapping.path = cere_format::untrusted::visible(&mapping.path);
    }
    let page_size = raw.capture.page_size;
    let symbols = symbols.iter();
    let functions = symbols.filter(|s| s.kind == LibrarySymbolKind::Function);
    let mpi = raw.capture.mpi.iter().flat_map(|mpi| &mpi.functions);
    let mpi = mpi.flat_map(|function| function.addresses.iter().copied());
    for address in functions.map(|s| s.address).chain(mpi) {
        // A jump takes up to 14 bytes.
        for at in [address, address + 13] {
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
