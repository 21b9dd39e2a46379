//! What is read from a store in memory, by its judgements and by everybody else.

use std::convert::Infallible;
use std::ops::Bound;

use backstitch_core::attribute::AttributeValue;
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxRow;
use bytes::Bytes;

use super::{Data, Run};
use crate::rules::{Accepted, Facts, Tail, Unread};
use crate::{AttentionPlace, AttentionRow, Call, RunInfo, RunNo};

impl Data {
    pub(in crate::memory) fn journal(&self, run: RunNo, after: u64, limit: usize) -> Vec<Bytes> {
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let rows = self.runs.get(&run).map(|run| run.journal.iter());
        rows.into_iter().flatten().skip(skip).take(limit).cloned().collect()
    }

    pub(in crate::memory) fn inbox(&self, run: RunNo, after: u64, limit: usize) -> Vec<InboxRow> {
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let rows = self.runs.get(&run).map(|run| run.inbox.iter());
        rows.into_iter().flatten().skip(skip).take(limit).map(|(row, _)| row.clone()).collect()
    }

    pub(in crate::memory) fn newest(&self, namespace: &str, id: &str) -> Option<&RunInfo> {
        let run = self.newest.get(&(namespace.to_owned(), id.to_owned()))?;
        Some(&self.runs[run].info)
    }

    pub(in crate::memory) fn run_of(
        &self,
        namespace: &str,
        id: &str,
        run_id: RunId,
    ) -> Option<RunInfo> {
        let mut infos = self.runs.values().map(|run| &run.info);
        let is_it = |RunInfo { new, .. }: &&RunInfo| {
            new.run_id == run_id && new.namespace == namespace && new.id == id
        };
        infos.find(is_it).cloned()
    }

    pub(in crate::memory) fn run(&self, run: RunNo) -> Option<RunInfo> {
        self.runs.get(&run).map(|run| run.info.clone())
    }

    pub(in crate::memory) fn open_runs(&self, after: RunNo, limit: usize) -> Vec<RunInfo> {
        let above = self.open.range((Bound::Excluded(after), Bound::Unbounded));
        above.take(limit).map(|run| self.runs[run].info.clone()).collect()
    }

    pub(in crate::memory) fn runs(&self, before: RunNo, limit: usize) -> Vec<RunInfo> {
        let below = self.runs.range(..before).rev();
        below.take(limit).map(|(_, run)| run.info.clone()).collect()
    }

    pub(in crate::memory) fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> Vec<RunInfo> {
        let below = self.runs.range(..before).rev().map(|(_, run)| run);
        let found = below.filter(|run| run.attributes.get(name) == Some(value));
        found.take(limit).map(|run| run.info.clone()).collect()
    }

    pub(in crate::memory) fn calls(&self, after: RunNo, limit: usize) -> Vec<Call> {
        let above = self.calls.range((Bound::Excluded(after), Bound::Unbounded));
        above.take(limit).map(|(run, times)| Call { run: *run, times: *times }).collect()
    }

    pub(in crate::memory) fn expired(&self, now_us: i64, limit: usize) -> Vec<RunNo> {
        let expiring = self.runs.iter().filter_map(|(run, Run { info, .. })| {
            let expires_at_us = info.update.expires_at_us.filter(|at_us| *at_us <= now_us)?;
            let held = self.is_called(*run) || self.has_attention(*run);
            (!held).then_some((expires_at_us, *run))
        });
        let mut expired: Vec<_> = expiring.collect();
        expired.sort_unstable();
        expired.into_iter().take(limit).map(|(_, run)| run).collect()
    }

    pub(in crate::memory) fn attention(
        &self,
        after: AttentionPlace,
        limit: usize,
    ) -> Vec<AttentionRow> {
        let behind = self.attention.values().filter(|item| item.place() > after);
        let mut open: Vec<_> = behind.cloned().collect();
        open.sort_by_key(AttentionRow::place);
        open.truncate(limit);
        open
    }

    fn has_attention(&self, run: RunNo) -> bool {
        self.attention.range((run, 0, 0)..=(run, u64::MAX, u32::MAX)).next().is_some()
    }

    fn is_called(&self, run: RunNo) -> bool {
        self.calls.contains_key(&run)
    }
}

impl Facts for Data {
    type Error = Infallible;

    fn fence(&self) -> u64 {
        self.fence
    }

    fn tail(&mut self, run: RunNo) -> Result<Option<Tail>, Infallible> {
        Ok(self.runs.get(&run).map(Run::tail))
    }

    fn row(&mut self, run: RunNo, seq: u64) -> Result<Option<Bytes>, Infallible> {
        let place = seq.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        let run = self.runs.get(&run);
        Ok(place.zip(run).and_then(|(place, run)| run.journal.get(place).cloned()))
    }

    fn unread(&mut self, run: RunNo, read: u64) -> Result<Vec<Unread>, Infallible> {
        let rows = self.runs.get(&run).map(|run| run.inbox.iter()).into_iter().flatten();
        let unread = rows.map(|(row, _)| row).filter(|row| row.number > read);
        Ok(unread.map(|row| Unread { kind: row.kind, topic: row.topic.clone() }).collect())
    }

    fn accepted(&mut self, run: RunNo, request: &str) -> Result<Option<Accepted>, Infallible> {
        Ok(self.runs.get(&run).and_then(|run| {
            let (row, digest) = &run.inbox[*run.requests.get(request)?];
            let InboxRow { number, kind, accepted_at_us, changed, .. } = *row;
            Some(Accepted { number, kind, digest: *digest, accepted_at_us, changed })
        }))
    }

    fn newest(&mut self, namespace: &str, id: &str) -> Result<Option<RunInfo>, Infallible> {
        Ok(Data::newest(self, namespace, id).cloned())
    }

    fn has_attention(&mut self, run: RunNo) -> Result<bool, Infallible> {
        Ok(Data::has_attention(self, run))
    }

    fn is_called(&mut self, run: RunNo) -> Result<bool, Infallible> {
        Ok(Data::is_called(self, run))
    }
}
