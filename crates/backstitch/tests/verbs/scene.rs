//! An execution that is really brought into a status.

use std::collections::BTreeSet;
use std::sync::Arc;

use backstitch::store::memory::MemoryStore;
use backstitch::store::{RunNo, Store};
use backstitch::{
    App, Builder, Ctx, FailureExt, Handle, NoTimeout, Result, Status, Step, msg, workflow,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::world::{Effects, World, until};

/// A status, as far as verbs tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Pending,
    Running,
    Suspended,
    Paused,
    Blocked,
    RollingBack,
    PausedRollingBack,
    Stuck,
    Succeeded,
    Failed,
    Cancelled,
    Terminated,
    Killed,
}

impl On {
    pub fn status(self) -> Status {
        match self {
            On::Pending => Status::Pending,
            On::Running => Status::Running,
            On::Suspended => Status::Suspended,
            On::Paused | On::PausedRollingBack => Status::Paused,
            On::Blocked => Status::Blocked,
            On::RollingBack => Status::RollingBack,
            On::Stuck => Status::Stuck,
            On::Succeeded => Status::Succeeded,
            On::Failed => Status::Failed,
            On::Cancelled => Status::Cancelled,
            On::Terminated | On::Killed => Status::Terminated,
        }
    }

    pub fn is_forward(self) -> bool {
        match self {
            On::Pending | On::Running | On::Suspended | On::Paused | On::Blocked => true,
            On::RollingBack
            | On::PausedRollingBack
            | On::Stuck
            | On::Succeeded
            | On::Failed
            | On::Cancelled
            | On::Terminated
            | On::Killed => false,
        }
    }

    fn plan(self) -> Plan {
        match self {
            On::Pending => Plan::Waits,
            On::Running => Plan::Works,
            On::Suspended | On::Paused | On::Cancelled | On::Terminated | On::Killed => {
                Plan::Sleeps
            }
            On::Blocked => Plan::Calls,
            On::RollingBack | On::PausedRollingBack | On::Stuck | On::Failed => Plan::Fails,
            On::Succeeded => Plan::Returns,
        }
    }

    fn levers(self) -> &'static [&'static str] {
        match self {
            On::Running => &["hold work"],
            On::Blocked => &["break call"],
            On::RollingBack | On::PausedRollingBack => &["break car", "hold hotel"],
            On::Stuck => &["break car"],
            On::Pending
            | On::Suspended
            | On::Paused
            | On::Succeeded
            | On::Failed
            | On::Cancelled
            | On::Terminated
            | On::Killed => &[],
        }
    }
}

/// What the workflow does after it has booked a flight, a hotel and a car.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Plan {
    Returns,
    Sleeps,
    Waits,
    Works,
    Calls,
    Fails,
}

/// Levers that bodies and undos look at: `hold NAME` holds it, `break NAME` has it fail.
#[derive(Clone)]
pub struct Levers(Arc<watch::Sender<BTreeSet<String>>>);

impl Default for Levers {
    fn default() -> Levers {
        Levers(Arc::new(watch::Sender::new(BTreeSet::new())))
    }
}

impl Levers {
    pub fn pull(&self, lever: &str) {
        self.0.send_modify(|levers| {
            levers.insert(lever.to_owned());
        });
    }

    pub fn release(&self, lever: &str) {
        self.0.send_modify(|levers| {
            levers.remove(lever);
        });
    }

    /// The same levers for the next process: what the dead one held is held for ever.
    fn copy(&self) -> Levers {
        Levers(Arc::new(watch::Sender::new(self.0.borrow().clone())))
    }

    fn breaks(&self, name: &str) -> bool {
        self.0.borrow().contains(&format!("break {name}"))
    }

    pub async fn pass(&self, name: &str) {
        let lever = format!("hold {name}");
        let mut levers = self.0.subscribe();
        levers.wait_for(|levers| !levers.contains(&lever)).await.expect("we hold the sender");
    }
}

fn booking(ctx: &Ctx, name: &str) -> Step<()> {
    let book = ctx.step(name, async move |s| {
        s.state::<Effects>().add(format!("book {}", s.name()));
        Ok(())
    });
    book.rollback(async move |u| {
        let name = u.step().name;
        u.state::<Effects>().add(format!("undoing {name}"));
        u.state::<Levers>().pass(&name).await;
        if u.state::<Levers>().breaks(&name) {
            return Err(msg(format!("{name} cannot be undone")).permanent());
        }
        u.state::<Effects>().add(format!("undo {name}"));
        Ok(())
    })
}

