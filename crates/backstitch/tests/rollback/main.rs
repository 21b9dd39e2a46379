//! The way back: what is undone, in which order, by whom, and what outlives a crash.

#[path = "../checks/mod.rs"]
mod checks;
#[path = "../world/mod.rs"]
mod world;

mod stage;
mod wrapped;

mod order;

mod handler;
mod undo_on;

mod barrier;
mod dropped;
mod dropped_unread;
mod left_behind;

mod cancel;
mod failed_undo;
mod kill;
mod pause;
mod same_moment;

mod changed_code;
mod recovery;
mod stop;
mod trouble;

mod many;
mod pairs;
