//! From JSON text to objects.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::NotPlain;

/// Beyond it a float may stand for an integer that has more than 64 bits.
const LEAST_DOUBTFUL: f64 = 9_223_372_036_854_775_808.0;

/// The object that `json.loads` makes of this text.
///
/// # Errors
/// The text is for `json.loads` to read: it is no JSON, nested deeper than 127, has a lone surrogate or an integer
/// beyond 64 bits.
pub fn read<'py>(py: Python<'py>, text: &[u8]) -> Result<Bound<'py, PyAny>, NotPlain> {
    let keys = RefCell::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Reader { py, keys: &keys }.deserialize(&mut reader);
    match (value, reader.end()) {
        (Ok(value), Ok(())) => Ok(value),
        _ => Err(NotPlain),
    }
}

/// The keys of one text: rows of a table have the same ones, and then they are the same objects, as in `json`.
type Keys<'py> = RefCell<HashMap<Box<str>, Bound<'py, PyString>>>;

#[derive(Clone, Copy)]
struct Reader<'a, 'py> {
    py: Python<'py>,
    keys: &'a Keys<'py>,
}

struct Key<'a, 'py>(Reader<'a, 'py>);

fn python<E: de::Error>(error: PyErr) -> E {
    E::custom(error)
}

impl<'de, 'py> DeserializeSeed<'de> for Reader<'_, 'py> {
    type Value = Bound<'py, PyAny>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, 'py> Visitor<'de> for Reader<'_, 'py> {
    type Value = Bound<'py, PyAny>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(PyBool::new(self.py, value).to_owned().into_any())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        let Ok(value) = value.into_pyobject(self.py);
        Ok(value.into_any())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        let Ok(value) = value.into_pyobject(self.py);
        Ok(value.into_any())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        // `-0` is an integer, too, and comes as a float.
        if value.abs() >= LEAST_DOUBTFUL || (value == 0.0 && value.is_sign_negative()) {
            return Err(E::custom("an integer or a float"));
        }
        let Ok(value) = value.into_pyobject(self.py);
        Ok(value.into_any())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(PyString::new(self.py, text).into_any())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let list = PyList::empty(self.py);
        while let Some(item) = items.next_element_seed(self)? {
            list.append(item).map_err(python)?;
        }
        Ok(list.into_any())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let object = PyDict::new(self.py);
        while let Some(key) = entries.next_key_seed(Key(self))? {
            let value = entries.next_value_seed(self)?;
            object.set_item(key, value).map_err(python)?;
        }
        Ok(object.into_any())
    }
}

impl<'de, 'py> DeserializeSeed<'de> for Key<'_, 'py> {
    type Value = Bound<'py, PyString>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de, 'py> Visitor<'de> for Key<'_, 'py> {
    type Value = Bound<'py, PyString>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let Reader { py, keys } = self.0;
        let mut keys = keys.borrow_mut();
        if let Some(known) = keys.get(text) {
            return Ok(known.clone());
        }
        let key = PyString::new(py, text);
        keys.insert(text.into(), key.clone());
        Ok(key)
    }
}
