//! What HTTP/2 lets a peer do, and the server does not.

use backstitch::Backstitch;
use backstitch_server::http::HttpOptions;
use backstitch_server::http::limits::STREAMS_PER_CONNECTION_MAX;

use crate::frames::{
    self, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST_STREAM, SETTINGS, frame,
};
use crate::line::{Line, health, no_limits, soon};
use crate::server::{Server, gate};

const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;

async fn server() -> Server {
    let options = HttpOptions { limits: no_limits(), ..HttpOptions::default() };
    Server::with(Backstitch::open("memory:").register(gate), options).await
}

/// All others are served as before.
async fn is_well(server: Server) {
    assert!(health(server.address).await.starts_with("HTTP/1.1 200"));
    server.stop().await;
}

/// The error with which the server ends the connection.
async fn goaway(line: &mut Line) -> u32 {
    frames::next_of(line, GOAWAY).await.number(4)
}

#[tokio::test]
async fn a_connection_has_so_many_streams_and_the_others_are_refused() {
    let server = server().await;
    let mut line = Line::to(server.address).await;
    line.say(frames::opening()).await;
    let settings = frames::next_of(&mut line, SETTINGS).await;
    let streams_max = settings.payload.chunks(6).find(|setting| setting[..2] == [0, 3]);
    let streams_max = u32::from_be_bytes(streams_max.expect("it says so")[2..].try_into().unwrap());
    assert_eq!(streams_max, STREAMS_PER_CONNECTION_MAX);

    // Each of them waits for a body that does not come.
    let open = 2 * STREAMS_PER_CONNECTION_MAX;
    let json = frames::block(&[("content-type", "application/json")]);
    let headers = [frames::request("POST", "/v1/executions"), json].concat();
    for number in 0..open {
        line.say(frame(HEADERS, END_HEADERS, 2 * number + 1, &headers)).await;
    }
    for number in STREAMS_PER_CONNECTION_MAX..open {
        let reset = frames::next_of(&mut line, RST_STREAM).await;
        assert_eq!((reset.stream, reset.number(0)), (2 * number + 1, REFUSED_STREAM));
    }
    // When the first is over there is room for one.
    line.say(frame(DATA, END_STREAM, 1, b"nonsense")).await;
    let answer = frames::next_of(&mut line, HEADERS).await;
    assert_eq!(answer.stream, 1);
    let healthz = frames::request("GET", "/healthz");
    line.say(frame(HEADERS, END_HEADERS | END_STREAM, 2 * open + 1, &healthz)).await;
    assert_eq!(frames::next_of(&mut line, HEADERS).await.stream, 2 * open + 1);
    drop(line);
    is_well(server).await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_and_one_without_end_ends_the_connection() {
    let server = server().await;
    let long = "x".repeat(100);
    let many = frames::block(&vec![("a", long.as_str()); 150]);

    // 45,000 bytes in three frames.
    let mut line = Line::to(server.address).await;
    line.say(frames::opening()).await;
    let begun = [frames::request("GET", "/healthz"), many.clone()].concat();
    line.say(frame(HEADERS, END_STREAM, 1, &begun)).await;
    line.say(frame(CONTINUATION, 0, 1, &many)).await;
    line.say(frame(CONTINUATION, END_HEADERS, 1, &many)).await;
    let answer = frames::next_of(&mut line, HEADERS).await;
    // `:status`, and 431 in the Huffman code.
    assert_eq!(answer.payload, [0x48, 0x83, 0x69, 0x90, 0xff]);
    drop(line);

    let mut line = Line::to(server.address).await;
    line.say(frames::opening()).await;
    line.say(frame(HEADERS, END_STREAM, 1, &begun)).await;
    for _ in 0..64 {
        line.say(frame(CONTINUATION, 0, 1, &many)).await;
    }
    assert_eq!(goaway(&mut line).await, ENHANCE_YOUR_CALM);
    drop(line);
    is_well(server).await;
}

#[tokio::test]
async fn requests_that_are_taken_back_at_once_end_the_connection() {
    let server = server().await;
    let mut line = Line::to(server.address).await;
    line.say(frames::opening()).await;
    let headers = frames::request("GET", "/healthz");
    let mut burst = Vec::new();
    for number in 0..1_000 {
        burst.extend(frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &headers));
        burst.extend(frame(RST_STREAM, 0, 2 * number + 1, &8_u32.to_be_bytes()));
    }
    line.say(&burst).await;
    assert_eq!(goaway(&mut line).await, ENHANCE_YOUR_CALM);
    is_well(server).await;
}

#[tokio::test]
async fn what_is_no_http2_ends_the_connection() {
    let server = server().await;
    let too_large = [0x00, 0xff, 0xff, DATA, 0, 0, 0, 0, 1];
    let bad = [
        ("text", b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec()),
        ("a frame that is too large", too_large.to_vec()),
        ("data of no stream", frame(DATA, 0, 1, b"x")),
        ("a block that cannot be read", frame(HEADERS, END_HEADERS, 1, &[0xff; 32])),
        ("an even stream", frame(HEADERS, END_HEADERS, 2, &frames::request("GET", "/"))),
    ];
    for (what, bytes) in bad {
        let mut line = Line::to(server.address).await;
        line.say(frames::opening()).await;
        line.say(bytes).await;
        assert_ne!(soon(what, goaway(&mut line)).await, 0, "{what}");
        line.rest().await;
    }
    is_well(server).await;
}
