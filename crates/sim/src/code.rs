//! The programs of a plan as workflows.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use backstitch::{
    Ctx, Failure, FailureExt, FnWorkflow, Jitter, NoTimeout, OnAbandon, OnExhausted, OnUndoFailure,
    Result, Retry, Step, UndoOn, msg, race, select, workflow_fn,
};

use crate::effect;
use crate::plan::{Code, Ends, Node, Plan, Program, StepSpec, TOPICS, UndoSpec};

/// The version beside the usual one.
pub(crate) const NEXT: &str = "2";

/// The workflows that a process with this code has, and for each execution the one to start it with.
pub(crate) fn workflows(plan: &Plan, code: Code) -> Vec<Vec<FnWorkflow<(), String>>> {
    let workflow = |(number, program): (usize, Program)| {
        let usual = workflow(number, program);
        let next = usual.clone().version(NEXT);
        match code {
            Code::Usual | Code::Altered { .. } => vec![usual, next],
            Code::Both => vec![next, usual],
            Code::NextOnly => vec![next],
        }
    };
    let programs = plan.executions.iter().map(|execution| match code {
        Code::Altered { before } => altered(&execution.program, before),
        Code::Usual | Code::Both | Code::NextOnly => execution.program.clone(),
    });
    programs.enumerate().map(workflow).collect()
}

/// The number of the step that altered code has more: larger than any other.
const EXTRA: u32 = 1_000;

fn altered(program: &Program, before: usize) -> Program {
    let mut altered = program.clone();
    let extra = StepSpec {
        name: EXTRA,
        acts: Vec::new(),
        max_attempts: 1,
        delay_ms: 0,
        timeout_ms: 1_000,
        blocks_when_exhausted: false,
        cancelled_when_abandoned: false,
        kept_when_dropped: false,
        undo: Some(UndoSpec {
            acts: Vec::new(),
            max_attempts: 1,
            halts: false,
            only_after_success: false,
        }),
    };
    altered.nodes.insert(before.min(program.nodes.len()), Node::Step(extra));
    altered
}

fn workflow(number: usize, program: Program) -> FnWorkflow<(), String> {
    let program = Arc::new(program);
    workflow_fn(&format!("w{number}"), move |ctx: Ctx, (): ()| {
        let program = program.clone();
        async move {
            play(ctx, &program.nodes).await?;
            match program.ends {
                Ends::Well => Ok("done".to_owned()),
                Ends::Failing => Err(msg("the end").permanent()),
                // Without a word on the terminal.
                Ends::Panicking => std::panic::resume_unwind(Box::new("the end")),
            }
        }
    })
}

type Playing<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

fn play(ctx: Ctx, nodes: &[Node]) -> Playing<'_> {
    Box::pin(async move {
        for node in nodes {
            one(&ctx, node).await?;
        }
        Ok(())
    })
}

async fn one(ctx: &Ctx, node: &Node) -> Result<()> {
    match node {
        Node::Step(spec) => step(ctx, spec).await.map(drop),
        Node::Sleep { ms } => ctx.sleep(Duration::from_millis(*ms)).await,
        Node::Wait { name, topic, until_ms, optional } => {
            let name = format!("w{name}");
            let wait = match until_ms {
                Some(ms) => {
                    ctx.wait_event::<u64>(&name, TOPICS[*topic], Duration::from_millis(*ms))
                }
                None => ctx.wait_event(&name, TOPICS[*topic], NoTimeout),
            };
            match optional {
                true => wait.optional().await.map(drop),
                false => wait.await.map(drop),
            }
        }
        Node::WaitAny { name, until_ms } => {
            let timeout = Duration::from_millis(*until_ms);
            let wait = ctx.wait_any_event(&format!("w{name}"), TOPICS, timeout);
            let event = wait.optional().await?;
            ctx.publish(&format!("w{name}"), &event.map(|event| event.event_type().to_owned()))
        }
        Node::Publish { key } => ctx.publish(&format!("p{key}"), key),
        Node::Catch(nodes) => {
            let _caught = play(ctx.clone(), nodes).await;
            Ok(())
        }
        Node::Join(branches) => join(branches_of(ctx, branches)).await,
        Node::Race(branches) => race(branches_of(ctx, branches)).await.1,
        Node::Select(left, right) => {
            select! {
                done = play(ctx.branch("left"), left) => done,
                done = play(ctx.branch("right"), right) => done,
            }
        }
        Node::Hold(held, other, rest) => {
            let (mut held, mut other) = (step(ctx, held), step(ctx, other));
            select! {
                done = &mut held => drop(done?),
                done = &mut other => drop(done?),
            }
            play(ctx.clone(), rest).await
        }
    }
}

fn branches_of<'a>(ctx: &Ctx, branches: &'a [Vec<Node>]) -> Vec<Playing<'a>> {
    let branch = |(n, nodes): (usize, &'a Vec<Node>)| play(ctx.branch(&format!("b{n}")), nodes);
    branches.iter().enumerate().map(branch).collect()
}

/// Waits for all, and gives the first error in written order.
async fn join(mut branches: Vec<Playing<'_>>) -> Result<()> {
    let mut ends: Vec<Option<Result<()>>> = branches.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (branch, end) in branches.iter_mut().zip(&mut ends) {
            if end.is_none()
                && let Poll::Ready(done) = branch.as_mut().poll(cx)
            {
                *end = Some(done);
            }
        }
        if ends.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    ends.into_iter().flatten().collect()
}

fn step(ctx: &Ctx, spec: &StepSpec) -> Step<String> {
    let body = {
        let spec = Arc::new(spec.clone());
        async move |s| effect::body(s, &spec).await
    };
    let step = ctx.step(&format!("s{}", spec.name), body);
    let step = step
        .retry(retry(spec.max_attempts, spec.delay_ms))
        .timeout(Duration::from_millis(spec.timeout_ms));
    let step = match spec.blocks_when_exhausted {
        true => step.on_exhausted(OnExhausted::Block),
        false => step,
    };
    let step = match spec.cancelled_when_abandoned {
        true => step.on_abandon(OnAbandon::Cancel),
        false => step,
    };
    let step = if spec.kept_when_dropped { step.keep_when_dropped() } else { step };
    match &spec.undo {
        Some(undo) => with_undo(step, undo),
        None => step,
    }
}

fn with_undo(step: Step<String>, undo: &UndoSpec) -> Step<String> {
    let (halts, only_after_success) = (undo.halts, undo.only_after_success);
    let step = step
        .rollback_retry(retry(undo.max_attempts, 500))
        .rollback_timeout(Duration::from_secs(5))
        .rollback_on_failure(match halts {
            true => OnUndoFailure::Halt,
            false => OnUndoFailure::Continue,
        });
    let step = if only_after_success { step.undo_on(UndoOn::Succeeded) } else { step };
    let undo = Arc::new(undo.clone());
    step.rollback(async move |u| effect::undo(u, &undo).await)
}

/// Some delays come from a function, which grows evenly.
fn retry(max_attempts: u32, delay_ms: u64) -> Retry {
    if delay_ms % 8 == 4 {
        let delay = move |attempt, _: &Failure| Duration::from_millis(delay_ms) * attempt;
        return Retry::delays(delay).max_attempts(max_attempts);
    }
    Retry::exponential(Duration::from_millis(delay_ms))
        .max_attempts(max_attempts)
        .jitter(if delay_ms.is_multiple_of(2) { Jitter::None } else { Jitter::Full })
}

/// What bodies and undos say when they do not succeed.
pub(crate) fn failure(text: &str) -> Failure {
    msg(text)
}
