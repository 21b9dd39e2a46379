//! Waiting for events from outside.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use backstitch_core::event::EventReceived;
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::id::{KeyKind, name_defect};
use backstitch_core::limits::WAIT_TYPES_MAX;
use backstitch_core::payload::Payload;
use backstitch_core::session::{AskedKind, Outcome};
use backstitch_engine::desk::Request;
use serde::de::DeserializeOwned;

use crate::ctx::Ctx;
use crate::duration::IntoDuration;
use crate::json;
use crate::step::Built;

/// How long a wait lasts: a duration (a [`std::time::Duration`], or a text such as `"24h"`), or
/// [`NoTimeout`].
pub trait IntoTimeout {
    /// In microseconds; `None` for a wait without end.
    ///
    /// # Errors
    /// Says what is wrong with the value.
    fn into_timeout(self) -> Result<Option<u64>, String>;
}

/// A wait without end: only an event ends it, or the end of the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTimeout;

impl IntoTimeout for NoTimeout {
    fn into_timeout(self) -> Result<Option<u64>, String> {
        Ok(None)
    }
}

impl<D: IntoDuration> IntoTimeout for D {
    fn into_timeout(self) -> Result<Option<u64>, String> {
        self.into_us().map(Some)
    }
}

/// An event that a wait took.
#[derive(Clone, Debug)]
pub struct Event(Box<EventReceived>);

impl Event {
    /// Its type.
    pub fn event_type(&self) -> &str {
        &self.0.event_type
    }

    /// The sender's id of it, if it gave one.
    pub fn id(&self) -> Option<&str> {
        Some(self.0.event_id.as_str()).filter(|id| !id.is_empty())
    }

    /// Who sent it.
    pub fn by(&self) -> &str {
        &self.0.by
    }

    /// When it was accepted.
    pub fn accepted_at(&self) -> jiff::Timestamp {
        let at = jiff::Timestamp::from_microsecond(self.0.accepted_at_us);
        at.unwrap_or(jiff::Timestamp::MAX)
    }

    /// What it says, as bytes.
    pub fn payload(&self) -> &Payload {
        &self.0.payload
    }

    /// What it says.
    ///
    /// # Errors
    /// A permanent failure that names the event and its sender when it is not a `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::decode(&self.0.payload).map_err(|why| {
            let EventReceived { event_type, event_id, by, inbox, .. } = self.0.as_ref();
            let id = if event_id.is_empty() { String::new() } else { format!(", id {event_id:?}") };
            let message =
                format!("the event {event_type:?} (number {inbox}{id}, sent by {by}): {why}");
            Failure::new(Class::Permanent, Origin::Decode, "EventPayload", message)
        })
    }
}

/// A wait for an event of one type. Made by [`Ctx::wait_event`].
///
/// # Errors
/// A permanent failure `EventTimeout` when no event came in time (see [`WaitEvent::optional`]),
/// `EventPayload` when the event is not a `T`, and for a bad name or duration.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct WaitEvent<T> {
    wait: WaitAnyEvent,
    decode: fn(&Event) -> Result<T, Failure>,
}

/// A wait for an event of one of several types. Made by [`Ctx::wait_any_event`].
///
/// # Errors
/// As [`WaitEvent`], without `EventPayload`.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct WaitAnyEvent {
    ctx: Ctx,
    built: Built,
    types: Vec<String>,
    timeout_us: Option<u64>,
    name: Box<str>,
    place: &'static Location<'static>,
}

/// A wait that ends in `None` when no event came in time.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct Optional<W>(W);

