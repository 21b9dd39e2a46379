//! The binary, as people and programs use it.

#![cfg(unix)]

mod asking;
mod backup;
mod lists;
mod runs;
mod serving;
mod workers;

mod binary;
