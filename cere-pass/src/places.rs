//! What becomes a region: the places of a module in the order of their indices, with the reasons of those that do not.

use crate::{ir, names, shim};
use cere_format::build::{CompileCommand, Language, Region, RegionKind};
use libc::c_void;
use llvm_sys::debuginfo::LLVMInstructionGetDebugLoc;
use llvm_sys::prelude::*;
use std::collections::HashSet;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// What becomes a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The loop with this header.
    Loop {
        /// The header.
        header: LLVMBasicBlockRef,
        /// How many loops it lies in, itself among them.
        depth: u32,
    },
    /// This call, which forks a team.
    Fork(LLVMValueRef),
    /// All of the function.
    Function,
}

/// What a module's calls lead to.
struct Reach(*mut c_void);

impl Reach {
    fn of(module: LLVMModuleRef) -> Self {
        // SAFETY: the module is live; the shim copies what it keeps.
        Self(unsafe { shim::cere_reach(module) })
    }
}

impl Drop for Reach {
    fn drop(&mut self) {
        // SAFETY: made by `of`, and nobody else's.
        unsafe { shim::cere_forget_reach(self.0) }
    }
}

/// A module before anything of it is outlined: calls leave their functions with the loops around them.
pub struct Survey<'a> {
    command: &'a CompileCommand,
    source: &'a Path,
    language: Language,
    /// Functions whose calls are all in loops; the second: and that nothing else can call.
    in_loops: [HashSet<LLVMValueRef>; 2],
    reach: Reach,
    /// Symbols of the functions that are to be regions as a whole.
    chosen: &'a HashSet<String>,
}

impl<'a> Survey<'a> {
    /// Looks at the module.
    pub fn of(
        module: LLVMModuleRef,
        command: &'a CompileCommand,
        source: &'a Path,
        language: Language,
        chosen: &'a HashSet<String>,
    ) -> Self {
        Self {
            command,
            source,
            language,
            in_loops: [false, true].map(|closed| called_in_loops(module, closed)),
            reach: Reach::of(module),
            chosen,
        }
    }

    /// Adds the regions of a function to `regions`. Those to outline, by place and position: of two of which one lies in the other the
    /// inner one comes first.
    pub fn list(&self, function: LLVMValueRef, regions: &mut Vec<Region>) -> Vec<(Place, usize)> {
        // SAFETY: the function is live.
        let parallel = unsafe { shim::cere_in_parallel(function) };
        let first = regions.len();
        let mut places = self.places(function, parallel, first as u32);
        let mut at = 0;
        while let Some(&(place, location)) = places.get(at) {
            let region = self.region(function, parallel, place, location, regions);
            if !parallel && self.command.split.iter().any(|s| s.is(&region)) {
                add(&mut places, inside(function, place, None));
            }
            regions.push(region);
            at += 1;
        }
        let known: HashSet<_> = places.iter().filter_map(|(p, _)| p.header()).collect();
        for ((place, _), region) in places.iter().zip(&mut regions[first..]) {
            let loops = inside(function, *place, None).into_iter();
            let other = loops
                .filter_map(|(p, _)| p.header())
                .filter(|h| !known.contains(h));
            region.inside = Some(other.count() as u32);
        }
        let all = places.into_iter().enumerate();
        let mut wanted: Vec<_> = all
            .map(|(n, (place, _))| (place, first + n))
            .filter(|(_, n)| regions[*n].reason.is_none())
            .collect();
        wanted.sort_by_key(|(place, _)| match place {
            Place::Fork(_) => 0,
            Place::Loop { depth, .. } => u32::MAX - depth,
            Place::Function => u32::MAX,
        });
        wanted
    }

