//! Values of the file. Each is read by the parser of the option of the same name, so that both accept and refuse the same.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::slice;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{self, MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

use crate::daemon::cli::values;
use crate::daemon::host;
use crate::daemon::law;
use crate::daemon::quantity;

/// A kind of value: its parser, and its schema.
pub(in crate::daemon) trait Kind {
    type Value;
    const NAME: &'static str;
    fn parse(text: &str) -> Result<Self::Value, String>;
    fn schema() -> Schema;
}

/// A value of some kind.
pub(in crate::daemon) struct Parsed<K: Kind>(pub(crate) K::Value);

impl<K: Kind<Value: fmt::Debug>> fmt::Debug for Parsed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Parsed<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor::<K>(PhantomData)).map(Self)
    }
}

impl<K: Kind> JsonSchema for Parsed<K> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        K::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        K::schema()
    }
}

struct ScalarVisitor<K>(PhantomData<K>);

impl<K: Kind> ScalarVisitor<K> {
    /// Parses a value of a type, if the schema has one of these types.
    fn parse<E: Error>(self, types: &[&str], given: Unexpected<'_>, text: &str) -> Result<K::Value, E> {
        let schema = K::schema();
        let allowed = schema.get("type").map(|kind| kind.as_array().map_or(slice::from_ref(kind), Vec::as_slice));
        if !allowed.unwrap_or_default().iter().any(|kind| types.iter().any(|given| kind == given)) {
            return Err(E::invalid_type(given, &self));
        }
        K::parse(text).map_err(E::custom)
    }
}

impl<K: Kind> Visitor<'_> for ScalarVisitor<K> {
    type Value = K::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = K::parse("").err().unwrap_or_default();
        f.write_str(why.strip_prefix("expected ").unwrap_or("text, a number, true or false"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.parse(&["string"], Unexpected::Str(text), text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.parse(&["integer", "number"], Unexpected::Signed(number), &number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        self.parse(&["number"], Unexpected::Float(number), &number.to_string())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        self.parse(&["boolean"], Unexpected::Bool(flag), if flag { "true" } else { "false" })
    }
}

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident: $value:ty, $parse:expr, $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(in crate::daemon) struct $name;

        impl Kind for $name {
            type Value = $value;
            const NAME: &'static str = stringify!($name);

            fn parse(text: &str) -> Result<Self::Value, String> {
                $parse(text)
            }

            fn schema() -> Schema {
                json_schema!($schema)
            }
        }
    };
}

