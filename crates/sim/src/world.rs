//! A simulated world: processes that live and die on one disk, under one clock, at the mercy of a
//! plan.
//!
//! **Invariant:** what happens depends on the plan alone. Everything runs on the calling thread, and
//! every choice comes from the dice of the seed.

mod process;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backstitch::Handle;
use backstitch::store::NowUs;
use backstitch::store::memory::MemoryStore;

use crate::caller::{self, Mood, Settled};
use crate::clock::SimClock;
use crate::code;
use crate::dice::Dice;
use crate::disk::{Disk, Hearing, Manner, Sight, Space};
use crate::guard;
use crate::history::{Entry, Found, Gone, History, Listed};
use crate::plan::{Code, Fault, Plan, ProcessPlan, What};
use process::{Errand, Live};

/// 2026-01-01T00:00:00Z: where the clock of a world begins.
pub(crate) const EPOCH_US: i64 = 1_767_225_600_000_000;

/// A world that is so old is brought to its end.
const TICKS_MAX: u64 = 4_000;

/// So many looks of the operator at the end, and what is not over then never will be.
const ROUNDS_MAX: u64 = 400;

/// So many of them he hopes that things mend by themselves.
const HOPEFUL_ROUNDS: u64 = 40;

/// Ticks for which a superseded process goes on before it finds out and ends.
const AFTERLIFE_TICKS: u64 = 12;

struct World<'a> {
    plan: &'a Plan,
    history: History,
    dice: Dice,
    disk: MemoryStore,
    now_us: Arc<AtomicI64>,
    tick: u64,
    processes: u32,
    next_plan: usize,
    errands: Vec<Errand>,
    live: Option<Live>,
    /// With the tick at which each wakes up.
    stalled: Vec<(u64, Live)>,
    /// So much had happened when somebody looked at the open matters last.
    listed_after: usize,
}

/// Lets the plan happen, and writes down what did.
pub(crate) fn run(plan: &Plan, history: &History) {
    let mut world = World::new(plan, history.clone());
    world.live_through();
    world.bring_to_an_end();
}

