//! `waterfilld schema`: JSON Schema of the configuration file, generated from the types that parse it.

use anyhow::Result;
use serde_json::{Map, Value, json};

use waterfill_laws::params::{Unit, Value as ParamValue};

use crate::daemon::commands::output;
use crate::daemon::kernel::law::{self, LoadableLaw};
use crate::daemon::kernel::laws;
use crate::daemon::options::file::File;

/// Prints the JSON Schema of the configuration file.
pub(crate) fn print() -> Result<()> {
    let text = serde_json::to_string_pretty(&document())? + "\n";
    output::print(&text)
}

/// Returns the JSON Schema of the configuration file.
pub(super) fn document() -> Value {
    let mut schema = schemars::schema_for!(File).to_value();
    for table in ["HostOptions", "RouterOptions"] {
        // The names of parameters depend on the law, which the tables cannot say.
        schema["$defs"][table]["allOf"] = laws::all().map(parameters_of).collect();
    }
    schema
}

/// Returns the schema condition that a table with this law has no other law's parameters.
fn parameters_of(law: &LoadableLaw) -> Value {
    let mut properties: Map<String, Value> = law
        .parameters()
        .iter()
        .map(|info| {
            let text = match info.unit {
                Unit::Rate => "A rate with its unit.",
                Unit::Time => "A time with its unit.",
                Unit::Ratio | Unit::Count | Unit::Volume => "A number.",
                Unit::Flag => "true or false.",
                Unit::Choice(_) => "A word.",
            };
            let was_flag = matches!(info.default, ParamValue::Flag(_));
            let mut value = match info.unit {
                Unit::Choice(words) => {
                    let words =
                        info.kernel.and_then(|form| form.words).unwrap_or(words).iter().map(|&word| json!(word));
                    let flags = [json!(true), json!(false), json!("true"), json!("false")];
                    json!({ "enum": words.chain(flags.into_iter().filter(|_| was_flag)).collect::<Vec<_>>() })
                }
                Unit::Flag => json!({ "enum": [true, false, "true", "false"] }),
                Unit::Rate | Unit::Time => json!({ "type": "string" }),
                _ => json!({ "type": ["number", "string"] }),
            };
            value["description"] = text.into();
            value["default"] = law::default_of(info).into();
            (info.name.to_owned(), value)
        })
        .collect();
    if law.names_links() {
        let text = "A link's number; by default made from its device's name.";
        properties.insert(law::LINK_NAME.into(), json!({ "type": ["number", "string"], "description": text }));
    }
    let chosen = json!({ "properties": { "law": { "const": law.name } }, "required": ["law"] });
    // A table without a law has the default one.
    let condition =
        if law.is_default() { json!({ "anyOf": [chosen, { "not": { "required": ["law"] } }] }) } else { chosen };
    let params = json!({ "properties": properties, "additionalProperties": false });
    json!({ "if": condition, "then": { "properties": { "params": params } } })
}
