//! The workflow: three steps, each with its own undo.

use backstitch::{Ctx, Result, Retry, Undo, UndoOn, clone, workflow};
use serde::{Deserialize, Serialize};

use crate::books::Books;
use crate::payments::{Charge, Payments};
use crate::warehouse::Warehouse;

/// What a customer has ordered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub customer: String,
    pub item: String,
    pub cents: i64,
    pub town: String,
}

/// What the customer gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub charge: String,
    pub parcel: String,
}

/// The search attribute by which support finds the orders of a customer.
pub const CUSTOMER: &str = "CustomerId";

// `backstitch dev` has another workflow that is called `fulfil`.
#[workflow(name = "fulfilment")]
pub async fn fulfil(ctx: Ctx, order: Order) -> Result<Receipt> {
    ctx.set_attribute(CUSTOMER, &order.customer)?;

    ctx.step(
        "reserve-stock",
        clone!(order => async move |s| {
            s.state::<Warehouse>().reserve(&s.idempotency_key(), &order.item).await
        }),
    )
    .rollback(async move |u| u.state::<Warehouse>().release(&u.step().idempotency_key).await)
    .await?;

    let charge = ctx
        .step(
            "charge-card",
            clone!(order => async move |s| {
                let key = s.idempotency_key();
                let charge = s.state::<Payments>().charge(&key, &order).await?;
                // The key is the primary key there too: this line may run again after a crash.
                s.state::<Books>().enter(&key, s.execution_id(), &charge).await?;
                Ok(charge)
            }),
        )
        .rollback(refund)
        // A card that was refused for certain has nothing to refund.
        .undo_on(UndoOn::Succeeded)
        .retry(Retry::exponential("100ms").max_attempts(5))
        .await?;

    let parcel = ctx
        .step("book-shipment", async move |s| {
            s.state::<Warehouse>().ship(&s.idempotency_key(), &order.item, &order.town).await
        })
        .rollback(async move |u| u.state::<Warehouse>().recall(&u.step().idempotency_key).await)
        .await?;

    Ok(Receipt { charge: charge.id, parcel })
}

/// Pays back whatever was charged under the key of the step, known to us or not. The refund has a
/// key of its own, so that it too is paid once, however often this handler runs.
async fn refund(u: Undo<Charge>) -> Result<()> {
    let charged_under = &u.step().idempotency_key;
    u.state::<Payments>().refund(&u.idempotency_key(), charged_under).await?;
    u.state::<Books>().refunded(charged_under).await
}
