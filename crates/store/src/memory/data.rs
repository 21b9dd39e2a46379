//! What is in a store in memory, and what each change does to it.

mod read;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::inbox::InboxRow;
use backstitch_core::row::Draft;
use bytes::Bytes;

use crate::role::Role;
use crate::rules::{
    Tail, append_calls, closed_after, is_guests, judge_append, judge_delete, judge_inbox,
    judge_of_the_owner, judge_start, put_calls,
};
use crate::{
    Answer, Append, AttentionChange, AttentionRow, Call, Change, CommittedRow, ExecutionUpdate,
    InboxPut, RunInfo, RunNo, Start,
};

#[derive(Default)]
pub(super) struct Data {
    fence: u64,
    stamped_us: i64,
    /// The largest number that a run has got so far.
    run_last: i64,
    runs: BTreeMap<RunNo, Run>,
    newest: HashMap<(String, String), RunNo>,
    open: BTreeSet<RunNo>,
    attention: BTreeMap<(RunNo, u64, u32), AttentionRow>,
    calls: BTreeMap<RunNo, u64>,
    /// How many rows of each deleted run have still to go.
    doomed: BTreeMap<RunNo, usize>,
}

struct Run {
    info: RunInfo,
    journal: Vec<Bytes>,
    inbox: Vec<(InboxRow, [u8; 32])>,
    /// The place of each request in `inbox`.
    requests: HashMap<String, usize>,
    attributes: BTreeMap<String, AttributeValue>,
}

type Done = (Answer, Option<CommittedRow>);

impl Data {
    /// The fence of the next owner.
    pub(super) fn raise_fence(&mut self) -> u64 {
        self.fence += 1;
        self.fence
    }

    /// Judges and applies a change, and gives the row that it has appended.
    pub(super) fn change(&mut self, role: Role, change: &Change, now_us: i64) -> Done {
        let at_us = self.stamped_us.max(now_us);
        self.stamped_us = at_us;
        let Ok(judged) = match change {
            Change::Start(start) => judge_start(self, role, start),
            Change::Append(append) => judge_append(self, role, append),
            Change::Inbox(put) => judge_inbox(self, role, put),
            Change::Heard(_) | Change::Purge { .. } => judge_of_the_owner(self, role),
            Change::Delete(run) => judge_delete(self, role, *run),
        };
        if let Some(answer) = judged {
            return (answer, None);
        }
        match change {
            Change::Start(start) => self.start(start, at_us),
            Change::Append(append) => self.append(append, at_us),
            Change::Inbox(put) => (self.put(role, put, at_us), None),
            Change::Heard(calls) => (self.heard(calls), None),
            Change::Delete(run) => (self.delete(*run), None),
            Change::Purge { rows } => (self.purge(*rows), None),
        }
    }

    fn start(&mut self, start: &Start, at_us: i64) -> Done {
        self.run_last += 1;
        let run = RunNo(self.run_last);
        let new = start.execution.clone();
        let update =
            ExecutionUpdate { status: start.status, wake_at_us: None, expires_at_us: None };
        self.newest.insert((new.namespace.clone(), new.id.clone()), run);
        self.open.insert(run);
        let info = RunInfo { run, new, created_at_us: at_us, update, closed_at_us: None };
        let (journal, inbox, requests) = (Vec::new(), Vec::new(), HashMap::new());
        let attributes = BTreeMap::new();
        self.runs.insert(run, Run { info, journal, inbox, requests, attributes });
        self.run_mut(run).set_attributes(&start.attributes);
        if is_guests(start) {
            self.call(run);
        }
        (Answer::Started { run, at_us, first: true }, Some(self.push(run, &start.first, at_us)))
    }

    fn append(&mut self, append: &Append, at_us: i64) -> Done {
        let run = append.run;
        let before = self.runs[&run].tail();
        let Ok(calls) = append_calls(self, before, append);
        if calls {
            self.call(run);
        }
        let row = self.push(run, &append.draft, at_us);
        if let Some(update) = &append.update {
            self.update(run, update, at_us);
        }
        debug_assert_eq!(closed_after(append), !self.open.contains(&run));
        for change in &append.attention {
            self.change_attention(append, change, at_us);
        }
        self.run_mut(run).set_attributes(&append.attributes);
        (Answer::Appended { at_us }, Some(row))
    }

