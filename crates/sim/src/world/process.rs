//! One process of a simulated world, and the errands that people run to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use backstitch::testing::Process;
use backstitch::{App, Backstitch};

use crate::caller;
use crate::clock::SimClock;
use crate::code;
use crate::disk::Disk;
use crate::effect::Outside;
use crate::history::{Answer, Entry, History};
use crate::plan::{Deed, Plan, ProcessPlan};
use crate::world::first_workflow;

/// So many ticks pass before somebody asks again who was not answered.
const ASK_AGAIN_TICKS: u64 = 3;

/// How far a deed is.
pub(super) struct Errand {
    stage: Stage,
    /// Asked for again when it was answered.
    again: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Due(u64),
    Asked,
    Done,
}

impl Errand {
    pub(super) fn new(deed: &Deed) -> Errand {
        Errand { stage: Stage::Due(deed.tick), again: deed.twice }
    }

    pub(super) fn due(&self) -> Option<u64> {
        match self.stage {
            Stage::Due(tick) => Some(tick),
            Stage::Asked | Stage::Done => None,
        }
    }

    pub(super) fn is_due(&self, tick: u64) -> bool {
        self.due().is_some_and(|due| due <= tick)
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }
}

type Answers = Arc<Mutex<Vec<(usize, Option<Answer>)>>>;

/// A process that lives.
pub(super) struct Live {
    pub number: u32,
    pub plan: ProcessPlan,
    pub since: u64,
    pub app: App,
    pub disk: Disk,
    pub clock: SimClock,
    answers: Answers,
    /// Whom it owes an answer.
    asked: Vec<usize>,
    gone: Arc<AtomicBool>,
    stopped: Arc<Mutex<Stopped>>,
    last_tick: u64,
    /// Last: what runs in it is dropped when nothing above is needed any more.
    pub process: Process,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    No,
    Yes,
}

impl Live {
    pub(super) fn open(
        plan: &Plan,
        process_plan: ProcessPlan,
        number: u32,
        since: u64,
        disk: Disk,
        history: History,
        now_us: i64,
    ) -> Live {
        let clock = SimClock::new(now_us);
        let fence = backstitch::store::Store::fence(&disk);
        history.push(Entry::Opened { process: number, fence });
        let gone = Arc::new(AtomicBool::new(false));
        let (process, its_clock) = (number, clock.clone());
        let outside = Outside { process, clock: its_clock, history, gone: gone.clone() };
        let workflows = code::workflows(plan, process_plan.code);
        let builder = Backstitch::on(Arc::new(disk.clone()))
            .clock(Arc::new(clock.clone()))
            .seed(plan.seed.wrapping_mul(1_000).wrapping_add(u64::from(number)))
            .state(outside);
        let builder = workflows.into_iter().flatten().fold(builder, |b, w| b.register(w));
        let process = Process::new().expect("no other runtime is around");
        let app = process.block_on(builder.run()).expect("the store can be read");
        Live {
            number,
            plan: process_plan,
            since,
            app,
            disk,
            clock,
            answers: Answers::default(),
            asked: Vec::new(),
            gone,
            stopped: Arc::new(Mutex::new(Stopped::No)),
            last_tick: since,
            process,
        }
    }

    /// Lets everything happen that happens by itself.
    pub(super) fn settle(&mut self) {
        self.process.block_on(self.process.quiet());
    }

    pub(super) fn send(&mut self, plan: &Plan, number: usize, errand: &mut Errand, tick: u64) {
        errand.stage = Stage::Asked;
        self.asked.push(number);
        self.last_tick = tick;
        let deed = plan.deeds[number].clone();
        let workflow = first_workflow(plan, self.plan.code, deed.execution);
        let execution = plan.executions[deed.execution].clone();
        let (app, answers) = (self.app.clone(), self.answers.clone());
        let asking = async move {
            let answer = caller::ask(app, workflow, execution, number, deed).await;
            answers.lock().expect("no code runs under this lock").push((number, answer));
        };
        self.process.block_on(async { drop(tokio::spawn(asking)) });
    }

    /// Takes the answers that have come.
    pub(super) fn collect(&mut self, errands: &mut [Errand], history: &History) {
        self.last_tick += 1;
        let answers = std::mem::take(&mut *self.answers.lock().expect("no code runs under it"));
        for (deed, answer) in answers {
            self.asked.retain(|asked| *asked != deed);
            let errand = &mut errands[deed];
            match answer {
                None => errand.stage = Stage::Due(self.last_tick + ASK_AGAIN_TICKS),
                Some(answer) => {
                    history.push(Entry::Answered { deed, process: self.number, answer });
                    errand.stage = if errand.again {
                        Stage::Due(self.last_tick + ASK_AGAIN_TICKS)
                    } else {
                        Stage::Done
                    };
                    errand.again = false;
                }
            }
        }
    }

    /// It answers nobody any more: they ask the next one.
    pub(super) fn forget(&mut self, errands: &mut [Errand]) {
        for deed in std::mem::take(&mut self.asked) {
            errands[deed].stage = Stage::Due(0);
        }
    }

    /// What is dropped from here on is dropped by death.
    pub(super) fn goes(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Asks it to stop in good order.
    pub(super) fn stop(&mut self) {
        let (app, stopped) = (self.app.clone(), self.stopped.clone());
        self.process.block_on(async {
            drop(tokio::spawn(async move {
                // What goes wrong while the store is closed loses nothing.
                let _ = app.shutdown().await;
                *stopped.lock().expect("no code runs under this lock") = Stopped::Yes;
            }));
        });
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.lock().expect("no code runs under this lock") == Stopped::Yes
    }
}
