//! The context of a workflow function.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::id::{RunId, name_defect};
use backstitch_core::session::Note;
use backstitch_engine::attributes::attribute_defect;
use backstitch_engine::desk::Desk;
use backstitch_engine::program::ExecutionFacts;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::attribute::IntoAttribute;
use crate::bounds::{Data, PerAttempt};
use crate::duration::IntoDuration;
use crate::json;
use crate::sleep::{Sleep, Until};
use crate::state::StateMap;
use crate::step::{Step, StepCtx};
use crate::wait::{IntoTimeout, WaitAnyEvent, WaitEvent};

/// What a workflow function asks the engine through. Cheap to clone.
///
/// Everything the function needs from the world comes from here: steps, sleeps, the time, random
/// numbers. What comes from elsewhere is not the same on replay.
#[derive(Clone)]
pub struct Ctx {
    pub(crate) desk: Desk,
    pub(crate) state: Arc<StateMap>,
    pub(crate) payload_bytes_max: usize,
    /// The types of the events that the workflow says it takes; empty if it does not say.
    pub(crate) events: Arc<[String]>,
    scope: Arc<[String]>,
    defect: Option<Failure>,
}

impl Ctx {
    pub(crate) fn new(
        desk: Desk,
        state: Arc<StateMap>,
        payload_bytes_max: usize,
        events: Arc<[String]>,
    ) -> Ctx {
        Ctx { desk, state, payload_bytes_max, events, scope: Arc::new([]), defect: None }
    }

