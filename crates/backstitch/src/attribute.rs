//! Values of search attributes.

pub use backstitch_core::attribute::AttributeValue;

/// A value that a search attribute can have: a text, a whole number, a number, yes or no, or an
/// instant. A value is found again only by one of the same kind: `7` is not `7.0`.
pub trait IntoAttribute {
    /// The value.
    fn into_attribute(self) -> AttributeValue;
}

macro_rules! into_attribute {
    ($($from:ty => |$value:ident| $into:expr,)*) => {
        $(impl IntoAttribute for $from {
            fn into_attribute(self) -> AttributeValue {
                let $value = self;
                $into
            }
        })*
    };
}

into_attribute! {
    AttributeValue => |value| value,
    &str => |value| AttributeValue::Text(value.to_owned()),
    String => |value| AttributeValue::Text(value),
    &String => |value| AttributeValue::Text(value.clone()),
    i64 => |value| AttributeValue::Integer(value),
    i32 => |value| AttributeValue::Integer(value.into()),
    u32 => |value| AttributeValue::Integer(value.into()),
    f64 => |value| AttributeValue::Real(value),
    bool => |value| AttributeValue::Flag(value),
    jiff::Timestamp => |value| AttributeValue::Instant(value.as_microsecond()),
}
