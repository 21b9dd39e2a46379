//! Waiting for several things at once, in written order.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Waits for the first of several futures, polling them in order; the others are dropped.
///
/// Gives the index of the winner and its output. The losers' steps are dropped, so their undos are
/// owed (unless they say `keep_when_dropped`).
///
/// # Panics
/// When there is no future to wait for.
pub async fn race<F: Future>(futures: impl IntoIterator<Item = F>) -> (usize, F::Output) {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    assert!(!futures.is_empty(), "a race of nothing has no winner");
    poll_fn(|cx| {
        for (i, future) in futures.iter_mut().enumerate() {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready((i, output));
            }
        }
        Poll::Pending
    })
    .await
}

/// Waits for the first of several branches, polling them in written order; replay does the same.
///
/// The syntax is that of `tokio::select!`.
///
/// ```
/// # use backstitch::{Ctx, Result};
/// # async fn quote(ctx: Ctx) -> Result<u32> {
/// backstitch::select! {
///     price = ctx.step("ask", async |_s| Ok(42_u32)) => price,
///     _ = ctx.sleep("10s") => Ok(0),
/// }
/// # }
/// ```
#[macro_export]
macro_rules! select {
    ($($branches:tt)*) => { $crate::private::tokio::select! { biased; $($branches)* } };
}

/// Waits for all of several futures, polling them in written order.
///
/// ```
/// # use backstitch::{Ctx, Result};
/// # async fn both(ctx: Ctx) -> Result<u32> {
/// let (a, b) = backstitch::join!(
///     ctx.step("a", async |_s| Ok(1_u32)),
///     ctx.step("b", async |_s| Ok(2_u32)),
/// );
/// # Ok(a? + b?)
/// # }
/// ```
#[macro_export]
macro_rules! join {
    ($($futures:tt)*) => { $crate::private::tokio::join! { biased; $($futures)* } };
}

/// Clones what a body or a handler captures, so that the originals stay usable.
///
/// `clone!(a, b => async move |s| …)` is `{ let a = a.clone(); let b = b.clone(); async move |s| … }`.
#[macro_export]
macro_rules! clone {
    ($($captured:ident),+ $(,)? => $closure:expr) => {{
        $(let $captured = ::core::clone::Clone::clone(&$captured);)+
        $closure
    }};
}