#[workflow]
pub async fn job(ctx: Ctx, plan: Plan) -> Result<u32> {
    for name in ["flight", "hotel", "car"] {
        booking(&ctx, name).await?;
    }
    match plan {
        Plan::Returns => {}
        Plan::Sleeps => ctx.sleep("1h").await?,
        Plan::Waits => ctx.wait_event("go", "go", NoTimeout).await?,
        Plan::Works => {
            let work = ctx.step("work", async move |s| {
                s.state::<Effects>().add("begin work");
                s.state::<Levers>().pass("work").await;
                Ok(())
            });
            work.await?;
        }
        Plan::Calls => {
            let call = ctx.step("call", async move |s| {
                s.state::<Effects>().add("call");
                match s.state::<Levers>().breaks("call") {
                    true => Err(msg("no such key").attention()),
                    false => Ok(()),
                }
            });
            call.await?;
        }
        Plan::Fails => {
            ctx.step("ask", async move |_s| Err::<(), _>(msg("no").permanent())).await?;
        }
    }
    Ok(7)
}

/// One execution, with all that is needed to look behind it.
pub struct Scene {
    pub world: World,
    pub levers: Levers,
    pub app: App,
    pub handle: Handle<u32>,
    pub run: RunNo,
    /// The disk, read behind the back of the engine.
    pub disk: MemoryStore,
}

impl Scene {
    /// An execution that has just been started.
    pub async fn start(plan: Plan, levers: &[&str]) -> Scene {
        let (world, pulled) = (World::new(), Levers::default());
        levers.iter().for_each(|lever| pulled.pull(lever));
        let disk = world.reopen();
        let setup = with_job(&pulled);
        let app = world.open_on(Arc::new(disk.clone()), setup).await;
        let handle = app.start(job, "t", plan).await.unwrap();
        let run = app.engine().newest("default", "t").await.unwrap().run;
        Scene { world, levers: pulled, app, handle, run, disk }
    }

    /// An execution on its way, or at its end.
    pub async fn new(on: On) -> Scene {
        Scene::with_plan(on, on.plan()).await
    }

    /// A paused execution that was blocked before.
    pub async fn paused_while_blocked() -> Scene {
        let scene = Scene::start(Plan::Calls, &["break call"]).await;
        until(&scene.handle, Status::Blocked).await;
        scene.handle.pause().await.unwrap();
        until(&scene.handle, Status::Paused).await;
        scene
    }

    async fn with_plan(on: On, plan: Plan) -> Scene {
        let mut scene = Scene::start(plan, on.levers()).await;
        let handle = &scene.handle;
        match on {
            On::Pending => {
                until(handle, Status::Suspended).await;
                scene.next_process(|b| b).await;
                scene.handle.send_event("go", &()).await.unwrap();
            }
            On::Running => scene.world.effects.wait_for("begin work", 1).await,
            On::Paused => {
                until(handle, Status::Suspended).await;
                handle.pause().await.unwrap();
            }
            On::RollingBack => scene.world.effects.wait_for("undoing hotel", 1).await,
            On::PausedRollingBack => {
                scene.world.effects.wait_for("undoing hotel", 1).await;
                handle.pause().await.unwrap();
                scene.levers.release("hold hotel");
            }
            On::Cancelled | On::Terminated | On::Killed => {
                until(handle, Status::Suspended).await;
                match on {
                    On::Cancelled => handle.cancel().await.unwrap(),
                    On::Terminated => handle.terminate().await.unwrap(),
                    _ => handle.kill().by("Bob").await.unwrap(),
                };
            }
            On::Suspended | On::Blocked | On::Stuck | On::Succeeded | On::Failed => {}
        }
        until(&scene.handle, on.status()).await;
        scene
    }

    /// Another process takes over.
    pub async fn next_process(&mut self, setup: impl FnOnce(Builder) -> Builder) {
        self.disk = self.world.reopen();
        self.app = self.world.open_on(Arc::new(self.disk.clone()), setup).await;
        self.handle = self.app.handle("t").await.unwrap();
    }

    /// Another process takes over that has the code.
    pub async fn next_process_with_code(&mut self) {
        self.levers = self.levers.copy();
        let setup = with_job(&self.levers);
        self.next_process(setup).await;
    }

    /// Rows of the journal, and of the inbox.
    pub async fn rows(&self) -> (usize, usize) {
        let journal = self.disk.journal(self.run, 0, usize::MAX).await.unwrap();
        let inbox = self.disk.inbox(self.run, 0, usize::MAX).await.unwrap();
        (journal.len(), inbox.len())
    }

    /// The undos that came to their end, in order.
    pub fn undone(&self) -> Vec<String> {
        let effects = self.world.effects.all().into_iter();
        effects.filter(|effect| effect.starts_with("undo ")).collect()
    }
}

pub fn with_job(levers: &Levers) -> impl FnOnce(Builder) -> Builder + use<> {
    let levers = levers.clone();
    move |b| b.register(job).state(levers)
}
