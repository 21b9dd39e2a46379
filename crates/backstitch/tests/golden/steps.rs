//! Steps that leave traces outside.

use backstitch::{Ctx, Result, Step, StepCtx, Undo};

use crate::scene::Gates;
use crate::world::Effects;

/// Leaves the trace of an attempt: `do NAME#COUNT`.
pub fn did(s: &StepCtx) {
    s.state::<Effects>().add(format!("do {}#{}", s.name(), s.count()));
}

/// A step that gives `NAME`, and its undo.
pub fn booking(ctx: &Ctx, name: &str) -> Step<String> {
    ctx.step(name, async move |s| {
        did(&s);
        Ok(s.name().to_owned())
    })
    .rollback(undone)
}

/// As [`booking`], but held at the gate of its name.
pub fn gated(ctx: &Ctx, name: &str) -> Step<String> {
    ctx.step(name, async move |s| {
        did(&s);
        s.state::<Gates>().pass(s.name()).await;
        Ok(s.name().to_owned())
    })
    .rollback(undone)
}

/// Leaves the trace `undo NAME#COUNT`.
pub async fn undone(u: Undo<String>) -> Result<()> {
    let step = u.step();
    if let Some(output) = u.output() {
        assert_eq!(*output, step.name, "the output is handed over");
    }
    u.state::<Effects>().add(format!("undo {}#{}", step.name, step.count));
    Ok(())
}
