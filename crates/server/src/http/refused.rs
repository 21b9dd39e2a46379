//! Telling a connection that there is no place for it, in the HTTP that it speaks.

use axum::http::{StatusCode, header};
use backstitch_api::http::{Code, Problem};
use tokio::io::{AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;

use super::connections::{Spoken, spoken};
use super::limits::REFUSAL_TIME_MAX;

/// Says so, and closes the connection; also when it has said nothing for too long.
pub(super) async fn refuse(stream: TcpStream, connections_max: usize) {
    let told = tokio::time::timeout(REFUSAL_TIME_MAX, tell(stream, connections_max)).await;
    if !matches!(told, Ok(Ok(()))) {
        tracing::debug!("a connection too many did not hear why it was closed");
    }
}

async fn tell(mut stream: TcpStream, connections_max: usize) -> std::io::Result<()> {
    let detail = format!(
        "the server has {connections_max} connections, and takes no more; close those that are not used, or \
         try again later"
    );
    let refusal = match spoken(&stream).await? {
        Spoken::Http1 => http1(detail),
        Spoken::Http2 => http2(&detail),
    };
    stream.write_all(&refusal).await?;
    stream.shutdown().await?;
    // Closing with something unread would take back what was said.
    copy(&mut stream, &mut sink()).await?;
    Ok(())
}

fn http1(detail: String) -> Vec<u8> {
    let problem = Problem::new(Code::TooManyConnections, detail);
    let status = StatusCode::from_u16(problem.status).expect("problems have real statuses");
    let body = serde_json::to_string(&problem).expect("problems are JSON by their type");
    let (kind, length, again) = (header::CONTENT_TYPE, header::CONTENT_LENGTH, header::RETRY_AFTER);
    let head = format!(
        "HTTP/1.1 {status}\r\n{kind}: application/problem+json\r\n{length}: {}\r\n{again}: 1\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// Empty settings, and GOAWAY with ENHANCE_YOUR_CALM (RFC 9113, sections 6.5 and 6.8).
fn http2(detail: &str) -> Vec<u8> {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const ENHANCE_YOUR_CALM: u32 = 0xb;
    let length = u32::try_from(8 + detail.len()).expect("it is short").to_be_bytes();
    let last_stream = 0_u32;
    let mut frames = SETTINGS.to_vec();
    frames.extend(&length[1..]);
    frames.extend([7, 0, 0, 0, 0, 0]);
    frames.extend(last_stream.to_be_bytes());
    frames.extend(ENHANCE_YOUR_CALM.to_be_bytes());
    frames.extend(detail.as_bytes());
    frames
}
