//! Classifying failures: one call each.

use backstitch_core::failure::{Class, Failure, Origin};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::duration::IntoDuration;
use crate::json;

/// A failure that is only a sentence.
///
/// ```
/// use backstitch::{Class, FailureExt, msg};
///
/// let failure = msg("the account is closed").permanent().with_code("account_closed");
/// assert_eq!(failure.class(), Class::Permanent);
/// ```
pub fn msg(text: impl Into<String>) -> Failure {
    Failure::new(Class::Transient, Origin::Body, "Message", text)
}

/// Classifies a failure, and adds to what it carries.
pub trait FailureExt: Sized {
    /// The business said no: no retry, goes to the code at once.
    fn permanent(self) -> Failure;
    /// Somebody must repair something: the step is blocked until an operator retries it.
    fn attention(self) -> Failure;
    /// May heal: retried after the delay that the other side asked for.
    fn retry_after(self, delay: impl IntoDuration) -> Failure;
    /// A code for programs.
    fn with_code(self, code: impl Into<String>) -> Failure;
    /// Data for whoever handles it. What cannot be encoded is left out, and the message says so.
    fn with_details(self, details: &impl Serialize) -> Failure;
    /// Whether it was made from an error of type `E`, judged by the last segment of the type's
    /// path: after a restart there is nothing else. Two types called `Error` are not told apart.
    fn is<E>(&self) -> bool;
    /// The details, decoded; `None` when there are none or they are of another type.
    fn decode_details<D: DeserializeOwned>(&self) -> Option<D>;
}

impl FailureExt for Failure {
    fn permanent(self) -> Failure {
        self.with_class(Class::Permanent)
    }

    fn attention(self) -> Failure {
        self.with_class(Class::Attention)
    }

    fn retry_after(self, delay: impl IntoDuration) -> Failure {
        let mut failure = self.with_class(Class::Transient);
        match delay.into_us() {
            Ok(us) => failure.retry_after_us = Some(us),
            Err(why) => failure.message.push_str(&format!(" [retry_after ignored: {why}]")),
        }
        failure
    }

    fn with_code(mut self, code: impl Into<String>) -> Failure {
        self.code = code.into();
        self
    }

    fn with_details(mut self, details: &impl Serialize) -> Failure {
        match json::encode(format_args!("the details"), details) {
            Ok(payload) => self.details = Some(payload),
            Err(error) => self.message.push_str(&format!(" [{}]", error.message)),
        }
        self
    }

    fn is<E>(&self) -> bool {
        let name = backstitch_core::failure::short_type_name(std::any::type_name::<E>());
        self.type_name == name
    }

    fn decode_details<D: DeserializeOwned>(&self) -> Option<D> {
        json::decode(self.details.as_ref()?).ok()
    }
}

/// Classifies the error of a result: `bank.debit(…).await.permanent()?`.
///
/// ```
/// use backstitch::{Class, Classify, Result};
/// # #[derive(Debug)]
/// # enum BankError { Refused, Busy }
/// # impl std::fmt::Display for BankError {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{self:?}") }
/// # }
/// # impl std::error::Error for BankError {}
///
/// fn booked(answer: std::result::Result<u64, BankError>) -> Result<u64> {
///     answer.classify(|error| match error {
///         BankError::Refused => Class::Permanent,
///         BankError::Busy => Class::Transient,
///     })
/// }
/// assert_eq!(booked(Err(BankError::Refused)).unwrap_err().class(), Class::Permanent);
/// assert_eq!(booked(Err(BankError::Busy)).unwrap_err().class(), Class::Transient);
/// ```
pub trait Classify<T, E> {
    /// The class that `class` gives it.
    ///
    /// # Errors
    /// The error, as a failure of that class.
    fn classify(self, class: impl FnOnce(&E) -> Class) -> Result<T, Failure>;
    /// As [`FailureExt::permanent`].
    ///
    /// # Errors
    /// The error, as a permanent failure.
    fn permanent(self) -> Result<T, Failure>;
    /// As [`FailureExt::attention`].
    ///
    /// # Errors
    /// The error, as a failure that calls for a person.
    fn attention(self) -> Result<T, Failure>;
    /// As [`FailureExt::retry_after`].
    ///
    /// # Errors
    /// The error, as a transient failure with a delay.
    fn retry_after(self, delay: impl IntoDuration) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> Classify<T, E> for Result<T, E> {
    fn classify(self, class: impl FnOnce(&E) -> Class) -> Result<T, Failure> {
        self.map_err(|error| {
            let class = class(&error);
            error.into().with_class(class)
        })
    }

    fn permanent(self) -> Result<T, Failure> {
        self.map_err(|error| error.into().permanent())
    }

    fn attention(self) -> Result<T, Failure> {
        self.map_err(|error| error.into().attention())
    }

    fn retry_after(self, delay: impl IntoDuration) -> Result<T, Failure> {
        self.map_err(|error| FailureExt::retry_after(error.into(), delay))
    }
}
