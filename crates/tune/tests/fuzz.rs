//! Files of spaces, changed at random.

use cere_testing::{Counting, campaign, change};
use cere_tune::{Pipeline, Space};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SPACE: &str = r#"
[[group]]
name = "level"
choices = ["-O1", "-O2", "-O3"]

[[group]]
name = "vectors"
choices = ["-mllvm -force-vector-width=2", "-fno-vectorize"]
changes-values = true
"#;

#[test]
fn spaces() {
    Space::parse(&SPACE.replace("changes-values = true\n", "")).unwrap();
    campaign("spaces", 2000, |random| {
        let mut text = SPACE.to_owned();
        (0..=random.below(4)).for_each(|_| change::words(&mut text, random));
        Space::parse(&text).is_ok()
    });
}

#[test]
fn pipelines() {
    let sample = "annotation2metadata,function<eager-inv>(lower-expect,simplifycfg<bonus-inst-threshold=1;no-sink>,sroa),cgscc(inline)";
    Pipeline::parse(sample).unwrap();
    campaign("pipelines", 2000, |random| {
        let mut text = sample.replace(',', ",\n");
        (0..=random.below(4)).for_each(|_| change::words(&mut text, random));
        Pipeline::parse(&text.replace('\n', "")).is_ok()
    });
}
