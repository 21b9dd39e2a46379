//! What goes wrong in a world.

use std::fmt;

use backstitch_core::failure::{Class, Failure, Origin};

use super::super::kit::TestKit;
use super::super::mock::{Act, Mock, Side};
use super::report::Column;

/// Attempts that fail in a row: more than a policy usually allows, so that the step fails for good;
/// and one that allows more has outlived the trouble by then.
const FAILURES_MAX: u32 = 50;

/// An attempt of a step, or of its undo.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct At {
    /// The printed key.
    pub step: String,
    /// The attempt that ends well when nothing goes wrong, from 1: what happens to one that fails
    /// by itself shows nothing.
    pub attempt: u32,
}

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// The process dies at this write.
    Dies(Side, u64),
    /// The body runs twice.
    Twice(At),
    /// The process dies in the body, where it waits for the nth time.
    DiesAt(u32, At),
    /// The process dies when the body has had its effect and nothing is recorded.
    Unrecorded(At),
    /// The same, when it is cancelled and the rollback is decided: nobody ever knows what became of the step.
    UnrecordedCancelled(At),
    /// An attempt that a stalled process sent off lands when all is over.
    Stale(At),
    /// Attempts fail in this class, with or without having had their effect.
    Fails(Side, Class, At),
    /// Attempts fail as the exploration was told.
    FailsWith(Failure, At),
    /// Attempts do not end before their timeout, with or without having had their effect.
    Hangs(Side, At),
    /// It is cancelled while the body is in flight, before or after its effect.
    Cancelled(Side, At),
    /// It is cancelled when it waits for an instant or an event for the nth time.
    CancelledAt(u64),
    /// The nth wait for an event that can be answered gets this one of the events instead.
    Answered(usize, usize, String),
    /// The nth wait for an event that can be answered is not.
    Unanswered(usize),
    /// It is undone after it succeeded.
    Undone,
    /// It is undone, and this undo runs twice.
    UndoTwice(At),
    /// It is undone, and the process dies in this undo, where it waits for the nth time.
    UndoDiesAt(u32, At),
    /// It is undone, and the process dies when this undo has had its effect.
    UndoUnrecorded(At),
    /// It is undone, and this undo fails for good, until a person has it tried again.
    UndoFails(Side, At),
}

impl Fault {
    /// Has the kit do it.
    pub fn put_into(&self, kit: &mut TestKit) {
        let once = |at: &At, act| Mock::act(act, 1).beginning_at(at.attempt);
        let (at, mock) = match self {
            Fault::Dies(Side::Before, n) => return kit.crash_before(*n),
            Fault::Dies(Side::After, n) => return kit.crash_after(*n),
            Fault::CancelledAt(_) | Fault::Answered(..) | Fault::Unanswered(_) | Fault::Undone => {
                return;
            }
            Fault::Twice(at) => (at, once(at, Act::Repeat(2))),
            Fault::DiesAt(place, at) => (at, once(at, Act::CrashAt(*place))),
            Fault::Unrecorded(at) => (at, once(at, Act::Crash)),
            Fault::UnrecordedCancelled(at) => (at, once(at, Act::HoldAndCrash)),
            Fault::Stale(at) => (at, once(at, Act::Stale)),
            Fault::Cancelled(side, at) => (at, once(at, Act::Hold(*side))),
            Fault::Hangs(side, at) => (at, Mock::act(Act::Hang(*side), FAILURES_MAX)),
            Fault::Fails(side, class, at) => {
                let mock = failing(*side, *class).times(failures(*class));
                (at, mock.beginning_at(at.attempt))
            }
            Fault::FailsWith(failure, at) => {
                (at, Mock::failure(failure.clone()).times(failures(failure.class())))
            }
            Fault::UndoTwice(at) => return kit.mock_undo(&at.step, once(at, Act::Repeat(2))),
            Fault::UndoDiesAt(place, at) => {
                return kit.mock_undo(&at.step, once(at, Act::CrashAt(*place)));
            }
            Fault::UndoUnrecorded(at) => return kit.mock_undo(&at.step, once(at, Act::Crash)),
            Fault::UndoFails(side, at) => {
                let mock = failing(*side, Class::Permanent).times(1);
                return kit.mock_undo(&at.step, mock.beginning_at(at.attempt));
            }
        };
        kit.mock(&at.step, mock);
    }

    /// Whether the execution is undone when it has succeeded.
    pub fn undoes(&self) -> bool {
        match self {
            Fault::Undone
            | Fault::UndoTwice(_)
            | Fault::UndoDiesAt(..)
            | Fault::UndoUnrecorded(_)
            | Fault::UndoFails(..) => true,
            Fault::Dies(..)
            | Fault::Twice(_)
            | Fault::DiesAt(..)
            | Fault::Unrecorded(_)
            | Fault::UnrecordedCancelled(_)
            | Fault::Stale(_)
            | Fault::Fails(..)
            | Fault::FailsWith(..)
            | Fault::Hangs(..)
            | Fault::Cancelled(..)
            | Fault::CancelledAt(_)
            | Fault::Answered(..)
            | Fault::Unanswered(_) => false,
        }
    }

