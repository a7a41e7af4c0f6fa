//! Builds programs with the plugin and takes a raw capture of a running one by way of `/proc`.
#![allow(dead_code)]

use cere_format::build::{BUILD_VERSION, CompileCommand, ENV_COMMAND};
use cere_format::capture::*;
use cere_format::profile::RegionKey;
use cere_format::store::Store;
use cere_package::io::encode_table;
use cere_testing::built::part;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub use cere_format::PAGE;

pub fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A directory with a store, where test programs are built.
pub struct Build {
    pub directory: tempfile::TempDir,
    pub store: Store,
}

impl Build {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("store"));
        Self { directory, store }
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
    pub fn source(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs")
            .join(name)
    }
    /// Compiles one source under the pass.
    pub fn compile(&self, source: &str, codegen: &[&str]) -> PathBuf {
        let object = self.path(source).with_extension("o");
        let compiler = if source.ends_with("90") {
            "flang-22"
        } else {
            "clang-22"
        };
        let path = Self::source(source);
        if source.ends_with(".s") {
            run(Command::new(compiler)
                .arg("-c")
                .arg(&path)
                .arg("-o")
                .arg(&object));
            return object;
        }
        let record = CompileCommand {
            version: BUILD_VERSION,
            store: self.store.root().into(),
            directory: self.directory.path().into(),
            compiler: compiler.into(),
            arguments: vec![path.display().to_string()],
            codegen: codegen.iter().map(|f| (*f).into()).collect(),
            output: Some(object.clone()),
            debug: false,
            skip: Vec::new(),
            short: None,
            split: Vec::new(),
            functions: Vec::new(),
            front: None,
            variables: Default::default(),
        };
        let command = self.path("command.json");
        std::fs::write(&command, serde_json::to_vec(&record).unwrap()).unwrap();
        run(Command::new(compiler)
            .current_dir(self.directory.path())
            .env(ENV_COMMAND, &command)
            .arg(format!(
                "-fpass-plugin={}",
                part("libcere_pass.so").display()
            ))
            .args(codegen)
            .args(["-gline-tables-only", "-c"])
            .arg(&path)
            .arg("-o")
            .arg(&object));
        object
    }
    /// Ids of the units, by the file name of their source.
    pub fn units(&self) -> BTreeMap<String, String> {
        let mut units = BTreeMap::new();
        for entry in std::fs::read_dir(self.store.units()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "json") {
                let unit: cere_format::build::Unit =
                    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
                let name = unit
                    .source
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                units.insert(name, unit.id);
            }
        }
        units
    }
}

/// A program that printed where its things are and waits for input.
pub struct Waiting {
    child: Child,
    /// What it printed: `name kind address`.
    pub places: BTreeMap<(String, String), u64>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.stdin.take().map(|mut i| i.write_all(b"1\n"));
        let _ = self.child.wait();
    }
}

impl Waiting {
    pub fn start(program: &Path) -> Self {
        let mut child = Command::new(program)
            .env("LD_BIND_NOW", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut places = BTreeMap::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.first() == Some(&"ready") {
                break;
            }
            if let [name, kind, address] = words[..] {
                let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap();
                places.insert((name.into(), kind.into()), address);
            }
        }
        Self { child, places }
    }

    fn mappings(&self) -> Vec<Mapping> {
        let text = std::fs::read_to_string(format!("/proc/{}/maps", self.child.id())).unwrap();
        let number = |t: &str| u64::from_str_radix(t, 16).unwrap();
        text.lines()
            .map(|line| {
                let mut words = line.split_whitespace();
                let (start, end) = words.next().unwrap().split_once('-').unwrap();
                let permissions = words.next().unwrap().to_owned();
                let offset = number(words.next().unwrap());
                Mapping {
                    start: number(start),
                    end: number(end),
                    permissions,
                    offset,
                    path: words.nth(2).unwrap_or("").to_owned(),
                    huge: false,
                }
            })
            .filter(|m| !m.path.starts_with("[v"))
            .collect()
    }