kind!(
    /// A rate with its unit.
    Rate: u64, quantity::rate,
    { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*([kMGTP]?(bit/s|bit|B/s)|[kmgtp]bit)$" }
);
kind!(
    /// A volume; without a unit, bytes.
    Volume: u64, quantity::volume,
    {
        "type": ["string", "integer"], "minimum": 1,
        "pattern": r"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*([kMGTP]?B)?$"
    }
);
kind!(
    /// A time of the log's rate limit.
    Interval: std::time::Duration, interval,
    { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?\s*[munµμ]?s$" }
);
kind!(
    /// A fraction of a link's rate.
    Target: f64, values::target,
    { "type": "number", "minimum": 1e-6, "maximum": 1 }
);
kind!(
    /// Bytes of a packet on the link beyond its IP length.
    Overhead: i32, values::overhead,
    { "type": "integer", "minimum": 0, "maximum": 1000 }
);
kind!(
    /// An EtherType.
    Tpid: u16, values::tpid,
    { "type": ["integer", "string"], "minimum": 1536, "maximum": 65535, "pattern": "^(0x[0-9a-fA-F]{3,4}|[0-9]{4,5})$" }
);
kind!(
    /// Who wrote a tag last.
    Locator: u32, values::locator,
    { "type": "integer", "minimum": 1, "maximum": 32767 }
);
kind!(
    /// The name of a network device.
    Device: String, values::device,
    { "type": "string", "pattern": r"^[^/\s]{1,15}$" }
);
kind!(
    /// The name of a congestion control.
    CongestionControl: String, values::law_name,
    { "type": "string", "pattern": "^[A-Za-z0-9_]{1,15}$" }
);
kind!(
    /// The cookie of a network namespace.
    Cookie: u64, values::cookie,
    { "type": ["string", "integer"], "minimum": 1, "pattern": "^(0x[0-9A-Fa-f]+|[0-9]+)$" }
);
kind!(
    /// A network of peers.
    Network: host::Network, str::parse,
    { "type": "string", "pattern": r"^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$" }
);
kind!(
    /// Where metrics are served.
    Address: SocketAddr, values::address,
    { "type": "string", "pattern": r"^([0-9.]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$" }
);
kind!(
    /// Messages of one kind in an interval.
    Burst: u32, burst,
    { "type": "integer", "minimum": 1, "maximum": 1_000_000 }
);

fn burst(text: &str) -> Result<u32, String> {
    let fits = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    fits.ok_or_else(|| "expected a whole number from 1 to 1000000".into())
}

fn interval(text: &str) -> Result<std::time::Duration, String> {
    let fits = quantity::time(text).ok().filter(|time| (100..=3_600_000).contains(&time.as_millis()));
    fits.ok_or_else(|| "expected a time from \"100 ms\" to \"3600 s\"".into())
}

/// A time of MaxNet's demand function, which the role converts.
#[derive(Debug)]
pub(in crate::daemon) struct DemandTime;

impl Kind for DemandTime {
    type Value = String;
    const NAME: &'static str = "DemandTime";

    fn parse(text: &str) -> Result<Self::Value, String> {
        values::demand_time(text)
    }

    fn schema() -> Schema {
        Interval::schema()
    }
}

/// A rate that the role converts.
#[derive(Debug)]
pub(in crate::daemon) struct AnyRate;

impl Kind for AnyRate {
    type Value = String;
    const NAME: &'static str = "AnyRate";

    fn parse(text: &str) -> Result<Self::Value, String> {
        values::any_rate(text)
    }

    fn schema() -> Schema {
        Rate::schema()
    }
}

/// A law's name.
#[derive(Debug)]
pub(in crate::daemon) struct Law;

impl Kind for Law {
    type Value = &'static law::Law;
    const NAME: &'static str = "Law";

    fn parse(text: &str) -> Result<Self::Value, String> {
        law::find(text)
    }

    fn schema() -> Schema {
        let names: Vec<_> = law::all().map(|law| law.name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// The TCP option's kind.
#[derive(Debug)]
pub(in crate::daemon) struct OptionKind;

impl Kind for OptionKind {
    type Value = host::Kind;
    const NAME: &'static str = "OptionKind";

    fn parse(text: &str) -> Result<Self::Value, String> {
        match text {
            "253" => Ok(host::Kind::Experiment),
            "42" => Ok(host::Kind::Paper),
            _ => Err("expected 253 or 42".into()),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "enum": [253, 42] })
    }
}

/// A parameter's value, which the law or the controller checks.
#[derive(Debug)]
pub(in crate::daemon) struct Text;

impl Kind for Text {
    type Value = String;
    const NAME: &'static str = "Text";

    fn parse(text: &str) -> Result<Self::Value, String> {
        Ok(text.to_owned())
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// Reads a table. Without this, a structure is read from an array of its values as well.
pub(in crate::daemon) fn table<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
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

/// Reads an enumeration's word that has a default.
pub(in crate::daemon) fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    required_word(from).map(Some)
}

/// Reads an enumeration's word. Without this, one is read from a table as well.
pub(in crate::daemon) fn required_word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
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

/// A table in an array of them.
struct Table<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        table(deserializer).map(Self)
    }
}

/// One table, or an array of tables.
#[derive(Debug)]
pub(in crate::daemon) struct OneOrMany<T>(pub(crate) Vec<T>);

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
