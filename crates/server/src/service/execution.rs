//! Looking at one execution.

use std::time::Duration;

use backstitch::Row;
use backstitch::core::event::BlockKind;
use backstitch::core::run::{RollbackProgress, Run, WaitsFor as Waits};
use backstitch::core::step::{Step as Folded, StepPhase};
use backstitch::core::undo::UndoPhase;
use backstitch::engine::view::RunView;
use backstitch_api::http::{
    Block, Execution, Failure, Matter, Outcome, Problem, Rollback, Status, Step, Undo, Value,
    WaitsFor,
};

use super::{Service, Target, instant, told};

/// Steps of one execution that are shown at a time: an answer has to stay readable, and the journal
/// has all of them.
const STEPS_SHOWN_MAX: usize = 1_000;

/// Bytes of an output that are shown with its step; of a larger one only its size.
const STEP_OUTPUT_BYTES_MAX: usize = 16 * 1024;

impl Service {
    /// One run of an execution, in full.
    ///
    /// # Errors
    /// `not_found`; `unreadable`; trouble of the store.
    pub async fn get(&self, target: &Target) -> Result<Execution, Problem> {
        let info = self.meant(target).await?;
        let (view, rows) = self.engine().view_with_journal(info.run).await.map_err(told)?;
        Ok(execution(&view, &rows))
    }

    /// The result of an execution; waits for it for as long as `wait`.
    ///
    /// # Errors
    /// As [`Service::get`]; `stopped` when the server stops meanwhile.
    pub async fn result(&self, target: &Target, wait: Duration) -> Result<Outcome, Problem> {
        let info = self.meant(target).await?;
        // Even with nothing to wait for, what is known at once is told.
        let settled = tokio::time::timeout(wait, self.engine().settled(info.run)).await;
        if let Ok(settled) = settled {
            settled.map_err(told)?;
        }
        let view = self.engine().view(info.run).await.map_err(told)?;
        Ok(outcome(&view))
    }
}

fn execution(view: &RunView, rows: &[Row]) -> Execution {
    let (run, new) = (&*view.run, &view.info.new);
    let status = view.status();
    let total = run.steps().count();
    let attention = run.attention.iter().map(|item| Matter {
        namespace: new.namespace.clone(),
        id: new.id.clone(),
        run_id: new.run_id.to_string(),
        step: Some(item.ord).filter(|ord| *ord > 0),
        kind: item.kind.name().to_owned(),
        message: item.message.clone(),
        opened_at: rows
            .iter()
            .find(|row| row.header.seq == item.seq)
            .map(|row| instant(row.header.at_us)),
    });
    Execution {
        namespace: new.namespace.clone(),
        id: new.id.clone(),
        run_id: new.run_id.to_string(),
        workflow: new.workflow.clone(),
        version: run.version.clone(),
        status: status.into(),
        pausing: run.pause.is_some() && status != backstitch::Status::Paused,
        started_by: run.started.started_by.clone(),
        created_at: instant(view.info.created_at_us),
        closed_at: view.info.closed_at_us.map(instant),
        deadline_at: run.deadline_at_us.map(instant),
        expires_at: view.info.update.expires_at_us.map(instant),
        input: Value::of(&run.started.input),
        output: run.output.as_ref().map(Value::of),
        failure: run.failure().map(Failure::from),
        rollback: rollback(run.rollback_progress()),
        blocks: run.blocks.iter().map(|held| block(run, held)).collect(),
        waits_for: run.waits_for(view.owned).iter().map(|waits| waits_for(run, waits)).collect(),
        steps: run
            .steps()
            .skip(total.saturating_sub(STEPS_SHOWN_MAX))
            .map(|(ord, folded)| step(ord, folded))
            .collect(),
        steps_total: total as u64,
        attributes: run
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), value.into()))
            .collect(),
        published: run
            .published
            .iter()
            .map(|(key, published)| (key.clone(), Value::of(&published.value)))
            .collect(),
        attention: attention.collect(),
        seq: run.seq,
    }
}

fn rollback(progress: RollbackProgress) -> Rollback {
    Rollback {
        outcome: progress.outcome.name().to_owned(),
        done: progress.done,
        of: progress.of,
        failed: progress.failed,
    }
}

