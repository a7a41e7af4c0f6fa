//! Prints the guide's chapter: `cargo run --release -p cere-catalogue --example page > docs/guide/src/troubleshooting.md`.

fn main() {
    print!("{}", cere_catalogue::page::troubleshooting());
}
