//! Steps that are held at gates, shuffled orders to open them in, and what the code then saw.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backstitch::{Builder, Ctx, FnWorkflow, Step, StepCtx};

use crate::world::{Effects, Gate};

/// Gates by name. Each is closed until it is opened, unless it says otherwise.
#[derive(Clone, Default)]
pub struct Gates(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    gates: HashMap<String, Gate>,
    /// All are open but this one.
    but: Option<String>,
}

impl Gates {
    /// Nobody is held.
    pub fn all_open() -> Gates {
        Gates::all_open_but("")
    }

    /// Nobody is held but at the gate `name`.
    pub fn all_open_but(name: &str) -> Gates {
        let but = Some(name.to_owned());
        Gates(Arc::new(Mutex::new(Inner { gates: HashMap::new(), but })))
    }

    fn gate(&self, name: &str) -> Gate {
        let mut inner = self.0.lock().unwrap();
        let open = inner.but.as_ref().is_some_and(|but| but != name);
        let gate = inner.gates.entry(name.to_owned()).or_insert_with(Gate::closed).clone();
        if open {
            gate.open();
        }
        gate
    }

    pub fn open(&self, name: &str) {
        self.gate(name).open();
    }

    pub async fn pass(&self, name: &str) {
        self.gate(name).pass().await;
    }
}

/// The numbers below `n`, in an order that depends on the seed.
pub fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|i| backstitch::core::id::draw(seed, 0, *i as u64));
    order
}

/// What one pass of the code saw; each process has its own.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A step that is held at the gate of its name, and gives its name.
pub fn gated(ctx: &Ctx, name: &str) -> Step<String> {
    ctx.step(name, async |s: StepCtx| {
        s.state::<Effects>().add(format!("begin {}", s.name()));
        s.state::<Gates>().pass(s.name()).await;
        Ok(s.name().to_owned())
    })
}

/// A process that knows the workflow and has the gates.
pub fn with(
    workflow: &FnWorkflow<(), Vec<String>>,
    gates: &Gates,
) -> impl FnOnce(Builder) -> Builder {
    let (workflow, gates) = (workflow.clone(), gates.clone());
    move |b| b.register(workflow).state(gates)
}
