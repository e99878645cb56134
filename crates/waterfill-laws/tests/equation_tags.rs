//! Tests that every equation tag, for example `[maxnet-2007:eq3]`, appears in code and in a test.
//!
//! Code is what a doc comment in `src` or a comment in `kernel` describes; a test is a `#[test]` function whose doc
//! comment names the tag. Several tags may share brackets: `[maxnet-2007:eq3, eq8]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Locations at which a tag appears, in code and in tests.
#[derive(Default, Debug, PartialEq)]
struct Places {
    code: Vec<String>,
    tests: Vec<String>,
}

type Tags = BTreeMap<String, Places>;

/// Returns the tags in a comment line as `paper:label`. A label without a paper belongs to the previous paper.
fn tags_in(comment: &str) -> Vec<String> {
    let is_name = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_alphanumeric() || "-_.§".contains(c));
    let mut found = Vec::new();
    for bracket in comment.split('[').skip(1).filter_map(|rest| rest.split_once(']')) {
        let mut paper = "";
        for part in bracket.0.split(", ") {
            let (named, label) = part.split_once(':').unwrap_or((paper, part));
            let is_paper = is_name(named) && named.starts_with(|c: char| c.is_ascii_lowercase());
            if !is_paper || !is_name(label) || label == "..." {
                break;
            }
            paper = named;
            found.push(format!("{paper}:{label}"));
        }
    }
    found
}

/// Adds the tags of a Rust file: items by their doc comments, and lines of code by their own comments.
fn add_rust(tags: &mut Tags, place: &str, text: &str) {
    let mut testing = place.ends_with("tests.rs");
    let (mut documented, mut is_test) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            documented.extend(tags_in(doc));
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]";
            testing |= line == "#[cfg(test)]";
        } else if line.starts_with("//!") || line.is_empty() {
        } else if let Some(comment) = line.strip_prefix("//") {
            for tag in tags_in(comment).into_iter().filter(|_| !testing) {
                tags.entry(tag).or_default().code.push(place.into());
            }
        } else {
            if let Some((_, comment)) = line.split_once(" // ").filter(|_| !testing) {
                for tag in tags_in(comment) {
                    tags.entry(tag).or_default().code.push(place.into());
                }
            }
            for tag in documented.drain(..) {
                let places = tags.entry(tag).or_default();
                match (is_test, testing) {
                    (true, _) => places.tests.push(format!("{place}: {line}")),
                    (false, false) => places.code.push(format!("{place}: {line}")),
                    (false, true) => {} // a helper of the tests
                }
            }
            is_test = false;
        }
    }
}

/// Adds the tags of a C file, in which all comments describe code.
fn add_c(tags: &mut Tags, place: &str, text: &str) {
    for tag in text.lines().flat_map(tags_in) {
        tags.entry(tag).or_default().code.push(place.into());
    }
}

/// Returns the tags that lack code or a test, each with a description of the gap.
fn incomplete(tags: &Tags) -> Vec<String> {
    let lacks = |tag: &String, places: &Places| match (places.code.is_empty(), places.tests.is_empty()) {
        (true, _) => Some(format!("{tag}: no code names it, only {:?}", places.tests)),
        (_, true) => Some(format!("{tag}: no test names it, only {:?}", places.code)),
        _ => None,
    };
    tags.iter().filter_map(|(tag, places)| lacks(tag, places)).collect()
}

/// Returns the equations that a module doc lists under `# Law`: labels, or whole tags in brackets.
fn listed_equations(text: &str) -> BTreeSet<String> {
    let doc = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let law = doc.skip_while(|line| *line != "# Law").skip(1).take_while(|line| !line.starts_with("# "));
    let listed = law.filter_map(|line| Some(line.strip_prefix("- `")?.split_once('`')?.0));
    listed.map(|label| label.trim_matches(['[', ']']).to_string()).collect()
}

/// Returns true if an equation that the module doc in `place` lists has its tag.
///
/// A whole tag may be anywhere. A bare label must be in the same file or folder, because other papers have an `eq1`
/// too.
fn is_tagged(tags: &Tags, place: &str, listed: &str) -> bool {
    let folder = place.strip_suffix("mod.rs").map_or(place.replace(".rs", "/"), String::from);
    let is_near = |tagged: &String| tagged.starts_with(place) || tagged.starts_with(&folder);
    tags.iter().any(|(tag, Places { code, tests })| {
        tag == listed || (tag.split(':').nth(1) == Some(listed) && code.iter().chain(tests).any(is_near))
    })
}

