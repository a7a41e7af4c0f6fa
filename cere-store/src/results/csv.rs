//! Records as CSV after RFC 4180: lines end in CR LF, cells that need it are quoted.

use super::record::{COLUMNS, Record};
use rusqlite::types::Value;
use std::borrow::Cow;

/// A heading with the columns' names, then a line a record; what is not known is empty.
pub fn text(records: &[Record]) -> String {
    let mut text = format!("{}\r\n", COLUMNS.join(","));
    for record in records {
        let cells: Vec<String> = record.values().into_iter().map(cell).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

fn cell(value: Value) -> String {
    match value {
        Value::Null | Value::Blob(_) => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => quoted(&text).into_owned(),
    }
}

fn quoted(cell: &str) -> Cow<'_, str> {
    if cell.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(cell)
    }
}
