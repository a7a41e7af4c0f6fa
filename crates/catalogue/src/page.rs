//! The guide's chapter "Troubleshooting by message", made of the catalogue.

use crate::entry::{Entry, Section};
use crate::stages::sections;

/// The head of the chapter.
const HEAD: &str = "\
# Troubleshooting by message

<!-- Made of crates/catalogue: edit the entries there, then run its example `page`. -->

Messages start with `cere:`. Errors start with `cere: error[CERE-2003]:`, where the code names the kind; reasons in tables end
with theirs. `cere explain CERE-2003` prints the entry of a code, `cere explain --list` all codes. A code keeps its meaning in
later versions.

This chapter groups the messages by stage. `...` stands for a name or a number. Search for the code, or for a few words of
the message.
";

/// The chapter.
pub fn troubleshooting() -> String {
    let mut page = HEAD.to_owned();
    page.push('\n');
    for section in sections() {
        let anchor = anchor(section.title);
        page.push_str(&format!("- [{}](#{anchor})\n", section.title));
    }
    sections().for_each(|section| page.push_str(&table(section)));
    page
}

/// The anchor that mdBook gives a heading of words, digits and marks.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-');
    let lower = heading.to_lowercase();
    lower
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

fn table(section: &Section) -> String {
    let rows: String = section.entries.iter().map(row).collect();
    format!(
        "\n## {}\n\n| code | message | cause | what to do |\n|---|---|---|---|\n{rows}",
        section.title
    )
}

fn row(entry: &Entry) -> String {
    let says: Vec<String> = entry.says.iter().map(|says| format!("`{says}`")).collect();
    let number = entry.code.number();
    let cells = [&says.join(", "), entry.cause, entry.remedy].map(|cell| cell.replace('|', "\\|"));
    format!(
        "| <a id=\"cere-{number}\"></a>CERE-{number} | {} |\n",
        cells.join(" | ")
    )
}
