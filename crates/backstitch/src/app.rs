//! A running Backstitch.

use std::ops::Deref;

use backstitch_engine::Engine;
use backstitch_engine::feed::Feed;

use crate::client::Client;
use crate::error::Error;

/// A running Backstitch. Cheap to clone.
///
/// It runs on the tokio runtime that [`Builder::run`](crate::Builder::run) was called on, whoever
/// calls its methods, until [`App::shutdown`] or the end of that runtime. Dropping every `App` does
/// not stop it, and the file stays its own; call `shutdown` before the file is opened again. The
/// end of the process, in whatever way, loses nothing.
#[derive(Clone)]
pub struct App {
    client: Client,
    /// Drives the runs.
    engine: Engine,
    /// Told first when the app is shut down.
    #[cfg(feature = "remote")]
    worker: Option<std::sync::Arc<crate::remote::WorkerStore>>,
}

impl App {
    pub(crate) fn new(engine: Engine) -> App {
        App {
            client: Client::new(engine.clone()),
            engine,
            #[cfg(feature = "remote")]
            worker: None,
        }
    }

    /// `engine` drives what `worker` has leased.
    #[cfg(feature = "remote")]
    pub(crate) fn of_worker(
        client: Client,
        engine: Engine,
        worker: std::sync::Arc<crate::remote::WorkerStore>,
    ) -> App {
        App { client, engine, worker: Some(worker) }
    }

    /// Why nothing can be made durable at the moment, if that is so (a full disk, for example).
    /// Nothing is lost meanwhile, and the work goes on by itself.
    pub fn trouble(&self) -> Option<Error> {
        self.engine.trouble().map(Error::from)
    }

    /// A live feed of the rows that are committed from now on, of all executions of this process.
    pub fn feed(&self) -> Feed {
        self.engine.feed()
    }

    /// Stops in good order: running attempts are recorded as interrupted (they do not count), and
    /// everything goes on when the store is opened again.
    ///
    /// # Errors
    /// Trouble of the store while it is closed; nothing that was acknowledged is lost by it.
    pub async fn shutdown(self) -> Result<(), Error> {
        #[cfg(feature = "remote")]
        if let Some(worker) = &self.worker {
            worker.drain();
        }
        self.engine.stop().await?;
        // Of a worker: those who wait for something are told.
        #[cfg(feature = "remote")]
        if self.worker.is_some() {
            self.client.engine().stop().await?;
        }
        Ok(())
    }
}

/// What can be asked of a store can be asked of whoever works on it.
impl Deref for App {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
