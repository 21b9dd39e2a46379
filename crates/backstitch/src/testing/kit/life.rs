//! The processes of a kit: one lives, and when it dies the next one goes on.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use backstitch_engine::program::Intercept;
use backstitch_store::fault::{FaultPlan, FaultStore};

use super::TestKit;
use crate::app::App;
use crate::error::Error;
use crate::open::Backstitch;
use crate::testing::process::Process;

/// How long code of the user may be seen to wait for something real before it is taken to hang.
const PATIENCE: Duration = Duration::from_millis(100);

/// The process that lives.
pub(super) struct Live {
    pub app: App,
    pub plan: FaultPlan,
    /// Last: what runs in it is dropped when nothing above is needed any more.
    pub process: Process,
}

/// A death at a write, counted over all processes.
pub(super) struct Crash {
    pub write: u64,
    pub side: CrashSide,
    pub fired: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CrashSide {
    Before,
    After,
}

impl TestKit {
    /// Lets land what a worker sent off that nobody believes any more.
    pub(in crate::testing) fn land_late(&mut self) -> Result<(), Error> {
        let late = self.script.take_late();
        let live = self.live()?;
        for effect in late {
            // Nobody hears how it ends, nor that it panics.
            let _ = catch_unwind(AssertUnwindSafe(|| live.process.block_on(effect)));
        }
        Ok(())
    }

    /// Whatever never took effect is no matter.
    pub(in crate::testing) fn forgive(&mut self) {
        self.script.forget();
        self.crashes.clear();
    }

    /// Calls the process that lives, and if it dies meanwhile the next one.
    pub(super) fn call<R, F>(&mut self, call: impl Fn(&App) -> F) -> Result<R, Error>
    where
        F: Future<Output = Result<R, Error>>,
    {
        loop {
            let live = self.live()?;
            let answer = live.process.block_on(async {
                tokio::select! {
                    biased;
                    answer = call(&live.app) => Some(answer),
                    () = live.plan.died() => None,
                }
            });
            match answer {
                Some(answer) => return answer,
                None => self.bury(),
            }
        }
    }

    /// Lets everything happen that happens by itself at this instant, and by whichever process.
    pub(in crate::testing) fn settle(&mut self) -> Result<(), Error> {
        let script = self.script.clone();
        loop {
            let live = self.live()?;
            let lives = live.process.block_on(async {
                loop {
                    tokio::select! {
                        biased;
                        () = live.plan.died() => return false,
                        () = live.process.quiet() => {}
                    }
                    if live.plan.is_dead() {
                        continue;
                    }
                    if !script.is_at_work() {
                        return true;
                    }
                    // Something real is awaited: a timer of the machine, another thread.
                    if tokio::time::timeout(PATIENCE, script.ended()).await.is_err() {
                        return true;
                    }
                }
            });
            if lives {
                return Ok(());
            }
            self.bury();
        }
    }

    /// The process that lives; a new one, if there is none.
    fn live(&mut self) -> Result<&Live, Error> {
        if self.live.is_none() {
            let process = Process::new()?;
            self.disk = self.disk.reopen();
            self.processes += 1;
            let plan = FaultPlan::new();
            for crash in self.crashes.iter().filter(|crash| !crash.fired) {
                crash.put_into(&plan, self.writes_before);
            }
            self.script.obey(plan.clone());
            let store = FaultStore::new(Arc::new(self.disk.clone()), plan.clone());
            let builder = Backstitch::on(Arc::new(store)).clock(Arc::new(self.clock.clone()));
            let intercept: Arc<dyn Intercept> = Arc::new(self.script.clone());
            let builder = builder.under_test(self.processes, intercept);
            let builder = self.setups.iter().fold(builder, |builder, setup| setup(builder));
            let app = process.block_on(async { builder.run().await })?;
            self.live = Some(Live { app, plan, process });
        }
        Ok(self.live.as_ref().expect("made above"))
    }

    /// Ends what is dead.
    pub(super) fn bury(&mut self) {
        let Some(live) = self.live.take() else { return };
        let count = live.plan.count();
        self.writes_before += count;
        if live.plan.is_dead() {
            for crash in &mut self.crashes {
                crash.fired |= crash.write == self.writes_before;
            }
        }
        drop(live);
    }
}

impl Crash {
    pub fn put_into(&self, plan: &FaultPlan, before: u64) {
        let Some(n @ 1..) = self.write.checked_sub(before) else { return };
        match self.side {
            CrashSide::Before => plan.die_before(n),
            CrashSide::After => plan.die_after(n),
        }
    }
}

impl CrashSide {
    pub fn name(self) -> &'static str {
        match self {
            CrashSide::Before => "before",
            CrashSide::After => "after",
        }
    }
}
