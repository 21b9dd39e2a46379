//! Every world of a workflow, each with something else that goes wrong.

mod fault;
mod one;
mod outcome;
mod report;
mod tally;

use std::sync::Arc;

use backstitch_core::failure::Class;
use backstitch_core::run::Ask;
use backstitch_core::status::Status;
use serde::Serialize;

pub use self::outcome::Outcome;
pub use self::report::{Column, Finding, Report};

use self::fault::Fault;
use self::one::{Plan, Seen};
use self::tally::{Tally, name};
use super::kit::TestKit;
use super::mock::Side;
use crate::error::{Error, ErrorKind};
use crate::json;
use crate::open::Builder;
use crate::workflow::Workflow;

/// Names one world, as a finding prints it: only that one is run, and its timeline is drawn.
const ONLY: &str = "BACKSTITCH_EXPLORE";

/// Pairs with deaths after later writes are not found by their names.
const WRITES_NAMED_MAX: u64 = 1_000;

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
        pairs: Pairs::No,
        checked: Checked::No,
    }
}

/// An exploration that is being put together. Made by [`explore`].
#[must_use = "nothing is explored before run()"]
pub struct Explore<W: Workflow, S> {
    plan: Plan<W, S>,
    input: Result<serde_json::Value, String>,
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
    /// the same systems (an `Arc`), because the process may die.
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
        Explore { plan, input: self.input, pairs: self.pairs, checked: self.checked }
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

    /// Is sent whenever the execution waits for an event of this type.
    pub fn event<P: Serialize>(mut self, event_type: impl Into<String>, payload: &P) -> Self {
        let payload = serde_json::to_value(payload).map_err(|error| error.to_string());
        match payload {
            Ok(payload) => self.plan.events.push((event_type.into(), payload)),
            Err(why) => self.input = Err(why),
        }
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

    /// Explores.
    ///
    /// # Errors
    /// `Testing`, when a world does not come to an end, or inside of another runtime; `Decode` for
    /// an input or an event that cannot be encoded.
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
        let plain = self.plan.run(&[])?;
        let mut report = Report { workflow, worlds: 1, ..Report::default() };
        let faults = faults(&plain);
        if let Ok(only) = std::env::var(ONLY) {
            return self.run_only(&only, &faults, report);
        }
        if let Some(says) = plain.complaint {
            let finding = Finding::new(&[], says);
            report.findings.push(finding);
            return Ok(report);
        }
        report.execution.push(("when nothing goes wrong".to_owned(), ended(&plain)));
        let mut tally = Tally::new(&plain);
        let mut pairs = Vec::new();
        for fault in faults {
            let world = [fault];
            let seen = self.plan.run(&world)?;
            report.worlds += 1;
            if self.pairs == Pairs::Yes {
                pairs.extend(with_another(&world[0], seen.writes));
            }
            tally.add(&world, seen, &mut report);
        }
        for world in pairs {
            let seen = self.plan.run(&world)?;
            report.worlds += 1;
            tally.add(&world, seen, &mut report);
        }
        tally.finish(&mut report);
        Ok(report)
    }

    fn run_only(self, only: &str, faults: &[Fault], mut report: Report) -> Result<Report, Error> {
        let alone = faults.iter().map(|fault| vec![fault.clone()]);
        // How many writes a world has is known when it was run.
        let pairs = faults.iter().flat_map(|fault| with_another(fault, WRITES_NAMED_MAX));
        let world = alone.chain(pairs).find(|world| name(world) == only);
        let Some(faults) = &world else {
            let names: Vec<String> = faults.iter().map(Fault::to_string).collect();
            let message = format!(
                "{ONLY} is {only:?}, and workflow {:?} has no such world; it has {}, and with pairs() \
                 two of them with \" + \" in between",
                report.workflow,
                names.join(", ")
            );
            return Err(Error::new(ErrorKind::Testing, message));
        };
        let seen = self.plan.run(faults)?;
        println!("{}\n\n{}", name(faults), seen.timeline);
        report.worlds += 1;
        report.findings.extend(seen.complaint.map(|says| Finding::new(faults, says)));
        Ok(report)
    }
}

/// How the plain case ends: what comes behind that is not explored.
fn ended(plain: &Seen) -> String {
    match &plain.outcome.failure {
        Some(failure) => format!("**{}**: {failure}", plain.outcome.status),
        None if plain.outcome.succeeded() => plain.outcome.status.to_string(),
        None => format!("**{}**: nobody answered what it waits for", plain.outcome.status),
    }
}

/// What is tried, after a look at the plain case.
fn faults(plain: &Seen) -> Vec<Fault> {
    let mut faults = Vec::new();
    for step in &plain.steps {
        let step = || step.clone();
        faults.extend([Fault::Twice(step()), Fault::Stale(step()), Fault::Unrecorded(step())]);
        faults.extend([
            Fault::Fails(Side::Before, Class::Permanent, step()),
            Fault::Fails(Side::Before, Class::Transient, step()),
            Fault::Fails(Side::After, Class::Transient, step()),
            Fault::Fails(Side::Before, Class::Attention, step()),
            Fault::Cancelled(Side::Before, step()),
            Fault::Cancelled(Side::After, step()),
        ]);
    }
    let asks = plain.outcome.run.asks.iter();
    let undos = asks.filter_map(|ask| match ask {
        Ask::Step(step) if step.undo_spec.is_some() => Some(step.key.to_string()),
        _ => None,
    });
    for step in undos {
        let step = || step.clone();
        faults.extend([
            Fault::UndoTwice(step()),
            Fault::UndoUnrecorded(step()),
            Fault::UndoFails(Side::Before, step()),
            Fault::UndoFails(Side::After, step()),
        ]);
    }
    if plain.outcome.status == Status::Succeeded {
        faults.push(Fault::Undone);
    }
    faults.extend((1..=plain.waits).map(Fault::CancelledAt));
    faults.extend((1..=plain.writes).map(|n| Fault::Dies(Side::Before, n)));
    faults.extend((1..=plain.writes).map(|n| Fault::Dies(Side::After, n)));
    faults
}

/// Pairs that begin with this fault: with a death after each write of its world; and what lands late
/// lands behind the undo.
fn with_another(fault: &Fault, writes: u64) -> Vec<Vec<Fault>> {
    if matches!(fault, Fault::Dies(..)) {
        return Vec::new();
    }
    let mut others: Vec<Fault> = (1..=writes).map(|n| Fault::Dies(Side::After, n)).collect();
    if let Fault::Stale(step) = fault {
        others.push(Fault::Fails(Side::Before, Class::Permanent, step.clone()));
        others.push(Fault::Undone);
    }
    others.into_iter().map(|other| vec![fault.clone(), other]).collect()
}
