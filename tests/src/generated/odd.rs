//! Odd programs: [features](super::feature) in one program, in units, shared libraries and plugins, called directly or around one
//! another.

use super::feature::{Feature, Place};
use super::random::Random;
use std::fmt::Write;

/// Flags that programs are built with, one of each.
const LEVELS: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-Os"];
const MODELS: [&str; 5] = ["", "", "", " -fno-pie -no-pie", " -fPIC"];
const OTHERS: [&str; 6] = ["", "", "", " -g", " -march=native", " -fno-plt"];
/// Flags of replays besides the build's: those that round as the build does, then those that may not.
const SAME: [&str; 4] = ["-O0", "-O1", "-O2 -fno-unroll-loops", "-Os"];
const ROUNDING: [&str; 3] = [
    "-O3 -march=native",
    "-O3 -march=native -ffast-math",
    "-O2 -mfma -ffp-contract=fast",
];

/// A file of a program.
#[derive(Debug)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A program.
#[derive(Debug)]
pub struct Odd<'a> {
    /// The features, by number.
    pub features: Vec<&'a Feature>,
    /// Whether another region is around them all.
    pub around: bool,
    /// The sources.
    pub files: Vec<File>,
    /// Builds `./program` from `$SOURCES`, with `$CC`, `$CXX`, `$FC` and `$FLAGS`.
    pub script: String,
    /// Flags of the build.
    pub flags: String,
    /// Flags of three replays more.
    pub replays: Vec<String>,
}

const HEAD_C: &str = include_str!("../../odd/head.h");
const HEAD_CPP: &str = include_str!("../../odd/head.hpp");

impl<'a> Odd<'a> {
    /// The program of this seed with some of `features`.
    pub fn new(seed: u64, features: &'a [Feature]) -> Self {
        let mut random = Random::new(seed);
        // A program has Fortran, or C++, or neither; C goes with each.
        let language = *random.pick(&[&"c", &"c", &"cpp", &"cpp", &"f90"]);
        let own: Vec<&Feature> = features.iter().filter(|f| f.language == language).collect();
        let c: Vec<&Feature> = features.iter().filter(|f| f.language == "c").collect();
        let mut chosen = Vec::new();
        for _ in 0..2 + random.below(3) {
            let from = if own.is_empty() || random.chance(25) {
                &c
            } else {
                &own
            };
            if !from.is_empty() {
                chosen.push(from[random.below(from.len())]);
            }
        }
        Self::of(&mut random, chosen)
    }

    fn of(random: &mut Random, features: Vec<&'a Feature>) -> Self {
        let around = random.chance(20);
        // flang has not all of clang's flags: the last ones of each list.
        let fortran = features.iter().any(|f| f.language == "f90");
        let but = |all: usize| if fortran { all - 1 } else { all };
        let mut flags = format!(
            "{}{}{}",
            LEVELS[random.below(but(LEVELS.len()))],
            MODELS[random.below(MODELS.len())],
            OTHERS[random.below(but(OTHERS.len()))]
        );
        for flag in features.iter().flat_map(|f| &f.flags) {
            if !flags.contains(flag) {
                flags = format!("{flags} {flag}");
            }
        }
        let same = but(SAME.len());
        let first = random.below(same);
        let second = (first + 1 + random.below(same - 1)) % same;
        let replays = vec![
            SAME[first].to_owned(),
            SAME[second].to_owned(),
            ROUNDING[random.below(but(ROUNDING.len()))].to_owned(),
        ];
        let mut odd = Self {
            around,
            files: Vec::new(),
            script: String::new(),
            flags,
            replays,
            features,
        };
        odd.make(random);
        odd
    }

    /// Whether code may round otherwise with these flags.
    pub fn rounds(flags: &str) -> bool {
        ROUNDING.contains(&flags)
    }

