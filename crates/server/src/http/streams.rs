//! The streams of an HTTP/2 connection, each of which has to be read.
//!
//! HTTP/2 holds back what the reader of one stream has no room for, and the connection lives on. So an answer is given to
//! it in small pieces, and a stream that takes none for too long is reset; the others go on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};

use super::limits::ANSWER_PIECE_BYTES_MAX;

tokio::task_local! {
    /// Of the stream that is polled.
    static PROGRESS: Arc<Progress>;
}

/// How far the answer of a stream has got.
#[derive(Default)]
struct Progress {
    /// How often the next piece was asked for.
    asked: AtomicU64,
    /// Whether a piece was given and the next one not asked for yet: the peer has no room for it.
    is_held: AtomicBool,
}

/// Runs each stream of a connection in a task of its own, and ends it when nothing of its answer is taken for so long.
#[derive(Clone)]
pub(super) struct Streams {
    patience: Duration,
    /// How many there are.
    open: watch::Sender<usize>,
}

impl Streams {
    pub fn new(patience: Duration) -> Streams {
        Streams { patience, open: watch::Sender::new(0) }
    }

    /// Completes when there was none for so long.
    pub async fn until_idle(self, time: Duration) {
        let mut open = self.open.subscribe();
        loop {
            // The sender lives as long as this.
            let _ = open.wait_for(|open| *open == 0).await;
            tokio::select! {
                () = sleep(time) => return,
                _ = open.wait_for(|open| *open > 0) => {}
            }
        }
    }
}

/// One stream that is open.
struct Open(watch::Sender<usize>);

impl Open {
    fn new(open: watch::Sender<usize>) -> Open {
        open.send_modify(|open| *open += 1);
        Open(open)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(Read {
            stream: Box::pin(stream),
            patience: self.patience,
            progress: Arc::default(),
            seen: 0,
            waiting: None,
            _open: Open::new(self.open.clone()),
        });
    }
}

struct Read<F> {
    stream: Pin<Box<F>>,
    patience: Duration,
    progress: Arc<Progress>,
    /// What had been asked for when the waiting began.
    seen: u64,
    /// Runs while a piece is held.
    waiting: Option<Pin<Box<Sleep>>>,
    _open: Open,
}

impl<F: Future<Output = ()>> Future for Read<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let (stream, progress) = (&mut this.stream, this.progress.clone());
        if PROGRESS.sync_scope(progress, || stream.as_mut().poll(context)).is_ready() {
            return Poll::Ready(());
        }
        let asked = this.progress.asked.load(Ordering::Relaxed);
        if !this.progress.is_held.load(Ordering::Relaxed) {
            this.waiting = None;
            return Poll::Pending;
        }
        if asked != this.seen {
            (this.seen, this.waiting) = (asked, None);
        }
        let patience = this.patience;
        let waiting = this.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        let over = waiting.as_mut().poll(context);
        if over.is_ready() {
            // It is reset when it is dropped.
            tracing::debug!("a stream was not read");
        }
        over
    }
}

/// The answer of a stream.
struct Pieces {
    body: Body,
    /// Of the last piece of the body.
    rest: Bytes,
}

/// The response, to be given in pieces.
pub(super) async fn in_pieces(response: Response) -> Response {
    response.map(|body| Body::new(Pieces { body, rest: Bytes::new() }))
}

impl Pieces {
    fn next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let bytes = self.rest.len().min(ANSWER_PIECE_BYTES_MAX);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = self.next(context);
        // Where it is not polled by a stream of HTTP/2, nobody looks.
        let _ = PROGRESS.try_with(|progress| {
            progress.asked.fetch_add(1, Ordering::Relaxed);
            let is_held = matches!(next, Poll::Ready(Some(Ok(_))));
            progress.is_held.store(is_held, Ordering::Relaxed);
        });
        next
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        match hint.upper() {
            // The upper one first: it is never below the lower one.
            Some(upper) => {
                hint.set_upper(upper + rest);
                hint.set_lower(hint.lower() + rest);
            }
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn an_answer_in_pieces_is_the_same_answer() {
        let text: String = ('a'..='z').cycle().take(3 * ANSWER_PIECE_BYTES_MAX + 5).collect();
        let response = in_pieces(Response::new(Body::from(text.clone()))).await;
        let mut body = response.into_body();
        assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.expect("it is in memory").into_data().expect("it has no trailers");
            pieces.push(piece.len());
            assert_eq!(body.is_end_stream(), pieces.len() == 4);
            let left = text.len() - pieces.iter().sum::<usize>();
            assert_eq!(body.size_hint().exact(), Some(left as u64));
        }
        let full = ANSWER_PIECE_BYTES_MAX;
        assert_eq!(pieces, [full, full, full, 5]);
        let whole = in_pieces(Response::new(Body::from(text.clone()))).await;
        let whole = whole.into_body().collect().await.expect("it is in memory").to_bytes();
        assert_eq!(whole, text);
    }
}
