//! Builds programs with the pass, runs them under the preload library, reads what it leaves.

use cere_format::answers::{self, Head};
use cere_format::build::{BUILD_VERSION, CompileCommand, ENV_COMMAND, Region, Unit};
use cere_format::capture::*;
use cere_format::profile::{Profile, RegionKey, RegionProfile};
use cere_format::profile_raw::{RawHeader, raw_files, read_raw};
use cere_testing::built::part;
use object::{Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Names the libraries that the loader loads before the program's.
const PRELOAD: &str = "LD_PRELOAD";

/// `tests/programs/<source>`.
fn source_file(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(source)
}

fn good(command: &mut Command) -> Output {
    let output = command.output().expect("the compiler starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
    output
}

fn assert_same(output: &Output, plain: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&output.stdout), text(&plain.stdout));
    assert_eq!(text(&output.stderr), text(&plain.stderr));
    assert_eq!(output.status, plain.status);
}

/// A program built with the pass.
pub struct Program {
    directory: tempfile::TempDir,
    path: PathBuf,
    /// Variables of the environment of all runs.
    pub environment: Vec<(&'static str, &'static str)>,
    /// What the runs are told that the program's stack may be.
    pub stack_limit: Option<u64>,
    /// A library that all runs preload, after ours.
    preloaded: Option<PathBuf>,
    units: Vec<Unit>,
}

/// What a run left.
pub struct Run {
    /// What it printed, and its status.
    pub output: Output,
    /// By region function and invocation.
    pub captures: Vec<Captured>,
    /// What another run has to take.
    pub postponed: Vec<Postponed>,
    /// Runs made.
    pub runs: usize,
    /// `counts.0.json`.
    pub counts: serde_json::Value,
    /// All files of the run's directory.
    pub files: Vec<String>,
}

