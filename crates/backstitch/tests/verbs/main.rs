//! What a person can do to an execution, in each status: the table of docs/verbs.md, cell by cell.

#[path = "../checks/mod.rs"]
mod checks;
#[path = "../rollback/stage.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod stage;
#[path = "../world/mod.rs"]
mod world;
#[path = "../rollback/wrapped.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod wrapped;

mod scene;
mod table;

mod cell;
mod cells;
mod follow;

mod crash;
mod pending;
mod same_moment;
mod timers;
mod waiting;

mod bad_input;
mod bad_values;
mod run_limits;
