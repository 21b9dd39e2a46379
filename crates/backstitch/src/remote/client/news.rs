//! Hearing from the server when it is worth to look at a run again: one stream for everybody who waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use backstitch_api::client::{self as api, watch_request::What};
use backstitch_engine::program::BoxFuture;
use backstitch_store::RunNo;
use tokio::sync::{mpsc, oneshot};

use crate::remote::client::Stub;
use crate::remote::link::Outgoing;

/// How long somebody who waits lets a server alone that does not answer.
const AWAY_PAUSE: Duration = Duration::from_secs(1);

/// Whoever waits looks by himself after so long, for what nobody tells: that a run was deleted.
const LOOK_AFTER: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct Watch {
    stub: Stub,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// To the server, while there is a stream.
    out: Option<mpsc::UnboundedSender<api::WatchRequest>>,
    next: u64,
    waits: HashMap<u64, oneshot::Sender<Option<api::Outcome>>>,
}

/// Somebody waits as long as this lives.
struct Wait {
    watch: Watch,
    number: u64,
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut state = self.watch.lock();
        if state.waits.remove(&self.number).is_some() {
            state.say(api::WatchRequest { number: self.number, run: 0, what: None });
        }
    }
}

impl State {
    fn say(&self, request: api::WatchRequest) {
        if let Some(out) = &self.out {
            // A stream that has just ended is told by its own end.
            let _ = out.send(request);
        }
    }
}

impl Watch {
    pub fn new(stub: Stub) -> Watch {
        Watch { stub, state: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code runs under this lock")
    }

    /// Completes when it is worth to look at the run; with what has come of it, if the server tells that.
    pub fn wait(&self, run: RunNo, what: What) -> BoxFuture<Option<api::Outcome>> {
        let watch = self.clone();
        Box::pin(async move {
            let (told, tells) = oneshot::channel();
            let _wait = watch.ask(run, what, told);
            // Also when the stream ends: then there is nothing to wait for but the server.
            tokio::time::timeout(LOOK_AFTER, tells).await.ok()?.ok()?
        })
    }

    fn ask(&self, run: RunNo, what: What, told: oneshot::Sender<Option<api::Outcome>>) -> Wait {
        let state = &mut *self.lock();
        if state.out.is_none() {
            let (out, outgoing) = mpsc::unbounded_channel();
            state.out = Some(out);
            tokio::spawn(self.clone().listen(Outgoing(outgoing)));
        }
        state.next += 1;
        let number = state.next;
        state.waits.insert(number, told);
        state.say(api::WatchRequest { number, run: run.0, what: Some(what) });
        Wait { watch: self.clone(), number }
    }

    /// Tells those who wait, until the stream ends.
    async fn listen(mut self, outgoing: Outgoing<api::WatchRequest>) {
        if let Ok(answers) = self.stub.watch(outgoing).await {
            let mut answers = answers.into_inner();
            while let Ok(Some(api::WatchAnswer { number, outcome })) = answers.message().await {
                if let Some(told) = self.lock().waits.remove(&number) {
                    // Perhaps he has just gone.
                    let _ = told.send(outcome);
                }
            }
        }
        let waits = {
            let mut state = self.lock();
            state.out = None;
            std::mem::take(&mut state.waits)
        };
        tokio::time::sleep(AWAY_PAUSE).await;
        // All of them look.
        drop(waits);
    }
}
