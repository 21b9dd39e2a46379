//! Threads that read, each with a connection and prepared statements of its own.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::explain;
use super::{closed, open};
use crate::{StoreError, StoreFuture};

/// Reader threads: one long recovery scan must not hold up everybody else's reads. More would
/// only take turns at the same disk.
const READERS: usize = 2;

enum Job {
    Read(Box<dyn FnOnce(&Connection) + Send>),
    End,
}

/// Where reads are offered.
#[derive(Clone)]
pub(super) struct Readers {
    path: Arc<Path>,
    jobs: Sender<Job>,
}

/// The threads, for whoever ends them.
pub(super) struct ReaderThreads {
    readers: Readers,
    threads: Vec<JoinHandle<()>>,
}

impl ReaderThreads {
    pub(super) fn start(path: &Arc<Path>) -> Result<ReaderThreads, StoreError> {
        let (sender, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let readers = Readers { path: path.clone(), jobs: sender };
        let mut started = ReaderThreads { readers, threads: Vec::new() };
        for _ in 0..READERS {
            // If one cannot be started, `started` is dropped, and the others end with it.
            let connection = open::reader(path)?;
            let receiver = receiver.clone();
            let thread = thread::Builder::new().name("backstitch-read".into());
            let thread = thread.spawn(move || serve(&connection, &receiver));
            started.threads.push(thread.map_err(super::no_thread)?);
        }
        Ok(started)
    }

    pub(super) fn readers(&self) -> Readers {
        self.readers.clone()
    }

    /// Finishes the reads that were offered, and closes the connections.
    pub(super) fn end(self) {
        for _ in &self.threads {
            let _ = self.readers.jobs.send(Job::End);
        }
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

fn serve(connection: &Connection, jobs: &Mutex<Receiver<Job>>) {
    loop {
        // The lock is held while waiting: one thread waits for a job, the others for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(Job::Read(read)) => read(connection),
            Ok(Job::End) | Err(_) => return,
        }
    }
}

impl Readers {
    /// Offers a read; it is answered even if the future is dropped.
    pub(super) fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let path = self.path.clone();
        let (answer, answered) = oneshot::channel();
        let job = move |connection: &Connection| {
            let result = read(connection).map_err(|error| explain(&path, &error));
            // Nobody may be waiting any more.
            let _ = answer.send(result);
        };
        let offered = self.jobs.send(Job::Read(Box::new(job)));
        let path = self.path.clone();
        Box::pin(async move {
            match offered {
                Ok(()) => answered.await.unwrap_or_else(|_| Err(closed(&path))),
                Err(_) => Err(closed(&path)),
            }
        })
    }
}
