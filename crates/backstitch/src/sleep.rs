//! Durable sleeps.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::id::KeyKind;
use backstitch_core::session::AskedKind;
use backstitch_engine::desk::{Request, Ticket};

use crate::ctx::Ctx;

/// The name under which sleeps are keyed.
const NAME: &str = "sleep";

/// Until when.
pub(crate) enum Until {
    /// So many microseconds after it is first polled.
    After(u64),
    /// An instant.
    At(i64),
    /// Not a duration at all.
    Never(String),
}

/// A sleep that survives restarts. Made by [`Ctx::sleep`] and [`Ctx::sleep_until`].
///
/// # Errors
/// A permanent failure when the duration is none, or when it was built outside of the workflow's
/// own code.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    ctx: Ctx,
    until: Until,
    built: Result<Ticket, Failure>,
}

impl Sleep {
    pub(crate) fn build(ctx: &Ctx, until: Until, place: &'static Location<'static>) -> Sleep {
        let defect = match &until {
            Until::Never(why) => {
                let message = format!("the sleep at {place}: {why}");
                Some(Failure::new(Class::Permanent, Origin::Engine, "BadDuration", message))
            }
            Until::After(_) | Until::At(_) => None,
        };
        let built = match ctx.defect().cloned().or(defect) {
            Some(defect) => Err(defect),
            None => ctx.desk.build(ctx.scope(), KeyKind::Timer, NAME, place),
        };
        Sleep { ctx: ctx.clone(), until, built }
    }
}

impl Future for Sleep {
    type Output = Result<(), Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let ticket = match &this.built {
            Ok(ticket) => ticket,
            Err(defect) => return Poll::Ready(Err(defect.clone())),
        };
        let until = &this.until;
        let request = |now_us: i64| {
            let fire_at_us = match until {
                Until::After(us) => now_us.saturating_add_unsigned(*us),
                Until::At(at_us) => *at_us,
                Until::Never(_) => now_us,
            };
            Request { what: AskedKind::Timer { fire_at_us }, body: None, undo: None }
        };
        this.ctx.desk.poll(ticket, cx, request).map_ok(|_| ())
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Ok(ticket) = &self.built {
            self.ctx.desk.release(ticket);
        }
    }
}
