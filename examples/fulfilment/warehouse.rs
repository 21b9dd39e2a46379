//! The warehouse: an outside system that holds goods and ships them, each once per key.

use std::path::Path;

use backstitch::{FailureExt, Result, msg};
use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};

use crate::database::Database;

/// What is on the shelf of each item at first.
pub const STOCK_AT_FIRST: i64 = 10;

/// No carrier goes there.
pub const NOWHERE: &str = "Nowhere";

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS holds (key TEXT PRIMARY KEY, item TEXT, state TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS parcels (key TEXT PRIMARY KEY, item TEXT, state TEXT NOT NULL);
";

/// What is left on the shelf.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reserved {
    pub left: i64,
}

#[derive(Clone)]
pub struct Warehouse(Database);

impl Warehouse {
    pub fn open(path: &Path) -> Result<Warehouse, String> {
        Ok(Warehouse(Database::open(path, TABLES)?))
    }

    /// Takes one off the shelf.
    pub async fn reserve(&self, key: &str, item: &str) -> Result<Reserved> {
        let (key, item) = (key.to_owned(), item.to_owned());
        let left = self.0.transact(move |tx| {
            let sql = "INSERT INTO holds VALUES (?1, ?2, 'held') ON CONFLICT DO NOTHING";
            tx.execute(sql, [&key, &item])?;
            stock(tx, &item)
        });
        Ok(Reserved { left: left.await? })
    }

    /// Puts back what was reserved under `key`. If nothing was, nothing ever will be: a request
    /// that is still on its way finds the key taken.
    pub async fn release(&self, key: &str) -> Result<()> {
        let sql = "INSERT INTO holds VALUES (?1, NULL, 'released')
                   ON CONFLICT DO UPDATE SET state = 'released'";
        self.settle(key, sql).await
    }

    /// Books a parcel. Gives its number.
    pub async fn ship(&self, key: &str, item: &str, town: &str) -> Result<String> {
        if town == NOWHERE {
            let refused = msg(format!("no carrier goes to {town}"));
            return Err(refused.permanent().with_code("no_carrier"));
        }
        let (key, item) = (key.to_owned(), item.to_owned());
        let parcel = self.0.transact(move |tx| {
            let sql = "INSERT INTO parcels VALUES (?1, ?2, 'booked') ON CONFLICT DO NOTHING";
            tx.execute(sql, [&key, &item])?;
            let sql = "SELECT rowid FROM parcels WHERE key = ?1";
            tx.query_row(sql, [&key], |row| row.get::<_, i64>(0))
        });
        Ok(format!("parcel-{}", parcel.await?))
    }

    /// Cancels what was booked under `key`, as [`Warehouse::release`] does.
    pub async fn recall(&self, key: &str) -> Result<()> {
        let sql = "INSERT INTO parcels VALUES (?1, NULL, 'cancelled')
                   ON CONFLICT DO UPDATE SET state = 'cancelled'";
        self.settle(key, sql).await
    }

    async fn settle(&self, key: &str, sql: &'static str) -> Result<()> {
        let key = key.to_owned();
        self.0.transact(move |tx| tx.execute(sql, [key])).await?;
        Ok(())
    }

    /// How many are on the shelf, and how many parcels are on their way.
    pub async fn count(&self, item: &str) -> rusqlite::Result<(i64, i64)> {
        let item = item.to_owned();
        let sql = "SELECT COUNT(*) FROM parcels WHERE item = ?1 AND state = 'booked'";
        let count = self.0.transact(move |tx| {
            Ok((stock(tx, &item)?, tx.query_row(sql, [&item], |row| row.get(0))?))
        });
        count.await
    }
}

fn stock(tx: &Transaction<'_>, item: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT ?2 - COUNT(*) FROM holds WHERE item = ?1 AND state = 'held'";
    tx.query_row(sql, params![item, STOCK_AT_FIRST], |row| row.get(0))
}
