//! Search attributes: typed, indexed facts about an execution, in the words of the business.

use std::fmt;

/// The value of an attribute.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AttributeValue {
    /// A text.
    #[prost(string, tag = "2")]
    Text(String),
    /// A whole number.
    #[prost(sint64, tag = "3")]
    Integer(i64),
    /// A number.
    #[prost(double, tag = "4")]
    Real(f64),
    /// Yes or no.
    #[prost(bool, tag = "5")]
    Flag(bool),
    /// An instant, in microseconds since 1970.
    #[prost(int64, tag = "6")]
    Instant(i64),
}

/// One attribute that is set, or taken away.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributeChange {
    /// Its name, for example `CustomerId`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its new value; absent to take it away.
    #[prost(oneof = "AttributeValue", tags = "2, 3, 4, 5, 6")]
    pub value: Option<AttributeValue>,
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeValue::Text(text) => write!(f, "{text:?}"),
            AttributeValue::Integer(number) => write!(f, "{number}"),
            AttributeValue::Real(number) => write!(f, "{number}"),
            AttributeValue::Flag(flag) => write!(f, "{flag}"),
            AttributeValue::Instant(at_us) => write!(f, "{at_us} µs"),
        }
    }
}
