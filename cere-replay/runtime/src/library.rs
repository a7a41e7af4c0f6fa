//! Libraries are fresh: jumps at captured addresses of their functions, rewritten words for their variables,
//! and the way back for comparing.

use crate::control::Control;
use crate::glue::Jump;
use crate::images;
use crate::pages::Pages;
use cere_format::package::{LibrarySymbolKind, Manifest};
use std::cell::LazyCell;
use std::ffi::{CStr, CString};
use std::path::Path;

/// Address of a library symbol in this process; of another version if the wanted one is not there.
pub fn symbol(name: &str, version: Option<&str>) -> Option<u64> {
    let name = CString::new(name).ok()?;
    let version = version.and_then(|v| CString::new(v).ok());
    let mut found = std::ptr::null_mut();
    // SAFETY: null-terminated strings.
    unsafe {
        // The runtime's own `malloc` and the like stand for the library's, whose version they do not carry.
        let own = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        if !own.is_null() && image_of(own) == image_of(symbol as *const libc::c_void) {
            return Some(own as u64);
        }
        if let Some(version) = &version {
            found = libc::dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), version.as_ptr());
        }
        if found.is_null() {
            found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        }
    }
    (!found.is_null()).then_some(found as u64)
}

/// The definition of a library's function behind this executable's own.
pub fn next(name: &CStr) -> Option<*mut libc::c_void> {
    // SAFETY: a null-terminated string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Start of the image that holds `address`, or 0.
fn image_of(address: *const libc::c_void) -> usize {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the loader only compares the address; it fills the structure if it finds the image.
    unsafe {
        match libc::dladdr(address, found.as_mut_ptr()) {
            0 => 0,
            _ => found.assume_init().dli_fbase as usize,
        }
    }
}

/// What the captured process knew of libraries, in terms of this process.
#[derive(Default)]
pub struct Libraries {
    /// Functions.
    pub jumps: Vec<Jump>,
    /// Words that hold addresses of variables, and the addresses now; by rising address.
    pub words: Vec<(u64, u64)>,
}

impl Libraries {
    /// Where the variables are and where they were, sorted.
    pub fn variables(&self, pages: &Pages) -> Vec<(u64, u64)> {
        let words = self.words.iter();
        let mut pairs: Vec<(u64, u64)> = words
            .filter_map(|&(at, new)| Some((new, pages.word(at)?)))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// Finds the library symbols of the package in this process.
pub fn find(manifest: &Manifest, pages: &Pages, control: &Control) -> Libraries {
    let mut libraries = Libraries::default();
    let builds = LazyCell::new(builds);
    for wanted in &manifest.library_symbols {
        let new = match &wanted.place {
            Some(place) => {
                let same = |b: &&Build| b.0 == wanted.library && b.1 == place.build_id;
                let build = builds.iter().find(same);
                build.and_then(|b| b.2.checked_add(place.offset).filter(|a| *a < b.3))
            }
            None => symbol(&wanted.name, wanted.symbol_version.as_deref()),
        };
        // A function that is not here is named when the region calls it.
        let Some(new) = new else {
            continue;
        };
        let old = wanted.address;
        match wanted.kind {
            LibrarySymbolKind::Function => libraries.jumps.push(Jump { old, new }),
            LibrarySymbolKind::Variable => {
                let words = wanted
                    .words
                    .iter()
                    .filter(|w| w.is_multiple_of(8) && pages.holds(**w));
                libraries.words.extend(words.map(|w| (*w, new)));
            }
        }
    }
    libraries.words.extend(control.words(pages));
    libraries.words.sort_unstable();
    libraries.words.dedup_by_key(|w| w.0);
    libraries
}

/// Where a library lies, and where it lay: start and end each.
type Pair = ((u64, u64), (u64, u64));

/// Where addresses of this process's functions and libraries were in the captured process.
#[derive(Default)]
pub struct Origins {
    /// New and old address, by rising new address.
    exact: Vec<(u64, u64)>,
    /// Old addresses of labels, rising.
    labels: Vec<u64>,
    /// Start, end and captured start of libraries.
    ranges: Vec<(u64, u64, u64)>,
    /// Of libraries that another architecture has in other builds: where they are, and where they were.
    other_builds: Vec<Pair>,
    /// Captured addresses of symbols of those, with their names, rising.
    named: Vec<(u64, &'static str)>,
    /// This executable: recompiled code, its tables, and the runtime.
    executable: (u64, u64),
    /// Variables that lay in the program, by name.
    copied: &'static [(String, u64)],
}

impl Origins {
    /// From all jumps, the thunks of the glue among them, and labels.
    pub fn new(manifest: &'static Manifest, jumps: &[Jump], labels: &[Jump]) -> Self {
        let all = jumps.iter().chain(labels);
        let mut exact: Vec<(u64, u64)> = all.map(|j| (j.new, j.old)).collect();
        let mut labels: Vec<u64> = labels.iter().map(|j| j.old).collect();
        labels.sort_unstable();
        let there = manifest.interposed.iter();
        exact.extend(there.filter_map(|(name, old)| Some((symbol(name, None)?, *old))));
        exact.sort_unstable();
        let loaded = loaded();
        let executable = executable(&loaded);
        let foreign = manifest.machine.target() != Some(cere_arch::HERE);
        let other_builds = match foreign {
            true => other_builds(manifest, &loaded),
            false => Vec::new(),
        };
        let known = manifest.library_symbols.iter();
        let known = known.filter(|s| foreign && s.place.is_none());
        let mut named: Vec<(u64, &str)> = known.map(|s| (s.address, s.name.as_str())).collect();
        named.sort_unstable();
        let ranges = loaded.into_iter().filter(|_| !foreign);
        let ranges = ranges.filter_map(|(name, start, end)| {
            // The captured mappings name the file behind all links.
            let path = std::fs::canonicalize(name).ok()?;
            let file = path.file_name()?.to_owned();
            let same = |path: &str| Path::new(path).file_name() == Some(&file);
            let old = manifest.mappings.iter().find(|m| same(&m.path))?;
            (old.offset == 0).then_some((start, end, old.start))
        });
        Self {
            exact,
            labels,
            ranges: ranges.collect(),
            other_builds,
            named,
            executable,
            copied: &manifest.copied,
        }
    }

    /// Whether `in_vitro` is here what `in_vivo` was there.
    pub fn same(&self, in_vivo: u64, in_vitro: u64) -> bool {
        let at = self.exact.partition_point(|e| e.0 < in_vitro);
        let mut alike = self.exact[at..].iter().take_while(|e| e.0 == in_vitro);
        if alike.any(|e| e.1 == in_vivo) {
            return true;
        }
        self.in_library(in_vitro) == Some(in_vivo)
    }

    /// Whether both words end in the same half and begin with half of an address of the same library.
    pub fn half(&self, in_vivo: u64, in_vitro: u64) -> bool {
        let within =
            |word: u64, start: u64, end: u64| (start >> 32..=end >> 32).contains(&(word >> 32));
        let here = |r: &&(u64, u64, u64)| within(in_vitro, r.0, r.1);
        let there = |r: &(u64, u64, u64)| within(in_vivo, r.2, r.2.wrapping_add(r.1 - r.0));
        in_vivo as u32 == in_vitro as u32 && self.ranges.iter().filter(here).any(there)
    }

    /// Whether both are addresses without a name in the same library, which is another build here.
    pub fn of_other_build(&self, in_vivo: u64, in_vitro: u64) -> bool {
        let inside = |range: (u64, u64), address| (range.0..range.1).contains(&address);
        let mut others = self.other_builds.iter();
        others.any(|(here, there)| inside(*here, in_vitro) && inside(*there, in_vivo))
            && self.named.binary_search_by_key(&in_vivo, |n| n.0).is_err()
    }

    /// Whether a label was at `address` in the captured process.
    pub fn was_label(&self, address: u64) -> bool {
        self.labels.binary_search(&address).is_ok()
    }

    /// Whether `address` lies in this executable.
    pub fn recompiled(&self, address: u64) -> bool {
        (self.executable.0..self.executable.1).contains(&address)
    }

    /// Where `address` of a library of this process was, if the captured process had the same library.
    fn in_library(&self, address: u64) -> Option<u64> {
        let inside = |r: &&(u64, u64, u64)| (r.0..r.1).contains(&address);
        let (start, _, old) = self.ranges.iter().find(inside)?;
        Some(old.wrapping_add(address - start))
    }

    /// Whether `address` lies in a library of this process that the captured one had too.
    pub fn is_in_library(&self, address: u64) -> bool {
        let inside = |(here, _): &Pair| (here.0..here.1).contains(&address);
        self.in_library(address).is_some() || self.other_builds.iter().any(inside)
    }

    /// Whether `address` lay in a library of the captured process that this one has too.
    pub fn was_in_library(&self, address: u64) -> bool {
        let inside = |r: &(u64, u64, u64)| address.wrapping_sub(r.2) < r.1 - r.0;
        let there = |(_, there): &Pair| (there.0..there.1).contains(&address);
        self.ranges.iter().any(inside) || self.other_builds.iter().any(there)
    }

    /// Where a library's variable was, if the captured process had the same library.
    pub fn captured_variable(&self, name: &str) -> Option<u64> {
        let mut copied = self.copied.iter();
        match copied.find(|c| c.0 == name) {
            Some((_, address)) => Some(*address),
            None => {
                let named = self.named.iter().find(|n| n.1 == name).map(|n| n.0);
                named.or_else(|| self.in_library(symbol(name, None)?))
            }
        }
    }
}

/// The name of a library without its version.
fn stem(path: &str) -> Option<&str> {
    let name = Path::new(path).file_name()?.to_str()?;
    name.split_once(".so").map(|(stem, _)| stem)
}

/// Libraries of both processes by name: where they are, and where they were.
fn other_builds(manifest: &Manifest, loaded: &[(String, u64, u64)]) -> Vec<Pair> {
    let both = loaded.iter().filter_map(|(name, start, end)| {
        let stem_here = stem(name)?;
        let there = manifest.mappings.iter();
        let there = there.filter(|m| stem(&m.path) == Some(stem_here));
        let range = there.fold(None, |range: Option<(u64, u64)>, m| {
            let (low, high) = range.unwrap_or((m.start, m.end));
            Some((low.min(m.start), high.max(m.end)))
        })?;
        Some(((*start, *end), range))
    });
    both.collect()
}

/// Where this executable lies.
pub fn executable(loaded: &[(String, u64, u64)]) -> (u64, u64) {
    // The loader names the program first.
    loaded.first().map_or((0, 0), |l| (l.1, l.2))
}

/// File name, build id in hexadecimal, and first and last address of a library of this process.
type Build = (String, String, u64, u64);

/// The libraries of this process that have a build id.
fn builds() -> Vec<Build> {
    let libraries = images::all().into_iter().filter_map(|image| {
        let name = Path::new(&image.name).file_name()?;
        let (start, end) = image.range();
        Some((
            name.to_string_lossy().into_owned(),
            image.build_id()?,
            start,
            end,
        ))
    });
    libraries.collect()
}

/// Name and addresses of the libraries of this process.
pub fn loaded() -> Vec<(String, u64, u64)> {
    let each = images::all().into_iter().map(|image| {
        let (start, end) = image.range();
        (image.name, start, end)
    });
    each.collect()
}

/// The environment of the captured process, for `getenv` inside the region.
pub struct Environment {
    variable: *mut u64,
    captured: u64,
}

impl Environment {
    /// None if the region did not look at it.
    pub fn find(origins: &Origins, pages: &Pages) -> Option<Self> {
        let captured = pages.word(origins.captured_variable("environ")?)?;
        Some(Self {
            variable: symbol("environ", None)? as *mut u64,
            captured: pages.holds(captured).then_some(captured)?,
        })
    }

    /// Puts the captured environment in place; gives what was there.
    pub fn exchange(&self) -> u64 {
        // SAFETY: the C library's variable; the other threads of a team, if there are, rest outside the region.
        unsafe { std::ptr::replace(self.variable, self.captured) }
    }

    /// Puts this process's environment back.
    pub fn put_back(&self, own: u64) {
        // SAFETY: the C library's variable, while all other threads rest.
        unsafe { *self.variable = own };
    }
}

/// Starts what constructors of the program, which a replay leaves out, start in libraries: the C++ streams.
pub fn start() {
    /// At least as large as the library's object, which is empty.
    static mut OBJECT: u64 = 0;
    if let Some(init) = symbol("_ZNSt8ios_base4InitC1Ev", None) {
        // SAFETY: the constructor of std::ios_base::Init, called once, with an object that stays.
        unsafe {
            let init: extern "C" fn(*mut u64) = std::mem::transmute(init);
            init(&raw mut OBJECT);
        }
    }
}
