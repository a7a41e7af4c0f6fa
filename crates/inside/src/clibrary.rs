//! The state that the C library (glibc) has for a program outside the program's memory: locale, keys for thread-specific data, generators of
//! random numbers, the variables of `getopt`. It is read at both ends of a captured invocation, and set in the library of a replay. Asking changes nothing that a
//! program can tell, but that a state of `random` in the program's own memory notes its place, as `setstate` has it do.

use cere_format::clibrary::{CATEGORIES, CLibrary, KEYS, OPTIONS, RANDOM_WORDS, Random, SERIES};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ushort, c_void};

/// Item of `nl_langinfo` that names the locale of a category, in its low bits.
const LOCALE_NAME: c_int = 0xffff;
/// The smallest state that `initstate` takes, in words.
const SMALLEST: usize = 2;
/// Where `struct drand48_data` has the number before the last, whose address `seed48` returns: in units of 16 bits.
const OLD: usize = 3;
/// What `seed48` puts beside the number: the multiplier, the summand with the mark of use.
const MULTIPLIER: u64 = 0x5_deec_e66d;
const IN_USE: u64 = 0x1_000b;

/// A table of functions of the library by name and type.
macro_rules! functions {
    ($($name:ident: $type:ty;)*) => {
        /// Its functions, whatever functions of these names the program has.
        #[derive(Clone, Copy)]
        struct Functions { $($name: $type,)* }

        impl Functions {
            /// Of the loaded library.
            ///
            /// # Safety
            /// `library` is the loader's handle of glibc.
            unsafe fn find(library: *mut c_void) -> Option<Self> {
                $(
                    let name = concat!(stringify!($name), "\0");
                    // SAFETY: a null-terminated name, and the handle by the contract.
                    let $name = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
                    if $name.is_null() {
                        return None;
                    }
                )*
                // SAFETY: glibc's functions of these names have these types.
                Some(unsafe { Self { $($name: std::mem::transmute::<*mut c_void, $type>($name),)* } })
            }
        }
    };
}

functions! {
    setlocale: unsafe extern "C" fn(c_int, *const c_char) -> *mut c_char;
    nl_langinfo: unsafe extern "C" fn(c_int) -> *const c_char;
    btowc: unsafe extern "C" fn(c_int) -> c_uint;
    pthread_key_create: unsafe extern "C" fn(*mut c_uint, Option<extern "C" fn(*mut c_void)>) -> c_int;
    pthread_key_delete: unsafe extern "C" fn(c_uint) -> c_int;
    pthread_getspecific: unsafe extern "C" fn(c_uint) -> *mut c_void;
    pthread_setspecific: unsafe extern "C" fn(c_uint, *const c_void) -> c_int;
    initstate: unsafe extern "C" fn(c_uint, *mut u32, usize) -> *mut u32;
    setstate: unsafe extern "C" fn(*mut u32) -> *mut u32;
    seed48: unsafe extern "C" fn(*mut c_ushort) -> *mut c_ushort;
}

/// The loaded C library.
#[derive(Clone, Copy)]
pub struct Library {
    functions: Functions,
    /// Its own state of `random`, which it starts with.
    table: *mut u32,
    /// Its `struct drand48_data`, if that is as expected.
    series: Option<*mut u64>,
    /// The [`OPTIONS`], which may lie in the program; none if the program has a `getopt` of its own.
    options: Option<[*mut u8; OPTIONS.len()]>,
}

impl Library {
    /// None if it is not glibc. No other thread uses the generators meanwhile.
    pub fn find() -> Option<Self> {
        // SAFETY: a look for a library that is loaded; the handle is glibc's.
        let (functions, options) = unsafe {
            let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            let functions = Functions::find((!library.is_null()).then_some(library)?)?;
            (functions, find_options(library))
        };
        let mut library = Self {
            functions,
            options,
            table: std::ptr::null_mut(),
            series: None,
        };
        library.table = library.with_other_state(|old| old);
        library.series = library.find_series();
        Some(library)
    }

    /// The address of the data of `drand48`, which keeps its value.
    fn find_series(&self) -> Option<*mut u64> {
        let mut trial = [1, 2, 3];
        // SAFETY: `seed48` reads three words and returns the address of three of its structure's; what lies there is only
        // looked at where the structure is the one that is expected.
        unsafe {
            let old = (self.functions.seed48)(trial.as_mut_ptr());
            let mut before = [*old, *old.add(1), *old.add(2)];
            let data = old.sub(OLD).cast::<u64>();
            let found = data.is_aligned()
                && *data & 0xffff_ffff_ffff == 0x3_0002_0001
                && *data.add(1) >> 32 == IN_USE
                && *data.add(2) == MULTIPLIER;
            (self.functions.seed48)(before.as_mut_ptr());
            found.then_some(data)
        }
    }