/// A wanted invocation, and the entry of a region that its trace begins with; none: the program's start.
pub type Window<'a> = (&'a str, u64, Option<(&'a str, u64)>);

/// One raw capture.
pub struct Captured {
    /// Function of the region.
    pub function: String,
    /// Metadata.
    pub raw: RawCapture,
    /// The page trace.
    pub trace: Vec<u64>,
    /// Age of each page of the trace in nanoseconds, by its address.
    pub ages: BTreeMap<u64, u64>,
    /// What the kernel answered.
    pub answers: Vec<(Head, Vec<u8>)>,
    /// By address.
    pub pages: BTreeMap<u64, Page>,
    symbols: BTreeMap<String, u64>,
}

/// What a profile run left.
pub struct Profiled {
    /// Regions are named by their functions.
    pub profile: Profile,
    /// Start of the raw profile.
    pub header: Vec<u8>,
}

pub struct Page {
    pub flags: u32,
    entry: Vec<u8>,
    exit: Vec<u8>,
}

impl Program {
    /// Compiles `tests/programs/<source>`.
    pub fn new(source: &str, flags: &[&str]) -> Program {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let compiler = match source.ends_with("cpp") {
            true => "clang++-22",
            false => "clang-22",
        };
        let command = CompileCommand {
            version: BUILD_VERSION,
            store: at("store"),
            directory: directory.path().into(),
            compiler: compiler.into(),
            arguments: vec![source.into()],
            codegen: flags.iter().map(|f| (*f).into()).collect(),
            output: Some(at("program.o")),
            debug: false,
            skip: Vec::new(),
            short: None,
            split: Vec::new(),
            functions: Vec::new(),
            front: None,
            variables: Default::default(),
        };
        std::fs::write(at("command.json"), serde_json::to_vec(&command).unwrap()).unwrap();
        let (path, pass) = (source_file(source), part("libcere_pass.so"));
        good(
            Command::new(compiler)
                .env(ENV_COMMAND, at("command.json"))
                .arg(format!("-fpass-plugin={}", pass.display()))
                .args(flags)
                .args(["-gline-tables-only", "-c", "-o"])
                .args([at("program.o"), path]),
        );
        good(
            Command::new(compiler)
                .args(flags.iter().filter(|f| **f == "-fopenmp"))
                .args([at("program.o"), "-o".into(), at("program")]),
        );
        let units = std::fs::read_dir(at("store/units"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.extension().is_some_and(|e| e == "json"))
            .map(|p| serde_json::from_slice(&std::fs::read(p).unwrap()).unwrap())
            .collect();
        Program {
            path: at("program"),
            environment: Vec::new(),
            stack_limit: None,
            preloaded: None,
            directory,
            units,
        }
    }

    /// The same, with the library of `tests/programs/<source>` preloaded in all runs.
    pub fn beside(mut self, source: &str) -> Program {
        let library = self.directory.path().join("beside.so");
        let path = source_file(source);
        good(
            Command::new("clang-22")
                .args(["-O2", "-fPIC", "-shared", "-o"])
                .args([&library, &path]),
        );
        self.preloaded = Some(library);
        self
    }

    /// The outlined loops of a function.
    fn keys(&self, function: &str) -> Vec<RegionKey> {
        let regions = self.units.iter();
        let regions = regions.flat_map(|u| u.regions.iter().map(move |r| (&u.id, r)));
        let outlined = regions.filter(|(_, r)| r.function == function && r.outlined);
        let key = |(unit, r): (&String, &Region)| RegionKey {
            unit: unit.clone(),
            index: r.index,
        };
        outlined.map(key).collect()
    }

    /// Runs without the library.
    pub fn plain(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.path);
        command.envs(self.environment.iter().copied());
        command.envs(self.preloaded.iter().map(|library| (PRELOAD, library)));
        command.args(arguments).output().unwrap()
    }

    /// Profiles all regions; the output must be that of a plain run.
    pub fn profile(&self, arguments: &[&str]) -> Profiled {
        self.timed(arguments, RunMode::Profile)
    }

    /// As `mode` says, which is no capture.
    pub fn timed(&self, arguments: &[&str], mode: RunMode) -> Profiled {
        let directory = tempfile::tempdir_in(self.directory.path()).unwrap();
        let mut command = Command::new(&self.path);
        command.args(arguments);
        let plain = self.plain(arguments);
        let output = self.launch(directory.path(), mode, &mut command);
        assert_same(&output, &plain);
        let files = raw_files(directory.path()).unwrap();
        assert_eq!(files.len(), 1);
        let mut header = std::fs::File::open(&files[0]).unwrap();
        let mut bytes = vec![0; size_of::<RawHeader>()];
        std::io::Read::read_exact(&mut header, &mut bytes).unwrap();
        let name = &mut |key: &RegionKey| self.function(key);
        Profiled {
            profile: read_raw(&files[0], Vec::new(), PathBuf::new(), name).unwrap(),
            header: bytes,
        }
    }

    /// What `command` prints while all regions are profiled.
    pub fn profile_output(&self, command: &mut Command) -> Output {
        let directory = tempfile::tempdir_in(self.directory.path()).unwrap();
        self.launch(directory.path(), RunMode::Profile, command)
    }

    fn function(&self, key: &RegionKey) -> String {
        let unit = self.units.iter().find(|u| u.id == key.unit).unwrap();
        unit.regions[key.index as usize].function.clone()
    }

    /// Captures the invocations of the functions' loops, by as many runs as that takes; the output of each must be that of
    /// a plain run.
    pub fn capture(&self, wanted: &[(&str, &[u64])], arguments: &[&str]) -> Run {
        let wanted = wanted.iter().flat_map(|(f, i)| self.wanted(f, i));
        self.until_none_is_left(wanted.collect(), None, arguments)
    }

    fn until_none_is_left(
        &self,
        wanted: Vec<Wanted>,
        plan: Option<TracePlan>,
        arguments: &[&str],
    ) -> Run {
        let plain = self.plain(arguments);
        let one = |wanted| {
            let run = self.capture_run(wanted, plan, Command::new(&self.path).args(arguments));
            assert_same(&run.output, &plain);
            run
        };
        let mut all = one(wanted.clone());
        let mut left = all.postponed.clone();
        while !left.is_empty() {
            let mut these = wanted.clone();
            for w in &mut these {
                let is_left = |i: &u64| left.iter().any(|p| p.key == w.key && p.invocation == *i);
                w.invocations.retain(is_left);
                w.starts.retain(|s| w.invocations.contains(&s.invocation));
            }
            these.retain(|w| !w.invocations.is_empty());
            let run = one(these);
            assert!(run.postponed.len() < left.len(), "{:?}", run.postponed);
            left = run.postponed;
            all.captures.extend(run.captures);
            all.runs += 1;
        }
        all
    }

    /// The program, for a command of one's own.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The program with one argument, started by a shell that makes these commands `before`.
    pub fn shell(&self, before: &str, argument: &str) -> Command {
        let mut shell = Command::new("sh");
        let script = format!("{before} exec \"$0\" {argument}");
        shell.args(["-c", &script]).arg(&self.path);
        shell
    }

    /// Runs `command` under the library.
    pub fn run(&self, wanted: &[(&str, &[u64])], command: &mut Command) -> Run {
        let wanted = wanted.iter().flat_map(|(f, i)| self.wanted(f, i));
        self.capture_run(wanted.collect(), None, command)
    }

    fn wanted(&self, function: &str, invocations: &[u64]) -> Vec<Wanted> {
        let keys = self.keys(function);
        assert!(!keys.is_empty(), "{function} has no outlined loop");
        let wanted = |key| Wanted {
            key,
            thread: 0,
            invocations: invocations.to_vec(),
            seconds: None,
            starts: Vec::new(),
        };
        keys.into_iter().map(wanted).collect()
    }

    /// Traces pages before invocations of functions' loops, from entries of others or the program's start; nobody may
    /// notice.
    pub fn trace(&self, plan: TracePlan, windows: &[Window], arguments: &[&str]) -> Run {
        let mut list: Vec<Wanted> = Vec::new();
        for (function, invocation, event) in windows {
            for mut wanted in self.wanted(function, &[*invocation]) {
                wanted.starts.push(TraceStart {
                    invocation: *invocation,
                    event: event.map(|(f, n)| (self.keys(f)[0].clone(), n)),
                    name: event.map_or("start".into(), |(f, n)| format!("{f}, {n}")),
                });
                match list.iter_mut().find(|w| w.key == wanted.key) {
                    Some(known) => {
                        known.invocations.append(&mut wanted.invocations);
                        known.starts.append(&mut wanted.starts);
                    }
                    None => list.push(wanted),
                }
            }
        }
        self.until_none_is_left(list, Some(plan), arguments)
    }

    fn capture_run(
        &self,
        wanted: Vec<Wanted>,
        trace: Option<TracePlan>,
        command: &mut Command,
    ) -> Run {
        let directory = tempfile::tempdir_in(self.directory.path()).unwrap();
        let mode = RunMode::Capture {
            wanted,
            trace,
            ranks: None,
        };
        let output = self.launch(directory.path(), mode, command);
        self.read(directory.path(), output)
    }

    fn launch(&self, directory: &Path, mode: RunMode, command: &mut Command) -> Output {
        let plan = RunPlan {
            version: CAPTURE_VERSION,
            directory: directory.into(),
            launched: false,
            stack_limit: self.stack_limit,
            mode,
        };
        let at = directory.join("plan.json");
        std::fs::write(&at, serde_json::to_vec(&plan).unwrap()).unwrap();
        let mut preloaded = part("libcere_preload.so").into_os_string();
        if let Some(library) = &self.preloaded {
            preloaded.push(":");
            preloaded.push(library);
        }
        command
            .envs(self.environment.iter().copied())
            .env(ENV_RUN, &at)
            .env(PRELOAD, preloaded);
        command.output().unwrap()
    }

    fn read(&self, directory: &Path, output: Output) -> Run {
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let counts = std::fs::read(directory.join("counts.0.json")).unwrap_or_default();
        let numbers = (0..).take_while(|n| directory.join(format!("{n}.json")).exists());
        let captures = numbers.map(|n| self.captured(directory, n)).collect();
        let counts = serde_json::from_slice(&counts).unwrap_or_default();
        let postponed = std::fs::read(directory.join("postponed.0.json")).unwrap_or_default();
        let postponed = serde_json::Deserializer::from_slice(&postponed).into_iter();
        Run {
            output,
            captures,
            postponed: postponed.map(Result::unwrap).collect(),
            runs: 1,
            counts,
            files,
        }
    }

    fn captured(&self, directory: &Path, number: usize) -> Captured {
        let file = |extension: &str| {
            std::fs::read(directory.join(format!("{number}.{extension}"))).unwrap()
        };
        let raw: RawCapture = serde_json::from_slice(&file("json")).unwrap();
        let (table, places, stored) = (file("table"), file("places"), file("pages"));
        let places = places.as_chunks::<4>().0.iter();
        let places: Vec<u32> = places.map(|p| u32::from_le_bytes(*p)).collect();
        assert_eq!(places.len(), 2 * table.len() / 16);
        let mut pages = BTreeMap::new();
        let mut last = 0;
        assert_eq!(table.len() % 16, 0);
        for (record, places) in table.chunks_exact(16).zip(places.as_chunks::<2>().0) {
            let address = u64::from_le_bytes(record[..8].try_into().unwrap());
            let flags = u32::from_le_bytes(record[8..12].try_into().unwrap());
            assert_eq!(flags & !PAGE_FLAGS, 0);
            let rises = address > last && address.is_multiple_of(4096);
            assert!(rises, "{address:#x} after {last:#x}");
            last = address;
            let content = |flag, place: u32| {
                assert_eq!(flags & flag != 0, place != 0, "{address:#x}");
                match place as usize {
                    0 => vec![0; 4096],
                    place => stored[(place - 1) * 4096..place * 4096].to_vec(),
                }
            };
            let entry = content(PAGE_ENTRY_STORED, places[0]);
            let exit = match flags & PAGE_WRITTEN {
                0 => entry.clone(),
                _ => content(PAGE_EXIT_STORED, places[1]),
            };
            pages.insert(address, Page { flags, entry, exit });
        }
        let known = raw.trace.as_ref().filter(|_| raw.refused.is_none());
        let bytes = known.map_or(Vec::new(), |_| file("trace"));
        assert_eq!(bytes.len() as u64, known.map_or(0, |k| 8 * k.pages));
        let words = bytes.as_chunks::<8>().0.iter();
        let words: Vec<u64> = words.map(|w| u64::from_le_bytes(*w)).collect();
        let trace: Vec<u64> = words.iter().map(|w| w % (1 << TRACE_AGE_SHIFT)).collect();
        let ages = words
            .iter()
            .map(|w| (w >> TRACE_AGE_SHIFT) * TRACE_AGE_UNIT);
        let ages = trace.iter().map(|w| w & TRACE_PAGE).zip(ages).collect();
        let mut different: Vec<u64> = trace.iter().map(|p| p & !4095).collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), trace.len(), "a page is traced twice");
        let mapped = |p: &u64| raw.mappings.iter().any(|m| m.start <= *p && *p < m.end);
        let strange = trace.iter().find(|p| !mapped(p));
        assert!(strange.is_none(), "{strange:#x?} of {:?}", raw.mappings);
        let image = std::fs::read(&self.path).unwrap();
        let image = object::File::parse(&*image).unwrap();
        let symbols = image
            .symbols()
            .filter(|s| s.address() != 0)
            .filter_map(|s| Some((s.name().ok()?.to_owned(), s.address() + raw.images[0].bias)))
            .collect();
        let known = raw
            .answers
            .as_ref()
            .filter(|a| a.bytes > 0 && raw.refused.is_none());
        let answers = known.map(|_| answers::decode("answers", &file("answers")).unwrap());
        Captured {
            function: self.function(&raw.key),
            trace,
            ages,
            answers: answers.unwrap_or_default(),
            raw,
            pages,
            symbols,
        }
    }
}

