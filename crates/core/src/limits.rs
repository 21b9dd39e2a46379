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
