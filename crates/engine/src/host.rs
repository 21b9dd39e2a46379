//! Asking an engine in another process: what a guest cannot do on a store itself.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use backstitch_core::inbox::{InboxKind, InboxRow, Verb};
use backstitch_core::run::Outcome;
use backstitch_store::{RunNo, Store};
use bytes::Bytes;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::engine::{Engine, EngineOptions, Role, Shared};
use crate::error::Error;
use crate::events::{EventAccepted, EventPost};
use crate::life::RestartRequest;
use crate::program::BoxFuture;
use crate::start::{StartAnswer, StartRequest};
use crate::verbs::Sent;

/// The engine in another process to which everything is handed that changes something: it judges as if it
/// was asked by its own callers.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// As [`Engine::start`](crate::Engine::start); nothing is restarted by it.
    fn start(&self, request: StartRequest) -> BoxFuture<Result<StartAnswer, Error>>;

    /// As [`Engine::restart`](crate::Engine::restart).
    fn restart(&self, run: RunNo, request: RestartRequest)
    -> BoxFuture<Result<StartAnswer, Error>>;

    /// As [`Engine::send`](crate::Engine::send).
    fn send(
        &self,
        run: RunNo,
        kind: InboxKind,
        verb: Verb,
        request_id: &str,
    ) -> BoxFuture<Result<Sent, Error>>;

    /// As [`Engine::send_event`](crate::Engine::send_event).
    fn send_event(&self, run: RunNo, post: EventPost) -> BoxFuture<Result<EventAccepted, Error>>;

    /// As [`Engine::delete`](crate::Engine::delete).
    fn delete(&self, run: RunNo, by: &str, reason: &str) -> BoxFuture<Result<(), Error>>;

    /// As [`Engine::outcome`](crate::Engine::outcome).
    fn outcome(&self, run: RunNo) -> BoxFuture<Told>;

    /// Completes when it is worth to look at the run again; perhaps before that.
    fn wait(&self, run: RunNo, awaited: Awaited) -> BoxFuture<()>;
}

/// What a host says of a run that somebody waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// What came of it.
    Outcome(Outcome),
    /// It cannot say: the journal does, or what is wrong.
    Nothing {
        /// Whether the host was there in the meantime.
        was_there: bool,
    },
}

/// What somebody who waits for a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// It is closed, or stuck.
    Settled,
    /// It is closed.
    Closed,
    /// A value is published under the key in a row after `seq`; or it is closed.
    Published {
        /// The key.
        key: String,
        /// The row.
        seq: u64,
    },
    /// Its journal has a row after this one, or it is closed.
    Row(u64),
}

impl Awaited {
    /// The same when the journal was seen up to row `seq`.
    pub(crate) fn seen(&self, seq: u64) -> Awaited {
        match self {
            Awaited::Row(_) => Awaited::Row(seq),
            Awaited::Settled | Awaited::Closed | Awaited::Published { .. } => self.clone(),
        }
    }
}

impl Engine {
    /// Looks at a store that another process owns, and sends to its runs: drives none.
    pub fn visit(store: Arc<dyn Store>, clock: Arc<dyn Clock>, options: EngineOptions) -> Engine {
        Engine::guest(store, clock, options, None)
    }

    /// As [`Engine::visit`], from another machine: `store` is read, and everything else is asked of `host`.
    pub fn visit_host(
        host: Arc<dyn Host>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: EngineOptions,
    ) -> Engine {
        Engine::guest(store, clock, options, Some(host))
    }

    fn guest(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: EngineOptions,
        host: Option<Arc<dyn Host>>,
    ) -> Engine {
        // A guest has no work of its own that could end with a runtime.
        let (_, home) = watch::channel(());
        let programs = HashMap::new();
        Engine { shared: Shared::new(Role::Guest, store, clock, programs, options, home, host) }
    }

    /// Completes when the engine is asked to stop. For those who host.
    pub async fn stopping(&self) {
        self.shared.stop_asked().await;
    }

    /// Rows of a journal as they are stored. For those who host.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn sealed_rows(
        &self,
        run: RunNo,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Bytes>, Error> {
        Ok(self.shared.store.journal(run, after_seq, limit).await?)
    }

    /// Rows of an inbox, those that were read included. For those who host.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn inbox_rows(
        &self,
        run: RunNo,
        after: u64,
        limit: usize,
    ) -> Result<Vec<InboxRow>, Error> {
        Ok(self.shared.store.inbox(run, after, limit).await?)
    }
}