fn block(run: &Run, held: &backstitch::core::run::Block) -> Block {
    let what = match held.what {
        BlockKind::Step => "step",
        BlockKind::Mismatch => "mismatch",
        BlockKind::ForeignWait => "foreign_wait",
        BlockKind::Unreadable => "unreadable",
    };
    let step = held.ord.map(|ord| name(run, ord));
    Block { what: what.to_owned(), step, failure: Failure::from(&held.failure) }
}

/// The key of what the code asked for, or its number if it never did.
fn name(run: &Run, ord: u32) -> String {
    let ask = (ord as usize).checked_sub(1).and_then(|at| run.asks.get(at));
    ask.map_or_else(|| ord.to_string(), |ask| ask.key().to_string())
}

fn waits_for(run: &Run, waits: &Waits) -> WaitsFor {
    match waits {
        Waits::Worker { workflow, version } => {
            WaitsFor::Worker { workflow: workflow.clone(), version: version.clone() }
        }
        Waits::EarlierRun { run_id } => WaitsFor::EarlierRun { run_id: run_id.to_string() },
        Waits::Instant { ord, at_us } => {
            WaitsFor::Instant { name: name(run, *ord), at: instant(*at_us) }
        }
        Waits::Event { ord, types, until_us } => WaitsFor::Event {
            name: name(run, *ord),
            types: types.clone(),
            until: until_us.map(instant),
        },
        Waits::Step { ord } => WaitsFor::Step { name: name(run, *ord) },
        Waits::Person => WaitsFor::Person,
    }
}

fn step(ord: u32, folded: &Folded) -> Step {
    let (phase, retry_at) = match folded.phase {
        StepPhase::Scheduled => ("scheduled", None),
        StepPhase::Running => ("running", None),
        StepPhase::Waiting { retry_at_us } => ("waiting", Some(instant(retry_at_us))),
        StepPhase::Blocked => ("blocked", None),
        StepPhase::Succeeded => ("succeeded", None),
        StepPhase::Failed => ("failed", None),
        StepPhase::Abandoned(_) => ("abandoned", None),
    };
    let output_bytes = folded.output.as_ref().map(|output| output.data.len());
    let shown = output_bytes.is_some_and(|bytes| bytes <= STEP_OUTPUT_BYTES_MAX);
    Step {
        ord,
        key: folded.key.to_string(),
        phase: phase.to_owned(),
        attempts: folded.attempts,
        retry_at,
        output: folded.output.as_ref().filter(|_| shown).map(Value::of),
        output_bytes: output_bytes.map(|bytes| bytes as u64),
        failure: folded.failure.as_ref().map(Failure::from),
        undo: folded.undo_spec.is_some().then(|| undo(&folded.undo)),
    }
}

fn undo(folded: &backstitch::core::undo::Undo) -> Undo {
    let (phase, retry_at) = match folded.phase {
        UndoPhase::Idle => ("idle", None),
        UndoPhase::Due => ("due", None),
        UndoPhase::Running => ("running", None),
        UndoPhase::Waiting { retry_at_us } => ("waiting", Some(instant(retry_at_us))),
        UndoPhase::Failed => ("failed", None),
        UndoPhase::Succeeded => ("succeeded", None),
        UndoPhase::NotNeeded => ("not_needed", None),
        UndoPhase::Waived => ("waived", None),
    };
    let failure = folded.failure.as_ref().map(Failure::from);
    Undo { phase: phase.to_owned(), attempts: folded.attempts, retry_at, failure }
}

fn outcome(view: &RunView) -> Outcome {
    let (run, new) = (&*view.run, &view.info.new);
    let status = view.status();
    let settled = status.is_closed() || status == backstitch::Status::Stuck;
    let told = run.outcome(status);
    let mut message = told.sentence(&new.id);
    let whom: Vec<String> = run.waits_for(view.owned).iter().filter_map(Waits::whom).collect();
    if !settled && !whom.is_empty() {
        message.push_str(&format!(", waiting for {}", whom.join(" and ")));
    }
    Outcome {
        namespace: new.namespace.clone(),
        id: new.id.clone(),
        run_id: new.run_id.to_string(),
        status: Status::from(status),
        settled,
        output: told.output.as_ref().map(Value::of),
        failure: told.failure.as_ref().map(Failure::from),
        rollback: rollback(told.rollback_progress()),
        message,
    }
}
