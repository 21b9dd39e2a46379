//! HTTP/2, frame by frame (RFC 9113), for what no library would send.

use tokio::io::AsyncReadExt;

use crate::line::{Line, soon};

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The number at this place of the payload.
    pub fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("it has four bytes"))
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The preface, and settings that say nothing.
pub fn opening() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// Headers, none of them compressed.
pub fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        // A literal that is not indexed, with a new name (RFC 7541, section 6.2.2).
        bytes.push(0);
        for text in [name, value] {
            let length = u8::try_from(text.len()).ok().filter(|length| *length < 127);
            bytes.push(length.expect("longer ones need more bytes"));
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

pub fn request(method: &str, path: &str) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "http"), (":path", path)];
    block(&[pseudo.as_slice(), &[(":authority", "localhost")]].concat())
}

/// What opens a call of gRPC.
pub fn call(path: &str) -> Vec<u8> {
    let kind = block(&[("content-type", "application/grpc"), ("te", "trailers")]);
    [request("POST", path), kind].concat()
}

/// The next frame; none when the other side has closed.
pub async fn next(line: &mut Line) -> Option<Frame> {
    let mut head = [0; 9];
    soon("a frame", line.0.read_exact(&mut head)).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    soon("the rest of it", line.0.read_exact(&mut payload)).await.ok()?;
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some(Frame { kind: head[3], stream, payload })
}

/// The next frame of this kind.
pub async fn next_of(line: &mut Line, kind: u8) -> Frame {
    loop {
        let frame = next(line).await.expect("the connection is open");
        if frame.kind == kind {
            return frame;
        }
    }
}
