//! One transaction per batch, and what happens when it fails.
//!
//! **Invariant:** an offer is answered after the sync that made it durable (P1), or after it is
//! certain that it was not applied.
//!
//! Three things can go wrong. A change that cannot be stored fails alone: the batch is rolled back
//! and each change gets a transaction of its own (B97). A disk that refuses before the commit
//! fails the batch, whole. A commit that reports an error leaves the outcome unknown: the file is
//! opened again and searched for what the batch wrote.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::watch;

use super::apply::{Applied, Apply, INSERT_ROW};
use super::error::{Trouble, explain};
use super::migrate;
use super::news::{News, Others};
use super::open::{self, Opened};
use super::place::Place;
use super::tails::Tails;
use super::testing::DiskPoint;
use super::traces::{self, Traces};
use super::writer::Offer;
use super::{SqliteOptions, testing::Testing};
use crate::role::Role;
use crate::{AfterSync, CommittedRow, ErrorKind, NowUs, RunNo, StoreError};

/// Applies batches to a connection that may get lost.
pub(super) struct Committer {
    path: Arc<Path>,
    now: NowUs,
    after_sync: Option<AfterSync>,
    testing: Testing,
    /// `None` after a commit failed, until the file could be opened again.
    connection: Option<Connection>,
    /// The batch of that commit. There is at most one, because nothing is written meanwhile.
    unknown: Option<Batch>,
    role: Role,
    news: News,
    remembered: Remembered,
    place: Place,
    stamped_us: i64,
}

/// What is known of the file, until somebody else writes to it or a transaction fails.
#[derive(Default)]
struct Remembered {
    tails: Tails,
    next_run: Option<RunNo>,
    schema: Schema,
}

/// What a guest knows of the schema, which a newer owner may have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Schema {
    #[default]
    Unchecked,
    Known,
}

/// Offers with what has become, or may have become, of them.
struct Batch {
    offers: Vec<Offer>,
    applied: Vec<Applied>,
    rows: Vec<CommittedRow>,
}

/// How a transaction ended.
enum Outcome {
    Committed(Batch),
    /// One of several changes is at fault; nothing was applied.
    OneIsBad(Vec<Offer>),
    /// Nothing was applied.
    Refused(Vec<Offer>, StoreError),
    Unknown(Batch),
}

impl Committer {
    pub(super) fn new(
        path: Arc<Path>,
        options: SqliteOptions,
        opened: Opened,
        tell: watch::Sender<u64>,
    ) -> Committer {
        Committer {
            path,
            now: options.now,
            after_sync: options.after_sync,
            testing: options.testing,
            connection: Some(opened.connection),
            unknown: None,
            role: opened.role,
            news: News::new(opened.seen, tell),
            remembered: Remembered::default(),
            place: opened.place,
            stamped_us: i64::MIN,
        }
    }

    /// Whether the file is open.
    pub(super) fn is_sound(&self) -> bool {
        self.connection.is_some()
    }

    /// What it writes as.
    pub(super) fn role(&self) -> Role {
        self.role
    }

    /// Looks whether somebody else has written, while there is nothing to do.
    pub(super) fn look_around(&mut self) {
        let Some(connection) = &self.connection else { return };
        match self.news.look(connection) {
            Ok(Others::WereQuiet) => {}
            Ok(Others::Wrote) => self.remembered.forget(),
            // Whatever it is, the next transaction meets it as well, and somebody hears of it.
            Err(why) => tracing::debug!(path = %self.path.display(), %why, "cannot look around"),
        }
    }

    /// Applies a batch and answers it; an unknown outcome is answered when it is known.
    pub(super) fn work(&mut self, offers: Vec<Offer>) {
        if self.connection.is_none()
            && let Err(error) = self.recover()
        {
            return refuse(offers, &error);
        }
        let connection = self.connection.take().expect("recovered, or never lost");
        let outcome = self.attempt(&connection, offers);
        if let Outcome::Unknown(batch) = outcome {
            drop(connection);
            self.unknown = Some(batch);
            // If it fails, whoever comes next tries again.
            let _ = self.recover();
            return;
        }
        // Left open if even the roll-back failed; closing the connection ends it.
        if connection.is_autocommit() {
            self.connection = Some(connection);
        }
        match outcome {
            Outcome::Committed(batch) => self.publish(batch),
            Outcome::OneIsBad(offers) => {
                for offer in offers {
                    self.work(vec![offer]);
                }
            }
            Outcome::Refused(offers, error) => refuse(offers, &error),
            Outcome::Unknown(_) => unreachable!("returned above"),
        }
    }

