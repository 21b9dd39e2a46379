//! The workflow: two steps, each with its own undo.

use backstitch::{Ctx, Result, Retry, Undo, clone, workflow};
use serde::{Deserialize, Serialize};

use crate::banks::{Banks, Booked};

/// Money from an account at bank A to the account of the same number at bank B.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfer {
    pub account: String,
    pub cents: i64,
}

/// The numbers of the bookings that made the transfer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    pub debit: i64,
    pub credit: i64,
}

// `backstitch dev` has another workflow that is called `transfer`.
#[workflow(name = "bank_transfer")]
pub async fn transfer(ctx: Ctx, t: Transfer) -> Result<Receipt> {
    let retry = Retry::constant("50ms").max_attempts(8);
    let debit = ctx
        .step(
            "debit-a",
            clone!(t => async move |s| {
                let banks = s.state::<Banks>();
                Ok(banks.debit_a(&s.idempotency_key(), &t.account, t.cents).await?)
            }),
        )
        .rollback(take_back)
        .retry(retry.clone())
        .await?;
    let credit = ctx
        .step("credit-b", async move |s| {
            let banks = s.state::<Banks>();
            Ok(banks.credit_b(&s.idempotency_key(), &t.account, t.cents).await?)
        })
        .rollback(take_back)
        .retry(retry)
        .await?;
    Ok(Receipt { debit: debit.booking, credit: credit.booking })
}

/// The undo of both steps.
///
/// It does not trust what this side remembers: the process may have died between the booking and
/// its record. The bank knows, by the key of the step, what it really did, and settles that nothing
/// can be booked under that key any more. The reversal has a key of its own, so that it too is
/// booked once, however often this handler runs.
async fn take_back(u: Undo<Booked>) -> Result<()> {
    let banks = u.state::<Banks>();
    if let Some(booked) = banks.settle(&u.step().idempotency_key).await? {
        banks.reverse(&u.idempotency_key(), booked).await?;
    }
    Ok(())
}
