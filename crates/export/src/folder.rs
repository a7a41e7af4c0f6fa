//! A folder that builds and runs a codelet without CERE.

use crate::keeps::{BUILD, End};
use crate::reduce::Reduced;
use crate::sources::{self, Sources};
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::package::{Manifest, OFFERED_LIBRARIES, PackageUnit};
use cere_format::replay::{Repetitions, ReplayPlan, Warmup};
use cere_replay::keep::MEMBERS;
use cere_replay::plain::Plain;
use cere_replay::{Options, glue, link, plan};
use cere_toolchain::command::{Line, run};
use cere_toolchain::unit;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const AR: &str = "llvm-ar-22";
const MAKEFILE: &str = include_str!("../assets/Makefile");
const MARKERS: &str = include_str!("../assets/markers.s");
const README: &str = include_str!("../assets/README.md");
const HEADER: &str = include_str!("../assets/cere_runtime.h");
const GDB: &str = include_str!("../assets/gdb.txt");
const REPRODUCER: &str = include_str!("../assets/REPRODUCER.md");
const VALGRIND: &str = include_str!("../assets/valgrind.md");
/// With their names in the folder.
const LICENCES: [(&str, &str); 2] = [
    ("LICENSE-MIT", include_str!("../../../LICENSE-MIT")),
    ("LICENSE-APACHE", include_str!("../../../LICENSE-APACHE")),
];
/// The folder of the members.
const DATA: &str = "data";
/// The folder of the sources.
const SOURCES: &str = "src";

/// A codelet, and where its folder is to be.
pub struct Folder<'a> {
    /// The folder.
    pub path: &'a Path,
    /// The unpacked package.
    pub package: &'a Path,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// The units, and what is linked with them.
    pub plain: &'a Plain,
    /// How it is replayed.
    pub options: &'a Options,
    /// What stands for one of the units, if that was reduced.
    pub reduced: Option<Reproducer<'a>>,
}

/// A reduced unit.
pub struct Reproducer<'a> {
    /// Which.
    pub unit: usize,
    /// Its IR, and how it came to that.
    pub reduced: &'a Reduced,
    /// Flags, the accused ones first, and how it ends under each.
    pub ends: &'a [(String, Option<End>)],
    /// Where time is kept: the whole codelet's ratio, and the least of candidates.
    pub ratio: Option<(f64, f64)>,
}

/// What was written.
pub struct Written {
    /// Bytes of all files.
    pub bytes: u64,
    /// Sources, and those that are not in the folder.
    pub sources: Sources,
}

/// Creates the folder that a command writes to, which must not hold anything; its absolute path.
pub fn create(path: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut entries =
        std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    if entries.next().is_some() {
        bail!(
            E6408,
            "{} is not empty: name a folder that does not exist yet, or remove it",
            path.display()
        );
    }
    std::fs::canonicalize(path).with_context(|| format!("cannot open {}", path.display()))
}

/// A word of a Makefile's recipe.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    let quoted = match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    };
    quoted.replace('$', "$$").replace('#', "\\#")
}

fn words<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = all.into_iter().map(|w| word(w.as_ref())).collect();
    all.join(" ")
}

/// Quoted for the assembler.
fn symbol(name: &str) -> String {
    format!("\"{name}\"")
}

