//! The order of sends of `rack`, next to that of Linux's TCP under the same patterns of losses.
//!
//! `make validate STUDY=recovery-peers` records Linux's. It acknowledges every packet there, and so does the receiver here.

use serde_json::Value;

use super::patterns::{Hosts, Pattern, sends};

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/linux_sends.json");

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().map(|list| list.iter().map(|n| n.as_u64().expect("a number")).collect()).unwrap_or_default()
}

fn span(value: &Value) -> Option<(u64, u64)> {
    (!value.is_null()).then(|| (value[0].as_u64().expect("a start"), value[1].as_u64().expect("an end")))
}

/// Reads an order such as `0-111 50 112-299`.
fn order(text: &str) -> Vec<u64> {
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let ends = |word| match str::split_once(word, '-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(word)..=number(word),
    };
    text.split_whitespace().flat_map(ends).collect()
}

/// Writes an order as [`order`] reads it.
fn text(order: &[u64]) -> String {
    let runs = order.chunk_by(|a, b| a + 1 == *b);
    let words = runs.map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `[rfc8985]` Data is sent in Linux's order, except where the record says why not.
#[test]
fn rfc8985_the_order_of_sends_is_that_of_linux() {
    let record = std::fs::read_to_string(RECORD).expect("the record");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let mut wrong = Vec::new();
    for entry in record["patterns"].as_array().expect("a list") {
        let (lost, late) = (numbers(&entry["lost"]), numbers(&entry["late"]));
        let pattern = Pattern {
            name: entry["name"].as_str().expect("a name"),
            lost: &lost,
            late: &late,
            late_ms: entry["late_ms"].as_u64().unwrap_or(0),
            acks_lost: entry["acks_lost"].as_u64().unwrap_or(0) as usize,
            outage: span(&entry["outage"]),
            mute: span(&entry["mute"]),
            differs: entry["differs"].as_str().unwrap_or(""),
        };
        let theirs = order(entry["sends"].as_str().expect("an order"));
        let ours = sends(Hosts::new("rack", false), &pattern);
        if (ours == theirs) != pattern.differs.is_empty() {
            wrong.push(format!("{}:\n  here  {}\n  Linux {}", pattern.name, text(&ours), text(&theirs)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
