//! Values of users, which are carried and not understood.

use std::borrow::Cow;

use backstitch_core::attribute::AttributeValue;
use backstitch_core::payload::Payload;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AnyOfBuilder, SchemaType};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// Any JSON, as it was written: numbers keep their digits and objects their order.
///
/// What a program has encoded otherwise is shown as `{"encoding": …, "hex": …}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Value(Box<RawValue>);

#[derive(Serialize)]
struct Opaque<'a> {
    encoding: &'a str,
    hex: String,
}

impl Value {
    /// What a payload holds.
    pub fn of(payload: &Payload) -> Value {
        let text = std::str::from_utf8(&payload.data).ok().filter(|_| payload.encoding() == "json");
        let json = text.and_then(|text| RawValue::from_string(text.to_owned()).ok());
        json.map(Value).unwrap_or_else(|| {
            let hex = payload.data.iter().map(|byte| format!("{byte:02x}")).collect();
            Value::from(&Opaque { encoding: payload.encoding(), hex })
        })
    }

    /// The value of something that is JSON by its type.
    ///
    /// # Panics
    /// If it is not: a map whose keys are no texts.
    pub fn from<T: Serialize>(value: &T) -> Value {
        Value(serde_json::value::to_raw_value(value).expect("it is JSON by its type"))
    }

    /// `null`.
    pub fn null() -> Value {
        Value(RawValue::NULL.to_owned())
    }

    /// Reads a text.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The payload that holds it. White space between its parts is left out, so that the same value
    /// is the same payload, however it was set.
    pub fn payload(&self) -> Payload {
        Payload::json(compact(self.0.get()).into_owned())
    }

    /// Its JSON.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        compact(self.get()) == compact(other.get())
    }
}

impl PartialSchema for Value {
    fn schema() -> RefOr<Schema> {
        let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        any.description(Some("Any JSON value.")).build().into()
    }
}

impl ToSchema for Value {}

/// Valid JSON without the white space between its parts.
fn compact(json: &str) -> Cow<'_, str> {
    let is_space = |c: char| matches!(c, ' ' | '\n' | '\r' | '\t');
    if !json.contains(is_space) {
        return json.into();
    }
    let (mut out, mut in_text, mut escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        if !in_text && is_space(c) {
            continue;
        }
        in_text ^= c == '"' && !escaped;
        escaped = in_text && c == '\\' && !escaped;
        out.push(c);
    }
    out.into()
}

/// The value of a search attribute. It is found by one of the same kind: `7` is not `7.0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a search attribute is a text, a number, true or false, or {\"instant\": \"2026-01-31T12:00:00Z\"}"
)]
pub enum Attribute {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
    /// An instant.
    Instant {
        /// In RFC 3339.
        instant: Timestamp,
    },
}

/// By hand: a whole number is a number too, and what is derived says that only one of them fits.
impl PartialSchema for Attribute {
    fn schema() -> RefOr<Schema> {
        let rfc_3339 = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
        let instant = ObjectBuilder::new().property("instant", rfc_3339).required("instant");
        AnyOfBuilder::new()
            .item(bool::schema())
            .item(i64::schema())
            .item(f64::schema())
            .item(String::schema())
            .item(instant)
            .description(Some(
                "The value of a search attribute. It is found by one of the same kind: `7` is not `7.0`.",
            ))
            .into()
    }
}

impl ToSchema for Attribute {}

impl From<Attribute> for AttributeValue {
    fn from(attribute: Attribute) -> AttributeValue {
        match attribute {
            Attribute::Flag(flag) => AttributeValue::Flag(flag),
            Attribute::Integer(number) => AttributeValue::Integer(number),
            Attribute::Real(number) => AttributeValue::Real(number),
            Attribute::Text(text) => AttributeValue::Text(text),
            Attribute::Instant { instant } => AttributeValue::Instant(instant.as_microsecond()),
        }
    }
}

impl From<&AttributeValue> for Attribute {
    fn from(value: &AttributeValue) -> Attribute {
        match value {
            AttributeValue::Flag(flag) => Attribute::Flag(*flag),
            AttributeValue::Integer(number) => Attribute::Integer(*number),
            AttributeValue::Real(number) => Attribute::Real(*number),
            AttributeValue::Text(text) => Attribute::Text(text.clone()),
            AttributeValue::Instant(us) => Attribute::Instant {
                instant: Timestamp::from_microsecond(*us).unwrap_or(Timestamp::MAX),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_left_out_and_nothing_else() {
        let written = "{ \"b\" : [1.10,\n 2] , \"a\\\" b\": \" x \\\\\" }";
        let value = Value::parse(written).expect("it is JSON");
        assert_eq!(value.payload().data, "{\"b\":[1.10,2],\"a\\\" b\":\" x \\\\\"}");
    }

    #[test]
    fn what_is_not_json_is_shown_as_bytes() {
        let mut payload = Payload::json(&b"\x01\xff"[..]);
        payload.metadata.insert("encoding".into(), "cbor".into());
        assert_eq!(Value::of(&payload).get(), r#"{"encoding":"cbor","hex":"01ff"}"#);
        assert_eq!(Value::of(&Payload::json("{no")).get(), r#"{"encoding":"json","hex":"7b6e6f"}"#);
    }

    #[test]
    fn a_whole_number_may_fit_as_a_number_too() {
        assert!(matches!(Attribute::schema(), RefOr::T(Schema::AnyOf(_))));
    }

    #[test]
    fn kinds_of_attributes_are_told_apart() {
        let read = |text| serde_json::from_str::<Attribute>(text).map_err(|e| e.to_string());
        assert_eq!(read("7"), Ok(Attribute::Integer(7)));
        assert_eq!(read("7.0"), Ok(Attribute::Real(7.0)));
        assert_eq!(read("\"7\""), Ok(Attribute::Text("7".into())));
        assert!(read("{\"instant\":\"2026-01-31T12:00:00Z\"}").is_ok());
        assert!(read("[7]").unwrap_err().contains("a text, a number, true or false"));
    }
}
