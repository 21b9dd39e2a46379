//! A SQLite file, as the shop, the warehouse and the payment provider have one each.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// A file that is open. Cheap to clone.
#[derive(Clone)]
pub struct Database(Arc<Mutex<Connection>>);

impl Database {
    /// Opens the file, with its tables.
    pub fn open(path: &Path, tables: &str) -> Result<Database, String> {
        let open = || {
            let connection = Connection::open(path)?;
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
            connection.execute_batch(tables)?;
            Ok(connection)
        };
        let opened =
            open().map_err(|error: rusqlite::Error| format!("{}: {error}", path.display()));
        Ok(Database(Arc::new(Mutex::new(opened?))))
    }

    /// Runs one transaction, away from the threads of the async runtime.
    pub async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> rusqlite::Result<T> {
        let connection = self.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().expect("no code panics under this lock");
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let answer = work(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        });
        done.await.expect("no code panics here")
    }
}
