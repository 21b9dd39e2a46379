//! Every bound of the engine, with its unit and its reason.
//!
//! **Invariant:** limits bound the way *forward*. Settled outcomes, `RollbackStarted`, undo events
//! and closing events are never refused for a limit.

/// Longest name of a step, timer, branch, workflow, namespace or execution id, in characters.
/// Long enough for a path or a URL, short enough for an index.
pub const NAME_CHARS_MAX: usize = 256;

/// Default bound of one payload, in bytes: inputs, outputs, events. A journal is read back whole
/// at recovery, so what is large belongs into an object store, with its address in the journal.
pub const PAYLOAD_BYTES_MAX_DEFAULT: usize = 1024 * 1024;

/// Longest message of a failure, in bytes; what is longer is cut and marked, never refused.
pub const FAILURE_MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// Largest details of a failure, in bytes; what is larger is left out and the message says so.
pub const FAILURE_DETAILS_BYTES_MAX: usize = 64 * 1024;

/// Most causes that a failure carries.
pub const FAILURE_CAUSES_MAX: usize = 8;

/// Longest type name or code of a failure, in bytes; what is longer is cut and marked.
pub const FAILURE_NAME_BYTES_MAX: usize = 256;

/// Most names in the lists of failure classes of one retry policy. The policy is written down with
/// every step that has it.
pub const CLASS_NAMES_MAX: usize = 100;

/// Most things that the code may newly ask for in one group. One row holds a group whole, and a
/// row has to stay readable.
pub const ASKS_PER_GROUP_MAX: usize = 10_000;

/// Most groups in one turn row: how far the code is polled ahead of the disk.
pub const GROUPS_PER_ROW_MAX: usize = 256;

/// A row that holds this many bytes of payload takes no further outcome; the next row does. Keeps
/// rows well below what a store can take, whatever the limit of a single payload.
pub const ROW_PAYLOAD_BYTES_SOFT_MAX: usize = 4 * 1024 * 1024;

/// Largest bound that may be set for one payload, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Most polls within one group while the code wakes itself. Code that needs more is spinning.
pub const POLLS_PER_GROUP_MAX: usize = 100_000;

/// How long a body may take to yield after its cancel before it is left behind, in microseconds.
pub const YIELD_GRACE_US: u64 = 30_000_000;

/// Most attempts that a policy may name; more than anybody waits for, far from overflow.
pub const ATTEMPTS_MAX: u32 = u32::MAX;

/// Longest delay, timeout or sleep, in microseconds: 100 years. Longer ones are refused by name,
/// so that sums of instants cannot overflow.
pub const DURATION_US_MAX: u64 = 100 * 366 * 86_400 * 1_000_000;

/// Default bound of the things that one run may ask for in its life: steps, sleeps and waits. A run is
/// replayed from its first row, so a longer work is better cut into several executions.
pub const ASKS_PER_RUN_MAX_DEFAULT: usize = 100_000;

/// Default bound of waits that are open at a time: each event is offered to each of them.
pub const WAITS_OPEN_MAX_DEFAULT: usize = 1_000;

/// Default bound of a journal, in bytes: it is read back whole at recovery.
pub const JOURNAL_BYTES_MAX_DEFAULT: u64 = 256 * 1024 * 1024;

/// Default bound of the events that an execution keeps and no wait has taken.
pub const EVENTS_KEPT_MAX_DEFAULT: u64 = 1_000;

/// Most bytes of such events: they are in memory while it runs. One event is always taken.
pub const EVENTS_KEPT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most causes of a rollback that are kept in memory and told to undos; the journal has them all.
pub const ROLLBACK_CAUSES_MAX: usize = 64;

/// Verbs may stand in an inbox in addition to the events that it may hold: a flood of events must
/// not keep a person from cancelling.
pub const VERBS_UNREAD_MAX: u64 = 1_000;

/// Most search attributes of a run: each costs a row of an index.
pub const ATTRIBUTES_MAX: usize = 64;

/// Longest text in a search attribute, in bytes: it stands in an index.
pub const ATTRIBUTE_TEXT_BYTES_MAX: usize = 1_024;

/// Most keys under which a run may publish: all of them are kept.
pub const PUBLISHED_KEYS_MAX: usize = 64;

/// Most types that one wait may name.
pub const WAIT_TYPES_MAX: usize = 64;

/// Most patches that one run may pass.
pub const PATCHES_MAX: usize = 1_000;

/// The bounds of one run on its way forward. Exceeding one fails the run for good, and it is rolled
/// back; nothing of the way back is bounded by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Steps, sleeps and waits in all.
    pub asks_max: usize,
    /// Waits that are open at a time.
    pub waits_open_max: usize,
    /// The journal, in bytes.
    pub journal_bytes_max: u64,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits {
            asks_max: ASKS_PER_RUN_MAX_DEFAULT,
            waits_open_max: WAITS_OPEN_MAX_DEFAULT,
            journal_bytes_max: JOURNAL_BYTES_MAX_DEFAULT,
        }
    }
}
