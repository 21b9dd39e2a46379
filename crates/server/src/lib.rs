//! The server: one process that has the journals, and to which workers and callers connect.

pub mod grpc;
