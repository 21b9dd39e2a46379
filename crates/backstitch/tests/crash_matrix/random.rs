//! Random programs under random faults and verbs: whatever happens, the promises hold.

use backstitch::core::id::draw;
use backstitch::core::run::{Ending, Phase, Run};
use backstitch::core::step::StepPhase;
use backstitch::core::undo::UndoPhase;
use backstitch::store::fault::FaultPlan;
use backstitch::{
    Ctx, Failure, FailureExt, FnWorkflow, OnAbandon, OnUndoFailure, Result, Status, Step, UndoOn,
    join, msg, race, select, workflow_fn,
};

use crate::outside::Outside;
use crate::steps::{bare, patient, reversed};
use crate::world::{Deed, Scenario, Seen};

/// Numbers that depend on a seed alone.
#[derive(Clone)]
pub struct Dice(u64, u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed, 0)
    }

    /// 0 to `sides` − 1.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.1 += 1;
        draw(self.0, 7, self.1) % sides
    }
}

/// The program of a seed, and what people do to it.
pub fn scenario(seed: u64) -> Scenario {
    let code = move |_| program(seed);
    let scenario =
        Scenario::new(format!("seed {seed}"), code, move |seen: &Seen<'_>| deeds(seed, seen));
    match Dice::new(seed ^ 0xDEAD).roll(6) {
        0 => scenario.deadline("20s"),
        _ => scenario,
    }
}

/// What goes wrong in the first processes.
pub fn faults(seed: u64) -> Vec<FaultPlan> {
    let mut dice = Dice::new(seed ^ 0xFA17);
    let processes = dice.roll(4);
    let plan = |_| {
        let plan = FaultPlan::new();
        plan.lose_answer(1 + dice.roll(12));
        plan.unavailable(1 + dice.roll(12), 1 + dice.roll(3));
        match dice.roll(2) {
            0 => plan.die_after(1 + dice.roll(14)),
            _ => plan.die_before(1 + dice.roll(14)),
        }
        plan
    };
    (0..processes).map(plan).collect()
}

fn program(seed: u64) -> FnWorkflow<(), String> {
    workflow_fn("random", move |ctx: Ctx, (): ()| async move {
        let mut dice = Dice::new(seed);
        for segment in 0..1 + dice.roll(5) {
            play(&ctx, segment, &mut dice).await?;
        }
        match dice.roll(5) {
            0 => Err(msg("no").permanent()),
            1 => panic!("by order"),
            _ => Ok("done".to_owned()),
        }
    })
}

/// An effect with an undo of its own character.
fn any(ctx: &Ctx, segment: u64, n: u64, dice: &mut Dice) -> Step<String> {
    let step = bare(ctx, &format!("{segment}-{n}"), dice.roll(12) as u32);
    let step = match dice.roll(5) {
        0 => step.on_abandon(OnAbandon::Cancel),
        1 => step.keep_when_dropped(),
        2 => step.undo_on(UndoOn::Succeeded),
        _ => step,
    };
    let character = dice.roll(8);
    let halts = if character == 2 { OnUndoFailure::Halt } else { OnUndoFailure::Continue };
    step.rollback_on_failure(halts).rollback(async move |u| {
        let (outside, once) = (u.state::<Outside>().clone(), format!("once {}", u.step().name));
        outside.undo(&u);
        let first = !outside.is_up(&once);
        outside.raise(&once);
        match character {
            0 if first => Err(msg("once more")),
            1 | 2 if first => Err(msg("broken").permanent()),
            3 if first => panic!("not the first time"),
            _ => reversed(u).await,
        }
    })
}

async fn play(ctx: &Ctx, segment: u64, dice: &mut Dice) -> Result<()> {
    let one = |n, dice: &mut Dice| any(ctx, segment, n, dice);
    match dice.roll(12) {
        9 => {
            let event_type = ["a", "b"][dice.roll(2) as usize];
            let event = ctx.wait_event::<u64>("wait", event_type, "1m").optional().await?;
            ctx.publish("took", &event)
        }
        10 => {
            // The event may come, and be given back.
            let mut held = ctx.wait_any_event("held", ["a", "b"], "1h");
            select! {
                event = &mut held => drop(event?),
                done = one(0, dice) => drop(done?),
            }
            one(1, dice).await.map(drop)
        }
        11 => {
            let (done, event) =
                join!(one(0, dice), ctx.wait_event::<u64>("beside", "b", "5s").optional());
            event?;
            done.map(drop)
        }
        0 => ctx.sleep("1m").await,
        1 => {
            let (a, b, c) = join!(one(0, dice), one(1, dice), one(2, dice));
            [a, b, c].into_iter().collect::<Result<Vec<_>>>().map(drop)
        }
        2 => {
            let (_, winner) = race([one(0, dice), one(1, dice)]).await;
            winner.map(drop)
        }
        3 => {
            select! {
                done = one(0, dice) => done.map(drop),
                over = ctx.sleep("1s") => over,
            }
        }
        4 => {
            let flaky = one(0, dice).retry(patient());
            let never = ctx.step(&format!("{segment}-never"), async |s| {
                let _at_work = s.state::<Outside>().body(&s);
                Err::<String, Failure>(msg("no").permanent())
            });
            let never = never.rollback(reversed).undo_on(UndoOn::Succeeded).retry(patient());
            let (done, refused) = join!(flaky, never);
            assert!(refused.is_err());
            done.map(drop)
        }
        5 => {
            // Holds the loser for a while.
            let (mut a, mut b) = (one(0, dice), one(1, dice));
            select! {
                a = &mut a => drop(a?),
                b = &mut b => drop(b?),
            }
            one(2, dice).await.map(drop)
        }
        6 => {
            // Two chains side by side, of which one ends it for the other.
            let (mut left, mut right) = (dice.clone(), Dice::new(dice.roll(1000)));
            let chain = async {
                one(0, &mut left).await?;
                one(1, &mut left).await
            };
            select! {
                done = chain => done.map(drop),
                done = one(2, &mut right) => done.map(drop),
            }
        }
        _ => one(0, dice).await.map(drop),
    }
}

/// Verbs at random places of the journal; and an operator who settles what is stuck or paused.
fn deeds(seed: u64, seen: &Seen<'_>) -> Vec<Deed> {
    let mut dice = Dice::new(seed ^ 0xDEED);
    let mut deeds = Vec::new();
    for deed in [Deed::Cancel, Deed::Terminate, Deed::Pause, Deed::Kill, Deed::Shutdown] {
        let (of, at) = (if deed == Deed::Kill { 12 } else { 4 }, 2 + dice.roll(20));
        if dice.roll(of) == 0 && seen.run.seq >= at {
            deeds.push(deed);
        }
    }
    for number in 0..dice.roll(6) {
        let (event_type, at) = (["a", "b"][dice.roll(2) as usize], 1 + dice.roll(12));
        if seen.run.seq >= at {
            deeds.push(Deed::Send(event_type, number));
        }
    }
    match seen.status {
        Status::Succeeded if dice.roll(4) == 0 => deeds.push(Deed::Rollback),
        Status::Paused => deeds.push(Deed::Resume),
        Status::Stuck => {
            for ord in seen.run.rollback.iter().flat_map(|rollback| &rollback.failed) {
                let name = seen.run.step(*ord).unwrap().key.to_string();
                deeds.push(match dice.roll(3) {
                    0 => Deed::WaiveUndo(name),
                    _ => Deed::RetryUndo(name),
                });
            }
        }
        _ => {}
    }
    deeds
}

/// What stands outside has to fit what the journal says of each step.
pub fn assert_accounted_for(run: &Run, standing: &[String], what: &str) {
    let killed: Vec<u32> = match &run.phase {
        Phase::Closed(Ending::Killed { left, .. }) => left.clone(),
        Phase::Closed(_) | Phase::Forward | Phase::RollingBack => Vec::new(),
    };
    let succeeded = matches!(run.phase, Phase::Closed(Ending::Succeeded(_)));
    for (ord, step) in run.steps() {
        let stands = standing.contains(&step.key.name);
        let what = || format!("{what}: step {} {:?} {:?}", step.key, step.phase, step.undo.phase);
        match step.undo.phase {
            UndoPhase::Succeeded | UndoPhase::NotNeeded => assert!(!stands, "{}", what()),
            UndoPhase::Waived => {}
            _ if killed.contains(&ord) => {}
            _ if succeeded && step.phase == StepPhase::Succeeded => assert!(stands, "{}", what()),
            _ if succeeded => assert!(!step.dropped || step.policy.keep_when_dropped, "{}", what()),
            _ => assert!(!stands, "{}", what()),
        }
    }
}
