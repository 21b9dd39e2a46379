//! The three transfers: what is special about each, and what has to come out.

use crate::banks::{Account, Banks};
use crate::report::Effects;

/// What each account at bank A has at first.
pub const A_OPENED_WITH_CENTS: i64 = 10_000;
/// What each account at bank B has at first.
pub const B_OPENED_WITH_CENTS: i64 = 2_000;
/// What is transferred.
pub const TRANSFER_CENTS: i64 = 3_000;

/// One transfer, between accounts of its own.
pub struct Scenario {
    /// The id of the execution, and the number of its accounts.
    pub id: &'static str,
    pub heading: &'static str,
    /// What a person should look for in its journal.
    pub explanation: &'static str,
    /// What is special about the account at bank B.
    account_b: Account,
    pub expected: Expected,
}

/// What has to come out, whatever crashes.
pub struct Expected {
    pub status: &'static str,
    pub rollback: &'static str,
    pub a_cents: i64,
    pub b_cents: i64,
    pub effects: Effects,
    /// Crashes that a run without flags has to see.
    pub crashes_min: u32,
}

const DONE: Expected = Expected {
    status: "succeeded",
    rollback: "none",
    a_cents: A_OPENED_WITH_CENTS - TRANSFER_CENTS,
    b_cents: B_OPENED_WITH_CENTS + TRANSFER_CENTS,
    effects: Effects { debit_a: 1, credit_b: 1, undo_debit_a: 0, undo_credit_b: 0 },
    crashes_min: 0,
};

const UNDONE: Expected = Expected {
    status: "failed",
    rollback: "complete",
    a_cents: A_OPENED_WITH_CENTS,
    b_cents: B_OPENED_WITH_CENTS,
    effects: Effects { debit_a: 1, credit_b: 0, undo_debit_a: 1, undo_credit_b: 0 },
    crashes_min: 0,
};

pub const SUCCESS: Scenario = Scenario {
    id: "t-success",
    heading: "It works, although an answer gets lost",
    explanation: "Bank B books the credit, but the connection breaks before it can say so. Nobody \
                  knows, so the step is tried again under the same idempotency key; bank B \
                  recognises the key, gives its first answer again and books nothing twice.",
    account_b: Account::AnswerGetsLost,
    expected: DONE,
};

pub const REFUSED: Scenario = Scenario {
    id: "t-refused",
    heading: "Bank B says no, and the money goes back",
    explanation: "The account at bank B is closed, and no retry will change that. So the transfer \
                  turns around: the undo of the credit asks bank B and finds nothing to take back, \
                  then the undo of the debit returns the money at bank A.",
    account_b: Account::Closed,
    expected: UNDONE,
};

pub const KILLED: Scenario = Scenario {
    id: "t-killed",
    heading: "The same, and the process dies half way back",
    explanation: "This one runs in a process of its own, which really dies (abort) at the worst \
                  moment: bank A has returned the money, but the journal does not know it yet. \
                  Another process comes, finds the plan in the journal and goes on with it, under \
                  the same key, so that bank A returns the money once.",
    account_b: Account::Closed,
    expected: Expected { crashes_min: 1, ..UNDONE },
};

impl Scenario {
    /// Opens its accounts, unless they are open.
    pub fn open_accounts(&self, banks: &Banks) -> rusqlite::Result<()> {
        banks.open_account("a", self.id, Account::Good, A_OPENED_WITH_CENTS)?;
        banks.open_account("b", self.id, self.account_b, B_OPENED_WITH_CENTS)
    }
}
