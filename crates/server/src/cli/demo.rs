//! `backstitch demo`: something to look at.

use std::time::Duration;

use backstitch_api::http::{StartExecution, Value};

use super::arguments::{One, Talk};
use super::ask::Asker;
use super::fault::{Fault, REFUSED};
use super::paper::{Paper, status};
use super::serve::command;
use crate::dev::EXAMPLES;

/// How long to wait for each example: the slowest one has retries of half a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the examples and says what came of them.
pub async fn demo(talk: &Talk) -> Result<(), Fault> {
    let asker = Asker::new(talk).await?;
    let known = asker.workers().await?.workers;
    let mut workflows = known.iter().flat_map(|worker| &worker.workflows);
    if !workflows.any(|workflow| workflow.name == EXAMPLES[0].workflow) {
        let message = format!(
            "the server does not run the workflow {:?}; the demo is for `backstitch dev`",
            EXAMPLES[0].workflow
        );
        return Err(Fault::new(REFUSED, message));
    }
    let paper = Paper::new(talk.json);
    // Each demo has executions of its own.
    let new = jiff::Timestamp::now().strftime("%H%M%S").to_string();
    let mut rows = Vec::new();
    for example in EXAMPLES {
        let id = format!("{}-{new}", example.id);
        let start = StartExecution {
            id: id.clone(),
            workflow: example.workflow.to_owned(),
            version: None,
            input: Some(Value::parse(example.input).expect("the examples are JSON")),
            namespace: None,
            conflict: None,
            reuse: None,
            deadline: None,
            retention: None,
            attributes: Default::default(),
            by: Some(talk.by()),
        };
        asker.start(start, None).await?;
        rows.push((One { id, run_id: None }, example.shows));
    }
    let mut table = Vec::new();
    for (one, shows) in &rows {
        let outcome = asker.result(one, PATIENCE).await?;
        if paper.json {
            paper.json(&outcome)?;
        }
        table.push(vec![one.id.clone(), status(outcome.status), (*shows).to_owned()]);
    }
    if paper.json {
        return Ok(());
    }
    paper.table(&["id", "status", "what it shows"], table, "nothing")?;
    let this = command(talk);
    let id = |name: &str| format!("{name}-{new}");
    paper.line("\nLook at them:\n")?;
    let next = [
        (
            format!("show {}", id("order-nowhere")),
            "steps on the way forward, undos on the way back",
        ),
        ("list".to_owned(), "what there is"),
        ("list --attribute CustomerId=c-17".to_owned(), "by what the business calls it"),
        ("attention".to_owned(), "what only a person can settle"),
        (format!("waive-undo {} charge-card", id("order-stuck")), "settle it, in your name"),
        (format!("rollback {}", id("order-ok")), "undo what has succeeded"),
    ];
    for (arguments, what) in next {
        paper.line(&format!("  {this} {arguments:<42} {what}"))?;
    }
    Ok(())
}
