//! The context of a workflow function.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use backstitch_core::failure::Failure;
use backstitch_core::id::{RunId, name_defect};
use backstitch_engine::desk::Desk;
use backstitch_engine::program::ExecutionFacts;
use uuid::Uuid;

use crate::bounds::{Data, PerAttempt};
use crate::duration::IntoDuration;
use crate::sleep::{Sleep, Until};
use crate::state::StateMap;
use crate::step::{Step, StepCtx};

/// What a workflow function asks the engine through. Cheap to clone.
///
/// Everything the function needs from the world comes from here: steps, sleeps, the time, random
/// numbers. What comes from elsewhere is not the same on replay.
#[derive(Clone)]
pub struct Ctx {
    pub(crate) desk: Desk,
    pub(crate) state: Arc<StateMap>,
    pub(crate) payload_bytes_max: usize,
    scope: Arc<[String]>,
    defect: Option<Failure>,
}

impl Ctx {
    pub(crate) fn new(desk: Desk, state: Arc<StateMap>, payload_bytes_max: usize) -> Ctx {
        Ctx { desk, state, payload_bytes_max, scope: Arc::new([]), defect: None }
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

    /// A context of its own for one of several concurrent branches, with its own counts of names.
    ///
    /// Branches that build steps of one name while they run at the same time need it, so that each
    /// keeps its steps on replay.
    #[must_use]
    pub fn branch(&self, name: &str) -> Ctx {
        let mut scope = self.scope.to_vec();
        scope.push(name.to_owned());
        let defect = name_defect("branch name", name).map(|defect| {
            use backstitch_core::failure::{Class, Origin};
            Failure::new(Class::Permanent, Origin::Engine, "BadName", defect)
        });
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
