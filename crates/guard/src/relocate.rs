//! Records whose paths hold in any checkout.

use serde_json::Value;

/// Stands for the root of the repository.
const ROOT: &str = "${root}";

/// `value` with `root` in all its texts replaced by a mark.
pub fn without_root(value: &mut Value, root: &str) {
    each_text(value, &|text| replace(text, root));
}

/// `value` with the mark in all its texts replaced by `root`.
pub fn with_root(value: &mut Value, root: &str) {
    each_text(value, &|text| text.replace(ROOT, root));
}

fn each_text(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(all) => all.iter_mut().for_each(|v| each_text(v, change)),
        Value::Object(all) => all.values_mut().for_each(|v| each_text(v, change)),
        _ => {}
    }
}

/// `text` with each path in `root` or below it, also one behind an option as in `-I/root/include`, named from the mark on.
fn replace(text: &str, root: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(root) {
        let (before, after) = (&rest[..at], &rest[at + root.len()..]);
        // What another path ends in is no path of its own.
        let word = before.rsplit(['=', ':', ',', ' ']).next();
        let begins = !word.is_some_and(|word| word.contains('/'));
        let inner = |c: char| c.is_alphanumeric() || "_-.+~".contains(c);
        let ends = !after.starts_with(inner);
        made += before;
        made += if begins && ends { ROOT } else { root };
        rest = after;
    }
    made + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_below_the_root_move() {
        let mut value = json!({
            "file": "/home/u/p/k.c",
            "words": ["-I/home/u/p/include", "-I", "/home/u/p", "-fdebug-prefix-map=/home/u/p=/home/u/p/x"],
            "others": ["/home/u/pq/k.c", "/mnt/home/u/p/k.c", "/home/u/p-build/k.o", "plain"],
            "number": 3,
        });
        let before = value.clone();
        without_root(&mut value, "/home/u/p");
        assert_eq!(
            value,
            json!({
                "file": "${root}/k.c",
                "words": ["-I${root}/include", "-I", "${root}", "-fdebug-prefix-map=${root}=${root}/x"],
                "others": before["others"],
                "number": 3,
            })
        );
        with_root(&mut value, "/home/u/p");
        assert_eq!(value, before);
    }
}
