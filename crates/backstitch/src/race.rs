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