impl WaitAnyEvent {
    pub(crate) fn build(
        ctx: &Ctx,
        name: &str,
        types: Vec<String>,
        timeout: Result<Option<u64>, String>,
        place: &'static Location<'static>,
    ) -> WaitAnyEvent {
        let refused = |type_name: &str, what: String| {
            let message = format!("the wait {name:?} at {place}: {what}");
            Failure::new(Class::Permanent, Origin::Engine, type_name, message)
        };
        let types_defect = match types.len() {
            0 => Some("it names no type of event; name one at least".to_owned()),
            count if count > WAIT_TYPES_MAX => {
                Some(format!("it names {count} types; at most {WAIT_TYPES_MAX} are allowed"))
            }
            _ => types.iter().find_map(|event_type| {
                let known = ctx.events.is_empty() || ctx.events.contains(event_type);
                name_defect("type of the event", event_type).or_else(|| {
                    (!known).then(|| {
                        let known = ctx.events.join(", ");
                        format!(
                            "the workflow says that it takes {known}, and {event_type:?} is none of \
                             these: it would wait for ever"
                        )
                    })
                })
            }),
        };
        let (timeout_us, timeout_defect) = match timeout {
            Ok(timeout_us) => (timeout_us, None),
            Err(why) => (None, Some(refused("BadDuration", why))),
        };
        let defect = ctx.defect().cloned().or(timeout_defect);
        let defect = defect.or_else(|| types_defect.map(|why| refused("BadName", why)));
        let built = match defect {
            Some(defect) => Err(defect),
            None => ctx.desk.build(ctx.scope(), KeyKind::Wait, name, place),
        };
        let built = built.map_or_else(Built::Refused, Built::Here);
        WaitAnyEvent { ctx: ctx.clone(), built, types, timeout_us, name: name.into(), place }
    }

    /// Ends in `None`, and not in a failure, when no event came in time.
    pub fn optional(self) -> Optional<WaitAnyEvent> {
        Optional(self)
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Failure>> {
        let ticket = match &self.built {
            Built::Here(ticket) => ticket,
            Built::Refused(defect) => return Poll::Ready(Err(defect.clone())),
            Built::Over => {
                let message =
                    format!("the wait {:?} at {} was awaited again", self.name, self.place);
                let failure =
                    Failure::new(Class::Permanent, Origin::Engine, "AwaitedTwice", message);
                return Poll::Ready(Err(failure));
            }
        };
        let (types, timeout_us) = (&self.types, self.timeout_us);
        let request = |now_us: i64| {
            let until_us = timeout_us.map(|us| now_us.saturating_add_unsigned(us));
            let what = AskedKind::Wait { types: types.clone(), until_us };
            Request { what, body: None, undo: None }
        };
        let outcome = match self.ctx.desk.poll(ticket, cx, request) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(failure)) => Err(failure),
            Poll::Ready(Ok(Outcome::Event(event))) => Ok(Some(Event(event))),
            Poll::Ready(Ok(Outcome::NoEvent)) => Ok(None),
            Poll::Ready(Ok(Outcome::Step(_) | Outcome::Timer)) => {
                unreachable!("a wait is shown an event, or that none came")
            }
        };
        self.ctx.desk.release(ticket);
        self.built = Built::Over;
        Poll::Ready(outcome)
    }

    fn timed_out(&self) -> Failure {
        let message = format!(
            "no event of type {} came in time for the wait {:?}",
            self.types.join(" or "),
            self.name
        );
        Failure::new(Class::Permanent, Origin::Timeout, "EventTimeout", message)
    }
}

impl<T> WaitEvent<T> {
    pub(crate) fn new(wait: WaitAnyEvent) -> WaitEvent<T>
    where
        T: DeserializeOwned,
    {
        WaitEvent { wait, decode: Event::decode }
    }

    /// Ends in `None`, and not in a failure, when no event came in time.
    pub fn optional(self) -> Optional<WaitEvent<T>> {
        Optional(self)
    }

    fn poll_value(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<T>, Failure>> {
        let decode = self.decode;
        self.wait
            .poll_event(cx)
            .map_ok(|event| event.as_ref().map(decode))
            .map(|event| event?.transpose())
    }
}

impl Future for WaitAnyEvent {
    type Output = Result<Event, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.poll_event(cx).map(|event| event?.ok_or_else(|| this.timed_out()))
    }
}

impl<T> Future for WaitEvent<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.poll_value(cx).map(|value| value?.ok_or_else(|| this.wait.timed_out()))
    }
}

impl Future for Optional<WaitAnyEvent> {
    type Output = Result<Option<Event>, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll_event(cx)
    }
}

impl<T> Future for Optional<WaitEvent<T>> {
    type Output = Result<Option<T>, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll_value(cx)
    }
}

impl Drop for WaitAnyEvent {
    fn drop(&mut self) {
        if let Built::Here(ticket) = &self.built {
            self.ctx.desk.release(ticket);
        }
    }
}
