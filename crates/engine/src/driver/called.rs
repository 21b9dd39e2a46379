//! Answering a call: the run is taken off the store's list when what it was called for is durable.
//!
//! **Invariant:** a call is heard only if it is the same one before the inbox was read, and after what
//! stood there was written into the journal. One that came meanwhile has grown, and stays.

use backstitch_store::{Call, Change, RunNo};

use crate::calls;
use crate::driver::Driver;
use crate::engine::Shared;
use crate::error::Error;

/// A call that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// Somebody said so.
    Told,
    /// It stood so on the list before the inbox was read for it.
    Read(Call),
}

/// Whether the run is called no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Yes,
    /// There may be something to write first.
    NotYet,
}

/// What has become of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// There is none.
    Nothing,
    /// It is off the list; perhaps there is another one by now.
    Call,
    /// The inbox is to be read for it, and written down.
    NotYet(Called),
}

impl Called {
    /// Takes the call off the list, if it is still the one for which the inbox was read. Call it when
    /// everything that was read is durable.
    ///
    /// # Errors
    /// Trouble of the store: the call stays.
    pub(crate) async fn answer(self, shared: &Shared, run: RunNo) -> Result<Heard, Error> {
        let calls = shared.store.calls(RunNo(run.0 - 1), 1).await?;
        match (calls.first().copied().filter(|call| call.run == run), self) {
            (None, _) => Ok(Heard::Nothing),
            (Some(call), Called::Read(read)) if call == read => {
                shared.store.commit(Change::Heard(vec![call])).await?;
                Ok(Heard::Call)
            }
            (Some(call), Called::Told | Called::Read(_)) => Ok(Heard::NotYet(Called::Read(call))),
        }
    }
}

impl Driver {
    /// Call it when everything that is known is durable.
    pub(super) async fn answer_call(&mut self) -> Answered {
        let Some(called) = self.called else { return Answered::Yes };
        match called.answer(&self.shared, self.run).await {
            Ok(Heard::Nothing) => {
                self.called = None;
                Answered::Yes
            }
            Ok(Heard::Call) => {
                self.called = Some(Called::Told);
                Answered::NotYet
            }
            Ok(Heard::NotYet(read)) => {
                self.called = Some(read);
                self.read_inbox().await;
                Answered::NotYet
            }
            Err(error) => {
                // It stays on the list.
                tracing::warn!(id = %self.execution.id, %error, "a call is answered later");
                self.called = None;
                if !self.shared.is_stopping() {
                    calls::look_later(&self.shared);
                }
                Answered::Yes
            }
        }
    }
}