impl Profiled {
    /// The region of the function's (only) loop.
    pub fn region(&self, function: &str) -> &RegionProfile {
        let all = self.profile.regions.iter();
        let found: Vec<&RegionProfile> = all.filter(|r| r.name == function).collect();
        assert_eq!(found.len(), 1, "regions of {function} that ran");
        found[0]
    }

    /// The word of the raw profile's header at `offset`.
    pub fn word(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.header[offset..offset + 8].try_into().unwrap())
    }
}

impl Run {
    /// The capture of that invocation of the function's (only) wanted loop.
    pub fn get(&self, function: &str, invocation: u64) -> &Captured {
        let this = |c: &&Captured| c.function == function && c.raw.invocation == invocation;
        let found: Vec<&Captured> = self.captures.iter().filter(this).collect();
        assert_eq!(
            found.len(),
            1,
            "{function}:{invocation} of {:?}",
            self.files
        );
        found[0]
    }

    /// The reason why that invocation was refused.
    pub fn refused(&self, function: &str, invocation: u64) -> &str {
        let refused = self.get(function, invocation).raw.refused.as_deref();
        refused.expect("a refused capture")
    }
}

impl Captured {
    /// The pages of the trace that belong to `symbol`, of `pages` pages, by number; written ones are negative, less one.
    pub fn traced(&self, symbol: &str, pages: u64) -> Vec<i64> {
        let start = self.address(symbol);
        let inside = |p: &&u64| start <= **p && **p < start + pages * 4096;
        let number = |p: &u64| match p & TRACE_WRITTEN {
            0 => ((p - start) / 4096) as i64,
            _ => -((p - start) as i64 / 4096) - 1,
        };
        self.trace.iter().filter(inside).map(number).collect()
    }
    /// The pages of the trace that belong to `symbol`, of `pages` pages, by number, with the thread that touched each last.
    pub fn traced_by(&self, symbol: &str, pages: u64) -> Vec<(u64, u64)> {
        let start = self.address(symbol);
        let inside = |p: &&u64| start <= **p && **p < start + pages * 4096;
        let thread = |p: &u64| p >> TRACE_THREAD_SHIFT & TRACE_THREADS;
        let number = |p: &u64| ((p & TRACE_PAGE) - start) / 4096;
        let pages = self.trace.iter().filter(inside);
        pages.map(|p| (number(p), thread(p))).collect()
    }
    /// Nanoseconds from the last touch of a page in the trace to the entry.
    pub fn age(&self, symbol: &str, page: u64) -> u64 {
        self.ages[&(self.address(symbol) + page * 4096)]
    }
    /// What is known of the trace.
    pub fn known(&self) -> &PageTrace {
        self.raw.trace.as_ref().expect("a page trace")
    }
    /// Address of a symbol of the program.
    pub fn address(&self, symbol: &str) -> u64 {
        *self.symbols.get(symbol).expect(symbol)
    }
    fn word(&self, address: u64, of: fn(&Page) -> &Vec<u8>) -> u64 {
        let page = self.pages.get(&(address & !4095));
        let page = page.unwrap_or_else(|| panic!("{address:#x} is not in the table"));
        let at = (address & 4095) as usize;
        u64::from_le_bytes(of(page)[at..at + 8].try_into().unwrap())
    }
    /// The capture, which is not refused, and whose region has returned.
    pub fn finished(&self) -> &Captured {
        let how = (self.raw.end, self.raw.refused.as_deref());
        assert_eq!(how, (RegionEnd::Returned, None), "{}", self.function);
        self
    }
    /// The word at `address` at entry and at exit.
    pub fn both(&self, address: u64) -> (u64, u64) {
        (self.entry(address), self.exit(address))
    }
    /// The word at `address` at entry.
    pub fn entry(&self, address: u64) -> u64 {
        self.word(address, |p| &p.entry)
    }
    /// The word at `address` at exit.
    pub fn exit(&self, address: u64) -> u64 {
        self.word(address, |p| &p.exit)
    }
    /// Flags of the page at `address`; 0 if it is not in the table.
    pub fn flags(&self, address: u64) -> u32 {
        self.pages.get(&(address & !4095)).map_or(0, |p| p.flags)
    }
    /// Pages with all the given flags.
    pub fn count(&self, flags: u32) -> usize {
        self.flagged(flags, flags)
    }
    /// Pages whose flags of `which` are these.
    pub fn flagged(&self, which: u32, flags: u32) -> usize {
        let all = self.pages.values();
        all.filter(|p| p.flags & which == flags).count()
    }
    /// Number of times that a system call was made.
    pub fn calls(&self, name: &str) -> u64 {
        let all = self.raw.system_calls.iter();
        all.filter(|c| c.name == name).map(|c| c.count).sum()
    }
}
