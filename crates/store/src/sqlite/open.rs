//! From a path to a connection that may be trusted.
//!
//! **Invariant:** nothing is written into a file before it is known to be ours or empty.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use super::error::{Trouble, explain};
use super::migrate::migrate;
use super::place::Place;
use crate::{ErrorKind, RunNo, StoreError};

/// Marks a SQLite file as a store of Backstitch: "Bstc".
const APPLICATION_ID: i32 = 0x4273_7463;

/// How long a statement waits for a lock that a reader or a backup tool holds for a moment.
const BUSY: Duration = Duration::from_secs(5);

/// Pages in the write-ahead log at which a commit copies it into the database: 16 MiB. With fewer
/// (1,000 is the default) the copying comes more often, with more the longest pause grows; the
/// differences in throughput that were measured are within the noise.
const WAL_PAGES: u32 = 4_000;

/// Memory for pages that the writer keeps: 4 MiB, in KiB. The pages that are appended to must stay
/// in it; each run that is active needs about one. More costs time: after a split in the middle of
/// a table, SQLite searches its whole cache at the next commit (until the file has 1 GiB).
const WRITER_CACHE_KIB: u32 = 4 * 1024;

/// The same for each reader, whose pages grow stale with every commit.
const READER_CACHE_KIB: u32 = 2 * 1024;

/// Statements that a connection keeps prepared; more than there are.
const STATEMENTS_MAX: usize = 32;

/// The one name of the file, so that nobody locks it under another one; or what is wrong with
/// `path` as a name, before anything is touched.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let shown = path.display();
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        return Err(StoreError::new(
            ErrorKind::NotAStore,
            format!(
                "{text:?} names no file that survives this process; name a file, or take \
                 MemoryStore, which is made for that"
            ),
        ));
    }
    let name = match path.file_name() {
        Some(name) if !path.is_dir() => name,
        Some(_) | None => {
            return Err(StoreError::new(
                ErrorKind::NotAStore,
                format!("{shown} is a folder; name a file in it, for example backstitch.db"),
            ));
        }
    };
    if let Ok(file) = path.canonicalize() {
        return Ok(file);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let resolved = folder.canonicalize().map_err(|why| {
        let folder = folder.display();
        let message = match why.kind() {
            io::ErrorKind::NotFound => {
                format!("the folder {folder} does not exist; create it, then open {shown} again")
            }
            _ => format!(
                "cannot enter the folder {folder} ({why}); allow it, then open {shown} again"
            ),
        };
        StoreError::new(ErrorKind::Unavailable, message)
    })?;
    Ok(resolved.join(name))
}

/// What the owner learns when it opens the file.
pub(super) struct Owned {
    pub connection: Connection,
    pub fence: u64,
    pub next_run: RunNo,
    pub place: Place,
}

/// The fence of the newest owner.
pub(super) fn newest_fence(connection: &Connection) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("SELECT value FROM meta WHERE name = 'fence'")?;
    query.query_row((), |row| row.get::<_, i64>(0)).map(|fence| fence as u64)
}

/// Opens the file as its owner: checks it, migrates it, and raises the fence, in one transaction.
pub(super) fn own(path: &Path) -> Result<Owned, StoreError> {
    own_or_trouble(path).map_err(|trouble| trouble.about(path))
}

fn own_or_trouble(path: &Path) -> Result<Owned, Trouble> {
    let mut connection = open_file(path)?;
    check_owner(&connection, path)?;
    configure_writer(&connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    migrate(&transaction, path)?;
    let fence: i64 = transaction.query_row(
        "UPDATE meta SET value = value + 1 WHERE name = 'fence' RETURNING value",
        (),
        |row| row.get(0),
    )?;
    // Numbers are never used twice, so whoever deletes runs must leave the newest one.
    let last: Option<i64> =
        transaction.query_row("SELECT MAX(run_no) FROM executions", (), |row| row.get(0))?;
    transaction.commit()?;
    Ok(Owned {
        connection,
        fence: fence as u64,
        next_run: RunNo(last.unwrap_or(0) + 1),
        place: Place::of(path),
    })
}

/// Opens the file again after a commit failed, and makes sure that it can be written.
///
/// Copying the log into the database writes every page of it anew. Only so is a page that is
/// found there known to be on disk: after a failed sync the kernel may show it and not have it.
pub(super) fn reopen(path: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let connection = open_file(path)?;
        configure_writer(&connection)?;
        checkpoint(&connection)?;
        connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'reopened'", ())?;
        Ok(connection)
    };
    open().map_err(|error| explain(path, &error))
}

/// Copies the whole write-ahead log into the database and empties it.
pub(super) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    let busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    if busy {
        let error = ffi::Error::new(ffi::SQLITE_BUSY);
        let why = "the write-ahead log is in use by somebody who reads".to_owned();
        return Err(rusqlite::Error::SqliteFailure(error, Some(why)));
    }
    Ok(())
}

/// A connection that can only read.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        configure(&connection)?;
        connection.pragma_update(None, "cache_size", -i64::from(READER_CACHE_KIB))?;
        Ok(connection)
    };
    open().map_err(|error| explain(path, &error))
}

/// Without `SQLITE_OPEN_URI`: a path is a path, whatever characters it holds.
fn open_file(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    // Keeps a statement as it was prepared. Otherwise each new id that is bound to a look-up has
    // it planned again, which took a quarter of the writer's time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}

/// Refuses a database that somebody else has made.
fn check_owner(connection: &Connection, path: &Path) -> Result<(), Trouble> {
    let id: i32 = connection.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    if id == APPLICATION_ID || (id == 0 && tables == 0) {
        return Ok(());
    }
    Err(Trouble::Said(StoreError::new(
        ErrorKind::NotAStore,
        format!(
            "{} is the database of another program (application id {id:#010x}); name a file of \
             its own for the store",
            path.display()
        ),
    )))
}

fn configure_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(()))?;
    // FULL: a commit returns after the log was synced (P1).
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    connection.pragma_update(None, "cache_size", -i64::from(WRITER_CACHE_KIB))?;
    Ok(())
}
