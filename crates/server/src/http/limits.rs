//! What one caller can ask of the server, each bound with its unit and its reason.

use std::time::Duration;

/// Bytes around a payload that a body may have besides it: ids, attributes, a reason.
pub const BODY_OVERHEAD_BYTES: usize = 256 * 1024;

/// Bytes of a request's head: an id of 256 characters, escaped, and a cursor fit many times.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Headers of one request; browsers and proxies send some twenty.
pub const HEADERS_MAX: usize = 64;

/// Connections at a time. Each costs some 10 KiB and one of the process's files.
pub const CONNECTIONS_MAX: usize = 1_024;

/// How long one connection too many waits for a place before it is refused, so that a burst of short requests is
/// served. When there has been no place for so long, the next ones are refused at once.
pub const PLACE_TIME_MAX: Duration = Duration::from_secs(2);

/// Connections at a time that are told that there are too many; more are closed without a word.
pub const REFUSALS_MAX: usize = 64;

/// How long such a connection may take to say what it speaks, and then to read why.
pub const REFUSAL_TIME_MAX: Duration = Duration::from_secs(2);

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

/// How long an HTTP/2 connection may have no request: a program that forgets connections does not hold their places. Who
/// goes on using one connects again without noticing.
pub const IDLE_TIME_MAX: Duration = Duration::from_secs(300);

/// Requests at a time on one HTTP/2 connection. A worker has one stream, and reads some journals.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 128;

/// Requests of one HTTP/2 connection that were taken back before they were looked at; a connection that has more of
/// them is closed.
pub const RESETS_WAITING_MAX: usize = 20;

/// Streams that the server resets on one HTTP/2 connection for what was sent on them; then it is closed.
pub const RESETS_BY_SERVER_MAX: usize = 1_024;

/// So much of an answer is given to HTTP/2 at a time, in bytes: what was given waits in memory for its reader, and
/// without a bound on time. It is one frame of the usual size.
pub const ANSWER_PIECE_BYTES_MAX: usize = 16 * 1024;

/// How long a worker may take to say Hello on a stream.
pub const HELLO_TIME_MAX: Duration = Duration::from_secs(10);

/// The bounds that can be other ones: in tests, and where there are fewer files than connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections_max: usize,
    /// How long one connection too many waits for a place.
    pub place_time_max: Duration,
    /// How long the head of a request may take.
    pub head_time_max: Duration,
    /// How long a body may take to arrive.
    pub body_time_max: Duration,
    /// How long a reader may take none of what is sent to it.
    pub write_time_max: Duration,
    /// How often the other end of an HTTP/2 connection is asked whether it is there.
    pub beat_every: Duration,
    /// How long an HTTP/2 connection may have no request.
    pub idle_time_max: Duration,
    /// How long a worker may take to say Hello.
    pub hello_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: CONNECTIONS_MAX,
            place_time_max: PLACE_TIME_MAX,
            head_time_max: HEAD_TIME_MAX,
            body_time_max: BODY_TIME_MAX,
            write_time_max: WRITE_TIME_MAX,
            beat_every: BEAT_EVERY,
            idle_time_max: IDLE_TIME_MAX,
            hello_time_max: HELLO_TIME_MAX,
        }
    }
}
