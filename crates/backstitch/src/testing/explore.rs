//! Every world of a workflow, each with something else that goes wrong.

mod again;
mod asked;
mod drawn;
mod fault;
mod faults;
mod one;
mod outcome;
mod plain;
mod report;
mod tally;

use std::sync::Arc;

use backstitch_core::failure::Failure;
use backstitch_core::id::name_defect;
use backstitch_core::status::Status;
use serde::Serialize;

pub use self::outcome::Outcome;
pub use self::report::{Column, Finding, FindingKind, Report};

use self::again::{is_of_another, is_plain};
use self::fault::Fault;
use self::faults::{Faults, faults, with_another};
use self::one::{Plan, Seen};
use self::tally::Tally;
use super::kit::TestKit;
use super::names::is_named;
use super::process::Process;
use crate::error::{Error, ErrorKind};
use crate::json;
use crate::open::Builder;
use crate::workflow::Workflow;

/// Names one world, as a finding prints it: only that one is run, and its timeline is drawn.
const ONLY: &str = "BACKSTITCH_EXPLORE";

/// Explores a workflow: runs it once as it is, and then once for every place where the process may
/// die, every step that may run twice or fail, every undo that may run twice or fail, and a
/// cancellation at every await. Whoever reads the table knows which step is not idempotent.
///
/// Each world has outside systems of its own, made by [`world`](Explore::world), and a person who
/// repairs what is blocked and has failed undos tried again. [`check`](Explore::check) looks at the
/// systems when all is over.
///
/// # Examples
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use backstitch::testing::explore;
/// use backstitch::{Ctx, workflow};
///
/// #[workflow]
/// async fn pay(ctx: Ctx, cents: u32) -> backstitch::Result<()> {
///     ctx.step("charge", async move |s| {
///         s.state::<Card>().0.lock().unwrap().push(cents);
///         Ok(())
///     })
///     .rollback(async move |u| {
///         u.state::<Card>().0.lock().unwrap().pop();
///         Ok(())
///     })
///     .await
/// }
///
/// /// A card without idempotency keys.
/// #[derive(Clone, Default)]
/// struct Card(Arc<Mutex<Vec<u32>>>);
///
/// # fn main() -> Result<(), backstitch::Error> {
/// let report = explore(pay, 300)
///     .world(Card::default)
///     .check(|card, outcome| {
///         let charged = card.0.lock().unwrap().len();
///         match (outcome.succeeded(), charged) {
///             (true, 1) | (false, 0) => Ok(()),
///             (_, times) => Err(format!("charged {times} times")),
///         }
///     })
///     .run()?;
/// assert!(!report.is_clean());
/// println!("{report}");
/// # Ok(())
/// # }
/// ```
pub fn explore<W: Workflow>(workflow: W, input: W::Input) -> Explore<W, ()> {
    let input = json::encode(format_args!("the input"), &input);
    let input = input.map_err(|failure| failure.to_string()).and_then(|input| json::decode(&input));
    Explore {
        input,
        plan: Plan {
            workflow,
            input: serde_json::Value::Null,
            world: Arc::new(|| ()),
            kit: Arc::new(|kit, ()| kit),
            events: Vec::new(),
            check: Arc::new(|(), _| Ok(())),
        },
        name: None,
        failures: Vec::new(),
        pairs: Pairs::No,
        checked: Checked::No,
    }
}

/// An exploration that is being put together. Made by [`explore`].
#[must_use = "nothing is explored before run()"]
pub struct Explore<W: Workflow, S> {
    plan: Plan<W, S>,
    input: Result<serde_json::Value, String>,
    name: Option<String>,
    /// Each with its step.
    failures: Vec<(String, Failure)>,
    pairs: Pairs,
    checked: Checked,
}

/// Whether there is a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    No,
    Yes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pairs {
    No,
    Yes,
}

/// What a check may return.
pub trait Verdict {
    /// Why it does not hold.
    fn complaint(self) -> Result<(), String>;
}

