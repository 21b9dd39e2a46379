//! What happens to this order if the process dies here, a step runs twice, an undo fails? The
//! exploration tries all of it, on two versions of a workflow: one with two mistakes that are easily
//! made, and one without. It exits with 1 unless it finds both, and nothing in the mended version.
//!
//! ```sh
//! cargo run --release --example explore_fulfilment
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};

use backstitch::testing::{Column, Outcome, Report, explore};
use backstitch::{Class, Ctx, Failure, Origin, Result, workflow};

/// The systems outside: they know what was done under which key, as real ones do.
#[derive(Clone, Default)]
struct Shop(Arc<Mutex<Books>>);

#[derive(Default)]
struct Books {
    /// By key; false once it was released.
    reserved: BTreeMap<String, bool>,
    /// Cents, by idempotency key.
    charges: BTreeMap<String, i64>,
    /// Keys under which something was paid back, each with its cents.
    refunds: Vec<(String, i64)>,
    /// By key; false once it was called back.
    parcels: BTreeMap<String, bool>,
    keys_made: u32,
}

impl Shop {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().expect("nothing panics under this lock")
    }

    /// A key as one gets it from a generator of random ids: another one each time.
    fn fresh_key(&self) -> String {
        let mut books = self.books();
        books.keys_made += 1;
        format!("random-{}", books.keys_made)
    }

    fn charge(&self, key: &str, cents: i64) {
        self.books().charges.entry(key.to_owned()).or_insert(cents);
    }

    /// Pays back what was charged under this key, once for each key of its own. What was not charged
    /// by now is refused from now on: it may still be on its way.
    fn refund(&self, own_key: &str, charged_under: &str) {
        let mut books = self.books();
        let cents = *books.charges.entry(charged_under.to_owned()).or_insert(0);
        if !books.refunds.iter().any(|(key, _)| key == own_key) {
            books.refunds.push((own_key.to_owned(), cents));
        }
    }

    /// What the customer has paid in the end.
    fn paid(&self) -> i64 {
        let books = self.books();
        let back: i64 = books.refunds.iter().map(|(_, cents)| cents).sum();
        books.charges.values().sum::<i64>() - back
    }
}

const CENTS: i64 = 4_900;

#[workflow]
async fn flawed(ctx: Ctx, order: String) -> Result<String> {
    reserve_stock(&ctx).await?;
    ctx.step("charge-card", async move |s| {
        let shop = s.state::<Shop>();
        // Mistake: a key made in the body is another one when the body runs again.
        let key = shop.fresh_key();
        shop.charge(&key, CENTS);
        Ok(key)
    })
    .rollback(async move |u| {
        let Some(key) = u.output().cloned() else { return Ok(()) };
        let shop = u.state::<Shop>();
        // Mistake: nothing tells the bank that this is the same refund as a moment ago.
        let again = shop.fresh_key();
        shop.refund(&again, &key);
        Ok(())
    })
    .await?;
    book_shipment(&ctx, order).await
}

#[workflow]
async fn mended(ctx: Ctx, order: String) -> Result<String> {
    reserve_stock(&ctx).await?;
    ctx.step("charge-card", async move |s| {
        s.state::<Shop>().charge(&s.idempotency_key(), CENTS);
        Ok(())
    })
    .rollback(async move |u| {
        // Also when nobody knows whether the charge went through: the bank knows by the key.
        u.state::<Shop>().refund(&u.idempotency_key(), &u.step().idempotency_key);
        Ok(())
    })
    .await?;
    book_shipment(&ctx, order).await
}

async fn reserve_stock(ctx: &Ctx) -> Result<()> {
    ctx.step("reserve-stock", async move |s| {
        s.state::<Shop>().books().reserved.entry(s.idempotency_key()).or_insert(true);
        Ok(())
    })
    .rollback(async move |u| {
        u.state::<Shop>().books().reserved.insert(u.step().idempotency_key.clone(), false);
        Ok(())
    })
    .await
}

async fn book_shipment(ctx: &Ctx, order: String) -> Result<String> {
    ctx.step("book-shipment", async move |s| {
        if order.is_empty() {
            let what = "there is no address";
            return Err(Failure::new(Class::Permanent, Origin::Body, "NoAddress", what));
        }
        let key = s.idempotency_key();
        s.state::<Shop>().books().parcels.entry(key.clone()).or_insert(true);
        Ok(key)
    })
    .rollback(async move |u| {
        u.state::<Shop>().books().parcels.insert(u.step().idempotency_key.clone(), false);
        Ok(())
    })
    .await
}

/// Either all of it was done, once, or none of it.
fn check(shop: &Shop, outcome: &Outcome) -> std::result::Result<(), String> {
    let (goods, cents) = if outcome.succeeded() { (1, CENTS) } else { (0, 0) };
    let paid = shop.paid();
    if paid != cents {
        return Err(match paid - cents {
            more @ 1.. => format!("charged {more} cents too much"),
            less => format!("refunded {} cents too much", -less),
        });
    }
    let books = shop.books();
    let sent = books.parcels.values().filter(|sent| **sent).count();
    let reserved = books.reserved.values().filter(|reserved| **reserved).count();
    match (reserved, sent) {
        (reserved, _) if reserved != goods => Err(format!("{reserved} reserved, not {goods}")),
        (_, sent) if sent != goods => Err(format!("{sent} parcels sent, not {goods}")),
        _ => Ok(()),
    }
}

fn has(report: &Report, column: Column, says: &str) -> bool {
    let charge = report.findings.iter().filter(|finding| finding.column == Some(column));
    charge.clone().any(|finding| {
        finding.step.as_deref() == Some("charge-card#1") && finding.says.contains(says)
    })
}

fn main() -> std::result::Result<ExitCode, backstitch::Error> {
    let order = || "order 17".to_owned();
    println!("# flawed\n");
    let found = explore(flawed, order()).world(Shop::default).check(check).run()?;
    println!("{found}\n\n# mended\n");
    let clean = explore(mended, order()).world(Shop::default).check(check).pairs().run()?;
    println!("{clean}");
    let both = has(&found, Column::RunTwice, "charged 4900 cents too much")
        && has(&found, Column::UndoTwice, "refunded 4900 cents too much");
    Ok(if both && clean.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