    /// Gives `work` the address of the state of `random` in use, while another one is.
    fn with_other_state<T>(&self, work: impl FnOnce(*mut u32) -> T) -> T {
        let mut other = [0u32; SMALLEST];
        // SAFETY: a state of the smallest size, in use until the call below.
        let old = unsafe { (self.functions.initstate)(1, other.as_mut_ptr(), size_of_val(&other)) };
        let result = work(old);
        // SAFETY: the state that was in use.
        unsafe { (self.functions.setstate)(old) };
        result
    }

    /// What it keeps for the calling thread's program.
    pub fn ask(&self) -> CLibrary {
        let words = |data: *mut u64| {
            // SAFETY: the library's structure of so many words, as `find_series` saw.
            (0..SERIES).map(|i| unsafe { *data.add(i) }).collect()
        };
        let asked = CLibrary {
            locale: self.locale(),
            keys: self.keys().collect(),
            random: Some(self.with_other_state(|state| self.random(state))),
            series: self.series.map_or(Vec::new(), words),
            options: self.options(),
        };
        self.load_conversions(&asked);
        asked
    }

    /// The variables of `getopt`.
    fn options(&self) -> Vec<u64> {
        let value = |(at, (_, bytes)): (&*mut u8, &(&CStr, usize))| {
            let mut word = [0; 8];
            // SAFETY: a variable of so many bytes.
            unsafe { std::ptr::copy_nonoverlapping(*at, word.as_mut_ptr(), *bytes) };
            u64::from_le_bytes(word)
        };
        let all = self.options.iter().flat_map(|all| all.iter().zip(&OPTIONS));
        all.map(value).collect()
    }

    /// Sets them.
    fn set_options(&self, words: &[u64]) {
        let all = self.options.iter().flat_map(|all| all.iter().zip(&OPTIONS));
        for ((at, (_, bytes)), word) in all.zip(words) {
            // SAFETY: a variable of so many bytes.
            unsafe { std::ptr::copy_nonoverlapping(word.to_le_bytes().as_ptr(), *at, *bytes) };
        }
    }

    /// The names of the calling thread's locale.
    fn locale(&self) -> Vec<String> {
        let name = |category: &i32| {
            // SAFETY: the name of the locale in use, which stays while it is.
            let name = unsafe {
                CStr::from_ptr((self.functions.nl_langinfo)(category << 16 | LOCALE_NAME))
            };
            name.to_string_lossy().into_owned()
        };
        CATEGORIES.iter().map(name).collect()
    }

    /// The state of `random` at an address that the library gave.
    fn random(&self, state: *mut u32) -> Random {
        // SAFETY: the first word says how many there are.
        let words = unsafe {
            std::slice::from_raw_parts(state, RANDOM_WORDS[*state as usize % RANDOM_WORDS.len()])
        };
        Random {
            address: state as u64,
            state: words.to_vec(),
        }
    }

    /// What the first conversion between narrow and wide characters loads, outside of regions.
    fn load_conversions(&self, library: &CLibrary) {
        /// A byte that is no ASCII: the others are known without.
        const BEYOND: c_int = 0x80;
        let plain = |name: &String| name == "C" || name == "POSIX";
        if !library.locale.first().is_none_or(plain) {
            // SAFETY: `btowc` takes any byte, and pointers none.
            unsafe { (self.functions.btowc)(BEYOND) };
        }
    }

