//! A bank transfer: two bookings, each with its own undo.

use backstitch::{Ctx, FailureExt, Result, Retry, Undo, clone, msg, workflow};
use serde::{Deserialize, Serialize};

use super::world::World;

/// Money from one account to another one.
///
/// `closed` takes no money, and `busy` answers at the third time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfer {
    from: String,
    to: String,
    cents: u64,
}

/// The numbers of the bookings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    debit: u32,
    credit: u32,
}

#[workflow]
pub async fn transfer(ctx: Ctx, t: Transfer) -> Result<Receipt> {
    let retry = Retry::constant("200ms").max_attempts(5);
    let debit = ctx
        .step(
            "debit",
            clone!(t => async move |s| book(s.state::<World>(), &s.idempotency_key(), &t.from)),
        )
        .rollback(take_back)
        .retry(retry.clone())
        .await?;
    let credit = ctx
        .step("credit", async move |s| book(s.state::<World>(), &s.idempotency_key(), &t.to))
        .rollback(take_back)
        .retry(retry)
        .await?;
    Ok(Receipt { debit, credit })
}

fn book(world: &World, key: &str, account: &str) -> Result<u32> {
    match account {
        "closed" => {
            Err(msg(format!("account {account} is closed")).permanent().with_code("account_closed"))
        }
        "busy" if world.asked(key) < 3 => Err(msg("the bank is busy")),
        _ => world.once(key),
    }
}

async fn take_back(u: Undo<u32>) -> Result<()> {
    u.state::<World>().take_back(&u.step().idempotency_key);
    Ok(())
}