    /// Writes `0.json` and its files to `directory`. `change` sees each page's address and its bytes at exit.
    pub fn capture(
        &self,
        directory: &Path,
        key: RegionKey,
        tls: Option<(u64, u64)>,
        mut change: impl FnMut(u64, &mut [u8]),
    ) -> PathBuf {
        let mappings = self.mappings();
        let memory = std::fs::File::open(format!("/proc/{}/mem", self.child.id())).unwrap();
        let mut images: Vec<Image> = Vec::new();
        for m in mappings.iter().filter(|m| m.path.starts_with('/')) {
            match images.iter_mut().find(|i| i.path == Path::new(&m.path)) {
                Some(image) => image.range.1 = m.end,
                None => images.push(Image {
                    path: (&m.path).into(),
                    bias: if m.start < 1 << 31 { 0 } else { m.start },
                    range: (m.start, m.end),
                    instrumented: instrumented(Path::new(&m.path)),
                    program: !cere_format::system::taken_fresh(Path::new(&m.path)),
                    tls: None,
                    chosen: Vec::new(),
                }),
            }
        }
        // Memory of an image without a file: its last pages of zeroes.
        for m in mappings.iter().filter(|m| m.path.is_empty()) {
            if let Some(image) = images
                .iter_mut()
                .find(|i| i.range.1 == m.start && i.instrumented)
            {
                image.range.1 = m.end;
            }
        }
        images[0].tls = tls;
        let stack = mappings.iter().find(|m| m.path == "[stack]").unwrap().end - 2 * PAGE;
        let (mut table, mut places, mut pages) = (Vec::new(), Vec::new(), Vec::new());
        for m in &mappings {
            let program = images
                .iter()
                .any(|i| i.instrumented && i.range.0 <= m.start && m.start < i.range.1);
            let code = m.permissions.contains('x');
            let thread = tls.is_some_and(|t| m.start <= t.0 && t.0 < m.end);
            let writable = m.permissions.starts_with("rw");
            let library = m.path.starts_with('/') && !program;
            if !m.permissions.starts_with('r') || library && !writable {
                continue;
            }
            for address in (m.start..m.end).step_by(PAGE as usize) {
                if m.path == "[stack]" && address < stack - PAGE {
                    continue;
                }
                let mut page = vec![0; PAGE as usize];
                memory.read_exact_at(&mut page, address).unwrap();
                let mut flags = PAGE_TOUCHED | PAGE_ENTRY_STORED;
                let mut store = |page: &[u8]| {
                    pages.extend_from_slice(page);
                    (pages.len() as u64 / PAGE) as u32
                };
                let mut place = [store(&page), 0];
                if writable {
                    flags |= PAGE_WRITTEN | PAGE_EXIT_STORED;
                    change(address, &mut page);
                    place[1] = store(&page);
                }
                places.extend(place.iter().flat_map(|place| place.to_le_bytes()));
                if code {
                    flags |= PAGE_CODE;
                }
                if library || thread {
                    flags |= PAGE_FOREIGN;
                }
                if m.path == "[stack]" {
                    flags |= PAGE_STACK;
                }
                table.push(PageRecord {
                    address,
                    flags,
                    thread: 0,
                });
            }
        }
        let capture = RawCapture {
            openmp: None,
            answers: None,
            mpi: None,
            c_library: None,
            trace: None,
            version: CAPTURE_VERSION,
            key,
            invocation: 1,
            thread: 0,
            beside: 0,
            refused: None,
            end: RegionEnd::Returned,
            page_size: PAGE,
            entry: EntryState {
                stack_pointer: stack,
                arguments: stack + 64,
                arguments_size: 16,
                mxcsr: 0x1f80,
                x87_control: 0x37f,
                frames: None,
            },
            thread_pointer: 0,
            thread_number: 0,
            program_break: 0,
            freed: Vec::new(),
            images,
            mappings,
            fresh: Vec::new(),
            heap: (0, 0),
            interposed: Vec::new(),
            system_calls: Vec::new(),
            process: 0,
            disturbed_cycles: 0,
            faults: 0,
        };
        std::fs::create_dir_all(directory).unwrap();
        let json = directory.join("0.json");
        std::fs::write(directory.join("0.table"), encode_table(&table)).unwrap();
        std::fs::write(directory.join("0.places"), places).unwrap();
        std::fs::write(directory.join("0.pages"), pages).unwrap();
        std::fs::write(&json, serde_json::to_vec(&capture).unwrap()).unwrap();
        json
    }
}

fn instrumented(path: &Path) -> bool {
    let data = std::fs::read(path).unwrap();
    let section = cere_format::abi::UNIT_SECTION.as_bytes();
    data.windows(section.len()).any(|w| w == section)
}
