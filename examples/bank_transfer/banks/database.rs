//! The banks' side: what one transaction does.

use rusqlite::{OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use super::{Account, Booked};

/// What a bank has said under a key. It says the same for ever.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Said {
    Booked(Booked),
    Refused { why: String, message: String },
}

/// Money that is to move into an account, or out of it.
pub(super) struct Order {
    pub effect: String,
    pub bank: String,
    pub account: String,
    pub cents: i64,
}

/// Run at each opening.
pub(super) const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS accounts (
        bank TEXT, account TEXT, state TEXT NOT NULL,
        opened_with INTEGER NOT NULL, balance INTEGER NOT NULL,
        PRIMARY KEY (bank, account)
    );
    CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, said TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS effects (
        no INTEGER PRIMARY KEY, key TEXT NOT NULL, effect TEXT NOT NULL,
        bank TEXT NOT NULL, account TEXT NOT NULL, cents INTEGER NOT NULL
    );
";

/// What becomes of a bank's answer.
pub(super) enum Answer {
    Arrives,
    GetsLost,
}

pub(super) fn order(effect: &str, bank: &str, account: &str, cents: i64) -> Order {
    Order { effect: effect.into(), bank: bank.into(), account: account.into(), cents }
}

pub(super) fn opposite_of(
    transaction: &Transaction<'_>,
    booked: Booked,
) -> rusqlite::Result<Order> {
    let sql = "SELECT effect, bank, account, cents FROM effects WHERE no = ?1";
    transaction.query_row(sql, [booked.booking], |row| {
        let (effect, cents): (String, i64) = (row.get(0)?, row.get(3)?);
        let effect = format!("undo-{effect}");
        Ok(Order { effect, bank: row.get(1)?, account: row.get(2)?, cents: -cents })
    })
}

pub(super) fn look_up(transaction: &Transaction<'_>, key: &str) -> rusqlite::Result<Option<Said>> {
    let sql = "SELECT said FROM answers WHERE key = ?1";
    let said: Option<String> = transaction.query_row(sql, [key], |row| row.get(0)).optional()?;
    Ok(said.map(|said| serde_json::from_str(&said).expect("a bank reads what it wrote")))
}

pub(super) fn remember(
    transaction: &Transaction<'_>,
    key: &str,
    said: &Said,
) -> rusqlite::Result<()> {
    let said = serde_json::to_string(said).expect("it is plain data");
    let sql = "INSERT OR REPLACE INTO answers VALUES (?1, ?2)";
    transaction.execute(sql, [key, &said]).map(|_| ())
}

pub(super) fn state_of(transaction: &Transaction<'_>, order: &Order) -> rusqlite::Result<String> {
    let sql = "SELECT state FROM accounts WHERE bank = ?1 AND account = ?2";
    transaction.query_row(sql, [&order.bank, &order.account], |row| row.get(0))
}

/// The first answer about an account may get lost; the next ones arrive.
pub(super) fn fate_of_the_answer(
    transaction: &Transaction<'_>,
    account: &str,
    state: &str,
) -> rusqlite::Result<Answer> {
    if state != Account::AnswerGetsLost.name() {
        return Ok(Answer::Arrives);
    }
    let sql = "UPDATE accounts SET state = ?1 WHERE account = ?2 AND state = ?3";
    transaction.execute(sql, [Account::Good.name(), account, state])?;
    Ok(Answer::GetsLost)
}

/// Books the order, or says why not.
pub(super) fn decide(
    transaction: &Transaction<'_>,
    key: &str,
    order: Order,
    state: &str,
) -> rusqlite::Result<Said> {
    if state == Account::Closed.name() {
        let bank = order.bank.to_uppercase();
        let message = format!("account {} at bank {bank} is closed", order.account);
        return Ok(Said::Refused { why: "AccountClosed".into(), message });
    }
    transaction.execute(
        "UPDATE accounts SET balance = balance + ?3 WHERE bank = ?1 AND account = ?2",
        params![order.bank, order.account, order.cents],
    )?;
    transaction.execute(
        "INSERT INTO effects (key, effect, bank, account, cents) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![key, order.effect, order.bank, order.account, order.cents],
    )?;
    Ok(Said::Booked(Booked { booking: transaction.last_insert_rowid() }))
}
