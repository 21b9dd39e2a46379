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
    /// Whether the server has taken the stream.
    is_up: bool,
    waits: HashMap<u64, oneshot::Sender<Heard>>,
}

/// What somebody who waits has heard.
pub(super) enum Heard {
    /// It is worth to look at the run; with what has come of it, if the server tells that.
    Answer(Option<Box<api::Outcome>>),
    /// Nothing, for a long time or because the stream has ended.
    Nothing {
        /// Whether the server had taken the stream.
        was_there: bool,
    },
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

    /// Completes when it is worth to look at the run.
    pub fn wait(&self, run: RunNo, what: What) -> BoxFuture<Heard> {
        let watch = self.clone();
        Box::pin(async move {
            let (told, tells) = oneshot::channel();
            let _wait = watch.ask(run, what, told);
            // Also when the stream ends: then there is nothing to wait for but the server.
            match tokio::time::timeout(LOOK_AFTER, tells).await {
                Ok(Ok(heard)) => heard,
                Ok(Err(_)) | Err(_) => Heard::Nothing { was_there: watch.lock().is_up },
            }
        })
    }

    fn ask(&self, run: RunNo, what: What, told: oneshot::Sender<Heard>) -> Wait {
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
            self.lock().is_up = true;
            while let Ok(Some(api::WatchAnswer { number, outcome })) = answers.message().await {
                if let Some(told) = self.lock().waits.remove(&number) {
                    // Perhaps he has just gone.
                    let _ = told.send(Heard::Answer(outcome.map(Box::new)));
                }
            }
        }
        let (waits, was_there) = {
            let mut state = self.lock();
            state.out = None;
            (std::mem::take(&mut state.waits), std::mem::take(&mut state.is_up))
        };
        tokio::time::sleep(AWAY_PAUSE).await;
        // All of them look.
        for told in waits.into_values() {
            let _ = told.send(Heard::Nothing { was_there });
        }
    }
}