    fn attempt(&mut self, connection: &Connection, offers: Vec<Offer>) -> Outcome {
        let mut rows = Vec::new();
        let applied = match self.apply(connection, &offers, &mut rows) {
            Ok(applied) => applied,
            Err(trouble) => {
                self.roll_back(connection);
                return if offers.len() > 1 && trouble.is_of_the_change() {
                    Outcome::OneIsBad(offers)
                } else {
                    Outcome::Refused(offers, trouble.about(&self.path))
                };
            }
        };
        let batch = Batch { offers, applied, rows };
        match self.commit(connection) {
            Ok(()) => Outcome::Committed(batch),
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "a commit failed");
                Outcome::Unknown(batch)
            }
        }
    }

    fn apply(
        &mut self,
        connection: &Connection,
        offers: &[Offer],
        rows: &mut Vec<CommittedRow>,
    ) -> Result<Vec<Applied>, Trouble> {
        self.testing.limit_pages(connection)?;
        self.place.check(&self.path)?;
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
        match self.news.look(connection)? {
            Others::WereQuiet => {}
            Others::Wrote => self.remembered.forget(),
        }
        match (self.role, self.remembered.schema) {
            (Role::Guest, Schema::Unchecked) => {
                migrate::check(connection, &self.path)?;
                self.remembered.schema = Schema::Known;
            }
            (Role::Guest, Schema::Known) | (Role::Owner { .. }, _) => {}
        }
        // The lock makes sure that there is no other owner, unless somebody has taken it away.
        let newest = open::newest_fence(connection)?;
        self.stamped_us = self.stamped_us.max((self.now)());
        let mut apply = Apply {
            connection,
            role: self.role,
            fence: newest,
            tails: &mut self.remembered.tails,
            next_run: &mut self.remembered.next_run,
            at_us: self.stamped_us,
            rows: self.after_sync.as_ref().map(|_| rows),
            insert_row: connection.prepare_cached(INSERT_ROW)?,
        };
        offers.iter().map(|offer| apply.change(&offer.change)).collect()
    }

    fn commit(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.testing.at(DiskPoint::BeforeCommit)?;
        connection.prepare_cached("COMMIT")?.execute(())?;
        self.testing.at(DiskPoint::AfterCommit)
    }

    fn roll_back(&mut self, connection: &Connection) {
        self.remembered.forget();
        // SQLite itself has rolled back after some errors.
        if !connection.is_autocommit()
            && let Err(error) = connection.execute_batch("ROLLBACK")
        {
            tracing::error!(path = %self.path.display(), %error, "a roll-back failed");
        }
    }

    fn publish(&self, batch: Batch) {
        if let Some(after_sync) = &self.after_sync
            && !batch.rows.is_empty()
        {
            // A hook that panics must not take the store with it.
            if catch_unwind(AssertUnwindSafe(|| after_sync(&batch.rows))).is_err() {
                tracing::error!(path = %self.path.display(), "the after_sync hook panicked");
            }
        }
        for (offer, applied) in batch.offers.into_iter().zip(batch.applied) {
            offer.answer(Ok(applied.into_answer()));
        }
    }

    /// Opens the file again, and settles the batch whose outcome is unknown.
    ///
    /// # Errors
    /// The disk is still bad. The batch is settled even so if it can be seen that nothing of it
    /// is there; if it is there, its answer waits until it is known to be on disk.
    pub(super) fn recover(&mut self) -> Result<(), StoreError> {
        let connection = match self.reopen() {
            Ok(connection) => connection,
            Err(error) => {
                if let Ok(Traces::Absent) = self.look_without_writing()
                    && let Some(batch) = self.unknown.take()
                {
                    refuse(batch.offers, &error);
                }
                return Err(error);
            }
        };
        self.remembered.forget();
        self.news.forget();
        let looked = self.look(&connection);
        tracing::info!(path = %self.path.display(), "the file can be written again");
        self.connection = Some(connection);
        if let Some(batch) = self.unknown.take() {
            match looked {
                Ok(Traces::There) => self.publish(batch),
                Ok(Traces::Absent) => refuse(batch.offers, &self.not_applied()),
                // Each place where it might be is damaged. That must not hold up anybody else.
                Err(error) => refuse(batch.offers, &explain(&self.path, &error)),
            }
        }
        Ok(())
    }

    fn reopen(&self) -> Result<Connection, StoreError> {
        self.place.check(&self.path)?;
        let ordered = self.testing.at(DiskPoint::Reopen);
        ordered.map_err(|error| explain(&self.path, &error))?;
        open::reopen(&self.path, self.role)
    }

    fn look_without_writing(&self) -> Result<Traces, StoreError> {
        let connection = open::reader(&self.path)?;
        self.look(&connection).map_err(|error| explain(&self.path, &error))
    }

    fn look(&self, connection: &Connection) -> rusqlite::Result<Traces> {
        let Some(batch) = &self.unknown else { return Ok(Traces::Absent) };
        let both = batch.offers.iter().zip(&batch.applied);
        traces::search(
            connection,
            both.filter_map(|(offer, applied)| match applied {
                Applied::Written(answer) => Some((&offer.change, answer)),
                Applied::Judged(_) => None,
            }),
        )
    }

    fn not_applied(&self) -> StoreError {
        StoreError::new(
            ErrorKind::Unavailable,
            format!(
                "a commit to {} failed, and nothing was applied; offer the change again",
                self.path.display()
            ),
        )
    }

    /// Gives up the connection, after a last try to settle what is unknown.
    pub(super) fn finish(mut self) -> Option<Connection> {
        if !self.is_sound()
            && let Err(error) = self.recover()
            && let Some(batch) = self.unknown.take()
        {
            refuse(batch.offers, &error);
        }
        self.connection
    }
}

impl Remembered {
    fn forget(&mut self) {
        self.tails.clear();
        self.next_run = None;
        self.schema = Schema::Unchecked;
    }
}

fn refuse(offers: Vec<Offer>, error: &StoreError) {
    for offer in offers {
        offer.answer(Err(error.clone()));
    }
}
