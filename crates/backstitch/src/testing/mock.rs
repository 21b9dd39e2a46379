//! What stands in for a body or an undo.

use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::payload::Payload;
use serde::Serialize;

use crate::json;

/// What a step (or an undo) does in a test instead of its own code, at every attempt or only at the
/// first few ([`Mock::times`]). Given to [`TestKit::mock`](super::TestKit::mock).
#[derive(Clone, Debug)]
pub struct Mock {
    pub(super) act: Act,
    pub(super) times: Option<u32>,
    /// So many attempts are left alone first.
    pub(super) skip: u32,
}

/// What is done at an attempt.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// It is not run, and this is what came of it.
    Output(Result<Payload, Failure>),
    /// It is not run, and fails.
    Fail(Failure),
    /// It is run, and what came of it is lost: it fails.
    FailAfter(Failure),
    /// It is not run, or run, and does not end by itself.
    Hang(Side),
    /// It is not run, and panics.
    Panic(String),
    /// It is run so many times, one after the other; the last time counts.
    Repeat(u32),
    /// It is run, and the process dies before that is recorded.
    Crash,
    /// It is run until it waits for the nth time, and the process dies there.
    CrashAt(u32),
    /// It is not run, and the process is dead to the world; it is run when all is over.
    Stale,
    /// It is run, unless it is already over, when somebody says so.
    Hold(Side),
    /// It is run, and when somebody says so the process dies before that is recorded.
    HoldAndCrash,
}

/// On which side of the effect something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Side {
    Before,
    After,
}

impl Mock {
    fn new(act: Act) -> Mock {
        Mock { act, times: None, skip: 0 }
    }

    /// Returns this value; the body is not run. It is to be what the body returns. An undo returns
    /// nothing, so for one there is only `()`.
    pub fn output<T: Serialize + ?Sized>(value: &T) -> Mock {
        Mock::new(Act::Output(json::encode(format_args!("the output of the mock"), value)))
    }

    /// Fails in this class; the body is not run. The failure has the type `Mocked`; to give another,
    /// see [`Mock::failure`].
    pub fn fails(class: Class) -> Mock {
        Mock::failure(Failure::new(class, Origin::Body, "Mocked", "the test has it fail"))
    }

    /// Fails with this failure; the body is not run.
    pub fn failure(failure: Failure) -> Mock {
        Mock::new(Act::Fail(failure))
    }

    /// Runs the body, forgets what it returned, and fails transiently: the effect is there, and the
    /// caller never heard of it.
    pub fn loses_answer() -> Mock {
        let message = "the effect happened, and the test lost the answer";
        let failure = Failure::new(Class::Transient, Origin::Body, "AnswerLost", message);
        Mock::new(Act::FailAfter(failure))
    }

    /// Does not end until its timeout is over, or it is cancelled; the body is not run.
    pub fn hangs() -> Mock {
        Mock::new(Act::Hang(Side::Before))
    }

    /// Panics with this text; the body is not run.
    pub fn panics(text: impl Into<String>) -> Mock {
        Mock::new(Act::Panic(text.into()))
    }

    pub(super) fn act(act: Act, times: u32) -> Mock {
        Mock { act, times: Some(times), skip: 0 }
    }

    /// Leaves attempts alone up to this one, counted from 1.
    pub(super) fn beginning_at(mut self, nth: u32) -> Mock {
        self.skip = nth - 1;
        self
    }

    /// Only at the next so many attempts; after those the step's own code is run again.
    ///
    /// # Panics
    /// For 0: it would never take effect.
    #[must_use]
    #[track_caller]
    pub fn times(mut self, times: u32) -> Mock {
        assert!(times > 0, "a mock with times(0) never takes effect: leave it out");
        self.times = Some(times);
        self
    }
}

impl Act {
    /// Whether it has taken effect only later in the attempt, if it comes to that.
    pub fn fires_later(&self) -> bool {
        matches!(self, Act::CrashAt(_))
    }

    /// Whether it stands for an output that an undo does not have.
    pub fn is_an_output(&self) -> bool {
        match self {
            Act::Output(Ok(output)) => output.data.as_ref() != b"null",
            Act::Output(Err(_)) => true,
            _ => false,
        }
    }

    /// In the words of a message.
    pub fn describe(&self) -> &'static str {
        match self {
            Act::Output(_) => "a mock that returns a value",
            Act::Fail(_) => "a mock that fails",
            Act::FailAfter(_) => "a mock that loses the answer",
            Act::Hang(_) => "a mock that hangs",
            Act::Panic(_) => "a mock that panics",
            Act::Repeat(_) => "repeat",
            Act::Crash | Act::CrashAt(_) => "crash_during",
            Act::Stale => "stale_worker",
            Act::Hold(_) | Act::HoldAndCrash => "hold",
        }
    }
}
