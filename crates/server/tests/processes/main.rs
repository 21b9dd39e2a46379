//! A server and workers as real processes, which are killed and stopped at their worst moments. What happened is
//! counted outside of them: in a file, one line for each effect.

#[path = "../cli/binary.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod binary;

mod deaths;
mod effects;
mod scene;
mod soak;
mod worker;
