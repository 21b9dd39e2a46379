//! Runnable examples of Backstitch, in the folders beside this one:
//!
//! - `bank_transfer` moves money between two banks, fails half way, and dies on the way back.
//! - `fulfilment` reserves stock, charges a card over HTTP and ships; each time something else goes
//!   wrong.
//! - `short/`: one idea each, below 80 lines.
