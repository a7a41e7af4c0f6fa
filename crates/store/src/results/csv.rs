//! Records as CSV.

use super::record::{COLUMNS, Record};
use rusqlite::types::Value;

/// A heading with the columns' names, then a line a record; what is not known is empty.
pub fn text(records: &[Record]) -> String {
    let row = |record: &Record| record.values().into_iter().map(cell).collect();
    cere_system::console::csv::text(&COLUMNS, records.iter().map(row))
}

fn cell(value: Value) -> String {
    match value {
        Value::Null | Value::Blob(_) => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
    }
}
