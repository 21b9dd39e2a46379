//! A workflow with three steps, and the systems that they talk to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::{Class, Ctx, Failure, Result, workflow};

/// What was done to the outside, in order.
#[derive(Clone, Default)]
pub struct Shop(Arc<Mutex<Vec<String>>>);

impl Shop {
    pub fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn notes(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.notes().iter().filter(|note| *note == what).count()
    }

    /// How often it was done, less how often it was undone.
    pub fn standing(&self, what: &str) -> i64 {
        self.count(what) as i64 - self.count(&format!("un{what}")) as i64
    }
}

/// Reserves, charges, waits a month, ships.
#[workflow]
pub async fn order(ctx: Ctx, price: u32) -> Result<String> {
    ctx.step("reserve", async move |s| {
        s.state::<Shop>().note("reserve");
        Ok(())
    })
    .rollback(async move |u| {
        u.state::<Shop>().note("unreserve");
        Ok(())
    })
    .await?;
    ctx.step("charge", async move |s| {
        if price > 1_000 {
            return Err(Failure::new(
                Class::Permanent,
                backstitch::Origin::Body,
                "CardDeclined",
                "too much",
            ));
        }
        s.state::<Shop>().note("charge");
        Ok(price)
    })
    .rollback(async move |u| {
        u.state::<Shop>().note("uncharge");
        Ok(())
    })
    .await?;
    ctx.sleep(Duration::from_secs(30 * 86_400)).await?;
    ctx.step("ship", async move |s| {
        s.state::<Shop>().note("ship");
        Ok("parcel".to_owned())
    })
    .await
}