/// What came of one tick.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ticked {
    Something,
    /// Nothing happens by itself any more.
    Idle,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan, history: History) -> World<'a> {
        history.set_now(EPOCH_US);
        let now_us = Arc::new(AtomicI64::new(EPOCH_US));
        let now: NowUs = {
            let now_us = now_us.clone();
            Arc::new(move || now_us.load(Ordering::Relaxed))
        };
        let ear = history.clone();
        let disk = MemoryStore::with_after_sync(
            now,
            Arc::new(move |rows| {
                for committed in rows {
                    let row = backstitch::Row::decode(committed.row.clone());
                    let row = row.expect("a row that was just written decodes");
                    ear.push(Entry::Durable { run: committed.run, row });
                }
            }),
        );
        World {
            plan,
            history,
            dice: Dice::new(plan.seed, 4),
            disk,
            now_us,
            tick: 0,
            processes: 0,
            next_plan: 0,
            errands: plan.deeds.iter().map(Errand::new).collect(),
            live: None,
            stalled: Vec::new(),
            listed_after: 0,
        }
    }

    /// The processes of the plan, until nothing happens any more.
    fn live_through(&mut self) {
        while self.tick < TICKS_MAX && !guard::has_panicked() {
            if self.live.is_none() {
                let Some(process) = self.plan.processes.get(self.next_plan).cloned() else { break };
                self.next_plan += 1;
                self.open(process, Manner::OnCall);
            }
            self.tick += 1;
            if self.one_tick() == Ticked::Idle {
                break;
            }
        }
        // Whoever stands still by now wakes up, and finds that others have gone on.
        while let Some((_, live)) = self.stalled.pop() {
            self.afterlife(live);
        }
        self.bury(Gone::Died);
    }

    fn one_tick(&mut self) -> Ticked {
        guard::work();
        self.wake_stalled();
        let live = self.live.as_mut().expect("opened before");
        live.settle();
        live.collect(&mut self.errands, &self.history);
        if self.strike() || self.run_errands() {
            return Ticked::Something;
        }
        let live = self.live.as_ref().expect("nothing has struck it");
        if live.is_stopped() {
            self.bury(Gone::Stopped);
            return Ticked::Something;
        }
        let (offered, unanswered) = live.disk.waiting();
        let lag = self.plan.lag;
        if (offered > 0 || unanswered > 0) && !self.dice.percent(lag.hurry_percent) {
            // Two of three times all of a batch.
            let count = if self.dice.roll(3) == 0 { 1 } else { usize::MAX };
            if offered > 0 && self.dice.percent(lag.apply_percent) {
                live.disk.apply(count);
            }
            if unanswered > 0 && self.dice.percent(lag.answer_percent) {
                live.disk.answer(count);
            }
            return Ticked::Something;
        }
        if self.move_the_clock() {
            return Ticked::Something;
        }
        if offered > 0 || unanswered > 0 {
            return Ticked::Something;
        }
        // Nothing to wait for but what people are going to do, or what goes wrong.
        match self.errands.iter().filter_map(Errand::due).min() {
            Some(due) => self.tick = self.tick.max(due),
            None if self.stalled.is_empty() => return Ticked::Idle,
            None => {}
        }
        Ticked::Something
    }

    /// Whether a fault took the turn.
    fn strike(&mut self) -> bool {
        let live = self.live.as_mut().expect("there is a process");
        let age = self.tick - live.since;
        let full = |fault: &Fault| matches!(*fault, Fault::Full { tick, ticks } if (tick..tick + ticks).contains(&age));
        let deaf = |fault: &Fault| matches!(*fault, Fault::Deaf { tick, ticks } if (tick..tick + ticks).contains(&age));
        let blind = |fault: &Fault| matches!(*fault, Fault::Blind { tick, ticks } if (tick..tick + ticks).contains(&age));
        let faults = &live.plan.faults;
        live.disk.set_space(if faults.iter().any(full) { Space::Gone } else { Space::Left });
        live.disk.set_hearing(if faults.iter().any(deaf) { Hearing::Lost } else { Hearing::Good });
        live.disk.set_sight(if faults.iter().any(blind) { Sight::Lost } else { Sight::Good });
        let sudden = |fault: &Fault| match fault {
            Fault::Die { tick, .. }
            | Fault::Stall { tick, .. }
            | Fault::Stop { tick }
            | Fault::Jump { tick, .. } => *tick <= age,
            Fault::Full { .. } | Fault::Deaf { .. } | Fault::Blind { .. } => false,
        };
        let Some(at) = faults.iter().position(sudden) else { return false };
        match live.plan.faults.remove(at) {
            Fault::Die { survive, .. } => {
                live.disk.apply(survive);
                self.bury(Gone::Died);
            }
            Fault::Stall { ticks, .. } => {
                let mut live = self.live.take().expect("it is there");
                live.forget(&mut self.errands);
                let how = Gone::StoodStill;
                self.history.push(Entry::Gone { process: live.number, how });
                live.disk.supersede();
                self.stalled.push((self.tick + ticks, live));
            }
            Fault::Stop { .. } => live.stop(),
            Fault::Jump { ms, .. } => {
                self.history.push(Entry::ClockSet { ms });
                self.clocks().for_each(|clock| clock.jump(ms * 1_000));
                self.show(ms * 1_000);
            }
            Fault::Full { .. } | Fault::Deaf { .. } | Fault::Blind { .. } => {
                unreachable!("they are not sudden")
            }
        }
        true
    }

    fn run_errands(&mut self) -> bool {
        let live = self.live.as_mut().expect("there is a process");
        let due = self.errands.iter().position(|errand| errand.is_due(self.tick));
        let Some(number) = due else { return false };
        live.send(self.plan, number, &mut self.errands[number], self.tick);
        true
    }

    /// Whether there was an instant to move to.
    fn move_the_clock(&mut self) -> bool {
        let live = self.live.as_ref().expect("there is a process");
        let Some(next_in_us) = live.clock.next_in_us() else { return false };
        // Who waits for what is past is about to notice.
        let us = next_in_us.max(1_000);
        self.clocks().for_each(|clock| clock.pass(us));
        self.show(us);
        true
    }

    fn clocks(&self) -> impl Iterator<Item = &SimClock> {
        let stalled = self.stalled.iter().map(|(_, live)| live);
        stalled.chain(&self.live).map(|live| &live.clock)
    }

    fn show(&self, later_us: i64) {
        let now_us = self.now_us.fetch_add(later_us, Ordering::Relaxed) + later_us;
        self.history.set_now(now_us);
    }

    fn open(&mut self, process: ProcessPlan, manner: Manner) {
        self.processes += 1;
        self.disk = self.disk.reopen();
        let disk = Disk::new(self.disk.clone(), self.history.clone(), manner);
        let now_us = self.now_us.load(Ordering::Relaxed);
        let (number, since) = (self.processes, self.tick);
        let history = self.history.clone();
        let live = Live::open(self.plan, process, number, since, disk, history, now_us);
        self.live = Some(live);
    }

    fn bury(&mut self, how: Gone) {
        let Some(mut live) = self.live.take() else { return };
        live.forget(&mut self.errands);
        self.history.push(Entry::Gone { process: live.number, how });
        live.goes();
        drop(live);
    }

    fn wake_stalled(&mut self) {
        while let Some(at) = self.stalled.iter().position(|(tick, _)| *tick <= self.tick) {
            let (_, live) = self.stalled.remove(at);
            self.afterlife(live);
        }
    }

    /// A process that was superseded goes on for a while, as if nothing had happened.
    fn afterlife(&mut self, mut live: Live) {
        self.history.push(Entry::WokeUp { process: live.number });
        for _ in 0..AFTERLIFE_TICKS {
            live.settle();
            live.disk.apply(usize::MAX);
            live.disk.answer(usize::MAX);
        }
        self.history.push(Entry::Gone { process: live.number, how: Gone::Died });
        live.goes();
        drop(live);
    }

    /// No faults any more; time passes, and an operator settles what is left.
    fn bring_to_an_end(&mut self) {
        self.open(ProcessPlan { faults: Vec::new(), code: Code::Usual }, Manner::AtOnce);
        for number in 0..self.errands.len() {
            let live = self.live.as_mut().expect("opened above");
            live.settle();
            live.collect(&mut self.errands, &self.history);
            let starts = self.plan.deeds[number].what == What::Start;
            if self.errands[number].is_due(u64::MAX) || starts && !self.errands[number].is_done() {
                live.send(self.plan, number, &mut self.errands[number], self.tick);
            }
        }
        for round in 0..ROUNDS_MAX {
            guard::work();
            if guard::has_panicked() {
                break;
            }
            let live = self.live.as_mut().expect("opened above");
            live.settle();
            live.collect(&mut self.errands, &self.history);
            let mood = if round < HOPEFUL_ROUNDS { Mood::Hopeful } else { Mood::Resigned };
            match self.look(round, mood) {
                Settled::Over => break,
                Settled::Acted => {}
                Settled::Nothing => {
                    if !self.move_the_clock() {
                        self.send_what_is_waited_for(round);
                    }
                }
            }
        }
        // Looked at by yet another process.
        self.bury(Gone::Died);
        self.open(ProcessPlan { faults: Vec::new(), code: Code::Usual }, Manner::AtOnce);
        self.live.as_mut().expect("opened above").settle();
        self.find_all();
        self.bury(Gone::Died);
    }

    /// An operator looks at all executions.
    fn look(&mut self, round: u64, mood: Mood) -> Settled {
        self.list();
        let live = self.live.as_ref().expect("there is a process");
        let mut all = Settled::Over;
        for number in 0..self.plan.executions.len() {
            if !self.plan.deeds.iter().any(|d| d.execution == number && d.what == What::Start) {
                continue;
            }
            let request = format!("round {round}");
            let settled = live.process.block_on(async {
                let handle: Handle<String> = live.app.handle(&format!("e{number}")).await?;
                caller::settle(&live.app, &handle, &request, mood).await
            });
            match settled {
                Ok(Settled::Acted) => return Settled::Acted,
                Ok(Settled::Over) => {}
                Ok(Settled::Nothing) | Err(_) => all = Settled::Nothing,
            }
        }
        all
    }

    /// Writes down the list of open matters, if anything has happened since it was written down last.
    fn list(&mut self) {
        if self.history.len() == self.listed_after {
            return;
        }
        let live = self.live.as_ref().expect("there is a process");
        let Ok(items) = live.process.block_on(live.app.attention(1_000)) else { return };
        let listed = items.into_iter().map(|item| {
            let run_id = item.run_id.to_string();
            Listed { run_id, ord: item.ord, kind: item.kind }
        });
        self.history.push(Entry::Listed(listed.collect()));
        self.listed_after = self.history.len();
    }

    fn send_what_is_waited_for(&mut self, round: u64) {
        let live = self.live.as_ref().expect("there is a process");
        for number in 0..self.plan.executions.len() {
            // Refused by those that want nothing any more.
            let _ = live.process.block_on(async {
                let handle: Handle<String> = live.app.handle(&format!("e{number}")).await?;
                for topic in crate::plan::TOPICS {
                    handle.send_event(topic, &round).by("operator").await?;
                }
                Ok::<_, backstitch::Error>(())
            });
        }
    }

    fn find_all(&mut self) {
        let live = self.live.as_ref().expect("there is a process");
        for execution in 0..self.plan.executions.len() {
            let found = live.process.block_on(find(live, execution));
            if let Ok((run, found)) = found {
                self.history.push(Entry::Found { execution, run, found: Box::new(found) });
            }
        }
    }
}