    /// The keys in use, with what the calling thread has there.
    fn keys(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..KEYS).filter_map(|key| self.key(key).map(|value| (key, value)))
    }

    /// What the calling thread has at a key; none if the key is not in use.
    fn key(&self, key: u32) -> Option<u64> {
        // SAFETY: the library knows which keys are in use; the value stays what it is.
        unsafe {
            let value = (self.functions.pthread_getspecific)(key);
            ((self.functions.pthread_setspecific)(key, value) == 0).then_some(value as u64)
        }
    }

    /// Makes the keys of `wanted` that are not in use.
    fn make(&self, wanted: &[(u32, u64)]) {
        let mut others = Vec::new();
        for (key, _) in wanted {
            while self.key(*key).is_none() {
                let mut made = 0;
                // SAFETY: the library takes the lowest free one.
                if unsafe { (self.functions.pthread_key_create)(&mut made, None) } != 0 {
                    break;
                }
                if made != *key {
                    others.push(made);
                }
            }
        }
        others.iter().for_each(|key| self.drop_key(*key));
    }

    fn drop_key(&self, key: u32) {
        // SAFETY: nobody uses it; the library refuses what is not in use.
        unsafe { (self.functions.pthread_key_delete)(key) };
    }

    /// Takes the locale. The names of those that this machine lacks.
    fn take_locale(&self, names: &[String]) -> Vec<String> {
        let mut lacking = Vec::new();
        for (category, name) in CATEGORIES.iter().zip(names) {
            let taken = CString::new(name.as_str()).is_ok_and(|name| {
                // SAFETY: a null-terminated name.
                !unsafe { (self.functions.setlocale)(*category, name.as_ptr()) }.is_null()
            });
            if !taken && !lacking.contains(name) {
                lacking.push(name.clone());
            }
        }
        lacking
    }
}

/// The variables of `getopt`, where the program finds them.
///
/// # Safety
/// `library` is the loader's handle of glibc.
unsafe fn find_options(library: *mut c_void) -> Option<[*mut u8; OPTIONS.len()]> {
    // SAFETY: null-terminated names, and the handle by the contract.
    let find = |handle, name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
    let own = find(library, c"getopt") != find(libc::RTLD_DEFAULT, c"getopt");
    let found = OPTIONS.map(|(name, _)| find(libc::RTLD_DEFAULT, name).cast::<u8>());
    (!own && found.iter().all(|at| !at.is_null())).then_some(found)
}

/// A description of a C library that no capture writes.
#[derive(Debug)]
pub struct Unsound;

impl std::fmt::Display for Unsound {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("the package says of the captured C library what cannot be: capture again")
    }
}

impl std::error::Error for Unsound {}

/// The library of a replay, and what the captured one kept.
pub struct Told<'a> {
    library: Library,
    entry: &'a CLibrary,
    exit: &'a CLibrary,
    /// Keys that the process had before: its libraries' own.
    own: Vec<u32>,
    /// The locale that this process has at entry.
    locale: Vec<String>,
    /// The captured state of `random` if it lies in memory of the program's.
    apart: Option<*mut u32>,
}

impl<'a> Told<'a> {
    /// Makes the captured keys. `mine`: whether an address of so many bytes is memory of the captured program's, which the replay
    /// has. Before libraries take keys. None if the C library is another one.
    ///
    /// # Errors
    /// The description cannot be true.
    pub fn new(
        [entry, exit]: &'a [CLibrary; 2],
        mine: impl Fn(u64, u64) -> bool,
    ) -> Result<Option<Self>, Unsound> {
        if !entry.is_sound() || !exit.is_sound() {
            return Err(Unsound);
        }
        let Some(library) = Library::find() else {
            return Ok(None);
        };
        let own = library.keys().map(|key| key.0).collect();
        library.make(&entry.keys);
        let random = entry.random.as_ref();
        let apart = random.filter(|r| mine(r.address, 4 * r.state.len() as u64));
        Ok(Some(Self {
            library,
            entry,
            exit,
            own,
            locale: Vec::new(),
            apart: apart.map(|r| r.address as *mut u32),
        }))
    }

    /// Takes the captured locale. Gives the names of those that this machine lacks.
    pub fn begin(&mut self) -> Vec<String> {
        let lacking = self.library.take_locale(&self.entry.locale);
        self.locale = self.library.locale();
        self.library.load_conversions(self.entry);
        lacking
    }

