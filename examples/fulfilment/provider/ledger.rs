//! What the provider has booked, and what it has answered under each key.

use std::path::Path;

use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::{Value, json};

use super::{Answer, refusal};
use crate::database::Database;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS answers (
        key TEXT PRIMARY KEY, status INTEGER NOT NULL, body TEXT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS bookings (
        no INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL, key TEXT NOT NULL,
        refunds TEXT
    );
";

/// Whether it recognises a key that it has seen, as it promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    #[default]
    Recognised,
    Forgotten,
}

#[derive(Clone)]
pub struct Ledger {
    database: Database,
    keys: Keys,
}

/// The account of one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// What was charged and not paid back.
    pub charged_cents: i64,
    pub charges: u32,
    pub refunds: u32,
}

impl Ledger {
    pub fn open(path: &Path, keys: Keys) -> Result<Ledger, String> {
        Ok(Ledger { database: Database::open(path, TABLES)?, keys })
    }

    pub(super) async fn charge(
        &self,
        key: &str,
        customer: &str,
        cents: i64,
    ) -> rusqlite::Result<Answer> {
        let customer = customer.to_owned();
        let charge = move |tx: &Transaction<'_>, key: &str| {
            let sql = "INSERT INTO bookings (customer, cents, key) VALUES (?1, ?2, ?3)";
            tx.execute(sql, params![customer, cents, key])?;
            let id = format!("charge-{}", tx.last_insert_rowid());
            Ok(Answer(200, json!({"id": id, "cents": cents})))
        };
        self.once(key, charge).await
    }

    pub(super) async fn refund(&self, key: &str, charged_under: &str) -> rusqlite::Result<Answer> {
        let charged_under = charged_under.to_owned();
        let refund = move |tx: &Transaction<'_>, key: &str| {
            let sql = "INSERT INTO bookings (customer, cents, key, refunds)
                       SELECT customer, -cents, ?1, key FROM bookings WHERE key = ?2 RETURNING cents";
            let paid_back = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            let paid_back = tx.query_row(sql, [key, &charged_under], paid_back).optional()?;
            if paid_back.is_none() {
                // A charge that is still on its way is refused when it arrives.
                remember(tx, &charged_under, &refusal(409, "the charge was withdrawn"))?;
            }
            Ok(Answer(200, json!({"refunded_cents": -paid_back.unwrap_or(0)})))
        };
        self.once(key, refund).await
    }

    /// Does the work, unless there is an answer under the key.
    async fn once(
        &self,
        key: &str,
        work: impl FnOnce(&Transaction<'_>, &str) -> rusqlite::Result<Answer> + Send + 'static,
    ) -> rusqlite::Result<Answer> {
        let (key, keys) = (key.to_owned(), self.keys);
        let answer = self.database.transact(move |tx| {
            let sql = "SELECT status, body FROM answers WHERE key = ?1";
            let known = tx.query_row(sql, [&key], |row| {
                let body: String = row.get(1)?;
                Ok(Answer(row.get(0)?, serde_json::from_str(&body).unwrap_or_default()))
            });
            match known.optional()? {
                Some(answer) if keys == Keys::Recognised => Ok(answer),
                _ => {
                    let answer = work(tx, &key)?;
                    remember(tx, &key, &answer)?;
                    Ok(answer)
                }
            }
        });
        answer.await
    }

    /// What a customer has paid.
    pub async fn account(&self, customer: &str) -> rusqlite::Result<Account> {
        let customer = customer.to_owned();
        let sql = "SELECT COALESCE(SUM(cents), 0), COUNT(*) - COUNT(refunds), COUNT(refunds)
                   FROM bookings WHERE customer = ?1";
        let account = self.database.transact(move |tx| {
            tx.query_row(sql, [customer], |row| {
                Ok(Account {
                    charged_cents: row.get(0)?,
                    charges: row.get(1)?,
                    refunds: row.get(2)?,
                })
            })
        });
        account.await
    }
}

fn remember(tx: &Transaction<'_>, key: &str, answer: &Answer) -> rusqlite::Result<()> {
    let Answer(status, body): &Answer = answer;
    let sql = "INSERT OR REPLACE INTO answers VALUES (?1, ?2, ?3)";
    tx.execute(sql, params![key, status, Value::to_string(body)]).map(|_| ())
}