async fn find(
    live: &Live,
    execution: usize,
) -> Result<(backstitch::store::RunNo, Found), backstitch::Error> {
    let id = format!("e{execution}");
    let handle: Handle<String> = live.app.handle(&id).await?;
    let info = live.app.engine().newest("default", &id).await?;
    let status = handle.status().await?;
    let result = match status.status.is_closed() {
        true => handle.result().await.map_err(|error| {
            let failure = error.failure().map(|failure| failure.message.clone());
            (error.kind(), failure.unwrap_or_default())
        }),
        false => Err((backstitch::ErrorKind::Stuck, "it is not closed".to_owned())),
    };
    let attention = live.app.attention(1_000).await?.into_iter();
    let attention = attention.filter(|item| item.run_id == handle.run_id());
    let found = Found {
        status: status.status,
        run_id: handle.run_id().to_string(),
        rollback: status.rollback.outcome,
        result,
        attention: attention.map(|item| (item.ord, item.kind)).collect(),
        waits_for: format!("{:?} {:?}", status.waits_for, status.blocks),
    };
    Ok((info.run, found))
}

fn first_workflow(plan: &Plan, code: Code, execution: usize) -> backstitch::FnWorkflow<(), String> {
    code::workflows(plan, code).swap_remove(execution).swap_remove(0)
}
