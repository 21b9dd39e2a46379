//! Payloads of JSON.

use std::fmt;

use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::payload::Payload;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounds::Data;

/// Encodes a value; `what` names it in the failure.
pub(crate) fn encode<T: Serialize + ?Sized>(
    what: fmt::Arguments<'_>,
    value: &T,
) -> Result<Payload, Failure> {
    serde_json::to_vec(value).map(Payload::json).map_err(|error| {
        let message = format!("{what} cannot be encoded as JSON: {error}");
        Failure::new(Class::Permanent, Origin::Decode, "Encode", message)
    })
}

pub(crate) fn decode<T: DeserializeOwned>(payload: &Payload) -> Result<T, String> {
    if payload.encoding() != "json" {
        return Err(format!("it is encoded as {:?}, not as json", payload.encoding()));
    }
    // One look at the whole is cheaper than one at each string in it.
    let text = std::str::from_utf8(&payload.data)
        .map_err(|error| format!("it is not JSON, which is UTF-8: {error}"))?;
    serde_json::from_str(text)
        .map_err(|error| format!("it does not decode as {}: {error}", std::any::type_name::<T>()))
}

/// Encodes a value that may not have more than `bytes_max` bytes.
pub(crate) fn encode_within<T: Serialize + ?Sized>(
    what: fmt::Arguments<'_>,
    value: &T,
    bytes_max: usize,
) -> Result<Payload, Failure> {
    let payload = encode(what, value)?;
    if payload.data.len() > bytes_max {
        let message = format!(
            "{what} has {} bytes; at most {bytes_max} are allowed: keep large data elsewhere and \
             give its address, or raise the limit",
            payload.data.len()
        );
        return Err(Failure::new(Class::Permanent, Origin::Limit, "PayloadTooLarge", message));
    }
    Ok(payload)
}

/// Encodes the output of a body or a workflow, and makes sure that it can be read back and is not
/// too large: a value that is stored and cannot be read would block the run for ever.
pub(crate) fn encode_output<T: Data>(
    what: fmt::Arguments<'_>,
    value: &T,
    bytes_max: usize,
) -> Result<Payload, Failure> {
    let payload = encode_within(what, value, bytes_max)?;
    decode::<T>(&payload).map_err(|why| {
        let message = format!("{what} was encoded, but {why}");
        Failure::new(Class::Permanent, Origin::Decode, "Encode", message)
    })?;
    Ok(payload)
}