impl Folder<'_> {
    /// Writes everything.
    pub fn write(&self) -> Result<Written> {
        let texts = self.units()?;
        let sources = sources::copy(&texts, &self.path.join(SOURCES))?;
        self.save("Makefile", &self.makefile()?)?;
        self.save("glue.s", &self.glue())?;
        link::write_first(&self.path.join("first.s"))?;
        let invoke = glue::invoke(self.manifest);
        self.save("markers.s", &MARKERS.replace("@INVOKE@", &symbol(&invoke)))?;
        self.runtime()?;
        self.save("cere_runtime.h", HEADER)?;
        for (name, text) in LICENCES {
            self.save(name, text)?;
        }
        self.data()?;
        self.plans()?;
        self.save("gdb.txt", &self.gdb(&sources))?;
        self.save("README.md", &self.readme(&sources))?;
        if let Some(reproducer) = &self.reduced {
            self.save("REPRODUCER.md", &self.reproducer(reproducer))?;
        }
        Ok(Written {
            bytes: size(self.path)?,
            sources,
        })
    }

    fn save(&self, name: &str, text: &str) -> Result<()> {
        let to = self.path.join(name);
        std::fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))
    }

    /// The IR as text, which is returned.
    fn units(&self) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        for (index, source) in self.plain.units.iter().enumerate() {
            let to = self.path.join(format!("unit{index}.ll"));
            let line = Line::new(unit::DIS)
                .confined(&self.options.settings.sandbox)
                .path(&source.ir)
                .arg("-o")
                .output(&to);
            run(&line, &self.manifest.units[index].source)?;
            let text =
                std::fs::read(&to).with_context(|| format!("cannot read {}", to.display()))?;
            texts.push(String::from_utf8_lossy(&text).into_owned());
            if let Some(reproducer) = self.reduced.as_ref().filter(|r| r.unit == index) {
                self.save(&format!("unit{index}.whole.ll"), &texts[index])?;
                self.save(&format!("unit{index}.ll"), &reproducer.reduced.ir)?;
            }
        }
        Ok(texts)
    }

    /// The harness as a library of one member.
    fn runtime(&self) -> Result<()> {
        let object = self.path.join("cere_runtime.o");
        let from = self.plain.runtime();
        std::fs::copy(from, &object)
            .with_context(|| format!("cannot write {}", object.display()))?;
        let line = Line::new(AR)
            .confined(&self.options.settings.sandbox)
            .arg("rcsD")
            .output(&self.path.join("libcere_runtime.a"))
            .path(&object);
        run(&line, "the harness")?;
        std::fs::remove_file(&object).with_context(|| format!("cannot remove {}", object.display()))
    }

    /// The glue, in which the region can be reached through the markers.
    fn glue(&self) -> String {
        let direct = format!(
            "cere_glue_invoke: .quad {}\n",
            symbol(&glue::invoke(self.manifest))
        );
        let either = format!(
            "cere_glue_invoke:\n.ifdef MARKERS\n.quad cere_marked_invoke\n.else\n{}.endif\n",
            direct.replace("cere_glue_invoke: ", "")
        );
        self.plain.glue.text.replace(&direct, &either)
    }

    fn data(&self) -> Result<()> {
        let data = self.path.join(DATA);
        std::fs::create_dir_all(&data)
            .with_context(|| format!("cannot create {}", data.display()))?;
        for member in MEMBERS {
            let (from, to) = (self.package.join(member), data.join(member));
            if from.exists() {
                std::fs::copy(&from, &to)
                    .with_context(|| format!("cannot write {}", to.display()))?;
            }
        }
        Ok(())
    }

    /// The plan of a run, and that of a run in a simulator.
    fn plans(&self) -> Result<()> {
        let settings = &self.options.settings;
        let (warmup, _) = plan::warmup(self.manifest, settings.warmup, settings.team.threads)?;
        let plan = ReplayPlan {
            guard: None,
            report: true,
            ..plan::plan(
                DATA.into(),
                "outcome.json".into(),
                warmup,
                self.manifest,
                self.options,
            )
        };
        let simulated = ReplayPlan {
            warmup: Warmup::WorkingSet,
            repetitions: Repetitions::exactly(1),
            untrained: true,
            ..plan.clone()
        };
        self.save("plan.json", &serde_json::to_string_pretty(&plan)?)?;
        self.save("simulate.json", &serde_json::to_string_pretty(&simulated)?)
    }

    fn makefile(&self) -> Result<String> {
        let (manifest, options) = (self.manifest, self.options);
        let objects: Vec<PathBuf> =
            self.plain
                .objects(manifest, &self.plain.units, self.options)?;
        let paths: Vec<&Path> = objects.iter().map(PathBuf::as_path).collect();
        let linked = link::link(
            manifest,
            &paths,
            &self.plain.glue,
            self.plain.runtime(),
            options,
        )?;
        let other = options.settings.team.runtime.as_deref();
        let own = manifest.library_directories.iter().map(PathBuf::from);
        let own: Vec<PathBuf> = own
            .chain(other.and_then(Path::parent).map(Path::to_owned))
            .collect();
        let directories = own.iter().map(|d| d.to_string_lossy().into_owned());
        let system = cere_arch::HERE.facts().directories.iter();
        let directories = directories.chain(system.map(|d| (*d).to_owned()));
        let directories: Vec<String> = directories.filter(|d| Path::new(d).is_dir()).collect();
        let rpaths = own
            .iter()
            .map(|d| format!("-rpath {} ", word(&d.to_string_lossy())));
        let there = |library: &&str| {
            let mut all = directories.iter();
            all.any(|d| Path::new(d).join(library).is_file())
        };
        let needed = manifest
            .libraries
            .iter()
            .filter(|l| !l.starts_with("ld-linux"));
        let needed = needed.map(|l| format!("-l:{l}"));
        let offered = OFFERED_LIBRARIES.iter().filter(|l| there(l));
        let offered = offered.map(|l| format!("-l:{l}"));
        let as_needed = std::iter::once("--as-needed".to_owned());
        let libc = std::iter::once("-l:libc.so.6".to_owned());
        let libraries: Vec<String> = needed.chain(as_needed).chain(offered).chain(libc).collect();
        let model = match manifest.image.low {
            true => "static",
            false => "pic",
        };
        let threads = plan::threads(manifest, options.settings.team.threads);
        let environment = threads.map_or(String::new(), |n| {
            format!("OMP_NUM_THREADS={n} OMP_DYNAMIC=false")
        });
        let units: Vec<String> = (0..objects.len()).map(|i| format!("unit{i}.o")).collect();
        let mut text = MAKEFILE
            .replace("@NAME@", &manifest.name.replace(char::is_control, " "))
            .replace("@FLAGS@", &words(&options.settings.flags))
            .replace("@MODEL@", model)
            .replace("@DIRECTORIES@", &words(&directories))
            .replace("@RPATHS@", &rpaths.collect::<String>())
            .replace("@BASE@", &format!("{:#x}", linked.base))
            .replace("@LIBRARIES@", &words(&libraries))
            .replace("@UNITS@", &units.join(" "))
            .replace("@ENVIRONMENT@", &environment);
        for (index, unit) in manifest.units.iter().enumerate() {
            self.rule(index, unit, &mut text);
        }
        if let Some(reproducer) = &self.reduced {
            let _ = write!(text, "{}", self.shown(reproducer));
        }
        Ok(text)
    }

    /// How a unit's object is made.
    fn rule(&self, index: usize, unit: &PackageUnit, text: &mut String) {
        let source = unit.source.replace(char::is_control, " ");
        let compiler = match unit::compiler(unit.language, false) {
            unit::FLANG => "FC",
            _ => "CC",
        };
        let quiet = match compiler {
            "CC" => " -Wno-unused-command-line-argument",
            _ => "",
        };
        let codegen = words(&unit.codegen);
        let flags = match self.reduced.as_ref().is_none_or(|r| r.unit == index) {
            true => "$(FLAGS)",
            // As built, whatever the flags of the reduced unit.
            false => "",
        };
        let rename = match self.plain.renamed.is_empty() {
            true => String::new(),
            false => {
                let pairs = self.plain.renamed.iter();
                let pairs =
                    pairs.map(|n| format!("--redefine-sym={n}={}", glue::renamed_symbol(n)));
                format!("\t$(OBJCOPY) {} $@\n", words(pairs))
            }
        };
        let _ = write!(
            text,
            "\n# {source}\nunit{index}.o: unit{index}.ll .settings\n\
             ifeq ($(PASSES),)\n\
             \t$({compiler}) {codegen} {flags} -w{quiet} -x ir -c $< -o $@\n\
             else\n\
             \t$(OPT) $(OPTFLAGS) -passes='$(PASSES)' $< -o unit{index}.opt.bc\n\
             \t$(LLC) $(LLCFLAGS) -filetype=obj unit{index}.opt.bc -o $@\n\
             endif\n{rename}"
        );
    }

    /// The target that shows what a reduced unit keeps.
    fn shown(&self, reproducer: &Reproducer) -> String {
        let mut text =
            "\n# How it ends, and how long it takes, under each set of flags.\nshow:\n".to_owned();
        for (flags, _) in reproducer.ends {
            let flags = match flags.as_str() {
                BUILD => "",
                other => other,
            };
            let quoted = word(&format!("FLAGS={flags}"));
            let _ = write!(
                text,
                "\t@$(MAKE) -s replay {quoted}\n\t@echo {}\n\t-@./replay | grep -E '^(median|state):'\n",
                word(&format!("flags: {flags}"))
            );
        }
        text + ".PHONY: show\n"
    }

    fn reproducer(&self, reproducer: &Reproducer) -> String {
        let (index, reduced) = (reproducer.unit, reproducer.reduced);
        let unit = &self.manifest.units[index];
        let compiler = unit::compiler(unit.language, false);
        let (mut ends, mut commands) = (String::new(), String::new());
        for (flags, end) in reproducer.ends {
            let end = end.map_or("not always alike".to_owned(), |end| end.to_string());
            let _ = writeln!(ends, "| `{flags}` | {end} |");
            let flags = if flags == BUILD { "" } else { flags };
            let codegen = words(&unit.codegen).replace("$$", "$");
            let _ = writeln!(
                commands,
                "    {compiler} {codegen} {flags} -w -x ir -S unit{index}.ll -o -"
            );
        }
        let ratio = reproducer.ratio.map_or(String::new(), |(found, wanted)| {
            format!("The whole codelet takes {found:.2} times as long under the first flags as under the others; this keeps {wanted:.2}.\n")
        });
        let promises = match reduced.without_promises {
            Some(true) => {
                "It is kept without `nsw`, `nuw`, `inbounds` and the like: undefined arithmetic is not the cause."
            }
            Some(false) => {
                "It is not kept without `nsw`, `nuw`, `inbounds` and the like: check (by Alive2, say) that the IR does not break these \
                 promises before you report it."
            }
            None => "",
        };
        REPRODUCER
            .replace("@NAME@", &self.manifest.name.replace(char::is_control, " "))
            .replace("@INDEX@", &index.to_string())
            .replace("@AFTER@", &reduced.instructions.1.to_string())
            .replace("@BEFORE@", &reduced.instructions.0.to_string())
            .replace("@LINES@", &reduced.lines.1.to_string())
            .replace("@ALL_LINES@", &reduced.lines.0.to_string())
            .replace("@ENDS@\n", &ends)
            .replace("@COMMANDS@\n", &commands)
            .replace("@RATIO@\n", &ratio)
            .replace("@PROMISES@", promises)
    }

    /// The name of the region's function in the objects.
    fn region(&self) -> String {
        glue::invoke(self.manifest)
    }

    fn gdb(&self, sources: &Sources) -> String {
        let copies = match sources.copied.is_empty() {
            true => String::new(),
            // Each absolute path has its copy below the folder.
            false => format!("set substitute-path / {SOURCES}/\n"),
        };
        GDB.replace("@PATHS@", &copies)
            .replace("@SYMBOL@", &format!("'{}'", self.region()))
    }

    fn readme(&self, sources: &Sources) -> String {
        let manifest = self.manifest;
        let mut units = String::new();
        for (index, unit) in manifest.units.iter().enumerate() {
            let source = unit.source.replace(char::is_control, " ");
            let _ = writeln!(
                units,
                "| `unit{index}.ll` | IR of {source}, before optimisation |"
            );
        }
        let copied = match sources.copied.is_empty() {
            true => "",
            false => {
                "| `src/` | sources that the IR's debug information names, as they were compiled |\n"
            }
        };
        README
            .replace("@NAME@", &manifest.name.replace(char::is_control, " "))
            .replace("@VERSION@", "22")
            .replace("@UNITS@\n", &units)
            .replace("@SOURCES@\n", copied)
            .replace("@SYMBOL@", &self.region())
            .replace("@VALGRIND@", VALGRIND.trim())
    }
}

/// Bytes of all files in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    let read = || format!("cannot read {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(read)? {
        let entry = entry.with_context(read)?;
        let about = entry.metadata().with_context(read)?;
        bytes += match about.is_dir() {
            true => size(&entry.path())?,
            false => about.len(),
        };
    }
    Ok(bytes)
}

/// Flags of the units that name files which no folder has: profiles of the program.
pub fn files_of_flags(manifest: &Manifest) -> Vec<String> {
    let flags = manifest.units.iter().flat_map(|unit| &unit.codegen);
    flags
        .filter(|flag| {
            flag.starts_with("-fprofile-use=") || flag.starts_with("-fprofile-instr-use=")
        })
        .cloned()
        .collect()
}