/// Returns all files below `folder` with this extension, as pairs of the path from the crate's root and the text.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder of this crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, extension, found);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join(folder), extension, &mut found);
    let named = |path: PathBuf| {
        let name = path.strip_prefix(root).expect("below the root").display().to_string();
        (name, std::fs::read_to_string(path).expect("text"))
    };
    found.into_iter().map(named).collect()
}

fn all_tags() -> Tags {
    let mut tags = Tags::new();
    for (place, text) in files("src", "rs") {
        add_rust(&mut tags, &place, &text);
    }
    for (place, text) in files("kernel", "h") {
        add_c(&mut tags, &place, &text);
    }
    tags
}

#[test]
fn every_equation_tag_has_code_and_a_test() {
    let tags = all_tags();
    assert!(tags.len() > 100, "only {} tags found", tags.len());
    let incomplete = incomplete(&tags);
    assert!(incomplete.is_empty(), "{}", incomplete.join("\n"));
}

/// Every equation in the list at the head of a protocol's file has a tag.
#[test]
fn every_equation_of_a_law_has_its_tag() {
    let tags = all_tags();
    let mut missing = Vec::new();
    for (place, text) in files("src/protocols", "rs") {
        let listed = listed_equations(&text).into_iter();
        missing.extend(listed.filter(|e| !is_tagged(&tags, &place, e)).map(|e| format!("{place}: {e}")));
    }
    assert!(missing.is_empty(), "listed under # Law, but no tag: {}", missing.join(", "));
}

#[test]
fn a_label_counts_only_in_its_own_protocol() {
    let mut tags = Tags::new();
    for place in ["src/protocols/a/router.rs", "src/protocols/b.rs", "src/protocols/ab.rs"] {
        let label = if place.contains("/a/") { "p-1999:eq1" } else { "q-2001:eq2" };
        add_rust(&mut tags, place, &format!("/// `[{label}]`\nfn f() {{}}\n"));
    }
    for (place, label, expected) in [
        ("src/protocols/a/mod.rs", "eq1", true),
        ("src/protocols/a/mod.rs", "eq2", false),
        ("src/protocols/a/mod.rs", "q-2001:eq2", true),
        ("src/protocols/b.rs", "eq2", true),
        ("src/protocols/b.rs", "eq1", false),
    ] {
        assert_eq!(is_tagged(&tags, place, label), expected, "{label} in {place}");
    }
}

#[test]
fn a_tag_without_code_or_test_is_found() {
    let code = "/// `[p-1999:eq1]` one.\nfn one() {}\n\n/// `[p-1999:eq2, q:V.A]`\n#[must_use]\npub fn two() {}\n";
    let test = "#[cfg(test)]\nmod tests {\n    /// `[p-1999:eq1]` and `[p-1999:eq9]`\n    #[test]\n    fn eq1() {\n        // [q:V.A]\n    }\n}\n";
    let mut tags = Tags::new();
    add_rust(&mut tags, "law.rs", &format!("{code}{test}"));
    let found: Vec<_> = incomplete(&tags).iter().map(|line| line.split(", ").next().unwrap().to_string()).collect();
    assert_eq!(found, ["p-1999:eq2: no test names it", "p-1999:eq9: no code names it", "q:V.A: no test names it"]);
    add_c(&mut tags, "law.h", "/* [p-1999:eq9] nine. */");
    assert_eq!(incomplete(&tags).len(), 2);
}

#[test]
fn equations_of_a_module_doc() {
    let text = "//! # Law\n//! - `eq2`  r\n//! - `[p-1999:a]` b\n//!\n//! # Symbols\n//! - `x`\nfn f() {}";
    assert_eq!(listed_equations(text), BTreeSet::from(["eq2".to_string(), "p-1999:a".to_string()]));
}

#[test]
fn what_is_no_tag() {
    let none: [&str; 0] = [];
    for text in
        ["bytes[xcp::Header::BYTES..]", "[`Router`]", "[maxnet-2007:...]", "[text](a:b c)", "&[0; 4]", "see [x]"]
    {
        assert_eq!(tags_in(text), none, "{text}");
    }
}
