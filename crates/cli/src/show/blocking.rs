//! Block sizes as text and JSON.

use cere_format::machine::Machine;
use cere_machine::blocking::Blocking;
use serde::Serialize;
use std::fmt::Write;

/// Block sizes, with the machine that they are for.
#[derive(Serialize)]
pub struct Document<'b> {
    /// [`cere_format::machine::Identity::id`].
    machine: &'b str,
    #[serde(flatten)]
    blocking: &'b Blocking,
    /// For a compiler.
    flags: Vec<String>,
}

/// The document that `--json` prints.
pub fn json<'b>(machine: &'b Machine, blocking: &'b Blocking) -> Document<'b> {
    Document {
        machine: &machine.identity.id,
        blocking,
        flags: blocking.flags(),
    }
}

/// The sizes for people.
pub fn text(machine: &Machine, blocking: &Blocking) -> String {
    let mut text = format!(
        "{} on {}, f64 in vectors of {} bits; sizes in elements\n",
        blocking.kernel, machine.identity.cpu, blocking.vector_bits
    );
    for size in &blocking.sizes {
        let elements = size.elements.map_or("any".to_owned(), |n| n.to_string());
        let _ = writeln!(text, "  {:<7} {elements:>8}  {}", size.name, size.what);
        let _ = writeln!(text, "  {:<7} {:>8}    by {}", "", "", size.bound);
    }
    let _ = writeln!(text, "{}", blocking.flags().join(" "));
    text
}
