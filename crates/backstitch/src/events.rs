//! Sending events, and reading what an execution publishes.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use backstitch_core::payload::Payload;
use backstitch_core::run::Published;
use backstitch_engine::Engine;
use backstitch_engine::events::EventPost;
use backstitch_store::RunNo;
use serde::de::DeserializeOwned;

pub use backstitch_engine::events::EventAccepted;

use crate::error::{Error, ErrorKind};
use crate::json;

/// An event that is being put together; awaiting it sends it. What is answered is durable.
///
/// # Errors
/// `Refused` when the execution is rolling back or closed; `Full` when it keeps as many events as it
/// may; `Invalid` for a bad type or id, a payload that is too large, a type that the workflow does
/// not take, or an id that was used for another event.
#[must_use = "an event is sent when it is awaited"]
pub struct EventRequest {
    engine: Engine,
    run: RunNo,
    event_type: String,
    payload: Result<Payload, Error>,
    event_id: Option<String>,
    by: String,
}

impl EventRequest {
    pub(crate) fn new(
        engine: &Engine,
        run: RunNo,
        event_type: String,
        payload: Result<Payload, Error>,
    ) -> EventRequest {
        let by = "the program".to_owned();
        EventRequest { engine: engine.clone(), run, event_type, payload, event_id: None, by }
    }

    /// An id of the sender's own: the same event sent twice is one event.
    pub fn id(mut self, id: impl Into<String>) -> EventRequest {
        self.event_id = Some(id.into());
        self
    }

    /// Who sends it; stands in the journal.
    pub fn by(mut self, by: impl Into<String>) -> EventRequest {
        self.by = by.into();
        self
    }

    async fn send(self) -> Result<EventAccepted, Error> {
        let EventRequest { engine, run, event_type, payload, event_id, by } = self;
        let post = EventPost { event_type, payload: payload?, event_id, by };
        Ok(engine.send_event(run, post).await?)
    }
}

impl IntoFuture for EventRequest {
    type Output = Result<EventAccepted, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The values that an execution publishes under one key, as they come. Made by
/// [`Handle::follow`](crate::Handle::follow).
pub struct Follow<T> {
    engine: Engine,
    run: RunNo,
    key: String,
    seq: u64,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Follow<T> {
    pub(crate) fn new(engine: &Engine, run: RunNo, key: &str) -> Follow<T> {
        Follow { engine: engine.clone(), run, key: key.to_owned(), seq: 0, value: PhantomData }
    }

    /// The value as it stands, and after that each newer one; of several that come at once, the last.
    /// `None` when the execution is closed and there is no newer one.
    ///
    /// # Errors
    /// `Decode` when the value is not a `T`; `Stopped` when Backstitch is stopped meanwhile; trouble
    /// of the store.
    pub async fn next(&mut self) -> Result<Option<T>, Error> {
        let published = self.engine.published_after(self.run, &self.key, self.seq).await?;
        let Some(Published { value, seq }) = published else { return Ok(None) };
        self.seq = seq;
        decode(&self.key, &value).map(Some)
    }
}

pub(crate) fn decode<T: DeserializeOwned>(key: &str, value: &Payload) -> Result<T, Error> {
    json::decode(value).map_err(|why| {
        Error::new(ErrorKind::Decode, format!("the value published as {key:?}: {why}"))
    })
}
