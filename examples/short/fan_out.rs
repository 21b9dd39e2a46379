//! A thousand items are worked on in parallel, at most fifty at a time. Each step is named after
//! its item, so that replay gives every outcome to the right one, in whatever order they end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch::{Backstitch, Ctx, Error, Result, Reuse, StepCtx, workflow};
use futures_util::{StreamExt, TryStreamExt, stream};

const ITEMS: u32 = 1_000;
const AT_A_TIME: usize = 50;

/// How many bodies run, and how many ran at once at most.
#[derive(Clone, Default)]
struct InFlight(Arc<(AtomicUsize, AtomicUsize)>);

#[workflow]
async fn label_all(ctx: Ctx, items: Vec<u32>) -> Result<BTreeMap<u32, String>> {
    // `into_iter`: steps made from borrowed items do not compile in here.
    let steps = items.into_iter().map(|item| {
        let label = ctx.step(&format!("label-{item}"), async move |s: StepCtx| {
            let (now, most) = &*s.state::<InFlight>().0;
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(u64::from(item % 7))).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(format!("label of item {item}"))
        });
        async move { Ok::<_, backstitch::Failure>((item, label.await?)) }
    });
    // The iterator is asked for the next step when one has ended.
    stream::iter(steps).buffer_unordered(AT_A_TIME).try_collect().await
}

#[tokio::main]
async fn main() -> std::result::Result<(), Error> {
    let in_flight = InFlight::default();
    let app = Backstitch::open(examples::store().url())
        .state(in_flight.clone())
        .register(label_all)
        .run()
        .await?;
    let handle = app.start(label_all, "labels", (1..=ITEMS).collect()).reuse(Reuse::Allow).await?;
    let labels = handle.result().await?;
    let most = in_flight.0.1.load(Ordering::SeqCst);
    let right = labels.iter().filter(|(item, label)| label.ends_with(&format!(" {item}"))).count();
    println!("{right} of {ITEMS} items have their own label");
    let bounded = (2..=AT_A_TIME).contains(&most);
    println!("in parallel, and never more than {AT_A_TIME} at a time: {bounded}");
    app.shutdown().await
}
