//! A process that can be killed: a runtime of one thread, which says when it has nothing to do.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::error::{Error, ErrorKind};

/// A runtime of one thread that can be killed, and says when it has nothing to do: what
/// [`TestKit`](super::TestKit) and simulations are made of.
///
/// Nothing in it moves, unless the caller is inside of [`Process::block_on`]. Dropping it drops
/// everything that runs in it where it stands, as death does.
pub struct Process {
    runtime: Runtime,
    quiet: Arc<Quiet>,
}

#[derive(Default)]
struct Quiet {
    /// How often the thread found nothing to do.
    parks: AtomicU64,
    parked: Notify,
}

impl Process {
    /// A process in which nothing runs yet.
    ///
    /// # Errors
    /// `Testing` inside of another runtime.
    pub fn new() -> Result<Process, Error> {
        if tokio::runtime::Handle::try_current().is_ok() {
            let message = "a TestKit has a runtime of its own and cannot be used inside of another \
                           one; write #[test] fn instead of #[tokio::test] async fn";
            return Err(Error::new(ErrorKind::Testing, message));
        }
        let quiet = Arc::new(Quiet::default());
        let told = quiet.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || {
                told.parks.fetch_add(1, Ordering::Relaxed);
                told.parked.notify_one();
            })
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Testing, format!("no runtime can be made: {error}"))
            })?;
        Ok(Process { runtime, quiet })
    }

    /// Runs the future, and everything else that is in the process, until the future ends.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Waits, inside of [`Process::block_on`], until every task waits for something.
    pub async fn quiet(&self) {
        let before = self.quiet.parks.load(Ordering::Relaxed);
        while self.quiet.parks.load(Ordering::Relaxed) == before {
            self.quiet.parked.notified().await;
        }
    }
}
