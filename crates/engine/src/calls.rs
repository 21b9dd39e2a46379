//! Runs that have to be looked at: something came for them while they had no driver.
//!
//! The store lists as *called* what must not be forgotten: runs that a guest has started or sent
//! something to, and closed runs that were sent something. A call is taken off the list when what
//! it called for is durable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backstitch_store::{Call, ErrorKind, RunNo};

use crate::engine::Shared;
use crate::live::Mail;
use crate::recovery;

/// Calls read at a time.
const CALLS_PAGE: usize = 500;

/// The calls that are being answered.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<RunNo, u64>>);

impl Calls {
    /// Whether the call is a new one.
    fn begin(&self, call: Call) -> bool {
        let mut answering = self.0.lock().expect("no code runs under this lock");
        answering.insert(call.run, call.times) != Some(call.times)
    }

    /// The call is off the list, or to be answered once more.
    pub fn answered(&self, call: Call) {
        let mut answering = self.0.lock().expect("no code runs under this lock");
        if answering.get(&call.run) == Some(&call.times) {
            answering.remove(&call.run);
        }
    }
}

/// Answers calls as they come, until the engine is stopped.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut news = shared.store.news();
    let stop = shared.clone();
    tokio::select! {
        () = stop.stop_asked() => {}
        () = async {
            loop {
                look(&shared).await;
                if news.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        } => {}
    }
}

/// Answers every call that is on the list.
pub(crate) async fn look(shared: &Arc<Shared>) {
    loop {
        match shared.store.calls(CALLS_PAGE).await {
            Ok(calls) => return calls.into_iter().for_each(|call| answer(shared, call)),
            Err(error) if shared.is_stopping() || error.kind() == ErrorKind::Closed => {
                return tracing::debug!(%error, "stopped");
            }
            Err(error) => {
                tracing::warn!(%error, "calls not read; trying again");
                shared.clock.sleep(shared.options.unavailable_retry).await;
            }
        }
    }
}

fn answer(shared: &Arc<Shared>, call: Call) {
    if shared.calls.begin(call)
        && let Err(_untold) = shared.live.tell(call.run, Mail::Call(call))
    {
        recovery::fetch(shared, call.run, Some(call));
    }
}

/// Has a run that may have no driver look at what is there for it.
pub(crate) fn wake(shared: &Arc<Shared>, run: RunNo, mail: Mail) {
    if shared.live.tell(run, mail).is_err() {
        recovery::fetch(shared, run, None);
    }
}

/// Something stands in the inbox of a run that has no driver now. If it is closed, the store has
/// called it, and it is fetched for that call.
pub(crate) fn look_for(shared: &Arc<Shared>, run: RunNo) {
    let shared = shared.clone();
    shared.runtime.clone().spawn(async move {
        look(&shared).await;
        wake(&shared, run, Mail::Inbox(None));
    });
}

/// Mail that a driver left behind.
pub(crate) fn forward(shared: &Arc<Shared>, run: RunNo, mail: Mail) {
    match mail {
        Mail::Call(call) => {
            shared.calls.answered(call);
            answer(shared, call);
        }
        Mail::Inbox(_) => look_for(shared, run),
        Mail::Look | Mail::Foreign => wake(shared, run, mail),
        // Nothing ran, and an engine that is stopped wakes nobody.
        Mail::Ended(_) | Mail::Stop => {}
    }
}
