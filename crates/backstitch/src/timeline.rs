//! A journal as a picture for the terminal.
//!
//! Time runs down the page. The way forward is the left rail, the way back the right one, whose
//! arrows point up: every undo hangs on it, newest start first, until it is home again.
//!
//! ```text
//!      0 ms  ●    t-42  workflow pay, version 1
//!            │    started by the program with {"account":7,"cents":3000}
//!            │
//!      0 ms  ├─▶  debit
//!      4 ms  │    ✔ debit  {"booking":1}
//!            │
//!      4 ms  ├─▶  credit
//!      8 ms  │    ✘ credit: AccountClosed: account 7 is closed
//!            │      permanent: it is not tried again
//!            │
//!      8 ms  ╘══╗ ROLLBACK
//!               ║ because the workflow failed: AccountClosed: account 7 is closed
//!               ║ to undo, newest start first: debit
//!               ▲
//!      8 ms  ◀══╣ undo debit
//!     12 ms     ║ ↺ debit is undone
//!               ▲
//!     12 ms  ╒══╝ rollback complete
//!            │
//!     12 ms  ■    failed: AccountClosed: account 7 is closed
//! ```

mod rail;
mod scribe;
mod step;
mod undo;
mod verb;
mod wait;
mod words;

#[cfg(test)]
mod tests;

use backstitch_core::row::Row;
use backstitch_core::run::WaitsFor;
use backstitch_core::status::Status;

use self::scribe::Scribe;

/// No line is wider, in columns of the terminal. What is longer is cut and ends in `…`.
pub const COLUMNS_MAX: usize = 100;

/// How a timeline is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone, for files and pipes.
    Plain,
    /// With the colours of a terminal (ANSI escape sequences).
    Colour,
}

/// Draws a journal, from its first row on: each step and undo with its attempts, what failed and
/// why, when the next attempt is due, the decision to roll back with its causes, where a process
/// died and another one took over, and how the run ended.
///
/// Times are relative to the first row. Whatever the journal holds, control characters do not
/// reach the terminal. A journal that is not closed ends with what the run is doing.
///
/// ```
/// # use backstitch::{Backstitch, Ctx, Result, workflow};
/// use backstitch::timeline;
///
/// # #[workflow]
/// # async fn greet(ctx: Ctx, name: String) -> Result<String> {
/// #     ctx.step("compose", async move |_s| Ok(format!("Hello, {name}"))).await
/// # }
/// # #[tokio::main]
/// # async fn main() -> std::result::Result<(), backstitch::Error> {
/// # let app = Backstitch::open("memory:").register(greet).run().await?;
/// # let handle = app.start(greet, "greeting-1", "Ada".to_owned()).await?;
/// # handle.result().await?;
/// let picture = timeline::draw(&handle.journal().await?, timeline::Style::Plain);
/// assert!(picture.contains("├─▶  compose"));
/// # app.shutdown().await
/// # }
/// ```
pub fn draw(rows: &[Row], style: Style) -> String {
    drawn(rows, None, style)
}

/// Draws a journal as [`draw`] does. One that is not closed ends with how it stands: a journal does not say whether
/// anybody works on it.
///
/// `status` and `waits_for` are those of [`ExecutionStatus`](crate::ExecutionStatus).
pub fn draw_as_it_stands(
    rows: &[Row],
    status: Status,
    waits_for: &[WaitsFor],
    style: Style,
) -> String {
    drawn(rows, Some((status, waits_for)), style)
}

fn drawn(rows: &[Row], stands: Option<(Status, &[WaitsFor])>, style: Style) -> String {
    let mut scribe = Scribe::new(rows);
    scribe.write(rows, stands);
    let lines = scribe.lines.iter();
    lines.map(|line| line.draw(style) + "\n").collect()
}
