//! Every program in `programs/` at every level that it names. `cargo test -p cere-tests --test programs NAME` runs some.

use cere_tests::directives::{Directives, programs};
use cere_tests::inject::total;
use cere_tests::study::trials;
use libtest_mimic::Arguments;
use std::path::Path;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::from_args();
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut all = Vec::new();
    for source in programs(&home)? {
        let directives = Directives::read(&source)?;
        all.extend(trials(&source, &directives, |_| Ok(())));
    }
    let conclusion = libtest_mimic::run(&arguments, all);
    println!("bits flipped in words that regions wrote: {}", total());
    conclusion.exit()
}