    /// Where in the report it belongs.
    pub fn place(&self) -> Place<'_> {
        let (at, column) = match self {
            Fault::Dies(..) => return Place::Whole("dies before or after each of its writes"),
            Fault::CancelledAt(_) => return Place::Whole("cancelled at each of its waits"),
            Fault::Answered(..) => return Place::Whole("a wait is answered with another event"),
            Fault::Unanswered(_) => return Place::Whole("a wait is not answered in time"),
            Fault::Undone => return Place::Whole("undone after it succeeded"),
            Fault::Twice(at) | Fault::Stale(at) => (at, Column::RunTwice),
            Fault::DiesAt(_, at) | Fault::Unrecorded(at) | Fault::UnrecordedCancelled(at) => {
                (at, Column::DiesUnrecorded)
            }
            Fault::Fails(_, _, at) | Fault::FailsWith(_, at) | Fault::Hangs(_, at) => {
                (at, Column::FailsForGood)
            }
            Fault::Cancelled(_, at) => (at, Column::Cancelled),
            Fault::UndoTwice(at) | Fault::UndoDiesAt(_, at) | Fault::UndoUnrecorded(at) => {
                (at, Column::UndoTwice)
            }
            Fault::UndoFails(_, at) => (at, Column::UndoFails),
        };
        Place::Cell(&at.step, column)
    }
}

/// Where in a report a world belongs.
pub(super) enum Place<'a> {
    /// In the table: the step, and the column.
    Cell(&'a str, Column),
    /// Below it: what happens to the execution as a whole.
    Whole(&'static str),
}

/// A person repairs what is behind a call for attention; the rest lasts.
fn failures(class: Class) -> u32 {
    match class {
        Class::Attention => 1,
        Class::Transient | Class::Permanent => FAILURES_MAX,
    }
}

fn failing(side: Side, class: Class) -> Mock {
    let mut mock = Mock::fails(class);
    if side == Side::After {
        let message = "the effect happened, and the test has it fail";
        mock.act = Act::FailAfter(Failure::new(class, Origin::Body, "Mocked", message));
    }
    mock
}

/// A short name, and its step or number behind a colon.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Dies(Side::Before, n) => write!(f, "dies-before-write:{n}"),
            Fault::Dies(Side::After, n) => write!(f, "dies-after-write:{n}"),
            Fault::Twice(at) => write!(f, "twice:{at}"),
            Fault::DiesAt(n, at) => write!(f, "dies-at-await-{n}:{at}"),
            Fault::Unrecorded(at) => write!(f, "dies-unrecorded:{at}"),
            Fault::UnrecordedCancelled(at) => {
                write!(f, "dies-unrecorded-cancelled:{at}")
            }
            Fault::Stale(at) => write!(f, "lands-late:{at}"),
            Fault::Fails(Side::After, _, at) => write!(f, "fails-after-effect:{at}"),
            Fault::Fails(Side::Before, Class::Transient, at) => write!(f, "fails-transient:{at}"),
            Fault::Fails(Side::Before, Class::Permanent, at) => write!(f, "fails-permanent:{at}"),
            Fault::Fails(Side::Before, Class::Attention, at) => write!(f, "fails-attention:{at}"),
            Fault::FailsWith(failure, at) if failure.code.is_empty() => {
                write!(f, "fails-with-{}:{at}", failure.type_name)
            }
            Fault::FailsWith(failure, at) => {
                write!(f, "fails-with-{}-{}:{at}", failure.type_name, failure.code)
            }
            Fault::Hangs(Side::Before, at) => write!(f, "hangs:{at}"),
            Fault::Hangs(Side::After, at) => write!(f, "hangs-after-effect:{at}"),
            Fault::Cancelled(Side::Before, at) => write!(f, "cancelled-before-effect:{at}"),
            Fault::Cancelled(Side::After, at) => write!(f, "cancelled-after-effect:{at}"),
            Fault::CancelledAt(n) => write!(f, "cancelled-at-wait:{n}"),
            Fault::Answered(n, event, event_type) => {
                write!(f, "answered-with-{event_type}-{}:{n}", event + 1)
            }
            Fault::Unanswered(n) => write!(f, "unanswered:{n}"),
            Fault::Undone => f.write_str("undone-after-success"),
            Fault::UndoTwice(at) => write!(f, "undo-twice:{at}"),
            Fault::UndoDiesAt(n, at) => write!(f, "undo-dies-at-await-{n}:{at}"),
            Fault::UndoUnrecorded(at) => write!(f, "undo-dies-unrecorded:{at}"),
            Fault::UndoFails(Side::Before, at) => write!(f, "undo-fails:{at}"),
            Fault::UndoFails(Side::After, at) => write!(f, "undo-fails-after-effect:{at}"),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.step)
    }
}
