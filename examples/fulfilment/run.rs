//! Running the scenarios.

use std::error::Error;

use backstitch::{App, Backstitch, ErrorKind, Handle, Reuse, Row, Status};

use crate::args::Args;
use crate::books::Books;
use crate::files::Files;
use crate::payments::Payments;
use crate::provider::{API_KEY, Mood, Provider};
use crate::report::{Outside, Report, attempts, complaints};
use crate::scenario::{Operator, PATIENCE, SCENARIOS, Scenario};
use crate::show::Screen;
use crate::warehouse::{STOCK_AT_FIRST, Warehouse};
use crate::workflow::{CUSTOMER, Receipt, fulfil};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// An order that is over.
pub struct Finished {
    pub report: Report,
    pub journal: Vec<Row>,
    complaints: Vec<String>,
}

/// Runs the scenarios one after the other, and says what is wrong with what came out.
pub async fn run(
    args: &Args,
    files: &Files,
    scenarios: &[&'static Scenario],
) -> Outcome<Vec<String>> {
    let screen = Screen::of(args.output);
    screen.print(&screen.welcome())?;
    let provider = Provider::start(&files.path("provider.db"), args.keys).await?;
    let books = Books::open(&files.path("books.db"))?;
    let warehouse = Warehouse::open(&files.path("warehouse.db"))?;
    let payments = Payments::new(provider.address, API_KEY, PATIENCE);
    let in_a_file = || format!("sqlite:{}", files.path("orders.db").display());
    let app = Backstitch::open(args.server.clone().unwrap_or_else(in_a_file))
        .state(books.clone())
        .state(warehouse.clone())
        .state(payments.clone())
        .register(fulfil)
        .run()
        .await?;
    let name = files.name()?;
    let shop = Shop { app, screen, provider, payments, warehouse, books, name };
    if args.dir.is_some() {
        shop.settle_what_is_left().await?;
    }
    let mut finished = Vec::new();
    for scenario in scenarios {
        finished.push(shop.play(scenario).await?);
    }
    let wrong: Vec<String> = finished.iter().flat_map(|f| f.complaints.clone()).collect();
    shop.screen.print(&shop.screen.conclusion(&finished, &wrong))?;
    shop.app.shutdown().await?;
    Ok(wrong)
}

struct Shop {
    app: App,
    screen: Screen,
    provider: Provider,
    payments: Payments,
    warehouse: Warehouse,
    books: Books,
    /// A server may have seen orders with the same ids, of another shop.
    name: String,
}

/// Over, or in need of a person.
fn is_at_rest(status: Status) -> bool {
    status.is_closed() || matches!(status, Status::Blocked | Status::Stuck)
}

impl Shop {
    /// With --dir: what an earlier process left goes on by itself. It is not to meet the mood of
    /// another scenario.
    async fn settle_what_is_left(&self) -> Outcome<()> {
        for scenario in &SCENARIOS {
            match self.app.handle(scenario.id).await {
                Ok(order) => self.until(&order, is_at_rest).await?,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(())
    }

    async fn play(&self, scenario: &'static Scenario) -> Outcome<Finished> {
        self.screen.print(&self.screen.heading(scenario))?;
        let trouble = &scenario.trouble;
        self.provider.set_mood(trouble.mood);
        self.payments.set(trouble.api_key, trouble.patience);

        let start = self.app.start(fulfil, scenario.id, scenario.order());
        let start = start.by("the shop").reuse(Reuse::Allow).request_id(&self.name);
        let handle = start.await?;
        let status = self.until(&handle, is_at_rest).await?;
        // With --dir the order may be over since an earlier run.
        let seen = match (trouble.operator, status) {
            (Operator::RepairsTheKey, Status::Blocked) => self.repair_the_key(&handle).await?,
            (Operator::HasRefundsSwitchedOn, Status::Stuck) => {
                self.refund_late(scenario, &handle).await?
            }
            (Operator::UndoesWhatSucceeded, Status::Succeeded) => self.undo(scenario).await?,
            (_, status) if status.is_closed() => Vec::new(),
            (_, status) => return Err(format!("{} is {status}, for no reason", scenario.id).into()),
        };
        self.screen.print(&self.screen.seen(&seen))?;
        let finished = self.finish(scenario, &handle).await?;
        self.screen.print_order(&finished, scenario)?;
        Ok(finished)
    }

    /// Waits until the order has such a status. Each row that is committed is a reason to look.
    async fn until(
        &self,
        handle: &Handle<Receipt>,
        reached: impl Fn(Status) -> bool,
    ) -> Outcome<Status> {
        let mut feed = self.app.feed();
        loop {
            let status = handle.status().await?.status;
            if reached(status) {
                return Ok(status);
            }
            feed.next().await.ok_or("Backstitch was stopped")?;
        }
    }

    async fn repair_the_key(&self, handle: &Handle<Receipt>) -> Outcome<Vec<String>> {
        let mut seen = vec![format!("{} is {}", handle.id(), handle.status().await?.status)];
        seen.extend(self.open_matters(handle).await?);
        self.payments.set_api_key(API_KEY);
        handle.retry_step("charge-card").by("Ada").reason("the key is repaired").await?;
        seen.push("Ada repairs the key in the running shop, and has the step tried again".into());
        Ok(seen)
    }

    async fn refund_late(
        &self,
        scenario: &Scenario,
        handle: &Handle<Receipt>,
    ) -> Outcome<Vec<String>> {
        let told = handle.result().await.err().ok_or("it is stuck and has a result")?;
        let mut seen = vec![format!("whoever waits is told: {told}")];
        seen.extend(self.open_matters(handle).await?);
        let (stock, _) = self.warehouse.count(scenario.item).await?;
        seen.push(format!("stock on the shelf: {stock} of {STOCK_AT_FIRST}"));
        self.provider.set_mood(Mood::Good);
        handle.retry_undo("charge-card").by("Ada").reason("refunds are on again").await?;
        seen.push("Ada has refunds switched on, and has the undo tried again".into());
        Ok(seen)
    }

    /// Support knows no more than who calls.
    async fn undo(&self, scenario: &Scenario) -> Outcome<Vec<String>> {
        let customer = scenario.customer();
        let orders = self.app.find(CUSTOMER, &customer, 10).await?;
        let order = orders.first().ok_or("the customer has no order")?;
        let mut seen = vec![format!("customer {customer} has {}, {}", order.id, order.status)];
        let handle: Handle<Receipt> = self.app.handle(&order.id).await?;
        handle.rollback().by("Grace").reason("it arrived broken").await?;
        // It is still closed with its success until the request is read.
        self.until(&handle, |status| status == Status::Cancelled).await?;
        let told = handle.result().await.err().ok_or("it is undone and has a result")?;
        seen.push(format!("its result is now: {told}"));
        let Receipt { charge, parcel } = handle.output().await?.ok_or("its output is gone")?;
        seen.push(format!("what it had returned stays readable: {charge}, {parcel}"));
        Ok(seen)
    }

    async fn open_matters(&self, handle: &Handle<Receipt>) -> Outcome<Vec<String>> {
        let open = self.app.attention(100).await?;
        let of_it = open.into_iter().filter(|matter| matter.id == handle.id());
        Ok(of_it.map(|it| format!("open matter {}: {}", it.kind, it.message)).collect())
    }

    async fn finish(
        &self,
        scenario: &'static Scenario,
        handle: &Handle<Receipt>,
    ) -> Outcome<Finished> {
        handle.closed().await?;
        let status = handle.status().await?;
        let (stock, shipments) = self.warehouse.count(scenario.item).await?;
        let account = self.provider.ledger.account(&scenario.customer()).await?;
        let booked_cents = self.books.cents_of(scenario.id).await?;
        let outside = Outside { stock, shipments, account, booked_cents };
        let complaints = complaints(scenario, &status, &outside);
        let report = Report {
            scenario: scenario.name,
            id: scenario.id,
            status: status.status.name(),
            rollback: status.rollback.outcome.name(),
            stock,
            charged_cents: account.charged_cents,
            charges: account.charges,
            refunds: account.refunds,
            shipments,
            attempts: attempts(&status),
            agrees: complaints.is_empty(),
        };
        Ok(Finished { report, journal: handle.journal().await?, complaints })
    }
}
