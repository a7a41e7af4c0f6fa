//! Every program in `programs/` at every level that it names, and the examples. `cargo test -p cere-tests --test programs NAME`
//! runs some.

use cere_tests::directives::{Directives, Expectation, programs};
use cere_tests::inject::total;
use cere_tests::study::trials;
use std::path::Path;

/// The examples: the directory, the main source, numbers of OpenMP threads, arguments.
const EXAMPLES: [(&str, &str, &[u32], &[&str]); 4] = [
    ("wave", "main.c", &[], &[]),
    ("heat", "heat.f90", &[], &[]),
    ("particles", "main.cpp", &[], &[]),
    ("plate", "plate.c", &[1, 2], &["100", "200"]),
];

/// Builds an example by its own Makefile, in a copy.
fn example(name: &str, teams: &[u32], args: &[&str]) -> Directives {
    let compilers = r#"CC="$CC" CXX="$CXX" FC="$FC""#;
    let flags = r#"CFLAGS="$FLAGS" CXXFLAGS="$FLAGS" FFLAGS="$FLAGS""#;
    Directives {
        levels: vec!["-O3".into()],
        build: Some(format!(
            "cp -r $DIR/. . && make -B {compilers} {flags} && ln -sf {name} program"
        )),
        args: args.iter().map(|a| (*a).into()).collect(),
        teams: teams.to_vec(),
        codelets: 1,
        loop_refused: match teams {
            [] => Vec::new(),
            _ => vec![Expectation {
                glob: "*.omp_outlined@*".into(),
                text: "within a parallel region".into(),
            }],
        },
        ..Directives::default()
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = cere_tests::arguments();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for source in programs(&here.join("programs"))? {
        let directives = Directives::read(&source)?;
        all.extend(trials(&source, &directives, |_| Ok(())));
    }
    for (name, main, teams, args) in EXAMPLES {
        let source = here.join("../examples").join(name).join(main);
        all.extend(trials(&source, &example(name, teams, args), |_| Ok(())));
    }
    let conclusion = libtest_mimic::run(&arguments, all);
    println!("bits flipped in words that regions wrote: {}", total());
    conclusion.exit()
}
