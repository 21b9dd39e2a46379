//! Telling a caller when it is worth to look at a run again.

use std::collections::HashMap;
use std::pin::Pin;

use backstitch_api::client as wire;
use backstitch_core::run::Outcome;
use backstitch_engine::{Engine, Error, ErrorKind};
use backstitch_store::RunNo;
use futures_util::Stream;
use futures_util::stream::poll_fn;
use prost::Message;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tonic::{Status, Streaming};
use wire::watch_request::{Published, What};

use super::words;

/// What one caller may wait for at a time on one stream: each is a task here.
const WAITS_MAX: usize = 10_000;

/// The largest outcome that is sent along, in bytes.
const OUTCOME_BYTES_MAX: usize = 4 * 1024;

/// Answers that are made ready for a caller that reads slowly.
const ANSWERS_MAX: usize = 64;

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<wire::WatchAnswer, Status>> + Send>>;

/// Answers until the caller has asked for the last time, or the server is stopped.
pub(super) fn serve(engine: Engine, asked: Streaming<wire::WatchRequest>) -> Answers {
    let (out, mut answers) = mpsc::channel(ANSWERS_MAX);
    tokio::spawn(async move {
        let end = tokio::select! {
            end = answer(&engine, asked, &out) => end,
            () = out.closed() => None,
            () = engine.stopping() => {
                Some(Status::unavailable("the server is being stopped: ask again"))
            }
        };
        if let Some(end) = end {
            let _ = out.send(Err(end)).await;
        }
    });
    Box::pin(poll_fn(move |cx| answers.poll_recv(cx)))
}

/// What a caller waits for; nobody does when this is dropped.
#[derive(Default)]
struct Waits(HashMap<u64, AbortHandle>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}

async fn answer(
    engine: &Engine,
    mut asked: Streaming<wire::WatchRequest>,
    out: &mpsc::Sender<Result<wire::WatchAnswer, Status>>,
) -> Option<Status> {
    let mut waits = Waits::default();
    let (over_in, mut over) = mpsc::unbounded_channel();
    loop {
        tokio::select! {
            request = asked.message() => {
                let wire::WatchRequest { number, run, what } = match request {
                    Ok(Some(request)) => request,
                    Ok(None) => return None,
                    Err(status) => return Some(status),
                };
                let Some(what) = what else {
                    waits.0.remove(&number).iter().for_each(AbortHandle::abort);
                    continue;
                };
                if waits.0.len() >= WAITS_MAX {
                    let message = format!("{WAITS_MAX} waits on one stream: use another one");
                    return Some(Status::resource_exhausted(message));
                }
                let (engine, over) = (engine.clone(), over_in.clone());
                let wait = tokio::spawn(async move {
                    // Whoever looks is told what is wrong; and a server that stops tells all of them.
                    let outcome = match until(&engine, RunNo(run), what).await {
                        Ok(outcome) => outcome.as_ref().and_then(small_enough),
                        Err(error) if error.kind() == ErrorKind::Stopped => return,
                        Err(_) => None,
                    };
                    let _ = over.send(wire::WatchAnswer { number, outcome });
                });
                if let Some(same) = waits.0.insert(number, wait.abort_handle()) {
                    same.abort();
                }
            }
            Some(answer) = over.recv() => {
                waits.0.remove(&answer.number);
                if out.send(Ok(answer)).await.is_err() {
                    return None;
                }
            }
        }
    }
}

async fn until(engine: &Engine, run: RunNo, what: What) -> Result<Option<Outcome>, Error> {
    match what {
        What::Settled(_) => engine.outcome(run).await.map(Some),
        What::Closed(_) => {
            let run = engine.closed(run).await?;
            Ok(Some(run.outcome(run.status(true))))
        }
        What::Published(Published { key, seq }) => {
            engine.published_after(run, &key, seq).await.map(|_| None)
        }
        What::RowAfter(seq) => engine.next_rows(run, seq, 1).await.map(|_| None),
    }
}

/// What is sent along with the answer; whoever is answered slowly must not fill the memory.
fn small_enough(outcome: &Outcome) -> Option<wire::Outcome> {
    (outcome.encoded_len() <= OUTCOME_BYTES_MAX).then(|| words::same(outcome))
}
