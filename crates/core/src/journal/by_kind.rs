//! Reads an event by its `kind`, straight from its JSON.
//!
//! Serde reads a tagged enum by keeping all of its fields in memory until it has seen the tag, wherever it is. Ralph writes the kind first, so nothing has to be
//! kept, for a long journal and for the last record that the hook reads.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, EnumAccess, Error, IgnoredAny, IntoDeserializer, MapAccess, VariantAccess, Visitor,
        value::{MapAccessDeserializer, MapDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

use super::{Event, Variants};

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

/// A name that is not copied where that is possible.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for Fields {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event with its kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Event, A::Error> {
        let Name(first) = fields.next_key()?.ok_or_else(|| Error::missing_field("kind"))?;
        if first == "kind" {
            let Name(kind) = fields.next_value()?;
            return Variants::deserialize(OfKind { kind, fields });
        }
        // Another program wrote it, in another order.
        let value = fields.next_value()?;
        let mut all = Map::deserialize(MapAccessDeserializer::new(fields))?;
        all.insert(first.into_owned(), value);
        let Some(Value::String(kind)) = all.remove("kind") else { return Err(Error::missing_field("kind")) };
        Variants::deserialize(OfKind { kind: kind.into(), fields: MapDeserializer::new(all.into_iter()) })
            .map_err(|e: serde_json::Error| Error::custom(e))
    }
}

/// The fields of an event whose kind is known, as serde reads an enum.
struct OfKind<'k, A> {
    kind: Cow<'k, str>,
    fields: A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for OfKind<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple tuple_struct map struct enum
        identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for OfKind<'_, A> {
    type Error = A::Error;
    type Variant = Rest<A>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Rest<A>), A::Error> {
        Ok((seed.deserialize(self.kind.into_deserializer())?, Rest(self.fields)))
    }
}

struct Rest<A>(A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Rest<A> {
    type Error = A::Error;

    fn unit_variant(mut self) -> Result<(), A::Error> {
        while self.0.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, A::Error> {
        Err(Error::custom("an event has named fields"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, A::Error> {
        Err(Error::custom("an event has named fields"))
    }
}
