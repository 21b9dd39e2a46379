//! Runnable examples of Backstitch. Each has a folder of its own beside this one:
//! `bank_transfer` moves money between two banks, fails half way, and dies on the way back.
