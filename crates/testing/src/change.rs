//! Random changes of JSON, binary records and text.

use crate::Random;
use serde_json::{Value, json};

/// Texts that are likely to expose errors.
const TEXTS: [&str; 16] = [
    "",
    " ",
    "/",
    ".",
    "..",
    "../../../etc/passwd",
    "/etc/passwd",
    "\u{1b}[2J\u{1b}]0;x\u{7}",
    "a\nb\r\n",
    "\u{202e}abc",
    "-",
    "-O2",
    "@x",
    "\"\\\n.incbin \"/etc/passwd\"",
    "%s%n",
    "\u{0}",
];
/// Elements that a list grows to at most.
const MANY: usize = 20_000;

/// Values below `value`, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0usize,
    }
}

/// The value with index `at` in the order of [`count`].
fn nth<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|v| nth(v, at)),
        Value::Object(object) => object.values_mut().find_map(|v| nth(v, at)),
        _ => None,
    }
}

fn list(list: &mut Vec<Value>, random: &mut Random) {
    let size = list.len();
    match random.below(7) {
        0 => list.clear(),
        1 => list.truncate(size / 2),
        2 if size > 0 => list.push(list[random.below(size)].clone()),
        3 if size > 0 => list.insert(0, list[size - 1].clone()),
        4 if size > 1 => list.swap(0, size - 1),
        5 if size > 0 => {
            list.remove(random.below(size));
        }
        _ => {
            let one = list.first().cloned().unwrap_or(json!(""));
            let many = MANY / count(&one);
            list.resize(random.below(many) + 1, one);
        }
    }
}

fn text(text: &mut String, random: &mut Random) {
    match random.below(5) {
        0 => *text = (*random.one(&TEXTS)).to_owned(),
        1 => text.push_str(random.one::<&str>(&TEXTS)),
        2 => *text = text.repeat(random.below(2000)),
        3 => *text = text.chars().rev().collect(),
        _ => {
            let keep = random.below(text.chars().count() + 1);
            *text = text.chars().take(keep).collect();
        }
    }
}

/// Changes one value of `value`.
pub fn json(value: &mut Value, random: &mut Random) {
    let mut at = random.below(count(value));
    let Some(found) = nth(value, &mut at) else {
        return;
    };
    if random.once_in(20) {
        let odd = [
            json!(null),
            json!(true),
            json!(-1),
            json!(1.5),
            json!([]),
            json!({}),
            json!("x"),
        ];
        *found = random.one(&odd).clone();
        return;
    }
    match found {
        Value::Null => *found = json!(random.number(0)),
        Value::Bool(b) => *b = !*b,
        Value::Number(n) => *found = json!(random.number(n.as_u64().unwrap_or(0))),
        Value::String(s) => text(s, random),
        Value::Array(l) => list(l, random),
        Value::Object(o) => {
            let keys: Vec<String> = o.keys().cloned().collect();
            if !keys.is_empty() {
                o.remove(random.one(&keys));
            }
        }
    }
}

/// Changes binary records of `size` bytes, made of little-endian words of 4 or 8.
pub fn records(bytes: &mut Vec<u8>, size: usize, random: &mut Random) {
    let records = bytes.len() / size;
    match random.below(8) {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => bytes.extend(vec![random.any() as u8; random.below(3 * size)]),
        2 if records > 0 => {
            let at = random.below(records) * size;
            let again: Vec<u8> = bytes[at..at + size].to_vec();
            for _ in 0..=random.below(1000) {
                bytes.extend(&again);
            }
        }
        3 if records > 1 => {
            let (a, b) = (random.below(records) * size, random.below(records) * size);
            (0..size).for_each(|i| bytes.swap(a + i, b + i));
        }
        _ if bytes.len() >= 8 => {
            let wide = random.once_in(2);
            let width = if wide { 8 } else { 4 };
            let at = random.below(bytes.len() / width) * width;
            let mut word = [0; 8];
            word[..width].copy_from_slice(&bytes[at..at + width]);
            let new = random.number(u64::from_le_bytes(word)).to_le_bytes();
            bytes[at..at + width].copy_from_slice(&new[..width]);
        }
        _ => {}
    }
}

/// Changes lines, words and numbers of a text.
pub fn words(text: &mut String, random: &mut Random) {
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return;
    }
    let at = random.below(lines.len());
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    match random.below(6) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[random.below(lines.len())].clone()),
        2 => lines = vec![lines[at].clone(); random.below(2000) + 1],
        3 => {
            let number = random.number(1).to_string();
            lines[at] = lines[at]
                .chars()
                .map(|c| {
                    if c.is_ascii_digit() {
                        number.clone()
                    } else {
                        c.to_string()
                    }
                })
                .collect();
        }
        4 => lines[at] = format!("{} {}", lines[at], random.one(&TEXTS)),
        _ => {
            let odd = random.one(&['"', '[', ']', '=', '{', '#', '\\', '\u{1b}']);
            let place = random.below(lines[at].chars().count() + 1);
            lines[at] = lines[at]
                .chars()
                .take(place)
                .chain([*odd])
                .chain(lines[at].chars().skip(place))
                .collect();
        }
    }
    *text = lines.join("\n");
    text.push('\n');
}
