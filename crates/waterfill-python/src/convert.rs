//! Conversions between Python objects and Rust values with serde, without intermediate text.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::list::BoundListIterator;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyNone, PyString, PyTuple};
use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::Value;

/// Reads a value from plain data: mappings, dataclasses, named tuples, lists, tuples, numbers, strings and None.
///
/// `ValueError` with one sentence if the object has another shape.
pub(crate) fn from_python<T: DeserializeOwned>(object: &Bound<'_, PyAny>) -> PyResult<T> {
    T::deserialize(Object(object.clone())).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Converts a value to dictionaries, lists and numbers. Keys are sorted, and NaN becomes None.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value).map_err(|e| PyValueError::new_err(e.to_string()))?;
    plain(py, &value)
}

fn plain<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => PyNone::get(py).to_owned().into_any(),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Number(number) => match number.as_u64() {
            Some(integer) => integer.into_pyobject(py)?.into_any(),
            None => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let items: PyResult<Vec<_>> = items.iter().map(|item| plain(py, item)).collect();
            PyList::new(py, items?)?.into_any()
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, value) in entries {
                dict.set_item(key, plain(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// Python object that serde can deserialize.
struct Object<'py>(Bound<'py, PyAny>);

impl<'py> Object<'py> {
    /// Returns the keys and values of a mapping.
    fn entries(&self) -> PyResult<Vec<(Self, Self)>> {
        let items = match self.0.cast::<PyDict>() {
            Ok(dict) => dict.items(),
            Err(_) => self.0.cast::<PyMapping>()?.items()?,
        };
        items.iter().map(|pair| pair.extract().map(|(k, v)| (Self(k), Self(v)))).collect()
    }

    /// Returns the fields of a dataclass; `None` for any other object.
    fn fields(&self) -> Option<DataclassFields<'py>> {
        // Asking for the attribute raises an exception in vain, which a dictionary need not wait for.
        if self.0.is_instance_of::<PyDict>() {
            return None;
        }
        let fields = self.0.getattr(intern!(self.0.py(), "__dataclass_fields__")).ok()?.cast_into::<PyDict>().ok()?;
        Some(DataclassFields { object: self.0.clone(), names: fields.keys().into_iter(), name: None })
    }
}

/// Fields of a dataclass, read one by one. A network of 100,000 flows has two million fields.
struct DataclassFields<'py> {
    object: Bound<'py, PyAny>,
    names: BoundListIterator<'py>,
    name: Option<Bound<'py, PyString>>,
}

impl<'de> MapAccess<'de> for DataclassFields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.names.next() else { return Ok(None) };
        self.name = Some(name.clone().cast_into::<PyString>().map_err(|e| failed(e.into()))?);
        seed.deserialize(Object(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let name = self.name.take().ok_or_else(|| Error::custom("a value is read before its name"))?;
        seed.deserialize(Object(self.object.getattr(name).map_err(failed)?))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.names.len())
    }
}

impl IntoDeserializer<'_, Error> for Object<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Returns the field names of a named tuple; `None` for other tuples.
fn named<'py>(tuple: &Bound<'py, PyTuple>) -> Option<Bound<'py, PyTuple>> {
    if tuple.is_exact_instance_of::<PyTuple>() {
        return None;
    }
    tuple.getattr(intern!(tuple.py(), "_fields")).ok()?.cast_into().ok()
}

fn failed(error: PyErr) -> Error {
    Error::custom(error)
}

impl<'de> Deserializer<'de> for Object<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let object = &self.0;
        if let Ok(float) = object.cast::<PyFloat>() {
            visitor.visit_f64(float.value())
        } else if let Ok(text) = object.cast::<PyString>() {
            visitor.visit_str(text.to_str().map_err(failed)?)
        } else if object.is_none() {
            visitor.visit_unit()
        } else if let Ok(flag) = object.cast::<PyBool>() {
            visitor.visit_bool(flag.is_true())
        } else if object.is_instance_of::<PyInt>() {
            match object.extract::<u64>() {
                Ok(integer) => visitor.visit_u64(integer),
                Err(_) => visitor.visit_i64(object.extract().map_err(failed)?),
            }
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            match named(tuple) {
                Some(names) => visitor.visit_map(MapDeserializer::new(
                    names.iter().zip(tuple).map(|(name, item)| (Self(name), Self(item))),
                )),
                None => visitor.visit_seq(SeqDeserializer::new(tuple.iter().map(Self))),
            }
        } else if let Ok(list) = object.cast::<PyList>() {
            visitor.visit_seq(SeqDeserializer::new(list.iter().map(Self)))
        } else if let Some(fields) = self.fields() {
            visitor.visit_map(fields)
        } else {
            visitor.visit_map(MapDeserializer::new(self.entries().map_err(failed)?.into_iter()))
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_none() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Ok(text) = self.0.cast::<PyString>() {
            return visitor.visit_enum(text.to_str().map_err(failed)?.into_deserializer());
        }
        if let Some(fields) = self.fields() {
            return visitor.visit_enum(MapAccessDeserializer::new(fields));
        }
        let entries = self.entries().map_err(failed)?;
        visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(entries.into_iter())))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