    /// As at entry, the program's memory being so. Outside of regions. `is_librarys`: whether a library made the key, which remembers that
    /// it has it.
    pub fn put_back(&self, is_librarys: impl Fn(u32) -> bool) {
        let (entry, exit) = (self.entry, self.exit);
        if entry.locale != exit.locale {
            self.library.take_locale(&entry.locale);
        }
        for (key, _) in &exit.keys {
            let made = !entry.keys.iter().any(|k| k.0 == *key) && !self.own.contains(key);
            if made && is_librarys(*key) {
                // SAFETY: a key of this process.
                unsafe { (self.library.functions.pthread_setspecific)(*key, std::ptr::null()) };
            } else if made {
                self.library.drop_key(*key);
            }
        }
        self.library.make(&entry.keys);
        for (key, value) in entry.keys.iter().filter(|k| !self.own.contains(&k.0)) {
            // SAFETY: a key made for this; its value is the program's.
            unsafe { (self.library.functions.pthread_setspecific)(*key, *value as *const c_void) };
        }
        if let (Some(data), Ok(series)) = (
            self.library.series,
            <[u64; SERIES]>::try_from(entry.series.as_slice()),
        ) {
            // SAFETY: the library's structure of so many words, as `find_series` saw; no region runs.
            unsafe { *data.cast() = series };
        }
        self.library.set_options(&entry.options);
        if let Some(random) = &entry.random {
            self.put_back_random(&random.state);
        }
    }

    fn put_back_random(&self, words: &[u32]) {
        let to = self.apart.unwrap_or(self.library.table);
        // SAFETY: the library's own state has room for the largest that it is given here only if it is of the same kind, which
        // is looked at; the program's is restored with its memory.
        unsafe {
            let mut other = [0u32; SMALLEST];
            (self.library.functions.initstate)(1, other.as_mut_ptr(), size_of_val(&other));
            if self.apart.is_some()
                || *to as usize % RANDOM_WORDS.len() == words[0] as usize % RANDOM_WORDS.len()
            {
                std::ptr::copy_nonoverlapping(words.as_ptr(), to, words.len());
            }
            (self.library.functions.setstate)(to);
        }
    }

    /// Where the library differs from the captured one at exit: what, and a word of it there and here. `same` says whether two
    /// words have the same meaning.
    pub fn compare(&self, same: impl Fn(u64, u64) -> bool) -> Vec<(String, u64, u64)> {
        let found = self.asked();
        let mut different = Vec::new();
        if let (Some(there), Some(here)) = (&self.exit.random, &found.random)
            && let Some((a, b)) = first(&there.state, &here.state)
        {
            different.push((
                "the generator of random()".into(),
                u64::from(a),
                u64::from(b),
            ));
        }
        if !found.series.is_empty()
            && let Some((a, b)) = first(&self.exit.series, &found.series)
        {
            different.push(("the generator of drand48()".into(), a, b));
        }
        // This machine may lack the captured one.
        let wanted = match self.entry.locale == self.exit.locale {
            true => &self.locale,
            false => &self.exit.locale,
        };
        if *wanted != found.locale {
            different.push(("the locale".into(), 0, 0));
        }
        let options = self.exit.options.iter().zip(&found.options).zip(OPTIONS);
        different.extend(options.filter_map(|((a, b), (name, _))| {
            let name = || format!("the variable {}", name.to_string_lossy());
            (a != b && !same(*a, *b)).then(|| (name(), *a, *b))
        }));
        different.extend(self.compare_keys(&found, same));
        different
    }

    /// What the library keeps. The captured state of `random` in the program's memory stays as it is.
    fn asked(&self) -> CLibrary {
        // SAFETY: captured memory of the program's.
        let first = self.apart.map(|state| unsafe { (state, *state) });
        let found = self.library.ask();
        if let Some((state, first)) = first {
            // SAFETY: captured memory of the program's, which the replay has.
            unsafe { *state = first };
        }
        found
    }

    fn compare_keys(
        &self,
        found: &CLibrary,
        same: impl Fn(u64, u64) -> bool,
    ) -> Option<(String, u64, u64)> {
        let value =
            |library: &CLibrary, key: u32| library.keys.iter().find(|k| k.0 == key).map(|k| k.1);
        let all = self
            .entry
            .keys
            .iter()
            .chain(&self.exit.keys)
            .map(|key| key.0);
        let mut all = all.filter(|key| !self.own.contains(key));
        all.find_map(|key| {
            let differ = match (value(self.exit, key), value(found, key)) {
                (Some(a), Some(b)) if a == b || same(a, b) => return None,
                (None, None) => return None,
                (a, b) => (a.unwrap_or_default(), b.unwrap_or_default()),
            };
            Some((
                format!("the thread's data of key {key}"),
                differ.0,
                differ.1,
            ))
        })
    }
}

fn first<T: Copy + PartialEq>(a: &[T], b: &[T]) -> Option<(T, T)> {
    a.iter().zip(b).map(|(a, b)| (*a, *b)).find(|(a, b)| a != b)
}
