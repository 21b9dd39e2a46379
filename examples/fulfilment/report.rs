//! What came out of an order, as the world outside has it, and whether that agrees.

use backstitch::ExecutionStatus;
use serde::{Serialize, Serializer};

use crate::provider::Account;
use crate::scenario::{CENTS, Scenario};
use crate::warehouse::STOCK_AT_FIRST;

/// One order. Its fields, in this order, are what `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub scenario: &'static str,
    pub id: &'static str,
    pub status: &'static str,
    pub rollback: &'static str,
    pub stock: i64,
    pub charged_cents: i64,
    pub charges: u32,
    pub refunds: u32,
    pub shipments: i64,
    #[serde(serialize_with = "as_map")]
    pub attempts: Vec<(String, u32)>,
    pub agrees: bool,
}

/// What the world outside has of an order.
pub struct Outside {
    pub stock: i64,
    pub shipments: i64,
    /// By the provider's ledger.
    pub account: Account,
    /// By the shop's own table of charges.
    pub booked_cents: i64,
}

/// How often each step was tried, in their order, then each undo.
pub fn attempts(status: &ExecutionStatus) -> Vec<(String, u32)> {
    let forward = status.run.steps().map(|(_, step)| (step.key.name.clone(), step.attempts));
    let undo = |name: &str| format!("undo-{name}");
    let back = status.run.steps().rev();
    let back = back.map(|(_, step)| (undo(&step.key.name), step.undo.attempts));
    forward.chain(back.filter(|(_, attempts)| *attempts > 0)).collect()
}

/// What does not agree, with each other or with what had to come out; empty if all does.
pub fn complaints(scenario: &Scenario, status: &ExecutionStatus, outside: &Outside) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, is: String, wanted: String| {
        if is != wanted {
            wrong.push(format!("{}: {what}: {is}, not {wanted}", scenario.name));
        }
    };
    let (expected, account) = (&scenario.expected, outside.account);
    let shipments = expected.shipments;
    check("the status", status.status.to_string(), expected.status.into());
    check("the rollback", status.rollback.outcome.name().into(), expected.rollback.into());
    check("shipments", outside.shipments.to_string(), shipments.to_string());
    let stock = STOCK_AT_FIRST - shipments;
    check("stock on the shelf", outside.stock.to_string(), stock.to_string());
    let paid = money(shipments * CENTS);
    check("paid, by the provider's ledger", money(account.charged_cents), paid.clone());
    check("paid, by the shop's own books", money(outside.booked_cents), paid);
    let kept = i64::from(account.charges) - i64::from(account.refunds);
    check("charges that were not paid back", kept.to_string(), shipments.to_string());
    wrong
}

/// `49.00`
pub fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

fn as_map<S: Serializer>(attempts: &[(String, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(attempts.iter().map(|(name, times)| (name, times)))
}
