//! What the types of a workflow have to be able to do, said in words of our own: the compiler
//! repeats them when one is not.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that the journal can hold: an input, or the output of a step or a workflow.
///
/// There is nothing to implement: every type that serde can write and read is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written into the journal",
    label = "this goes through the journal",
    note = "put `#[derive(serde::Serialize, serde::Deserialize)]` on it, or use a type that has them"
)]
pub trait Data: Serialize + DeserializeOwned + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> Data for T {}

/// A closure that can be called once per attempt: a body, or an undo handler.
///
/// There is nothing to implement: a closure is one when everything that it captures can be cloned
/// and sent to another thread.
#[diagnostic::on_unimplemented(
    message = "this closure cannot be called once per attempt",
    label = "it changes what it captured, or captured something that is not `Clone + Send + Sync`",
    note = "a body or an undo handler is cloned for each attempt and owns what it captures: write \
            `clone!(a, b => async move |s| …)`, and return what it finds out instead of changing \
            a variable"
)]
pub trait PerAttempt: Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<F: Clone + Send + Sync + 'static> PerAttempt for F {}
