//! Runs that have to be looked at: something came for them while they had no driver.
//!
//! The store lists as *called* what must not be forgotten: runs that a guest has started or sent
//! something to, and closed runs that were sent something. A call is taken off the list by the
//! driver of its run, when what it called for is durable ([`crate::driver`]).

use std::sync::Arc;

use backstitch_store::{ErrorKind, RunNo};

use crate::engine::Shared;
use crate::live::Mail;
use crate::recovery;

/// Calls read at a time.
const CALLS_PAGE: usize = 500;

/// Has called runs looked at as they come, until the engine is stopped.
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

/// Has every run looked at that is on the list. One that is looked at already looks once more.
pub(crate) async fn look(shared: &Arc<Shared>) {
    let mut after = RunNo(0);
    loop {
        match shared.store.calls(after, CALLS_PAGE).await {
            Ok(calls) => {
                let Some(last) = calls.last() else { return };
                after = last.run;
                calls.iter().for_each(|call| wake(shared, call.run, Mail::Called));
            }
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

/// The same a little later, since something could not be done at the moment.
pub(crate) fn look_later(shared: &Arc<Shared>) {
    let shared = shared.clone();
    shared.runtime.clone().spawn(async move {
        shared.clock.sleep(shared.options.unavailable_retry).await;
        look(&shared).await;
    });
}

/// Tells the driver of a run; one that has none is fetched for it.
pub(crate) fn wake(shared: &Arc<Shared>, run: RunNo, mail: Mail) {
    if let Err(mail) = shared.live.tell(run, mail) {
        recovery::fetch(shared, run, mail);
    }
}

/// Something stands in the inbox of a run that has no driver now. If it is closed, the store has
/// called it.
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
        Mail::Inbox(_) => look_for(shared, run),
        Mail::Called | Mail::Look | Mail::Foreign => wake(shared, run, mail),
        // Nothing ran, and an engine that is stopped wakes nobody.
        Mail::Ended(_) | Mail::Stop | Mail::Lost => {}
    }
}
