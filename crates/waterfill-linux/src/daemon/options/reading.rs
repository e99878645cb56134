//! Deserializers for tables, words and values of the file. They do not convert between types, and their errors say what
//! to write.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::slice;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{self, MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

use super::names::KNOWN;

/// A value that an option and a key of the file both parse from text.
pub(crate) trait Scalar: FromStr<Err = String> {
    /// Returns the JSON Schema of the value. Its `type` lists the accepted types in the file.
    fn schema() -> Schema;
}

/// Deserializes a value of the file.
pub(crate) fn scalar<'de, D: Deserializer<'de>, T: Scalar>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(ScalarVisitor(PhantomData))
}

struct ScalarVisitor<T>(PhantomData<T>);

impl<T: Scalar> ScalarVisitor<T> {
    /// Parses a value from text if the schema allows one of `types`.
    fn parse<E: Error>(self, types: &[&str], given: Unexpected<'_>, text: &str) -> Result<T, E> {
        let schema = T::schema();
        let allowed = schema.get("type").map(|kind| kind.as_array().map_or(slice::from_ref(kind), Vec::as_slice));
        if !allowed.unwrap_or_default().iter().any(|kind| types.iter().any(|given| kind == given)) {
            return Err(E::invalid_type(given, &self));
        }
        text.parse().map_err(E::custom)
    }
}

impl<T: Scalar> Visitor<'_> for ScalarVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = T::from_str("").err().unwrap_or_default();
        match (why.strip_prefix("must be "), why.split_once(KNOWN)) {
            (Some(form), _) => f.write_str(form),
            (None, Some((_, names))) => write!(f, "one of {names}"),
            (None, None) => f.write_str("text, a number, true or false"),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.parse(&["string"], Unexpected::Str(text), text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.parse(&["integer", "number"], Unexpected::Signed(number), &number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.parse(&["number"], Unexpected::Float(number), &number.to_string())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<T, E> {
        self.parse(&["boolean"], Unexpected::Bool(flag), if flag { "true" } else { "false" })
    }
}

/// Deserializes a table. Serde alone would also accept an array of a structure's values.
pub(crate) fn table<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    struct TableVisitor<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for TableVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    from.deserialize_any(TableVisitor(PhantomData))
}

/// Deserializes the word of an enumeration for a key that may be missing.
pub(crate) fn optional_word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    word(from).map(Some)
}

/// Deserializes the word of an enumeration. Serde alone would also accept a table.
pub(crate) fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    struct WordVisitor<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for WordVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            // As serde says it of no word: unknown variant ``, expected one of `text`, `json`.
            let none = T::deserialize(StrDeserializer::<value::Error>::new("")).err().map(|e| e.to_string());
            let words: Vec<_> = none.iter().flat_map(|text| text.split('`').skip(3).step_by(2)).collect();
            write!(f, "one of {}", words.join(", "))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            T::deserialize(StrDeserializer::new(text))
        }
    }
    from.deserialize_any(WordVisitor(PhantomData))
}

/// A table in an array of tables.
struct Table<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        table(deserializer).map(Self)
    }
}

/// One table, or an array of tables.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not an untagged enum, whose errors say neither place nor reason.
        struct Tables<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Tables<T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table or an array of tables")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Ok(vec![T::deserialize(MapAccessDeserializer::new(map))?])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                let tables = Vec::<Table<T>>::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(tables.into_iter().map(|Table(table)| table).collect())
            }
        }
        deserializer.deserialize_any(Tables(PhantomData)).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