impl<E: std::fmt::Display> Verdict for Result<(), E> {
    fn complaint(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}

/// For checks that assert.
impl Verdict for () {
    fn complaint(self) -> Result<(), String> {
        Ok(())
    }
}

impl<W: Workflow> Explore<W, ()> {
    /// Makes the outside systems of one world; bodies and undos get them as state. Clones are to be
    /// the same systems (an `Arc`), because the process may die: a `Clone` that copies them has the
    /// check look at systems to which nothing was ever done, and the report says so.
    pub fn world<S>(self, world: impl Fn() -> S + 'static) -> Explore<W, S>
    where
        S: Clone + Send + Sync + 'static,
    {
        let plan = Plan {
            workflow: self.plan.workflow,
            input: self.plan.input,
            world: Arc::new(world),
            kit: Arc::new(|kit, state: &S| kit.state(state.clone())),
            events: self.plan.events,
            check: Arc::new(|_, _| Ok(())),
        };
        Explore {
            plan,
            input: self.input,
            name: self.name,
            failures: self.failures,
            pairs: self.pairs,
            checked: self.checked,
        }
    }
}

impl<W: Workflow, S: 'static> Explore<W, S> {
    /// Whatever else a [`Builder`] can be told in a world, for example more state.
    pub fn setup(mut self, setup: impl Fn(Builder, &S) -> Builder + Send + Sync + 'static) -> Self
    where
        S: Clone + Send + Sync,
    {
        let (before, setup) = (self.plan.kit, Arc::new(setup));
        self.plan.kit = Arc::new(move |kit: TestKit, state: &S| {
            let (setup, state_) = (setup.clone(), state.clone());
            before(kit, state).setup(move |builder| setup(builder, &state_))
        });
        self
    }

    /// Names the exploration, in its report and in the lines that run one world again (the name of
    /// the workflow, unless it is said). For a test that explores one workflow twice. It has 1 to 256
    /// characters and stands on one line.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Is sent whenever the execution waits for an event of this type. Of several of one type the
    /// first wait gets the first, the next wait the next, and when there are no more the last one.
    /// In worlds of their own each wait gets each of the others that it takes, and none at all, if it
    /// has a deadline.
    pub fn event<P: Serialize + ?Sized>(
        mut self,
        event_type: impl Into<String>,
        payload: &P,
    ) -> Self {
        let payload = serde_json::to_value(payload).map_err(|error| error.to_string());
        match payload {
            Ok(payload) => self.plan.events.push((event_type.into(), payload)),
            Err(why) => self.input = Err(why),
        }
        self
    }

    /// A failure that this step (by name, or key as it is printed) may come to: tried in a world of
    /// its own, without an effect, at each attempt, or once if it calls for a person. Without it failures
    /// have the type `Mocked` and no code, and code that looks at either goes only that way; nobody
    /// can know which failures a body has.
    pub fn failure(mut self, step: impl Into<String>, failure: Failure) -> Self {
        self.failures.push((step.into(), failure));
        self
    }

    /// What has to hold when all is over, whatever went wrong: returns an error that says what does
    /// not, or asserts.
    pub fn check<V: Verdict>(mut self, check: impl Fn(&S, &Outcome) -> V + 'static) -> Self {
        self.plan.check = Arc::new(move |state, outcome| check(state, outcome).complaint());
        self.checked = Checked::Yes;
        self
    }

    /// Tries each thing that goes wrong also with a death of the process after each write of its world,
    /// and lets what lands late land behind the undo of its step. Takes as many times longer as the
    /// execution has writes.
    pub fn pairs(mut self) -> Self {
        self.pairs = Pairs::Yes;
        self
    }

    /// Explores. A world that does not come to its end is a finding like any other.
    ///
    /// # Errors
    /// `Testing` without a check, for a name that is none, inside of another runtime, for a failure of a step that is not attempted
    /// when nothing goes wrong, and for a world by name that there is not; `Decode` for an input or
    /// an event that cannot be encoded; what the builder says of an engine that cannot begin.
    pub fn run(mut self) -> Result<Report, Error> {
        let input = std::mem::replace(&mut self.input, Ok(serde_json::Value::Null));
        self.plan.input = input.map_err(|why| Error::new(ErrorKind::Decode, why))?;
        let workflow = self.plan.workflow.name().to_owned();
        if self.checked == Checked::No {
            let message = format!(
                "the exploration of workflow {workflow:?} has no check, so nothing could be found; \
                 say with check(…) what has to hold in the systems"
            );
            return Err(Error::new(ErrorKind::Testing, message));
        }
        Process::new()?;
        let name = self.name.take().unwrap_or_else(|| workflow.clone());
        if let Some(defect) = name_defect("name of the exploration", &name) {
            return Err(Error::new(ErrorKind::Testing, defect));
        }
        let mut report = Report { workflow, name, ..Report::default() };
        let only = std::env::var(ONLY).ok().filter(|only| !only.is_empty());
        if let Some(only) = &only
            && is_of_another(only, &report.name)
        {
            let why = format!("nothing was run: {ONLY} names a world of another exploration");
            report.notes.push(format!("{why}, {only:?}"));
            return Ok(report);
        }
        report.worlds = 1;
        if let Some(only) = only.as_deref().filter(|only| is_plain(only, &report.name)) {
            return Ok(self.draw_plain(only, report));
        }
        let plain = match self.plan.run(&[]) {
            Ok(plain) => plain,
            Err(endless) if endless.kind() == ErrorKind::Testing => {
                report.findings.push(Finding::new(&report, &[], endless.to_string()));
                return Ok(report);
            }
            Err(error) => return Err(error),
        };
        if only.is_none() && self.plain_is_wrong(&plain, &mut report) {
            return Ok(report);
        }
        if only.is_none()
            && let Some(says) = plain::another_way(&self.plan, &plain)
        {
            let found = Finding::new(&report, &[], says);
            report.findings.push(found.of_kind(FindingKind::NotDeterministic));
            return Ok(report);
        }
        let undone = match plain.outcome.status {
            Status::Succeeded => self.plan.run(&[Fault::Undone]).ok(),
            _ => None,
        };
        let faults = self.faults(&plain, undone.as_ref().unwrap_or(&plain))?;
        match only {
            Some(only) => self.run_only(&only, &faults.all, report),
            None => Ok(self.run_all(&plain, undone.as_ref(), faults, report)),
        }
    }

    /// Whether the plain case is no ground for anything else.
    fn plain_is_wrong(&self, plain: &Seen, report: &mut Report) -> bool {
        let finding = |says| Finding::new(report, &[], says);
        let mut found = Vec::new();
        found.extend(
            plain::trouble(plain).map(|says| finding(says).of_kind(FindingKind::PlainCase)),
        );
        let owed = plain.owed.iter().map(|says| finding(says.clone()));
        found.extend(owed.map(|owed| owed.of_kind(FindingKind::UndoWaived)));
        if let Some(says) = &plain.complaint {
            let mut says = says.clone();
            if self.plan.of_nothing(&plain.outcome).as_ref() == Some(&says) {
                says += "\n(it says the same when nothing at all was done: does Clone copy the \
                         state of world(…)? Put it behind an Arc)";
            }
            found.push(finding(says));
        }
        let wrong = !found.is_empty();
        report.findings.extend(found);
        if plain.gave_up.is_some() {
            plain::never_taken(&self.plan.events, &plain.taken, &plain.awaited, report);
        }
        if wrong {
            report.execution.push(("when nothing goes wrong".to_owned(), ended(plain)));
        }
        wrong
    }

    /// What is tried, after a look at the plain case and at its rollback.
    fn faults(&self, plain: &Seen, undone: &Seen) -> Result<Faults, Error> {
        for (step, failure) in &self.failures {
            if !plain.steps.iter().any(|known| is_named(&known.key, step)) {
                let steps: Vec<_> = plain.steps.iter().map(|step| step.key.to_string()).collect();
                let message = format!(
                    "failure {:?} is told of step {step:?}, which is not attempted when nothing goes \
                     wrong; attempted are {}",
                    failure.type_name,
                    steps.join(", ")
                );
                return Err(Error::new(ErrorKind::Testing, message));
            }
        }
        Ok(faults(plain, undone, &self.plan.events, &self.failures))
    }

    fn run_all(
        self,
        plain: &Seen,
        undone: Option<&Seen>,
        faults: Faults,
        mut report: Report,
    ) -> Report {
        report.execution.push(("when nothing goes wrong".to_owned(), ended(plain)));
        report.notes = faults.notes;
        if !plain.steps.is_empty() && self.plan.of_nothing(&plain.outcome).is_none() {
            let note = "the check holds also when nothing at all was done: it does not see what \
                        the steps do";
            report.notes.push(note.to_owned());
        }
        let mut tally = Tally::new(plain);
        let leaves = plain::rollback_leaves(&self.plan, plain, undone);
        tally.rollback_leaves(leaves, &mut report);
        let mut pairs = Vec::new();
        for fault in faults.all {
            let world = [fault];
            let seen = self.plan.run(&world);
            if let (Pairs::Yes, Ok(seen)) = (self.pairs, &seen) {
                pairs.extend(with_another(&world[0], seen.writes));
            }
            tally.add(&world, seen, &mut report);
        }
        for world in pairs {
            tally.add(&world, self.plan.run(&world), &mut report);
        }
        plain::never_taken(&self.plan.events, &tally.taken, &tally.awaited, &mut report);
        tally.finish(&mut report);
        report
    }
}

/// How the plain case ends: what comes behind that is not explored.
fn ended(plain: &Seen) -> String {
    match &plain.outcome.failure {
        Some(failure) => format!("**{}**: {failure}", plain.outcome.status),
        None if plain.outcome.succeeded() => plain.outcome.status.to_string(),
        None => {
            let why = plain.gave_up.as_deref().unwrap_or("it was cancelled");
            format!("**{}**: {why}", plain.outcome.status)
        }
    }
}
