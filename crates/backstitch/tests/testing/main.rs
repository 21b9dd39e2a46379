//! The kit for tests of workflows: it does what it is told, and says so when it cannot.

mod blame;
mod endless;
mod explore;
mod kit;
mod plain_case;
mod refused;
mod shop;
mod trouble;
mod worlds;
