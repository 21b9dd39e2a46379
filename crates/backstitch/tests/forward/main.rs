//! The way forward: steps, attempts, waiting, starting, and what replay makes of it all.

#[path = "../checks/mod.rs"]
mod checks;
#[path = "../world/mod.rs"]
mod world;

mod gates;
mod journal;

mod attempts;
mod branches;
mod cancelling;
mod changed_code;
mod delay_functions;
mod draws;
mod errors;
mod failure_classes;
mod finished;
mod fitting_code;
mod foreign;
mod keys;
mod limits;
mod options;
mod outputs;
mod panics;
mod poison;
mod programs;
mod registering;
mod replay;
mod results;
mod retries;
mod starting;
mod state;
mod steps;
mod waiting;
