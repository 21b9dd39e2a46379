//! Waiting for something to happen in a kit.

use std::time::{Duration, Instant};

use backstitch_core::event::BlockKind;
use backstitch_core::status::Status;
use backstitch_engine::Clock;
use serde::de::DeserializeOwned;

use super::waits::{awaited, next_us, waits_in_words};
use super::{Execution, TestKit, Time};
use crate::error::{Error, ErrorKind};
use crate::handle::ExecutionStatus;
use crate::testing::reached::{Reached, no_step};
use crate::testing::script::Target;

/// Longer than the body of a step in a test takes.
const HANG: Duration = Duration::from_secs(5);

/// How long code that waits for something real is waited for, before the clock moves on without it.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Once a test has a body that hangs, the next ones are not waited for as long again.
const GRACE_LATER: Duration = Duration::from_millis(50);

/// Moves of the clock to the next instant that one call makes at most, and times that an explored
/// execution may wait: a workflow that renews daily for more than a year. One that goes on for ever
/// is told within seconds.
pub(in crate::testing) const MOVES_MAX: u64 = 500;

/// Why nothing happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::testing) enum Rest {
    /// A body is held, as the test wants it.
    Held,
    /// For an instant, an event or a person, or for nothing more.
    Waits,
    /// Code of the user does not come to its end.
    Works,
}

/// Since when no code of the user has begun or ended.
struct Still {
    since: Instant,
    progress: u64,
}

impl Still {
    fn new(kit: &TestKit) -> Still {
        Still { since: Instant::now(), progress: kit.script.progress() }
    }

    fn lasts(&mut self, kit: &TestKit) -> Duration {
        if self.progress != kit.script.progress() {
            *self = Still::new(kit);
        }
        self.since.elapsed()
    }
}

/// What a step along the way comes to.
enum Look<R> {
    There(R),
    /// It may come yet.
    NotYet,
    /// It cannot come any more, for this reason.
    Never(String),
}

impl TestKit {
    /// Goes on until the execution is closed or stuck, and answers as [`Handle::result`](crate::Handle::result) does.
    ///
    /// # Errors
    /// What [`Handle::result`](crate::Handle::result) says of an execution that did not succeed. `Testing`, when it gets
    /// there by itself no more, with what it waits for.
    pub fn result<T: DeserializeOwned>(&mut self, execution: &Execution<T>) -> Result<T, Error> {
        self.go_on(execution, "the end of the execution", |status| {
            let over = status.status.is_closed() || status.status == Status::Stuck;
            if over { Look::There(()) } else { Look::NotYet }
        })?;
        self.land_late()?;
        self.call(|app| {
            let (app, id) = (app.clone(), execution.id.clone());
            async move { app.handle::<T>(&id).await?.result().await }
        })
    }

    /// Goes on until the execution has this status.
    ///
    /// # Errors
    /// `Testing`, when it gets there no more.
    pub fn wait_for<T>(
        &mut self,
        execution: &Execution<T>,
        wanted: Status,
    ) -> Result<ExecutionStatus, Error> {
        let what = format!("the status {wanted}");
        self.go_on(execution, &what, |status| match status.status {
            found if found == wanted => Look::There(status.clone()),
            found if found.is_closed() => Look::Never(format!("it is {found}")),
            _ => Look::NotYet,
        })
    }

    /// Goes on until a step has got so far; at once if it has been there.
    ///
    /// # Errors
    /// `Testing`, when it gets there no more, with the names of the steps that there are.
    pub fn wait_until<T>(
        &mut self,
        execution: &Execution<T>,
        step: &str,
        wanted: Reached,
    ) -> Result<(), Error> {
        let what = format!("step {step:?} {wanted}");
        let mut hint = None;
        let reached = self.go_on(execution, &what, |status| {
            hint = no_step(&status.run, step);
            match wanted.look(&status.run, step) {
                Ok(true) => Look::There(()),
                Ok(false) if status.status.is_closed() => {
                    Look::Never(format!("it is {}", status.status))
                }
                Ok(false) => Look::NotYet,
                Err(never) if status.status.is_closed() => Look::Never(never),
                Err(_) => Look::NotYet,
            }
        });
        reached.map_err(|error| match hint {
            Some(is) => {
                let message = format!("{error}; {step:?} is {is}, and no step: use wait_for");
                Error::new(error.kind(), message)
            }
            None => error,
        })
    }

    /// Goes on until nothing happens by itself at this instant.
    pub(in crate::testing) fn rest<T>(
        &mut self,
        execution: &Execution<T>,
    ) -> Result<(ExecutionStatus, Rest), Error> {
        let mut still = Still::new(self);
        loop {
            self.settle()?;
            let rest = match (self.script.is_holding(), self.script.is_at_work()) {
                (true, _) => Rest::Held,
                (false, false) => Rest::Waits,
                (false, true) if still.lasts(self) >= self.grace => Rest::Works,
                (false, true) => continue,
            };
            return Ok((self.status(execution)?, rest));
        }
    }

    /// Moves the clock on without code that waits for something that does not come; false if nothing
    /// else is waited for.
    pub(in crate::testing) fn skip_over_work(&mut self) -> Result<bool, Error> {
        self.grace = GRACE_LATER;
        self.skip()
    }

    /// Moves the clock to the next instant that is waited for; false if there is none.
    pub(in crate::testing) fn skip(&mut self) -> Result<bool, Error> {
        let Some(next_us) = self.clock.next_us() else { return Ok(false) };
        self.clock.set(next_us.max(self.clock.now_us()));
        self.settle()?;
        Ok(true)
    }

