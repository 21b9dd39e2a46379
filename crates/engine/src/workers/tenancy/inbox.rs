//! What comes from outside for a run that a worker has.

use backstitch_core::inbox::{InboxKind, InboxRow};

use super::{Over, Tenancy};
use crate::driver::INBOX_PAGE;
use crate::workers::ToWorker;

impl Tenancy {
    pub(super) async fn look_into_inbox(&mut self) -> Option<Over> {
        self.may_have_more = true;
        self.push_inbox().await
    }

    /// Sends the worker what has come from outside, as far as it has room for it. A kill does not wait until it has
    /// read what stands before it: its code may be what hangs.
    pub(super) async fn push_inbox(&mut self) -> Option<Over> {
        while self.may_have_more {
            let unread = self.sent - self.follower.run().inbox_read;
            // The rest when the worker has read some of it.
            let has_room = unread < INBOX_PAGE as u64;
            let after = if has_room { self.sent } else { self.looked.max(self.sent) };
            let rows = match self.read_inbox(after).await {
                Ok(rows) => rows,
                Err(over) => return over,
            };
            let is_last = rows.len() < INBOX_PAGE;
            let Some(last) = rows.last().map(|row| row.number) else {
                self.may_have_more = !has_room && self.looked > self.sent;
                return None;
            };
            self.looked = self.looked.max(last);
            if rows.iter().any(|row| row.kind == InboxKind::Kill) {
                self.revoke("the execution is killed", false).await;
                return Some(Over::Lost);
            }
            if has_room {
                self.sent = last;
                self.may_have_more = !is_last;
                let (run, fence) = (self.run, self.grant.fence);
                self.grant.worker.send(ToWorker::Inbox { run, fence, rows }).await;
            } else if is_last {
                return None;
            }
        }
        None
    }

    /// A page of the inbox, however long that takes.
    async fn read_inbox(&mut self, after: u64) -> Result<Vec<InboxRow>, Option<Over>> {
        loop {
            match self.shared.store.inbox(self.run, after, INBOX_PAGE).await {
                Ok(rows) => return Ok(rows),
                Err(error) if self.shared.is_stopping() => {
                    tracing::debug!(%error, "stopped");
                    return Err(None);
                }
                Err(error) if error.kind() == backstitch_store::ErrorKind::Corrupt => {
                    return Err(Some(Over::Failed(error.into())));
                }
                Err(error) => {
                    tracing::warn!(id = %self.execution.id, %error, "inbox not read; trying again");
                    self.shared.clock.sleep(self.shared.options.unavailable_retry).await;
                }
            }
        }
    }
}
