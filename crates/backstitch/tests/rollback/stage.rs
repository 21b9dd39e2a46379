//! Steps that leave traces, gates that hold them, and a look at what a run left behind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backstitch::core::run::Run;
use backstitch::{
    App, Backstitch, Builder, Client, Ctx, Error, FailureExt, Handle, Result, Step, Undo,
    UndoOutcome, msg,
};

use crate::checks::check;
use crate::world::{Effects, Gate, World};

/// A world with gates that are known by name.
pub struct Stage {
    pub world: World,
    pub gates: Gates,
}

impl Stage {
    pub fn new() -> Stage {
        Stage { world: World::new(), gates: Gates::default() }
    }

    /// The next process on the disk.
    pub async fn open(&self, setup: impl FnOnce(Builder) -> Builder) -> App {
        self.world.open(|builder| setup(builder.state(self.gates.clone()))).await
    }

    /// The next process on the disk, which works on nothing: what it asks for stands unread.
    pub fn guest(&self) -> Client {
        let clock = Arc::new(self.world.clock.clone());
        Backstitch::connect_on(Arc::new(self.world.reopen()), clock)
    }

    pub fn effects(&self) -> Vec<String> {
        self.world.effects.all()
    }

    /// Waits until `effect` was seen once.
    pub async fn sees(&self, effect: &str) {
        self.world.effects.wait_for(effect, 1).await;
    }
}

/// Gates by name. Each is closed until it is opened.
#[derive(Clone, Default)]
pub struct Gates(Arc<Mutex<HashMap<String, Gate>>>);

impl Gates {
    fn gate(&self, name: &str) -> Gate {
        let mut gates = self.0.lock().unwrap();
        gates.entry(name.to_owned()).or_insert_with(Gate::closed).clone()
    }

    pub fn open(&self, name: &str) {
        self.gate(name).open();
    }

    pub async fn pass(&self, name: &str) {
        self.gate(name).pass().await;
    }
}

/// A step that has the effect `do NAME` and gives `ticket NAME`, and its undo.
pub fn booking(ctx: &Ctx, name: &str) -> Step<String> {
    let body = async move |s: backstitch::StepCtx| {
        s.state::<Effects>().add(format!("do {}", s.name()));
        Ok(format!("ticket {}", s.name()))
    };
    ctx.step(name, body).rollback(undone)
}

/// As [`booking`], but held at the gate of its name after the effect `begin NAME`.
pub fn gated(ctx: &Ctx, name: &str) -> Step<String> {
    ctx.step(name, async move |s| {
        let name = s.name().to_owned();
        s.state::<Effects>().add(format!("begin {name}"));
        s.state::<Gates>().pass(&name).await;
        s.state::<Effects>().add(format!("do {name}"));
        Ok(format!("ticket {name}"))
    })
    .rollback(undone)
}

/// The undo of a booking: has the effect `undo NAME: OUTCOME`.
pub async fn undone(u: Undo<String>) -> Result<()> {
    u.state::<Effects>().add(trace(&u));
    Ok(())
}

/// `undo NAME: OUTCOME`.
pub fn trace(u: &Undo<String>) -> String {
    let name = u.step().name;
    match (u.outcome(), u.output()) {
        (UndoOutcome::Succeeded, Some(output)) => {
            assert_eq!(*output, format!("ticket {name}"), "the output is handed over");
            format!("undo {name}: succeeded")
        }
        (UndoOutcome::Failed(_), None) => format!("undo {name}: failed"),
        (UndoOutcome::Unknown, None) => format!("undo {name}: unknown"),
        (outcome, output) => panic!("{outcome:?} with output {output:?}"),
    }
}

/// A step without an undo to which the business says no.
pub fn refusal(ctx: &Ctx) -> Step<()> {
    ctx.step("refusal", async move |_s| Err(msg("no").permanent().with_code("refused")))
}

/// The failure that [`refusal`] becomes.
pub fn assert_refused(error: &Error) {
    assert_eq!(error.failure().map(|failure| failure.code.as_str()), Some("refused"));
}

/// The fold of the journal, after all checks.
pub async fn checked<T>(handle: &Handle<T>) -> Run {
    check(&handle.journal().await.unwrap())
}

/// The undos among the effects, in order.
pub fn undos(effects: &[String]) -> Vec<&str> {
    effects.iter().map(String::as_str).filter(|effect| effect.starts_with("undo")).collect()
}

/// Lets everybody else do what they can.
pub async fn a_while() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
