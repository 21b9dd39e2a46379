//! The shop's own table of charges, in a file of its own.

use std::path::Path;

use backstitch::Result;
use rusqlite::params;

use crate::database::Database;
use crate::payments::Charge;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS charges (
        key TEXT PRIMARY KEY, execution TEXT NOT NULL, charge TEXT NOT NULL,
        cents INTEGER NOT NULL, refunded INTEGER NOT NULL DEFAULT 0
    );
";

#[derive(Clone)]
pub struct Books(Database);

impl Books {
    pub fn open(path: &Path) -> Result<Books, String> {
        Ok(Books(Database::open(path, TABLES)?))
    }

    /// Enters a charge, once per key.
    pub async fn enter(&self, key: &str, execution: &str, charge: &Charge) -> Result<()> {
        let (key, execution, charge) = (key.to_owned(), execution.to_owned(), charge.clone());
        let enter = self.0.transact(move |tx| {
            let sql = "INSERT INTO charges (key, execution, charge, cents) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT DO NOTHING";
            tx.execute(sql, params![key, execution, charge.id, charge.cents])
        });
        enter.await?;
        Ok(())
    }

    /// Notes that what was charged under `key` was paid back; nothing if it never was entered.
    pub async fn refunded(&self, key: &str) -> Result<()> {
        let key = key.to_owned();
        let sql = "UPDATE charges SET refunded = 1 WHERE key = ?1";
        self.0.transact(move |tx| tx.execute(sql, [key])).await?;
        Ok(())
    }

    /// What an order has brought in, by these books.
    pub async fn cents_of(&self, execution: &str) -> rusqlite::Result<i64> {
        let execution = execution.to_owned();
        let sql =
            "SELECT COALESCE(SUM(cents), 0) FROM charges WHERE execution = ?1 AND refunded = 0";
        self.0.transact(move |tx| tx.query_row(sql, [execution], |row| row.get(0))).await
    }
}
