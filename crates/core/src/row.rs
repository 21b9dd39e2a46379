//! Rows: what a store appends, one at a time, whole or not at all.
//!
//! `format: u8, header length: varint, header, events, CRC-32C: u32`. The store stamps `at_us`
//! when it commits, so a row is sealed by the store ([`Draft::seal`]).

use bytes::{Buf, BufMut, Bytes};
use prost::Message;

use crate::event::{Event, EventError};

/// The only format so far.
pub const FORMAT: u8 = 1;

/// Who wrote a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum RowKind {
    /// The engine: nothing in it is shown to the code.
    Engine = 0,
    /// A turn of the code: outcomes are shown where they stand.
    Turn = 1,
}

/// What stands before the events.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Header {
    /// 1, 2, 3 … per run, assigned by the one writer.
    #[prost(uint64, tag = "1")]
    pub seq: u64,
    /// Who wrote it.
    #[prost(enumeration = "RowKind", tag = "2")]
    pub kind: i32,
    /// The store's clock at commit, microseconds since 1970. 0 until sealed.
    #[prost(int64, tag = "3")]
    pub at_us: i64,
    /// The number of the ownership under which it was written.
    #[prost(uint64, tag = "4")]
    pub fence: u64,
    /// A repeated append carries the same 16 bytes and gets the same answer.
    #[prost(bytes = "vec", tag = "5")]
    pub append_id: Vec<u8>,
    /// For a turn: the time that the code sees throughout it.
    #[prost(int64, optional, tag = "6")]
    pub now_us: Option<i64>,
    /// For a turn: the worker that ran it.
    #[prost(string, optional, tag = "7")]
    pub worker: Option<String>,
    /// For a turn: the version of the workflow that ran it.
    #[prost(string, optional, tag = "8")]
    pub version: Option<String>,
}

/// A row that is ready but for the instant of its commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The header, with `at_us` still 0.
    pub header: Header,
    /// The encoded events.
    pub events: Bytes,
}

impl Draft {
    /// Encodes `events` below `header`.
    pub fn new(header: Header, events: &[Event]) -> Draft {
        // An event of a step has about a hundred bytes: its policy, or its output.
        let mut out = Vec::with_capacity(128 * events.len());
        for event in events {
            event.encode(&mut out);
        }
        Draft { header, events: out.into() }
    }

    /// The bytes of the row, committed at `at_us`.
    pub fn seal(&self, at_us: i64) -> Vec<u8> {
        // Fields stand in the order of their tags, and one that is 0 is left out: the stamp goes
        // behind these two, and nothing else of the header has to be copied for it.
        let Header { seq, kind, at_us: unsealed, .. } = self.header;
        debug_assert_eq!(unsealed, 0, "it is stamped once");
        let before = Header { seq, kind, ..Header::default() }.encoded_len();
        let stamp = Header { at_us, ..Header::default() };
        let header_len = self.header.encoded_len() + stamp.encoded_len();
        let mut out = Vec::with_capacity(header_len + self.events.len() + 8);
        out.put_u8(FORMAT);
        prost::encoding::encode_varint(header_len as u64, &mut out);
        let place = out.len() + before;
        self.header.encode_raw(&mut out);
        let end = out.len();
        stamp.encode_raw(&mut out);
        let stamp_len = out.len() - end;
        out[place..].rotate_right(stamp_len);
        out.put_slice(&self.events);
        let crc = crc32c::crc32c(&out);
        out.put_u32(crc);
        out
    }
}

/// A row read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What stands before the events.
    pub header: Header,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// Why a row could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Its checksum does not fit its bytes.
    #[error("the checksum of the row does not fit its {bytes} bytes: they were changed or torn")]
    Checksum {
        /// Its length.
        bytes: usize,
    },
    /// Written by a newer engine.
    #[error("row format {format} was written by a newer Backstitch; open it with that one")]
    TooNew {
        /// Its format.
        format: u8,
    },
    /// Neither a turn nor of the engine: a newer engine knows what it is.
    #[error("row kind {kind} was written by a newer Backstitch; open it with that one")]
    NewKind {
        /// The number of the kind.
        kind: i32,
    },
    /// One of its events cannot be read.
    #[error(transparent)]
    Event(#[from] EventError),
    /// Its header cannot be read.
    #[error("the header of the row cannot be decoded: {why}")]
    Header {
        /// What is wrong.
        why: String,
    },
}

impl RowError {
    /// Whether a newer engine wrote it, so that this one leaves the run alone.
    pub fn is_too_new(&self) -> bool {
        match self {
            RowError::TooNew { .. } | RowError::NewKind { .. } => true,
            RowError::Event(error) => error.is_too_new(),
            RowError::Checksum { .. } | RowError::Header { .. } => false,
        }
    }
}

impl Row {
    /// Reads the bytes that [`Draft::seal`] made.
    ///
    /// # Errors
    /// A wrong checksum, a newer format, or events that cannot be read.
    pub fn decode(bytes: impl Into<Bytes>) -> Result<Row, RowError> {
        let mut input: Bytes = bytes.into();
        let length = input.len();
        if length < 6 {
            return Err(RowError::Checksum { bytes: length });
        }
        let mut crc = input.split_off(length - 4);
        if crc.get_u32() != crc32c::crc32c(&input) {
            return Err(RowError::Checksum { bytes: length });
        }
        let format = input.get_u8();
        if format != FORMAT {
            return Err(RowError::TooNew { format });
        }
        let header = Header::decode_length_delimited(&mut input)
            .map_err(|e| RowError::Header { why: e.to_string() })?;
        if !RowKind::is_valid(header.kind) {
            return Err(RowError::NewKind { kind: header.kind });
        }
        let mut events = Vec::new();
        while input.has_remaining() {
            events.push(Event::decode(&mut input)?);
        }
        Ok(Row { header, events })
    }
}
