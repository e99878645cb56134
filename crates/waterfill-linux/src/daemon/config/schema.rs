//! `waterfilld schema`: the file's JSON Schema, from the tables that read it.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::tables::File;
use crate::daemon::law::{self, Kind, Law};
use crate::daemon::output;

/// Prints the schema.
pub(crate) fn print() -> Result<()> {
    let text = serde_json::to_string_pretty(&document())? + "\n";
    output::print(&text)
}

/// Returns the schema.
pub(super) fn document() -> Value {
    let mut schema = schemars::schema_for!(File).to_value();
    for table in ["HostTable", "RouterTable"] {
        // The names of parameters depend on the law, which the tables cannot say.
        schema["$defs"][table]["allOf"] = law::all().map(parameters_of).collect();
    }
    schema
}

/// The condition that a table of this law has parameters of this law only.
fn parameters_of(law: &Law) -> Value {
    let named = law.parameters.iter().filter(|parameter| !matches!(parameter.kind, Kind::Reserved));
    let properties: Map<String, Value> = named
        .map(|parameter| {
            let text = match parameter.kind {
                Kind::Rate => "A rate with its unit.",
                Kind::Time(_) => "A time with its unit.",
                Kind::Number(_) => "A number.",
                Kind::Flag => "true or false.",
                Kind::Choice(_) => "A word.",
                Kind::Name | Kind::Reserved => "A link's number; by default made from its device's name.",
            };
            let mut value = match parameter.kind {
                Kind::Choice(words) => json!({ "enum": words }),
                Kind::Flag => json!({ "enum": [true, false, "true", "false"] }),
                Kind::Rate | Kind::Time(_) => json!({ "type": "string" }),
                _ => json!({ "type": ["number", "string"] }),
            };
            value["description"] = text.into();
            if !parameter.default.is_empty() {
                value["default"] = parameter.default.into();
            }
            (parameter.name.to_owned(), value)
        })
        .collect();
    let chosen = json!({ "properties": { "law": { "const": law.name } }, "required": ["law"] });
    // A table without a law has the default one.
    let condition =
        if law.is_default() { json!({ "anyOf": [chosen, { "not": { "required": ["law"] } }] }) } else { chosen };
    let params = json!({ "properties": properties, "additionalProperties": false });
    json!({ "if": condition, "then": { "properties": { "params": params } } })
}
