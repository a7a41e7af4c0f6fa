//! What the tools answer: an object with the command's document, as its schema says, and what is left of the budget.

use serde_json::{Map, Value, json};

/// What `source` answers.
pub const SOURCE: &str = r#"{
  "type": "object",
  "additionalProperties": false,
  "required": ["file", "line", "first", "lines", "text"],
  "properties": {
    "file": { "type": "string", "description": "Its path." },
    "line": { "type": "integer", "minimum": 1, "description": "The line that was asked for, or that of the region." },
    "first": { "type": "integer", "minimum": 1, "description": "The first line of `text`." },
    "lines": { "type": "integer", "minimum": 0, "description": "Lines of the file." },
    "text": { "type": "string", "description": "All of the file, or what is around the line." }
  }
}"#;

/// The object that `value` is; empty if it is none.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The schema of an answer whose `result` is as the text `schema` says.
pub fn answer(schema: &str, tries: bool) -> Map<String, Value> {
    let mut result = object(serde_json::from_str(schema).unwrap_or_default());
    result.remove("$schema");
    // References begin at the root.
    let shared = result.remove("$defs");
    let mut properties = object(json!({
        "result": result,
        "left": {
            "type": "object",
            "description": "What is left of the budget.",
            "additionalProperties": false,
            "required": ["seconds", "tries"],
            "properties": {
                "seconds": { "type": "number", "minimum": 0 },
                "tries": { "type": "integer", "minimum": 0 }
            }
        }
    }));
    if tries {
        properties.insert(
            "reward".to_owned(),
            json!({
                "type": "number",
                "minimum": 0,
                "description": "0 if a result is wrong, else how many times faster the region is at least: one over the upper end of the interval; of several regions the lowest."
            }),
        );
    }
    let required: Vec<&String> = properties.keys().collect();
    let mut whole = object(json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
    }));
    whole.insert("properties".to_owned(), Value::Object(properties));
    whole.extend(shared.map(|shared| ("$defs".to_owned(), shared)));
    whole
}
