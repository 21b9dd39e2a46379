//! Journals that do not fit into one message: a lease has their beginning, and the worker asks for the rest.

use backstitch::{Ctx, StepCtx, Workflow, workflow_fn};

use crate::house::House;
use crate::world::{Effects, Gate};

const STEPS: usize = 300;

/// Of each output; all of them are some 6 MiB, and a page has 1.
const BYTES: usize = 20_000;

/// Many steps in a row; between the last two it waits.
fn many() -> impl Workflow<Input = (), Output = usize> {
    workflow_fn("many", async |ctx: Ctx, ()| {
        let mut bytes = 0;
        for number in 0..STEPS {
            let step = ctx.step(&format!("step-{number}"), async move |s: StepCtx| {
                s.state::<Effects>().add(format!("{number}"));
                if number == STEPS - 1 {
                    s.state::<Gate>().pass().await;
                }
                Ok("x".repeat(BYTES))
            });
            bytes += step.await?.len();
        }
        Ok(bytes)
    })
}

#[tokio::test(start_paused = true)]
async fn p8_a_journal_of_many_pages_is_taken_over_whole_by_the_next_worker() {
    let house = House::new().await;
    let run = house.start("many", "a").await;
    let gate = Gate::closed();
    let first = house.worker(|b| b.register(many()).state(gate.clone())).await;
    house.effects.wait_for(&(STEPS - 1).to_string(), 1).await;
    first.shutdown().await.unwrap();
    gate.open();
    let _second = house.worker(|b| b.register(many()).state(gate)).await;
    let ended = house.settled(run).await;
    assert_eq!(ended.status(true), backstitch::Status::Succeeded);
    let output = ended.outcome(backstitch::Status::Succeeded).output.unwrap();
    assert_eq!(output.data, (STEPS * BYTES).to_string());
    // What was recorded did not run again; the last one was cut off.
    let counts = (0..STEPS).map(|number| house.effects.count(&number.to_string()));
    let counts: Vec<usize> = counts.collect();
    assert!(counts[..STEPS - 1].iter().all(|count| *count == 1), "{counts:?}");
    assert_eq!(counts[STEPS - 1], 2);
}