    fn make(&mut self, random: &mut Random) {
        let (mut objects, mut library, mut visible) = (String::new(), String::new(), String::new());
        let mut lines = Vec::new();
        let features = self.features.clone();
        for (number, feature) in features.iter().enumerate() {
            // Sometimes all of it is in the library.
            let inside = feature.language != "f90" && random.chance(15);
            for (part, text) in feature.made(random, number).into_iter().enumerate() {
                let places = &feature.parts[part].places;
                let place = match places[random.below(places.len())] {
                    Place::Unit if inside => Place::Library,
                    place => place,
                };
                let unit = format!("u{number}{}", ["", "b", "c"][part.min(2)]);
                let name = format!("{unit}.{}", feature.language);
                let (head, compiler) = match feature.language {
                    "c" => (HEAD_C, "$CC"),
                    "cpp" => (HEAD_CPP, "$CXX -std=c++20"),
                    _ => ("", "$FC"),
                };
                self.files.push(File {
                    text: format!("{head}{text}"),
                    name: name.clone(),
                });
                let compiler = match (place, feature.language) {
                    (Place::Plain, "cpp") => "/usr/bin/clang++-22 -std=c++20",
                    (Place::Plain, _) => "/usr/bin/clang-22",
                    _ => compiler,
                };
                let shared = matches!(place, Place::Library | Place::Plugin);
                let how = if shared { "-fPIC" } else { "" };
                lines.push(format!(
                    "{compiler} $FLAGS {how} -w -c \"$SOURCES/{name}\" -o {unit}.o"
                ));
                match place {
                    Place::Unit | Place::Plain => objects += &format!(" {unit}.o"),
                    Place::Library => library += &format!(" {unit}.o"),
                    Place::Plugin => lines.push(format!(
                        "{compiler} $FLAGS -shared {unit}.o -o libplugin{number}.so -lm"
                    )),
                }
            }
            write!(visible, " f{number}; *f{number}_x_*;").expect("text grows");
        }
        let has = |language| features.iter().any(|f| f.language == language);
        let linker = match (has("f90"), has("cpp")) {
            (true, _) => "$FC",
            (_, true) => "$CXX",
            _ => "$CC",
        };
        let mut libraries = "-lm -lpthread -ldl".to_owned();
        if !library.is_empty() {
            let script = format!("{{ global:{visible} local: *; }};\n");
            self.files.push(File {
                name: "visible.map".into(),
                text: script,
            });
            let linker = if has("cpp") { "$CXX" } else { "$CC" };
            lines.push(format!(
                "{linker} $FLAGS -shared{library} -o libodd.so -Wl,--version-script,\"$SOURCES/visible.map\" -lm"
            ));
            libraries = format!("-L. -lodd -Wl,-rpath,'$ORIGIN' {libraries}");
        }
        self.files.push(File {
            name: "main.c".into(),
            text: self.main_of(random),
        });
        lines.push("$CC $FLAGS -w -c \"$SOURCES/main.c\" -o main.o".into());
        objects += " main.o";
        if has("f90") {
            self.files.push(File {
                name: "start.f90".into(),
                text: START.into(),
            });
            lines.push("$FC $FLAGS -w -c \"$SOURCES/start.f90\" -o start.o".into());
            objects += " start.o";
        }
        lines.push(format!("{linker} $FLAGS{objects} -o program {libraries}"));
        self.script = lines.join("\n");
    }

    /// What calls each feature and prints its checksum.
    fn main_of(&self, random: &mut Random) -> String {
        let mut text = "#include <stdio.h>\ntypedef unsigned long word;\n".to_owned();
        for number in 0..self.features.len() {
            writeln!(text, "word f{number}(word);").expect("text grows");
        }
        let fortran = self.features.iter().any(|f| f.language == "f90");
        text += if fortran {
            "int start(void) {\n"
        } else {
            "int main(void) {\n"
        };
        let turns = 1 + random.below(3);
        if self.around {
            writeln!(
                text,
                "  word sum = 0;\n  for (int i = 0; i < {turns}; i++) {{"
            )
            .expect("text grows");
        }
        for (number, feature) in self.features.iter().enumerate() {
            let seed = random.below(100_000);
            let line = match self.around {
                true => format!("    sum = sum * 31 + f{number}({seed} + i);"),
                false => format!(
                    "  printf(\"f{number} {} %lx\\n\", f{number}({seed}));\n  fflush(stdout);",
                    feature.name
                ),
            };
            text += &line;
            text.push('\n');
        }
        if self.around {
            text += "  }\n  printf(\"sum %lx\\n\", sum);\n";
        }
        text + "  return 0;\n}\n"
    }
}

const START: &str = "program odd
  use iso_c_binding
  interface
    integer(c_int) function run() bind(C, name='start')
      import
    end function
  end interface
  integer :: status
  status = run()
end program
";
