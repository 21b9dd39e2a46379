//! Answering a call: the run is taken off the store's list when what it was called for is durable.
//!
//! **Invariant:** a call is heard only if it is the same one before the inbox was read, and after what
//! stood there was written into the journal. One that came meanwhile has grown, and stays.

use backstitch_store::{Call, Change, RunNo};

use crate::calls;
use crate::driver::Driver;

/// A call that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Called {
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

impl Driver {
    /// Call it when everything that is known is durable.
    pub(super) async fn answer_call(&mut self) -> Answered {
        let Some(called) = self.called else { return Answered::Yes };
        let before = RunNo(self.run.0 - 1);
        let stands = match self.shared.store.calls(before, 1).await {
            Ok(calls) => calls.first().copied().filter(|call| call.run == self.run),
            Err(error) => return self.answer_later(&error.to_string()),
        };
        match (stands, called) {
            (None, _) => {
                self.called = None;
                Answered::Yes
            }
            (Some(call), Called::Read(read)) if call == read => {
                if let Err(error) = self.shared.store.commit(Change::Heard(vec![call])).await {
                    return self.answer_later(&error.to_string());
                }
                // Perhaps there is another one by now.
                self.called = Some(Called::Told);
                Answered::NotYet
            }
            (Some(call), Called::Told | Called::Read(_)) => {
                self.called = Some(Called::Read(call));
                self.read_inbox().await;
                Answered::NotYet
            }
        }
    }

    /// It stays on the list.
    fn answer_later(&mut self, why: &str) -> Answered {
        tracing::warn!(id = %self.execution.id, why, "a call is answered later");
        self.called = None;
        if !self.shared.is_stopping() {
            calls::look_later(&self.shared);
        }
        Answered::Yes
    }
}
