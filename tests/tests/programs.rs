//! Every program in `programs/` at every level that it names. `cargo test -p cere-tests --test programs NAME` runs some.

use cere_tests::directives::{Directives, programs};
use cere_tests::study::Study;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::from_args();
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut trials = Vec::new();
    for source in programs(&home)? {
        let directives = Directives::read(&source)?;
        let name = source
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for flags in directives.levels.clone() {
            let (source, directives) = (source.clone(), directives.clone());
            trials.push(Trial::test(format!("{name} {flags}"), move || {
                let directory = tempfile::tempdir()?;
                let study = Study {
                    source: &source,
                    directives: &directives,
                    flags: &flags,
                    directory: directory.path(),
                };
                study.run().map_err(|error| {
                    let kept = directory.keep();
                    Failed::from(format!("{error:#}\nkept in {}", kept.display()))
                })
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit()
}
