//! As much HTTP/1.1 as two programs on one machine need: a request and its answer per connection,
//! with bodies of known length. A real program takes a client library.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// No message here is longer.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024;

/// A request or an answer, as it is on the wire.
#[derive(Debug)]
pub struct Message {
    /// `POST /charges HTTP/1.1`, or `HTTP/1.1 200 OK`.
    pub first_line: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub retry_after: Option<String>,
    pub body: String,
}

/// Sends a request and waits for the answer, however long that takes.
pub async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Response> {
    let mut stream = TcpStream::connect(address).await?;
    write(&mut stream, &format!("POST {path} HTTP/1.1\r\nHost: {address}"), headers, body).await?;
    let answer = read(&mut stream).await?;
    let status = answer.first_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Response {
        status: status.ok_or_else(|| malformed(&answer.first_line))?,
        retry_after: answer.header("Retry-After").map(str::to_owned),
        body: answer.body,
    })
}

/// Reads a message.
pub async fn read(stream: &mut TcpStream) -> io::Result<Message> {
    let mut reader = BufReader::new(stream.take(MESSAGE_BYTES_MAX));
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await?;
        match line.strip_suffix("\r\n") {
            Some("") => break,
            Some(line) => head.push(line.to_owned()),
            None => return Err(malformed(&line)),
        }
    }
    let mut head = head.into_iter();
    let first_line = head.next().ok_or_else(|| malformed(""))?;
    let header = |line: String| match line.split_once(':') {
        Some((name, value)) => Ok((name.to_owned(), value.trim().to_owned())),
        None => Err(malformed(&line)),
    };
    let headers = head.map(header).collect::<io::Result<_>>()?;
    let mut message = Message { first_line, headers, body: String::new() };
    let length = message.header("Content-Length").unwrap_or("0");
    let length = length.parse().map_err(|_| malformed(length))?;
    reader.take(length).read_to_string(&mut message.body).await?;
    Ok(message)
}

/// Writes a message.
pub async fn write(
    stream: &mut TcpStream,
    first_line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<()> {
    let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let head = format!(
        "{first_line}\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        headers.collect::<String>(),
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}

impl Message {
    /// The value of a header, whose name may be written in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

fn malformed(what: &str) -> io::Error {
    let message = match what {
        "" => "the other side hung up".to_owned(),
        _ => format!("this is no HTTP: {what:?}"),
    };
    io::Error::new(io::ErrorKind::InvalidData, message)
}
