//! From a path to a connection that may be trusted.
//!
//! **Invariant:** nothing is written into a file before it is known to be ours or empty.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use super::busy;
use super::error::{Trouble, explain};
use super::migrate::{self, migrate};
use super::news::data_version;
use super::place::Place;
use crate::role::Role;
use crate::{ErrorKind, StoreError};

/// Marks a SQLite file as a store of Backstitch: "Bstc".
const APPLICATION_ID: i32 = 0x4273_7463;

/// How long a reader waits for a lock that somebody holds for a moment.
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
const STATEMENTS_MAX: usize = 64;

/// The one name of the file, so that nobody locks it under another one; or what is wrong with
/// `path` as a name, before anything is touched.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let name = name_of(path)?;
    if let Ok(file) = path.canonicalize() {
        return Ok(file);
    }
    let shown = path.display();
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

/// The same for a guest, who makes no file.
pub(super) fn find(path: &Path) -> Result<PathBuf, StoreError> {
    name_of(path)?;
    path.canonicalize().map_err(|why| {
        let shown = path.display();
        let message = match why.kind() {
            io::ErrorKind::NotFound => format!(
                "there is no file {shown}; start the process that owns the store, which makes it, \
                 or name the file that it has"
            ),
            _ => format!("cannot reach {shown} ({why}); allow it, then connect again"),
        };
        StoreError::new(ErrorKind::Unavailable, message)
    })
}

fn name_of(path: &Path) -> Result<&OsStr, StoreError> {
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
    match path.file_name() {
        Some(name) if !path.is_dir() => Ok(name),
        Some(_) | None => Err(StoreError::new(
            ErrorKind::NotAStore,
            format!("{shown} is a folder; name a file in it, for example backstitch.db"),
        )),
    }
}

/// A file that may be written, and what was learned on the way.
pub(super) struct Opened {
    pub connection: Connection,
    pub role: Role,
    pub place: Place,
    /// The version of the data before anything else was read.
    pub seen: i64,
}

/// The fence of the newest owner.
pub(super) fn newest_fence(connection: &Connection) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("SELECT value FROM meta WHERE name = 'fence'")?;
    query.query_row((), |row| row.get::<_, i64>(0)).map(|fence| fence as u64)
}

/// Opens the file as its owner: checks it, migrates it, and raises the fence, in one transaction.
pub(super) fn own(path: &Path) -> Result<Opened, StoreError> {
    own_or_trouble(path).map_err(|trouble| trouble.about(path))
}

fn own_or_trouble(path: &Path) -> Result<Opened, Trouble> {
    let mut connection = open_file(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    match made_by(&connection)? {
        Maker::Us | Maker::Nobody => {}
        Maker::Other { id } => return Err(of_another_program(path, id).into()),
    }
    configure_writer(&mut connection, busy::OWNER)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let seen = data_version(&transaction)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    migrate(&transaction, path)?;
    let fence: i64 = transaction.query_row(
        "UPDATE meta SET value = value + 1 WHERE name = 'fence' RETURNING value",
        (),
        |row| row.get(0),
    )?;
    transaction.commit()?;
    let role = Role::Owner { fence: fence as u64 };
    Ok(Opened { connection, role, place: Place::of(path), seen })
}

/// Opens the file as a guest: checks it, and writes nothing.
pub(super) fn join(path: &Path) -> Result<Opened, StoreError> {
    join_or_trouble(path).map_err(|trouble| trouble.about(path))
}

fn join_or_trouble(path: &Path) -> Result<Opened, Trouble> {
    let mut connection = open_file(path, OpenFlags::empty())?;
    match made_by(&connection)? {
        Maker::Us => {}
        Maker::Nobody => return Err(empty(path).into()),
        Maker::Other { id } => return Err(of_another_program(path, id).into()),
    }
    configure_writer(&mut connection, busy::GUEST)?;
    let seen = data_version(&connection)?;
    migrate::check(&connection, path)?;
    Ok(Opened { connection, role: Role::Guest, place: Place::of(path), seen })
}

/// Opens the file again after a commit failed, and makes sure that it can be written.
///
/// What a live writer can see was synced before it was shown. A commit that is not seen may have
/// left its pages in the log, where the next opener would find them if everybody died now; the
/// write at the end takes their place, so that what is absent stays absent.
///
/// The owner also copies the log into the database, which writes every page of it anew: after a
/// failed sync the kernel may show a page and not have it, and the log may have been read back from
/// such pages. It needs the log for itself for that, which a guest cannot ask of a busy owner; and
/// a guest has an owner that does so, or will have one.
pub(super) fn reopen(path: &Path, role: Role) -> Result<Connection, StoreError> {
    let open = || {
        let (flags, wait) = match role {
            Role::Owner { .. } => (OpenFlags::SQLITE_OPEN_CREATE, busy::OWNER),
            Role::Guest => (OpenFlags::empty(), busy::GUEST),
        };
        let mut connection = open_file(path, flags)?;
        configure_writer(&mut connection, wait)?;
        match role {
            Role::Owner { .. } => checkpoint(&connection)?,
            Role::Guest => {}
        }
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
fn open_file(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
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

/// Who has made a database.
enum Maker {
    Us,
    /// It is empty.
    Nobody,
    Other {
        id: i32,
    },
}

fn made_by(connection: &Connection) -> rusqlite::Result<Maker> {
    let id: i32 = connection.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    if id == APPLICATION_ID {
        return Ok(Maker::Us);
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    Ok(if id == 0 && tables == 0 { Maker::Nobody } else { Maker::Other { id } })
}

fn of_another_program(path: &Path, id: i32) -> StoreError {
    StoreError::new(
        ErrorKind::NotAStore,
        format!(
            "{} is the database of another program (application id {id:#010x}); name a file of \
             its own for the store",
            path.display()
        ),
    )
}

fn empty(path: &Path) -> StoreError {
    StoreError::new(
        ErrorKind::Unavailable,
        format!(
            "{} is empty; start the process that owns the store, which fills it, then connect again",
            path.display()
        ),
    )
}

fn configure_writer(connection: &mut Connection, wait: busy::Wait) -> rusqlite::Result<()> {
    busy::set(connection, wait)?;
    // Writes nothing if it is so already, as it is when a guest comes.
    connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(()))?;
    // FULL: a commit returns after the log was synced (P1).
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    connection.pragma_update(None, "cache_size", -i64::from(WRITER_CACHE_KIB))?;
    Ok(())
}
