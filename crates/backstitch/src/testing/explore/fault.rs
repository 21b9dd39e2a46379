//! What goes wrong in a world.

use std::fmt;

use backstitch_core::failure::Class;

use super::super::kit::TestKit;
use super::super::mock::{Act, Mock, Side};
use super::report::Column;

/// One thing that goes wrong. Steps are named by their printed keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The process dies at this write.
    Dies(Side, u64),
    /// The body runs twice.
    Twice(String),
    /// The process dies when the body has had its effect and nothing is recorded.
    Unrecorded(String),
    /// An attempt that a stalled process sent off lands when all is over.
    Stale(String),
    /// Every attempt fails in this class, with or without having had its effect.
    Fails(Side, Class, String),
    /// It is cancelled while the body is in flight, before or after its effect.
    Cancelled(Side, String),
    /// It is cancelled when it waits for an instant or an event for the nth time.
    CancelledAt(u64),
    /// It is undone after it succeeded.
    Undone,
    /// It is undone, and this undo runs twice.
    UndoTwice(String),
    /// It is undone, and the process dies when this undo has had its effect.
    UndoUnrecorded(String),
    /// It is undone, and this undo fails for good, until a person has it tried again.
    UndoFails(Side, String),
}

impl Fault {
    /// Has the kit do it.
    pub fn put_into(&self, kit: &mut TestKit) {
        let mut step = |step: &str, act, times| kit.mock(step, Mock::act(act, times));
        match self {
            Fault::Dies(Side::Before, n) => kit.crash_before(*n),
            Fault::Dies(Side::After, n) => kit.crash_after(*n),
            Fault::Twice(name) => step(name, Act::Repeat(2), 1),
            Fault::Unrecorded(name) => step(name, Act::Crash, 1),
            Fault::Stale(name) => step(name, Act::Stale, 1),
            Fault::Cancelled(side, name) => step(name, Act::Hold(*side), 1),
            Fault::Fails(side, class, name) => {
                let mock = failing(*side, *class);
                // A person repairs what is behind a call for attention.
                kit.mock(name, if *class == Class::Attention { mock.times(1) } else { mock });
            }
            Fault::CancelledAt(_) | Fault::Undone => {}
            Fault::UndoTwice(name) => kit.repeat_undo(name, 2),
            Fault::UndoUnrecorded(name) => kit.crash_during_undo(name),
            Fault::UndoFails(side, name) => {
                kit.mock_undo(name, failing(*side, Class::Permanent).times(1));
            }
        }
    }

    /// Whether the execution is undone when it has succeeded.
    pub fn undoes(&self) -> bool {
        match self {
            Fault::Undone
            | Fault::UndoTwice(_)
            | Fault::UndoUnrecorded(_)
            | Fault::UndoFails(..) => true,
            Fault::Dies(..)
            | Fault::Twice(_)
            | Fault::Unrecorded(_)
            | Fault::Stale(_)
            | Fault::Fails(..)
            | Fault::Cancelled(..)
            | Fault::CancelledAt(_) => false,
        }
    }

    /// Where in the table it belongs: the step, and the column.
    pub fn cell(&self) -> Option<(&str, Column)> {
        match self {
            Fault::Dies(..) | Fault::CancelledAt(_) | Fault::Undone => None,
            Fault::Twice(step) | Fault::Stale(step) => Some((step, Column::RunTwice)),
            Fault::Unrecorded(step) => Some((step, Column::DiesUnrecorded)),
            Fault::Fails(_, _, step) => Some((step, Column::FailsForGood)),
            Fault::Cancelled(_, step) => Some((step, Column::Cancelled)),
            Fault::UndoTwice(step) | Fault::UndoUnrecorded(step) => Some((step, Column::UndoTwice)),
            Fault::UndoFails(_, step) => Some((step, Column::UndoFails)),
        }
    }
}

fn failing(side: Side, class: Class) -> Mock {
    let mut mock = Mock::fails(class);
    if side == Side::After {
        let failure = backstitch_core::failure::Failure::new(
            class,
            backstitch_core::failure::Origin::Body,
            "Mocked",
            "the effect happened, and the test has it fail",
        );
        mock.act = Act::FailAfter(failure);
    }
    mock
}

/// A short name, and its step or number behind a colon.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Dies(Side::Before, n) => write!(f, "dies-before-write:{n}"),
            Fault::Dies(Side::After, n) => write!(f, "dies-after-write:{n}"),
            Fault::Twice(step) => write!(f, "twice:{step}"),
            Fault::Unrecorded(step) => write!(f, "dies-unrecorded:{step}"),
            Fault::Stale(step) => write!(f, "lands-late:{step}"),
            Fault::Fails(Side::After, _, step) => write!(f, "fails-after-effect:{step}"),
            Fault::Fails(Side::Before, Class::Transient, step) => {
                write!(f, "fails-transient:{step}")
            }
            Fault::Fails(Side::Before, Class::Permanent, step) => {
                write!(f, "fails-permanent:{step}")
            }
            Fault::Fails(Side::Before, Class::Attention, step) => {
                write!(f, "fails-attention:{step}")
            }
            Fault::Cancelled(Side::Before, step) => write!(f, "cancelled-before-effect:{step}"),
            Fault::Cancelled(Side::After, step) => write!(f, "cancelled-after-effect:{step}"),
            Fault::CancelledAt(n) => write!(f, "cancelled-at-wait:{n}"),
            Fault::Undone => f.write_str("undone-after-success"),
            Fault::UndoTwice(step) => write!(f, "undo-twice:{step}"),
            Fault::UndoUnrecorded(step) => write!(f, "undo-dies-unrecorded:{step}"),
            Fault::UndoFails(Side::Before, step) => write!(f, "undo-fails:{step}"),
            Fault::UndoFails(Side::After, step) => write!(f, "undo-fails-after-effect:{step}"),
        }
    }
}
