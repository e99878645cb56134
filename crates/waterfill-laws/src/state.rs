//! State of a law as named 64-bit words, for logs of the law's steps.

use crate::units::{Duration, Instant, Rate, Volume};

/// Type of a word in a law's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A double-precision number (bit/s, bytes, seconds or a ratio). NaN means no value.
    Real,
    /// A whole number. 2⁶⁴ − 1 means no value.
    Count,
    /// A time in picoseconds. 2⁶⁴ − 1 means no value.
    Time,
    /// Bytes of a header as on the wire, with the first byte in the highest position.
    Wire,
}

impl WordKind {
    /// Returns the type's name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Count => "count",
            Self::Time => "time",
            Self::Wire => "wire",
        }
    }
}

/// Number that fits into a 64-bit word.
pub trait Word {
    /// Type of the word.
    const KIND: WordKind;
    /// Word that represents a missing number.
    const NONE: u64 = u64::MAX;
    /// Returns the number as a word.
    fn word(&self) -> u64;
}

/// Implements [`Word`] for types of one [`WordKind`].
macro_rules! words {
    ($kind:ident: $($t:ty => $word:expr,)*) => { $(
        impl Word for $t {
            const KIND: WordKind = WordKind::$kind;
            const NONE: u64 = if matches!(WordKind::$kind, WordKind::Real) { f64::NAN.to_bits() } else { u64::MAX };
            fn word(&self) -> u64 {
                let word: fn(&Self) -> u64 = $word;
                word(self)
            }
        }
    )* };
}
words! { Real: f64 => |x| x.to_bits(), f32 => |x| f64::from(*x).to_bits(), i32 => |x| f64::from(*x).to_bits(), }
words! { Real: Rate => |r| r.as_bps().to_bits(), Volume => |v| v.as_bytes().to_bits(), }
words! { Time: Instant => |t| t.as_ps(), Duration => |d| d.as_ps(), }
words! { Count: u32 => |n| u64::from(*n), u64 => |n| *n, bool => |b| u64::from(*b), }

impl<W: Word> Word for Option<W> {
    const KIND: WordKind = W::KIND;
    const NONE: u64 = W::NONE;
    fn word(&self) -> u64 {
        self.as_ref().map_or(W::NONE, W::word)
    }
}

/// Names and types of state words.
pub type Names = Vec<(String, WordKind)>;

/// Words of a law's state with their names.
#[derive(Clone, Debug, Default)]
pub struct StateFields {
    pub(crate) words: Vec<u64>,
    /// Names of the words, kept only for the first log row of each kind of call.
    pub(crate) names: Option<Names>,
}

impl StateFields {
    pub(crate) fn named(named: bool) -> Self {
        Self { words: Vec::with_capacity(24), names: named.then(Vec::new) }
    }
    /// Adds a named number.
    pub fn put<W: Word>(&mut self, name: &str, value: &W) {
        self.put_word(name, W::KIND, value.word());
    }
    /// Adds the words of a C structure, named `name.0`, `name.1` …
    pub fn put_words(&mut self, name: &str, words: &[u64]) {
        for (i, &word) in words.iter().enumerate() {
            self.put_word(&format!("{name}.{i}"), WordKind::Count, word);
        }
    }
    fn put_word(&mut self, name: &str, kind: WordKind, word: u64) {
        self.words.push(word);
        if let Some(names) = &mut self.names {
            names.push((name.to_string(), kind));
        }
    }
    /// Adds a header's wire bytes, padded to whole words.
    pub(crate) fn put_wire(&mut self, name: &str, wire: &[u8], length: usize) {
        for i in 0..length.div_ceil(8) {
            let mut word = [0; 8];
            let bytes = wire.get(8 * i..).unwrap_or_default();
            let n = bytes.len().min(8);
            word[..n].copy_from_slice(&bytes[..n]);
            self.put_word(&format!("{name}.{i}"), WordKind::Wire, u64::from_be_bytes(word));
        }
    }
}

/// Adds fields of a law's state under their own names: `state_of!(fields, self: price, arrived)`.
#[macro_export]
macro_rules! state_of {
    ($fields:expr, $law:ident: $($field:ident),* $(,)?) => {{ $($fields.put(stringify!($field), &$law.$field);)* }};
}
