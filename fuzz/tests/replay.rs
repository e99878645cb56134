//! Runs each target on its corpus and on a seeded number of mutations of it.

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_fuzz::{TARGETS, Target, corpus};

fn inputs(target: &Target) -> Vec<Vec<u8>> {
    let path = corpus::path(target.name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(text.len() <= 200_000, "{}: {} bytes, expected at most 200,000: minimise it", path.display(), text.len());
    corpus::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Runs a target; a panic's message follows the input.
fn run(target: &Target, input: &[u8]) {
    let ran = std::panic::catch_unwind(|| (target.run)(input));
    assert!(ran.is_ok(), "{} fails on b\"{}\"", target.name, corpus::escape(input));
}

/// A few changes of an input: bytes set, flipped, inserted, removed, copied from another input.
fn mutate(rng: &mut Pcg64, corpus: &[Vec<u8>], max_bytes: usize) -> Vec<u8> {
    let pick = |rng: &mut Pcg64, n: usize| (rng.next_u64() % n as u64) as usize;
    let mut input = corpus[pick(rng, corpus.len())].clone();
    for _ in 0..=pick(rng, 4) {
        let at = pick(rng, input.len() + 1);
        match pick(rng, 5) {
            0 if at < input.len() => input[at] = rng.next_u64() as u8,
            1 if at < input.len() => input[at] ^= 1 << pick(rng, 8),
            2 if at < input.len() => drop(input.drain(at..(at + 1 + pick(rng, 8)).min(input.len()))),
            3 => input.insert(at, [0, 1, 0x7f, 0x80, 0xff][pick(rng, 5)]),
            _ => {
                let other = &corpus[pick(rng, corpus.len())];
                let from = pick(rng, other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
    input.truncate(max_bytes);
    input
}

#[test]
fn every_target_passes_its_corpus_and_mutations_of_it() {
    for target in TARGETS {
        let corpus = inputs(target);
        assert!(!corpus.is_empty(), "{} has an empty corpus", target.name);
        for input in &corpus {
            run(target, input);
        }
        let mut rng = Pcg64::new(1, 1);
        for _ in 0..target.mutations {
            run(target, &mutate(&mut rng, &corpus, target.max_bytes));
        }
    }
}

#[test]
fn every_corpus_has_a_target() {
    let folder = corpus::path("").with_extension("");
    for entry in std::fs::read_dir(folder.parent().unwrap().join("corpus")).expect("a folder of corpora") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if cfg!(not(feature = "daemon")) && name.starts_with("daemon-") || cfg!(not(target_os = "linux")) {
            continue; // the target is not compiled
        }
        assert!(TARGETS.iter().any(|target| target.name == name), "{}: expected a target's name", path.display());
    }
}
