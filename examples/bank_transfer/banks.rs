//! Two banks: outside systems that share nothing with the workflow engine.
//!
//! They have a database of their own with accounts, an idempotency-key table (`answers`), and a log
//! of what was really applied (`effects`). A booking, its log entry and the answer under its key
//! are one transaction; a repeated key gets the first answer again and books nothing.

mod database;

use std::path::Path;
use std::sync::{Arc, Mutex};

use backstitch::{Class, Failure, Origin};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use self::database::{
    Answer, Order, Said, TABLES, decide, fate_of_the_answer, look_up, opposite_of, order, remember,
    state_of,
};

/// A client of both banks. Cheap to clone.
#[derive(Clone)]
pub struct Banks {
    connection: Arc<Mutex<Connection>>,
    faults: Faults,
}

/// What goes wrong, on purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The process dies when this effect has been applied, before anybody hears of it.
    pub die_after: Option<String>,
    /// Whether the banks do what they promise.
    pub keys: Keys,
}

/// Whether the banks recognise a key that they have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    #[default]
    Recognised,
    Forgotten,
}

/// What is special about an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// Nothing.
    Good,
    /// Takes no money.
    Closed,
    /// The bank books, and then its answer gets lost on the way, the first time.
    AnswerGetsLost,
}

impl Account {
    fn name(self) -> &'static str {
        match self {
            Account::Good => "good",
            Account::Closed => "closed",
            Account::AnswerGetsLost => "answer_gets_lost",
        }
    }
}

/// A booking, by its number in the log of effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booked {
    pub booking: i64,
}

/// Why a bank did not do what it was asked for.
#[derive(Debug)]
pub enum BankError {
    /// It said no, and will say no again.
    Refused { why: String, message: String },
    /// It said nothing. It may have booked.
    NoAnswer { bank: String },
    /// Its database is in trouble.
    Broken(rusqlite::Error),
}

/// What was said no to is not asked again; everything else is.
impl From<BankError> for Failure {
    fn from(error: BankError) -> Failure {
        match error {
            BankError::Refused { why, message } => {
                Failure::new(Class::Permanent, Origin::Body, why, message)
            }
            BankError::NoAnswer { bank } => {
                let message = format!("the connection broke before bank {bank} answered");
                Failure::new(Class::Transient, Origin::Body, "NoAnswer", message)
            }
            BankError::Broken(error) => error.into(),
        }
    }
}

impl From<rusqlite::Error> for BankError {
    fn from(error: rusqlite::Error) -> BankError {
        BankError::Broken(error)
    }
}

impl Banks {
    pub fn open(path: &Path, faults: Faults) -> rusqlite::Result<Banks> {
        let connection = Connection::open(path)?;
        connection.execute_batch(TABLES)?;
        Ok(Banks { connection: Arc::new(Mutex::new(connection)), faults })
    }

    /// Opens an account, unless it is open.
    pub fn open_account(
        &self,
        bank: &str,
        account: &str,
        state: Account,
        cents: i64,
    ) -> rusqlite::Result<()> {
        let connection = self.connection.lock().expect("no code panics under this lock");
        connection.execute(
            "INSERT INTO accounts VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO NOTHING",
            params![bank, account, state.name(), cents],
        )?;
        Ok(())
    }

    /// Takes `cents` from an account at bank A.
    pub async fn debit_a(&self, key: &str, account: &str, cents: i64) -> Result<Booked, BankError> {
        self.book(key, order("debit-a", "a", account, -cents)).await
    }

    /// Puts `cents` into an account at bank B.
    pub async fn credit_b(
        &self,
        key: &str,
        account: &str,
        cents: i64,
    ) -> Result<Booked, BankError> {
        self.book(key, order("credit-b", "b", account, cents)).await
    }

    /// Books the opposite of what was booked.
    pub async fn reverse(&self, key: &str, booked: Booked) -> Result<Booked, BankError> {
        let order = self.transact(key, move |transaction, _| opposite_of(transaction, booked));
        self.book(key, order.await?).await
    }

    /// What was booked under `key`, if anything was. If nothing was, nothing ever will be: a
    /// request that is still on its way is refused when it arrives.
    pub async fn settle(&self, key: &str) -> Result<Option<Booked>, BankError> {
        let said = self.transact(key, |transaction, key| match look_up(transaction, key)? {
            Some(said) => Ok(said),
            None => {
                let message = "the request was withdrawn before it arrived".to_owned();
                let said = Said::Refused { why: "Withdrawn".into(), message };
                remember(transaction, key, &said)?;
                Ok(said)
            }
        });
        match said.await? {
            Said::Booked(booked) => Ok(Some(booked)),
            Said::Refused { .. } => Ok(None),
        }
    }

    async fn book(&self, key: &str, order: Order) -> Result<Booked, BankError> {
        let keys = self.faults.keys;
        let (effect, bank) = (order.effect.clone(), order.bank.to_uppercase());
        let account = order.account.clone();
        let decided = self.transact(key, move |transaction, key| {
            if let Some(said) = look_up(transaction, key)?
                && keys == Keys::Recognised
            {
                return Ok((said, Answer::Arrives));
            }
            let state = state_of(transaction, &order)?;
            let said = decide(transaction, key, order, &state)?;
            remember(transaction, key, &said)?;
            Ok((said, fate_of_the_answer(transaction, &account, &state)?))
        });
        match decided.await? {
            (Said::Booked(_), _) if self.faults.die_after == Some(effect) => std::process::abort(),
            (_, Answer::GetsLost) => Err(BankError::NoAnswer { bank }),
            (Said::Booked(booked), Answer::Arrives) => Ok(booked),
            (Said::Refused { why, message }, Answer::Arrives) => {
                Err(BankError::Refused { why, message })
            }
        }
    }

    /// Runs one transaction, away from the threads of the async runtime.
    async fn transact<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce(&Transaction<'_>, &str) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BankError> {
        let (banks, key) = (self.clone(), key.to_owned());
        let done = tokio::task::spawn_blocking(move || {
            let mut connection = banks.connection.lock().expect("no code panics under this lock");
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let answer = work(&transaction, &key)?;
            transaction.commit()?;
            Ok(answer)
        });
        done.await.expect("no code panics here")
    }
}
