//! An order: stock, card and parcel, each with its own undo.

use backstitch::{Ctx, FailureExt, Result, Retry, clone, msg, workflow};
use serde::{Deserialize, Serialize};

use super::world::World;

/// What a customer has ordered.
///
/// The card `declined` is declined, `no-refund` takes no money back; no carrier goes to `Nowhere`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    customer: String,
    item: String,
    cents: u64,
    card: String,
    town: String,
}

/// What the customer gets.
#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    charge: u32,
    parcel: u32,
}

#[workflow]
pub async fn fulfil(ctx: Ctx, order: Order) -> Result<Receipt> {
    ctx.set_attribute("CustomerId", &order.customer)?;

    ctx.step("reserve-stock", async move |s| s.state::<World>().once(&s.idempotency_key()))
        .rollback(async move |u| {
            u.state::<World>().take_back(&u.step().idempotency_key);
            Ok(())
        })
        .await?;

    let charge = ctx
        .step(
            "charge-card",
            clone!(order => async move |s| match order.card.as_str() {
                "declined" => Err(msg("the card was declined").permanent().with_code("declined")),
                _ => s.state::<World>().once(&s.idempotency_key()),
            }),
        )
        .rollback(clone!(order => async move |u| match order.card.as_str() {
            "no-refund" => Err(msg("the bank refuses the refund").permanent()),
            _ => {
                u.state::<World>().take_back(&u.step().idempotency_key);
                Ok(())
            }
        }))
        .retry(Retry::exponential("100ms").max_attempts(5))
        .await?;

    let parcel = ctx
        .step("book-shipment", async move |s| match order.town.as_str() {
            "Nowhere" => Err(msg("no carrier goes to Nowhere").permanent().with_code("no_carrier")),
            _ => s.state::<World>().once(&s.idempotency_key()),
        })
        .rollback(async move |u| {
            u.state::<World>().take_back(&u.step().idempotency_key);
            Ok(())
        })
        .await?;

    Ok(Receipt { charge, parcel })
}