    /// A step: a named unit of work with a side effect.
    ///
    /// The body is cloned for each attempt; it owns what it needs (`clone!(order => async move |s| …)`)
    /// and takes the rest from the [`StepCtx`]. Nothing happens before the step is first polled.
    ///
    /// A step with a bad name, or one built inside a body or an undo, fails permanently and says so.
    #[track_caller]
    pub fn step<T, F, Fut>(&self, name: &str, body: F) -> Step<T>
    where
        T: Data,
        F: FnOnce(StepCtx) -> Fut + PerAttempt,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        Step::build(self, name, Location::caller(), body)
    }

    /// Sleeps for `duration`, through restarts. Never early; after downtime at once.
    #[track_caller]
    pub fn sleep(&self, duration: impl IntoDuration) -> Sleep {
        let until = match duration.into_us() {
            Ok(us) => Until::After(us),
            Err(why) => Until::Never(why),
        };
        Sleep::build(self, until, Location::caller())
    }

    /// Sleeps until `instant`, through restarts. An instant that is past is no sleep at all.
    #[track_caller]
    pub fn sleep_until(&self, instant: jiff::Timestamp) -> Sleep {
        Sleep::build(self, Until::At(instant.as_microsecond()), Location::caller())
    }

    /// Waits for an event of type `event_type` that says a `T`, through restarts; for `timeout` at
    /// most, counted from when it is first polled.
    ///
    /// An event that was accepted before the wait is kept and satisfies it; one that was accepted at
    /// or before its deadline satisfies it even if nobody was there to look. Each event satisfies one
    /// wait, in order of acceptance. A wait that is dropped takes none. `name` is for the journal;
    /// timeouts are [`WaitEvent`]'s errors, or `None` with [`WaitEvent::optional`].
    ///
    /// ```
    /// # use backstitch::{Ctx, NoTimeout, Result};
    /// # async fn order(ctx: Ctx) -> Result<()> {
    /// let approved: bool = ctx.wait_event("approval", "approved", "24h").await?;
    /// let reason: Option<String> = ctx.wait_event("reason", "noted", "1m").optional().await?;
    /// let paid: u64 = ctx.wait_event("payment", "paid", NoTimeout).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn wait_event<T: DeserializeOwned>(
        &self,
        name: &str,
        event_type: &str,
        timeout: impl IntoTimeout,
    ) -> WaitEvent<T> {
        let types = vec![event_type.to_owned()];
        let (timeout, place) = (timeout.into_timeout(), Location::caller());
        WaitEvent::new(WaitAnyEvent::build(self, name, types, timeout, place))
    }

    /// Waits for an event of one of several types, whichever was accepted first.
    ///
    /// ```
    /// # use backstitch::{Ctx, Result};
    /// # async fn order(ctx: Ctx) -> Result<()> {
    /// let event = ctx.wait_any_event("decision", ["approved", "refused"], "24h").await?;
    /// match event.event_type() {
    ///     "approved" => { let by: String = event.decode()?; }
    ///     _ => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn wait_any_event<S: Into<String>>(
        &self,
        name: &str,
        types: impl IntoIterator<Item = S>,
        timeout: impl IntoTimeout,
    ) -> WaitAnyEvent {
        let types = types.into_iter().map(Into::into).collect();
        WaitAnyEvent::build(self, name, types, timeout.into_timeout(), Location::caller())
    }

    /// Publishes a value for whoever looks at the execution from outside, for example how far it is.
    /// It is seen when the turn is durable; a later value of the same key takes its place. On replay
    /// nothing is published again.
    ///
    /// # Errors
    /// A permanent failure for a bad key, for a value that cannot be encoded or is too large, and
    /// outside of the workflow's own code.
    #[track_caller]
    pub fn publish<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<(), Failure> {
        if let Some(defect) = name_defect("key to publish under", key) {
            return Err(Failure::new(Class::Permanent, Origin::Engine, "BadName", defect));
        }
        let what = format_args!("the value published as {key:?}");
        let value = json::encode_within(what, value, self.payload_bytes_max)?;
        self.desk.note(Note::Published { key: key.to_owned(), value })
    }

    /// Sets a search attribute of the execution, by which it is found ([`Client::find`]).
    ///
    /// # Errors
    /// A permanent failure for a bad name or a text that is too long, and outside of the workflow's
    /// own code.
    ///
    /// [`Client::find`]: crate::Client::find
    #[track_caller]
    pub fn set_attribute(&self, name: &str, value: impl IntoAttribute) -> Result<(), Failure> {
        self.attribute(name, Some(value.into_attribute()))
    }

    /// Takes a search attribute away.
    ///
    /// # Errors
    /// As [`Ctx::set_attribute`].
    #[track_caller]
    pub fn remove_attribute(&self, name: &str) -> Result<(), Failure> {
        self.attribute(name, None)
    }

    #[track_caller]
    fn attribute(&self, name: &str, value: Option<AttributeValue>) -> Result<(), Failure> {
        let change = AttributeChange { name: name.to_owned(), value };
        if let Some(defect) = attribute_defect(&change) {
            return Err(Failure::new(Class::Permanent, Origin::Engine, "BadAttribute", defect));
        }
        self.desk.note(Note::Attribute(change))
    }

    /// Whether to take the new way at a place of the code that was changed without a new version.
    ///
    /// True for executions that come by for the first time, which is recorded; false for those
    /// whose journal shows that they went by before. The first answer in a run stands for all later
    /// calls with the same name in it. Keep the call as long as executions are open that recorded
    /// it: code without it no longer fits their journals.
    ///
    /// # Panics
    /// With a permanent failure for a bad name, or outside of the workflow's own code.
    #[track_caller]
    pub fn patched(&self, name: &str) -> bool {
        if let Some(defect) = name_defect("name of the patch", name) {
            let failure = Failure::new(Class::Permanent, Origin::Engine, "BadName", defect);
            std::panic::resume_unwind(Box::new(failure));
        }
        self.desk.takes_new_way(name)
    }

    /// A context of its own for one of several concurrent branches, with its own counts of names.
    ///
    /// Branches that build steps of one name while they run at the same time need it, so that each
    /// keeps its steps on replay.
    #[must_use]
    pub fn branch(&self, name: &str) -> Ctx {
        let mut scope = self.scope.to_vec();
        scope.push(name.to_owned());
        let defect = name_defect("branch name", name)
            .map(|defect| Failure::new(Class::Permanent, Origin::Engine, "BadName", defect));
        let defect = self.defect.clone().or(defect);
        Ctx { scope: scope.into(), defect, ..self.clone() }
    }

    /// The time, from the journal: the same throughout a turn and on replay.
    pub fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.desk.now_us()).unwrap_or(jiff::Timestamp::MAX)
    }

    /// A random number, the same on replay.
    pub fn random_u64(&self) -> u64 {
        self.desk.draw()
    }

    /// A random number in `0.0..1.0`, the same on replay.
    pub fn random_f64(&self) -> f64 {
        // The 53 bits that an f64 holds.
        (self.random_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random UUID (version 4), the same on replay.
    pub fn uuid(&self) -> Uuid {
        let (high, low) = (self.random_u64(), self.random_u64());
        uuid::Builder::from_random_bytes(Uuid::from_u64_pair(high, low).into_bytes()).into_uuid()
    }

    /// The namespace of the execution.
    pub fn namespace(&self) -> &str {
        &self.facts().namespace
    }

    /// The business id of the execution.
    pub fn id(&self) -> &str {
        &self.facts().id
    }

    /// The id of this run.
    pub fn run_id(&self) -> RunId {
        self.facts().run_id
    }

    fn facts(&self) -> &ExecutionFacts {
        self.desk.execution()
    }

    pub(crate) fn scope(&self) -> &[String] {
        &self.scope
    }

    /// What is wrong with the branch that this is the context of.
    pub(crate) fn defect(&self) -> Option<&Failure> {
        self.defect.as_ref()
    }
}
