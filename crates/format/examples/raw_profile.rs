//! Prints a raw profile as JSON: `raw_profile FILE`.
fn main() {
    let path = std::env::args().nth(1).expect("a file");
    let mut name = |key: &cere_format::profile::RegionKey| format!("{}:{}", &key.unit, key.index);
    match cere_format::profile_raw::read_raw(path.as_ref(), vec![], ".".into(), &mut name) {
        Ok(mut profile) => {
            for region in &mut profile.regions {
                region.trace.first.truncate(4);
            }
            println!(
                "{}",
                serde_json::to_string_pretty(&profile).expect("serialisable")
            );
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    }
}