    fn push(&mut self, run: RunNo, draft: &Draft, at_us: i64) -> CommittedRow {
        let row = Bytes::from(draft.seal(at_us));
        self.run_mut(run).journal.push(row.clone());
        CommittedRow { run, row }
    }

    fn update(&mut self, run: RunNo, update: &ExecutionUpdate, at_us: i64) {
        let closed = update.status.is_closed();
        let info = &mut self.run_mut(run).info;
        let expires_at_us = update.expires_at_us.filter(|_| closed);
        info.update = ExecutionUpdate { expires_at_us, ..update.clone() };
        info.closed_at_us = closed.then_some(at_us);
        if closed {
            self.open.remove(&run);
        } else {
            self.open.insert(run);
        }
    }

    fn change_attention(&mut self, append: &Append, change: &AttentionChange, at_us: i64) {
        let run = append.run;
        match change {
            AttentionChange::Open { ord, kind, message } => {
                let (seq, ord) = (append.draft.header.seq, *ord);
                let (kind, message) = (kind.clone(), message.clone());
                let row = AttentionRow { run, seq, ord, kind, message, opened_at_us: at_us };
                self.attention.insert((run, seq, ord), row);
            }
            AttentionChange::Close { seq, ord } => {
                self.attention.remove(&(run, *seq, *ord));
            }
        }
    }

    fn put(&mut self, role: Role, put: &InboxPut, at_us: i64) -> Answer {
        if put_calls(role, self.runs[&put.run].tail()) {
            self.call(put.run);
        }
        let run = self.run_mut(put.run);
        let number = run.inbox.len() as u64 + 1;
        let row = InboxRow {
            number,
            kind: put.kind,
            request_id: put.request_id.clone(),
            topic: put.topic.clone(),
            payload: put.payload.clone(),
            changed: put.changed,
            accepted_at_us: at_us,
        };
        run.requests.insert(put.request_id.clone(), run.inbox.len());
        run.inbox.push((row, put.digest));
        Answer::Accepted { number, accepted_at_us: at_us, changed: put.changed, first: true }
    }

    fn call(&mut self, run: RunNo) {
        *self.calls.entry(run).or_default() += 1;
    }

    fn heard(&mut self, calls: &[Call]) -> Answer {
        for Call { run, times } in calls {
            if self.calls.get(run) == Some(times) {
                self.calls.remove(run);
            }
        }
        Answer::Heard
    }

    fn delete(&mut self, run: RunNo) -> Answer {
        let Run { info, journal, inbox, .. } = self.runs.remove(&run).expect("judged to be there");
        self.doomed.insert(run, journal.len() + inbox.len());
        let new = info.new;
        let is_of_it = |other: &&Run| {
            (&other.info.new.namespace, &other.info.new.id) == (&new.namespace, &new.id)
        };
        let newest = self.runs.values().rev().find(is_of_it).map(|other| other.info.run);
        match newest {
            Some(newest) => self.newest.insert((new.namespace, new.id), newest),
            None => self.newest.remove(&(new.namespace, new.id)),
        };
        Answer::Deleted
    }

    fn purge(&mut self, mut rows: usize) -> Answer {
        while let Some(mut doomed) = self.doomed.first_entry() {
            let freed = rows.min(*doomed.get());
            rows -= freed;
            *doomed.get_mut() -= freed;
            if *doomed.get() > 0 {
                break;
            }
            doomed.remove();
        }
        Answer::Purged { more: !self.doomed.is_empty() }
    }

    fn run_mut(&mut self, run: RunNo) -> &mut Run {
        self.runs.get_mut(&run).expect("judged to be there")
    }
}

impl Run {
    fn tail(&self) -> Tail {
        let (last, accepted) = (self.journal.len() as u64, self.inbox.len() as u64);
        Tail { last, closed: self.info.closed_at_us.is_some(), accepted }
    }

    fn set_attributes(&mut self, changes: &[AttributeChange]) {
        for AttributeChange { name, value } in changes {
            match value {
                Some(value) => self.attributes.insert(name.clone(), value.clone()),
                None => self.attributes.remove(name),
            };
        }
    }
}