    /// The places of a function whose first region is to have the index `next`: of a chosen one itself and what is inside, else, or
    /// where it is refused, the outermost ones and what is inside those.
    fn places(
        &self,
        function: LLVMValueRef,
        parallel: bool,
        next: u32,
    ) -> Vec<(Place, LLVMMetadataRef)> {
        let mut places = Vec::new();
        let mut whole = false;
        if self.chosen.contains(&ir::name(function)) {
            places.push((Place::Function, null_mut()));
            places.extend(forks(function));
            if !parallel {
                places.extend(inside(function, Place::Function, Some(self)));
            }
            let refused = refusal(function, parallel, Place::Function).is_some();
            whole = !refused && self.command.skip.iter().all(|skip| skip.index != next);
        }
        if !whole {
            add(&mut places, outermost(function));
            for (place, _) in places.clone() {
                if !parallel && place != Place::Function {
                    add(&mut places, inside(function, place, Some(self)));
                }
            }
        }
        places
    }

    /// The next region after `regions`, which are of the same unit.
    fn region(
        &self,
        function: LLVMValueRef,
        parallel: bool,
        place: Place,
        location: LLVMMetadataRef,
        regions: &[Region],
    ) -> Region {
        let directory = &self.command.directory;
        let (name, at) = match place {
            Place::Function => (
                names::function(function),
                names::definition(function, directory),
            ),
            Place::Loop { .. } | Place::Fork(_) => {
                let (owner, location) = names::in_own_code(function, location, self.language);
                (
                    names::function_at(owner, location),
                    names::place(location, directory),
                )
            }
        };
        let at = at.unwrap_or_else(|| (self.source.to_owned(), 0));
        let mut region = describe(name, function, at);
        region.index = regions.len() as u32;
        region.kind = match place {
            Place::Loop { .. } => RegionKind::Loop,
            Place::Fork(_) => RegionKind::Parallel,
            Place::Function => RegionKind::Function,
        };
        let same = |r: &&Region| {
            (&r.function, &r.file, r.line) == (&region.function, &region.file, region.line)
        };
        region.ordinal = regions.iter().filter(same).count() as u32 + 1;
        let skip = self
            .command
            .skip
            .iter()
            .find(|skip| skip.index == region.index);
        region.reason = skip
            .map(|skip| skip.reason.clone())
            .or_else(|| refusal(function, parallel, place))
            .or_else(|| self.too_short(function, place, &region));
        region
    }

    /// Why the loop is too short for a probe, as a profile or the code shows.
    fn too_short(&self, function: LLVMValueRef, place: Place, region: &Region) -> Option<String> {
        let (Place::Loop { header, depth }, Some(short)) = (place, &self.command.short) else {
            return None;
        };
        if let Some(short) = short.iter().find(|s| s.is(region)) {
            return Some(format!(
                "too short: {:.0} cycles an invocation in a profile",
                short.cycles
            ));
        }
        // A loop inside another one is listed only if the code does not show it to be short, or if the user wants it.
        let [open, closed] = &self.in_loops;
        if depth > 1 || !open.contains(&function) {
            return None;
        }
        // SAFETY: function and header are live; the shim returns null or a string literal.
        unsafe {
            text(shim::cere_too_short(
                function,
                header,
                closed.contains(&function),
            ))
        }
    }
}

impl Place {
    fn header(self) -> Option<LLVMBasicBlockRef> {
        match self {
            Self::Loop { header, .. } => Some(header),
            Self::Fork(_) | Self::Function => None,
        }
    }
}

/// Adds those of `more` that are not there.
fn add(places: &mut Vec<(Place, LLVMMetadataRef)>, more: Vec<(Place, LLVMMetadataRef)>) {
    for new in more {
        if places.iter().all(|(other, _)| *other != new.0) {
            places.push(new);
        }
    }
}

/// Why a place cannot be outlined, as far as is known before it is tried.
fn refusal(function: LLVMValueRef, parallel: bool, place: Place) -> Option<String> {
    match place {
        Place::Loop { .. } | Place::Function if parallel => Some(IN_PARALLEL.to_owned()),
        // SAFETY: function and header are live; the shim returns null or a string literal.
        Place::Loop { header, depth } => unsafe {
            text(shim::cere_refusal(function, header, depth > 1))
        },
        // SAFETY: the function is live; the shim returns null or a string literal.
        Place::Function => unsafe { text(shim::cere_refuse_function(function)) },
        Place::Fork(_) => None,
    }
}

