//! What came out of a transfer, as the banks have it, and whether that is right.

use rusqlite::Connection;
use serde::Serialize;

use crate::scenario::{A_OPENED_WITH_CENTS, B_OPENED_WITH_CENTS, Scenario};

/// One transfer. Its fields, in this order, are what `--json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub id: String,
    pub status: String,
    pub rollback: &'static str,
    pub balances: Balances,
    pub effects: Effects,
    pub crashes: u32,
}

/// In cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Balances {
    pub a: i64,
    pub b: i64,
}

/// How often each effect was really applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Effects {
    pub debit_a: u32,
    pub credit_b: u32,
    pub undo_debit_a: u32,
    pub undo_credit_b: u32,
}

impl Effects {
    /// Each with its name.
    pub fn named(&self) -> [(&'static str, u32); 4] {
        [
            ("debit-a", self.debit_a),
            ("credit-b", self.credit_b),
            ("undo-debit-a", self.undo_debit_a),
            ("undo-credit-b", self.undo_credit_b),
        ]
    }
}

/// What the banks' own database says of one pair of accounts.
pub struct Books {
    pub balances: Balances,
    pub effects: Effects,
    /// The sum of everything that was booked, per account.
    booked: Balances,
}

impl Books {
    /// Reads them from the file, past the client that the workflow uses.
    pub fn read(banks: &Connection, account: &str) -> rusqlite::Result<Books> {
        let cents = |sql: &str, bank: &str| -> rusqlite::Result<i64> {
            banks.query_row(sql, [bank, account], |row| row.get(0))
        };
        let balance = "SELECT balance FROM accounts WHERE bank = ?1 AND account = ?2";
        let booked = "SELECT COALESCE(SUM(cents), 0) FROM effects WHERE bank = ?1 AND account = ?2";
        let count = |effect: &str| -> rusqlite::Result<u32> {
            let sql = "SELECT COUNT(*) FROM effects WHERE effect = ?1 AND account = ?2";
            banks.query_row(sql, [effect, account], |row| row.get(0))
        };
        Ok(Books {
            balances: Balances { a: cents(balance, "a")?, b: cents(balance, "b")? },
            booked: Balances { a: cents(booked, "a")?, b: cents(booked, "b")? },
            effects: Effects {
                debit_a: count("debit-a")?,
                credit_b: count("credit-b")?,
                undo_debit_a: count("undo-debit-a")?,
                undo_credit_b: count("undo-credit-b")?,
            },
        })
    }
}

/// What is wrong with the outcome of a transfer; empty if nothing is.
pub fn complaints(scenario: &Scenario, report: &Report, books: &Books) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, is: String, wanted: String| {
        if is != wanted {
            wrong.push(format!("{}: {what}: {is}, not {wanted}", scenario.id));
        }
    };
    let expected = &scenario.expected;
    let Balances { a, b } = report.balances;
    let opened = A_OPENED_WITH_CENTS + B_OPENED_WITH_CENTS;
    check("the status", report.status.clone(), expected.status.into());
    check("the rollback", report.rollback.into(), expected.rollback.into());
    check("money at both banks together", money(a + b), money(opened));
    check("the balance at bank A", money(a), money(expected.a_cents));
    check("the balance at bank B", money(b), money(expected.b_cents));
    check("bank A by its effects", money(A_OPENED_WITH_CENTS + books.booked.a), money(a));
    check("bank B by its effects", money(B_OPENED_WITH_CENTS + books.booked.b), money(b));
    for ((effect, is), (_, wanted)) in
        report.effects.named().into_iter().zip(expected.effects.named())
    {
        check(&format!("effects {effect}"), format!("{is}"), format!("{wanted}"));
    }
    if report.crashes < expected.crashes_min {
        let id = scenario.id;
        wrong.push(format!(
            "{id}: its process was to die in the middle of the rollback, and did not"
        ));
    }
    wrong
}

/// `100.00`
pub fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}
