//! Values of a definition with the place of each: what the YAML parser says, laid over the text.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

/// Values that one file may hold, aliases expanded.
const VALUES_MAX: usize = 100_000;

/// Message by which [`parse`]'s callers know that [`VALUES_MAX`] was exceeded.
pub(crate) const TOO_MANY_VALUES: &str = "too many values";

/// A number as the parser read it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// Fits into 64 bits with a sign.
    Signed(i64),
    /// Only fits without a sign.
    Unsigned(u64),
    /// Has a fraction, an exponent or no end.
    Float(f64),
}

/// A value without its place.
#[derive(Debug)]
pub(crate) enum Tree {
    /// `~`, `null` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Tree>),
    /// A map, duplicate keys included.
    Map(Vec<(Tree, Tree)>),
}

/// A value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// First byte in the file.
    pub(crate) start: usize,
    /// Byte after the last; equal to `start` where the text itself is not known.
    pub(crate) end: usize,
    /// The value.
    pub(crate) data: Data,
}

/// What a [`Node`] holds.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// `~`, `null` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map in the order of the file.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The key as text.
    pub(crate) key: String,
    /// First byte of the key.
    pub(crate) start: usize,
    /// The value.
    pub(crate) value: Node,
}

/// Reads one document; nothing is lost, neither order nor duplicate keys.
pub(crate) fn parse(yaml: &str) -> Result<Tree, serde_yaml::Error> {
    let values = Cell::new(0);
    let seed = TreeSeed { values: &values };
    seed.deserialize(serde_yaml::Deserializer::from_str(yaml))
}

#[derive(Clone, Copy)]
struct TreeSeed<'c> {
    values: &'c Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for TreeSeed<'_> {
    type Value = Tree;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        let values = self.values.get() + 1;
        self.values.set(values);
        if values > VALUES_MAX {
            return Err(serde::de::Error::custom(TOO_MANY_VALUES));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeSeed<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(Number::Signed(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(
            i64::try_from(value).map_or(Number::Unsigned(value), Number::Signed),
        ))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(Number::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key_seed(self)? {
            entries.push((key, access.next_value_seed(self)?));
        }
        Ok(Tree::Map(entries))
    }

    // A tagged value: the tag itself is found and refused when places are laid over the text.
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Tree, A::Error> {
        let ((), value) = access.variant_seed(TagName)?;
        value.newtype_variant_seed(self)
    }
}

struct TagName;

impl<'de> DeserializeSeed<'de> for TagName {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_identifier(serde::de::IgnoredAny)?;
        Ok(())
    }
}