/// The functions whose calls are all in loops; `closed`: and that nothing else can call.
fn called_in_loops(module: LLVMModuleRef, closed: bool) -> HashSet<LLVMValueRef> {
    // SAFETY: the module is live; the shim writes at most `room` entries and returns how many there are.
    let filled = filled(|to, room| unsafe { shim::cere_called_in_loops(module, closed, to, room) });
    filled.into_iter().collect()
}

/// The entries that `fill` writes: at most as many as there is room for. It returns how many there are.
fn filled<T>(fill: impl Fn(*mut *mut T, usize) -> usize) -> Vec<*mut T> {
    let mut entries = vec![null_mut(); fill(null_mut(), 0)];
    fill(entries.as_mut_ptr(), entries.len());
    entries
}

const IN_PARALLEL: &str = "it runs within a parallel region, which is a region itself";

/// A region of `function` that is called `name`.
fn describe(name: String, function: LLVMValueRef, (file, line): (PathBuf, u32)) -> Region {
    Region {
        kind: RegionKind::default(),
        index: 0,
        ordinal: 1,
        function: name,
        symbol: ir::name(function),
        file,
        line,
        outlined: false,
        reason: None,
        live_ins: Vec::new(),
        exits: 0,
        inside: None,
    }
}

/// A string literal of the shim's, or null.
///
/// # Safety
/// `literal` is null or a C string.
pub unsafe fn text(literal: *const libc::c_char) -> Option<String> {
    if literal.is_null() {
        return None;
    }
    // SAFETY: it is no null pointer, so a C string.
    let literal = unsafe { CStr::from_ptr(literal) };
    Some(literal.to_string_lossy().into_owned())
}

/// Parallel regions first: a loop may hold some.
fn outermost(function: LLVMValueRef) -> Vec<(Place, LLVMMetadataRef)> {
    let mut places = forks(function);
    places.extend(loops(1, |headers, locations, room| {
        // SAFETY: the function is live; the shim writes at most `room` entries and returns how many there are.
        unsafe { shim::cere_loops(function, headers, locations, room) }
    }));
    places
}

/// The calls that fork a team.
fn forks(function: LLVMValueRef) -> Vec<(Place, LLVMMetadataRef)> {
    // SAFETY: the function is live; the shim writes at most `room` entries and returns how many there are.
    let calls = filled(|to, room| unsafe { shim::cere_forks(function, to, room) });
    // SAFETY: the calls are live.
    let place = |call| unsafe { (Place::Fork(call), LLVMInstructionGetDebugLoc(call)) };
    calls.into_iter().map(place).collect()
}

/// Loops inside a place: of a module those that are worth a region, else all that are inside it directly.
fn inside(
    function: LLVMValueRef,
    place: Place,
    of: Option<&Survey>,
) -> Vec<(Place, LLVMMetadataRef)> {
    let header = match place {
        Place::Loop { header, .. } => header,
        Place::Function => null_mut(),
        Place::Fork(_) => return Vec::new(),
    };
    let calls = of.map_or(null_mut(), |survey| survey.reach.0);
    let repeated = of.is_some_and(|survey| survey.in_loops[1].contains(&function));
    let mut found = loops(0, |headers, locations, room| {
        // SAFETY: function, header and what was found out about calls are live; the shim writes at most `room` entries.
        unsafe {
            shim::cere_loops_inside(function, header, calls, repeated, headers, locations, room)
        }
    });
    for (place, _) in &mut found {
        if let Place::Loop { header, depth } = place {
            // SAFETY: function and header are live.
            *depth = unsafe { shim::cere_depth(function, *header) };
        }
    }
    found
}

/// The loops that `fill` writes by header and location: at most as many as there is room for. It returns how many there are.
fn loops(
    depth: u32,
    fill: impl Fn(*mut LLVMBasicBlockRef, *mut LLVMMetadataRef, usize) -> usize,
) -> Vec<(Place, LLVMMetadataRef)> {
    let room = fill(null_mut(), null_mut(), 0);
    let (mut headers, mut locations) = (vec![null_mut(); room], vec![null_mut(); room]);
    fill(headers.as_mut_ptr(), locations.as_mut_ptr(), room);
    let places = headers
        .into_iter()
        .map(|header| Place::Loop { header, depth });
    places.zip(locations).collect()
}
