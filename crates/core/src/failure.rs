//! Failures: what a body says when it did not succeed, as data that survives a restart.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytes::{Buf, BufMut};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType};

use crate::limits::{
    FAILURE_CAUSES_MAX, FAILURE_DETAILS_BYTES_MAX, FAILURE_MESSAGE_BYTES_MAX,
    FAILURE_NAME_BYTES_MAX,
};
use crate::payload::Payload;

/// What the engine does about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Class {
    /// May heal by itself: tried again by the policy. Any ordinary error.
    Transient = 0,
    /// The business said no: not tried again, goes to the code at once.
    Permanent = 1,
    /// Somebody must repair something: not tried again, the step is blocked for a person.
    Attention = 2,
}

/// Who produced a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Origin {
    /// The user's body, handler or workflow function returned it.
    Body = 0,
    /// The attempt took longer than its timeout.
    Timeout = 1,
    /// The code panicked.
    Panic = 2,
    /// The process died during the attempt.
    Lost = 3,
    /// The process was stopped in good order during the attempt.
    Interrupted = 4,
    /// A bound of the engine was exceeded.
    Limit = 5,
    /// A value could not be encoded or decoded.
    Decode = 6,
    /// The engine refused something, for example a step inside a step.
    Engine = 7,
}

/// Whether an attempt that ended in this failure may have had its effect on the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Effect {
    /// It may have.
    Possible = 0,
    /// It certainly has not.
    None = 1,
}

/// One link of the chain of sources below a failure.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Cause {
    /// Short stable name of the error's type; empty when unknown.
    #[prost(string, tag = "1")]
    pub type_name: String,
    /// Its message.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// Why an attempt, a step, an undo or an execution did not succeed.
///
/// One word in size, so that `Result<T, Failure>` is cheap to return; what it says is reached
/// through it ([`FailureData`]).
#[derive(Clone, PartialEq, Default)]
pub struct Failure(Box<FailureData>);

impl From<FailureData> for Failure {
    fn from(data: FailureData) -> Failure {
        Failure(Box::new(data))
    }
}

impl Deref for Failure {
    type Target = FailureData;

    fn deref(&self) -> &FailureData {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut FailureData {
        &mut self.0
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Written down as the message that it holds.
impl prost::Message for Failure {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.0.encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.0.merge_field(tag, wire_type, buf, ctx)
    }

    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// What a [`Failure`] says.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FailureData {
    /// What is to be done about it.
    #[prost(enumeration = "Class", tag = "1")]
    pub class: i32,
    /// Who produced it.
    #[prost(enumeration = "Origin", tag = "2")]
    pub origin: i32,
    /// Whether the effect may have happened.
    #[prost(enumeration = "Effect", tag = "3")]
    pub effect: i32,
    /// Short stable name of the error's type, for example `CardDeclined`.
    #[prost(string, tag = "4")]
    pub type_name: String,
    /// A code for programs; empty if there is none.
    #[prost(string, tag = "5")]
    pub code: String,
    /// A sentence for people.
    #[prost(string, tag = "6")]
    pub message: String,
    /// Whatever else the error's owner wants to find again.
    #[prost(message, optional, tag = "7")]
    pub details: Option<Payload>,
    /// The chain of sources, outermost first.
    #[prost(message, repeated, tag = "8")]
    pub causes: Vec<Cause>,
    /// The delay that the other side asked for, in microseconds.
    #[prost(uint64, optional, tag = "9")]
    pub retry_after_us: Option<u64>,
}

impl Failure {
    /// A failure of `class` and `origin` with a type name and a message.
    ///
    /// The effect is derived: only what a body itself returned as permanent or attention is
    /// certain to have had none.
    pub fn new(
        class: Class,
        origin: Origin,
        type_name: impl Into<String>,
        message: impl Into<String>,
    ) -> Failure {
        let effect = match (origin, class) {
            (Origin::Body, Class::Permanent | Class::Attention) => Effect::None,
            (Origin::Body, Class::Transient) => Effect::Possible,
            (
                Origin::Timeout
                | Origin::Panic
                | Origin::Lost
                | Origin::Interrupted
                | Origin::Limit
                | Origin::Decode
                | Origin::Engine,
                _,
            ) => Effect::Possible,
        };
        Failure(Box::new(FailureData {
            class: class as i32,
            origin: origin as i32,
            effect: effect as i32,
            type_name: type_name.into(),
            message: message.into(),
            ..FailureData::default()
        }))
    }

    /// The same failure with another class; the effect follows as in [`Failure::new`].
    pub fn with_class(mut self, class: Class) -> Failure {
        self.set_class(class);
        if self.origin() == Origin::Body {
            let certain = matches!(class, Class::Permanent | Class::Attention);
            self.effect = if certain { Effect::None } else { Effect::Possible } as i32;
        }
        self
    }

    /// Whether it counts against the budget of attempts: all but an orderly interruption do.
    pub fn counts(&self) -> bool {
        self.origin() != Origin::Interrupted
    }

    /// Cuts what is too large and marks the cut, so that a failure can always be recorded. What was
    /// cut before is left as it is.
    pub fn bounded(mut self) -> Failure {
        let left_out = self.leave_out_large_details();
        cut(&mut self.message, FAILURE_MESSAGE_BYTES_MAX - left_out.len());
        self.message.push_str(&left_out);
        cut(&mut self.type_name, FAILURE_NAME_BYTES_MAX);
        cut(&mut self.code, FAILURE_NAME_BYTES_MAX);
        self.causes.truncate(FAILURE_CAUSES_MAX);
        for cause in &mut self.causes {
            cut(&mut cause.message, FAILURE_MESSAGE_BYTES_MAX / 8);
            cut(&mut cause.type_name, FAILURE_NAME_BYTES_MAX);
        }
        self
    }

    /// Gives the mark to put behind the message; empty when there is nothing to leave out.
    fn leave_out_large_details(&mut self) -> String {
        let bytes = self.details.as_ref().map_or(0, |details| details.data.len());
        if bytes <= FAILURE_DETAILS_BYTES_MAX {
            return String::new();
        }
        self.details = None;
        format!(
            " [details of {bytes} bytes left out; at most {FAILURE_DETAILS_BYTES_MAX} are kept]"
        )
    }
}

/// An ordinary error is a transient failure. Its type name and its chain of sources are kept.
///
/// `Failure` itself is data and does not implement [`std::error::Error`]; that is what makes `?`
/// work on every type that does.
impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let name = short_type_name(std::any::type_name::<E>());
        let mut failure = Failure::new(Class::Transient, Origin::Body, name, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source
            && failure.causes.len() < FAILURE_CAUSES_MAX
        {
            let message = cause.to_string();
            failure.causes.push(Cause { type_name: String::new(), message });
            source = cause.source();
        }
        failure
    }
}

/// The last segment of a path, without generic arguments: `shop::pay::Declined<T>` is `Declined`.
pub fn short_type_name(path: &str) -> &str {
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit("::").next().unwrap_or(path)
}

/// Shortens `text` to `max` bytes at a character border and says how much is gone.
fn cut(text: &mut String, max: usize) {
    if text.len() <= max {
        return;
    }
    let whole = text.len();
    let mut end = max.saturating_sub(48);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(&format!("… [cut: {whole} bytes in all]"));
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A failure that is only a sentence has nothing to add to it.
        let nameless = self.type_name.is_empty() || self.type_name == "Message";
        match (nameless, self.message.is_empty()) {
            (true, _) => f.write_str(&self.message),
            (false, true) => f.write_str(&self.type_name),
            (false, false) => write!(f, "{}: {}", self.type_name, self.message),
        }
    }
}
