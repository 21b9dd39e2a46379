//! What one caller can ask of the server, each bound with its unit and its reason.

use std::time::Duration;

/// Bytes around a payload that a body may have besides it: ids, attributes, a reason.
pub const BODY_OVERHEAD_BYTES: usize = 256 * 1024;

/// Bytes of a request's head: an id of 256 characters, escaped, and a cursor fit many times.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Headers of one request; browsers and proxies send some twenty.
pub const HEADERS_MAX: usize = 64;

/// Connections at a time. Each costs some 10 KiB and one of the process's files; more wait in the
/// queue of the system.
pub const CONNECTIONS_MAX: usize = 1_024;

/// How long the head of a request may take, also the first one of an idle connection.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a body may take to arrive.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a reader may take none of what is sent to it.
pub const WRITE_TIME_MAX: Duration = Duration::from_secs(30);

/// Longest wait for a result in one request; below the usual patience of proxies (60 s).
pub const WAIT_MAX: Duration = Duration::from_secs(50);

/// How long an answer may take to be made, so that no request is forgotten: a wait, and the time that
/// the store takes.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);

/// Journals that are followed at a time: a stream holds a connection for as long as the run is open.
pub const STREAMS_MAX: usize = 256;

/// How often a stream says that it is there: below the patience of proxies.
pub const STREAM_BEAT: Duration = Duration::from_secs(15);

/// How often the other end of an HTTP/2 connection is asked whether it is there, and how long it may take to
/// answer: a machine that is gone is noticed within a minute.
pub const BEAT_EVERY: Duration = Duration::from_secs(20);

/// Requests at a time on one HTTP/2 connection. A worker has one stream, and reads some journals.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 128;