    pub(in crate::testing) fn endless<T>(
        &self,
        execution: &Execution<T>,
        status: &ExecutionStatus,
    ) -> Error {
        self.unreachable(execution, "its end", "it goes on and on", status)
    }

    /// Code of the user does not come to its end, and nothing ends it.
    pub(in crate::testing) fn hangs<T>(
        &self,
        execution: &Execution<T>,
        status: &ExecutionStatus,
    ) -> Error {
        self.unreachable(execution, "its end", &self.at_work_for(self.grace, status), status)
    }

    fn at_work_for(&self, time: Duration, status: &ExecutionStatus) -> String {
        let at_work = self.script.at_work().into_iter().map(|(target, key)| {
            let what = match target {
                Target::Step => "the code of step",
                Target::Undo => "the undo of step",
            };
            let mut steps = status.run.steps();
            let place = steps.find(|(_, step)| step.key == key).map(|(_, step)| &step.place);
            let place = place.map(|place| format!(" at {place}")).unwrap_or_default();
            format!("{what} \"{key}\"{place}")
        });
        let at_work: Vec<String> = at_work.collect();
        let advice = match self.time {
            Time::Stands => "advance() to its timeout, or make the kit with skip_time()",
            Time::Skips => "give it a timeout",
        };
        format!(
            "{} has been waiting for {time:?} for something that does not come; if it is to hang, \
             {advice}, or mock it",
            at_work.join(", ")
        )
    }

    /// Goes on until the execution looks as `look` says, and lets time pass if it may.
    fn go_on<T, R>(
        &mut self,
        execution: &Execution<T>,
        what: &str,
        mut look: impl FnMut(&ExecutionStatus) -> Look<R>,
    ) -> Result<R, Error> {
        let mut still = Still::new(self);
        let mut moves = 0;
        loop {
            self.settle()?;
            let status = self.status(execution)?;
            let why = match look(&status) {
                Look::There(there) => return Ok(there),
                Look::Never(why) => why,
                Look::NotYet if self.script.is_at_work() => {
                    let (lasts, skips) = (still.lasts(self), self.time == Time::Skips);
                    if lasts >= self.grace && skips && moves < MOVES_MAX && self.skip_over_work()? {
                        moves += 1;
                        still = Still::new(self);
                        continue;
                    }
                    if lasts < HANG && moves < MOVES_MAX {
                        continue;
                    }
                    self.at_work_for(lasts, &status)
                }
                Look::NotYet => match (self.clock.next_us(), self.time) {
                    (Some(next_us), Time::Skips) if moves < MOVES_MAX => {
                        moves += 1;
                        self.clock.set(next_us.max(self.clock.now_us()));
                        continue;
                    }
                    (Some(_), Time::Skips) => {
                        format!(
                            "it goes on and on: after {moves} moves of the clock it is {}, and it \
                             still waits",
                            self.now()
                        )
                    }
                    (Some(_), Time::Stands) if next_us(&status).is_some() => {
                        let next = next_us(&status).unwrap_or(i64::MAX);
                        let next = jiff::Timestamp::from_microsecond(next);
                        let next = next.unwrap_or(jiff::Timestamp::MAX);
                        format!(
                            "nothing happens before {next}, and the clock stands at {}: call \
                             advance(), or make the kit with skip_time()",
                            self.now()
                        )
                    }
                    (Some(_) | None, _) => self.nothing_happens(&status),
                },
            };
            let error = self.unreachable(execution, what, &why, &status);
            return Err(self.noted(error));
        }
    }

    /// What can be done about it.
    fn nothing_happens(&self, status: &ExecutionStatus) -> String {
        let advice = match awaited(status).first() {
            Some(event) => format!("; send the event with send_event(&run, {event:?}, …)"),
            None => String::new(),
        };
        format!("nothing happens any more by itself{advice}")
    }

    fn unreachable<T>(
        &self,
        execution: &Execution<T>,
        what: &str,
        why: &str,
        status: &ExecutionStatus,
    ) -> Error {
        let mut message = format!("execution {:?} does not reach {what}: {why}", execution.id);
        message += &format!("; its status is {}", status.status);
        for (kind, step, failure) in &status.blocks {
            if *kind == BlockKind::Mismatch
                && let Some(what) = self.bad_mock(&failure.message)
            {
                message += &format!(", blocked: {what}");
                continue;
            }
            let step = step.as_ref().map(|step| format!(" by step {step}")).unwrap_or_default();
            message += &format!(", blocked{step}: {failure}");
        }
        if !status.waits_for.is_empty() && !status.status.is_closed() {
            message += &format!(", it waits for {}", waits_in_words(status).join(", "));
        }
        match self.script.seen(Target::Step).as_slice() {
            [] => message += "; no step was attempted",
            seen => message += &format!("; steps that were attempted: {}", seen.join(", ")),
        }
        Error::new(ErrorKind::Testing, message)
    }

    /// Says of a value that the code cannot read that it came from a mock, if it did: nothing is wrong
    /// with the code then, nor with its journal.
    fn bad_mock(&self, says: &str) -> Option<String> {
        let (step, why) = says.split_once(", whose output: ")?;
        let of = |name: &String| step.contains(&format!("step {name:?} at "));
        let name = self.script.answered().into_iter().find(of)?;
        let why = why.split(". Deploy the code").next().unwrap_or(why);
        Some(format!(
            "the mock of step {name:?} returns what the step does not: {why}; give Mock::output what \
             the body returns"
        ))
    }
}
