//! Tests the order of the daemon's modules. A layer may import only from earlier layers, and modules must not import
//! each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names of the layers, each of which imports only from earlier layers (`src/daemon/mod.rs`).
const LAYERS: [&str; 4] = ["options", "kernel", "roles", "commands"];

/// Imported modules of each module. A module is a file or folder of a layer, such as `kernel::pins`.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn daemon() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/daemon")
}

/// Returns the paths of all source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Parses the import paths at the start of a text, such as `kernel::{law, pins::Pins}`.
fn paths(text: &str) -> Vec<Vec<String>> {
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut start, mut out) = (0, 0, Vec::new());
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    out.extend(paths(group[start..i].trim()));
                    start = i + 1;
                    if c == '}' {
                        break;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return out;
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let name = text[..end].to_owned();
    let below = text[end..].strip_prefix("::").map(paths).unwrap_or_default();
    if below.is_empty() {
        return vec![vec![name]];
    }
    below.into_iter().map(|path| [vec![name.clone()], path].concat()).collect()
}

/// Returns the module that a path names: its first two parts, or one part if the second is not a module.
fn module(path: &[String]) -> String {
    let two = path.len() > 1 && {
        let file = daemon().join(&path[0]).join(&path[1]);
        file.is_dir() || file.with_extension("rs").is_file()
    };
    path[..if two { 2 } else { 1 }].join("::")
}

/// Reads the imports of the daemon's modules. Test modules are left out because they may import anything.
fn imports() -> Imports {
    let mut out = Imports::new();
    for file in LAYERS.iter().flat_map(|layer| sources(&daemon().join(layer))) {
        let place = file.strip_prefix(daemon()).unwrap().with_extension("");
        let mut place: Vec<String> = place.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if ["tests", "cost"].contains(&place.last().unwrap().as_str()) {
            continue;
        }
        if place.last().unwrap() == "mod" {
            place.pop();
        }
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let absolute = text.split("crate::daemon::").skip(1).flat_map(paths);
        let mut found: Vec<Vec<String>> = absolute.collect();
        // `super::super::` counts at its last part.
        for (at, _) in text.match_indices("super::").filter(|(at, _)| !text[at + 7..].starts_with("super::")) {
            let levels = 1 + text[..at].len().abs_diff(text[..at].trim_end_matches("super::").len()) / "super::".len();
            let base = &place[..place.len().saturating_sub(levels)];
            found.extend(paths(&text[at + 7..]).into_iter().map(|path| [base, &path].concat()));
        }
        let me = module(&place);
        let known = found.iter().filter(|path| LAYERS.contains(&path[0].as_str())).map(|path| module(path));
        out.entry(me.clone()).or_default().extend(known.filter(|other| *other != me));
    }
    out
}

fn layer(module: &str) -> usize {
    LAYERS.iter().position(|layer| module.split("::").next() == Some(layer)).unwrap()
}

#[test]
fn a_layer_imports_only_from_those_before_it() {
    let imports = imports();
    assert!(imports.len() > 40 && imports["kernel::pins"].contains("options::error"), "{imports:?}");
    let backward: Vec<_> = imports
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, to)))
        .filter(|(from, to)| layer(to) > layer(from))
        .collect();
    assert!(backward.is_empty(), "{backward:?}");
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let mut left = imports();
    loop {
        let free: Vec<_> =
            left.keys().filter(|name| left[*name].iter().all(|to| !left.contains_key(to))).cloned().collect();
        if free.is_empty() {
            break;
        }
        left.retain(|name, _| !free.contains(name));
    }
    assert!(left.is_empty(), "a circle among or below: {left:#?}");
}

#[test]
fn paths_are_read_from_groups() {
    let read = |text| paths(text).into_iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(read("kernel::pins::Pins;"), ["kernel::pins::Pins"]);
    assert_eq!(
        read("{self, kernel::{law, pins::{A, B}}, http};"),
        ["self", "kernel::law", "kernel::pins::A", "kernel::pins::B", "http"]
    );
}
