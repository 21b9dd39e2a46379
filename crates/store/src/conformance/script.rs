//! A fixed script of changes of all kinds, which can be carried on by the next owner after a death.

use std::collections::BTreeMap;

use backstitch_core::inbox::InboxKind;
use backstitch_core::status::Status;

use super::changes::{new_put, run_id, update};
use super::marks::{marked_append, marked_closing, marked_start};
use crate::{Answer, Append, Change, ExecutionUpdate, Expects, Refusal, RunNo, Start, Store};

/// Who plays the script, and what it has learned from answers so far.
#[derive(Clone, Debug, Default)]
pub struct Script {
    done: usize,
    runs: BTreeMap<u32, RunNo>,
}

/// One change. Executions are named by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// By the owner, under its fence.
    Start(u32),
    /// As a guest does.
    Begin(u32),
    /// The first run of this number, after the one of that number, which has the same id.
    Follow(u32, u32),
    Append(u32, u64),
    /// Closes the run, having read so much of its inbox.
    Close(u32, u64, u64),
    /// Opens it again.
    Open(u32, u64),
    /// Notes something at the end of a closed run.
    Amend(u32, u64),
    Put(u32, InboxKind),
    /// Takes the call of a run off the list, if it is there.
    Hear(u32),
    Delete(u32),
    Purge(usize),
}

const STEPS: &[Step] = &[
    Step::Start(1),
    Step::Begin(2),
    Step::Append(1, 2),
    Step::Put(1, InboxKind::Pause),
    Step::Put(1, InboxKind::Event),
    Step::Append(2, 2),
    Step::Hear(2),
    Step::Start(3),
    Step::Append(1, 3),
    Step::Put(3, InboxKind::WaiveUndo),
    Step::Append(3, 2),
    Step::Close(3, 3, 0),
    Step::Amend(3, 4),
    Step::Put(3, InboxKind::Rollback),
    Step::Hear(3),
    Step::Put(3, InboxKind::SetAttributes),
    Step::Open(3, 5),
    Step::Close(3, 6, 3),
    Step::Close(2, 3, 0),
    Step::Follow(4, 2),
    Step::Delete(2),
    Step::Purge(1),
    Step::Begin(5),
    Step::Append(5, 2),
    Step::Close(5, 3, 0),
    Step::Hear(5),
    Step::Delete(5),
    Step::Start(6),
    Step::Close(4, 2, 0),
    Step::Delete(4),
    Step::Start(2),
    Step::Purge(100),
    Step::Append(1, 4),
];

impl Script {
    /// How many changes there are.
    pub const LEN: usize = STEPS.len();

    /// How many are answered.
    pub fn done(&self) -> usize {
        self.done
    }

    /// What the clock is to show at the next change, so that whoever plays it stamps it alike.
    pub fn now_us(&self) -> i64 {
        1_000_000 * (self.done as i64 + 1)
    }

    /// The next change, for the owner who writes to `store`. It is offered again as what it was: only
    /// the fence is another one after a death.
    ///
    /// Gives `None` at the end.
    pub async fn next(&self, store: &dyn Store) -> Option<Change> {
        let fence = store.fence();
        let run = |number: u32| self.runs[&number];
        let change = match *STEPS.get(self.done)? {
            Step::Start(number) => self.start(fence, number).into(),
            Step::Begin(number) => self.start(0, number).into(),
            Step::Follow(number, before) => {
                let mut start = self.start(fence, number);
                start.execution.id = marked_start(fence, before).execution.id;
                start.execution.after = Some(run(before));
                start.expected = Some(run(before));
                start.into()
            }
            Step::Append(number, seq) => self.identified(marked_append(fence, run(number), seq)),
            Step::Close(number, seq, read) => {
                let closing = marked_closing(fence, run(number), seq);
                self.identified(Append { read, ..closing })
            }
            Step::Open(number, seq) => {
                let wake_at_us = Some(seq as i64);
                let update = ExecutionUpdate { wake_at_us, ..update(Status::RollingBack) };
                let append = marked_append(fence, run(number), seq);
                let (expects, update) = (Expects::Closed, Some(update));
                self.identified(Append { expects, update, ..append })
            }
            Step::Amend(number, seq) => {
                let closing = marked_closing(fence, run(number), seq);
                self.identified(Append { expects: Expects::Closed, ..closing })
            }
            Step::Put(number, kind) => new_put(run(number), kind, &self.done.to_string()).into(),
            Step::Hear(number) => {
                let calls = store.calls(RunNo(0), usize::MAX).await.expect("the store works");
                Change::Heard(calls.into_iter().filter(|call| call.run == run(number)).collect())
            }
            Step::Delete(number) => Change::Delete(run(number)),
            Step::Purge(rows) => Change::Purge { rows },
        };
        Some(change)
    }

    /// Takes in the answer to the change that was offered last, which may have been offered before.
    pub fn hear(&mut self, answer: &Answer) {
        let step = STEPS[self.done];
        match (step, answer) {
            (
                Step::Start(number) | Step::Begin(number) | Step::Follow(number, _),
                Answer::Started { run, .. },
            ) => {
                self.runs.insert(number, *run);
            }
            (
                Step::Append(..) | Step::Close(..) | Step::Open(..) | Step::Amend(..),
                Answer::Appended { at_us },
            ) => assert_eq!(*at_us, self.now_us(), "{step:?} was applied at another time"),
            (Step::Put(..), Answer::Accepted { accepted_at_us, .. }) => {
                assert_eq!(*accepted_at_us, self.now_us(), "{step:?} was applied at another time");
            }
            (Step::Hear(_), Answer::Heard)
            | (Step::Delete(_), Answer::Deleted | Answer::Refused(Refusal::UnknownRun))
            | (Step::Purge(_), Answer::Purged { .. }) => {}
            (step, answer) => panic!("{step:?} was answered with {answer:?}"),
        }
        self.done += 1;
    }

    /// Plays it to its end; `set_clock` is told what the clock of the store is to show.
    pub async fn play(&mut self, store: &dyn Store, set_clock: impl Fn(i64)) {
        set_clock(self.now_us());
        while let Some(change) = self.next(store).await {
            self.hear(&store.commit(change).await.expect("the store works"));
            set_clock(self.now_us());
        }
    }

    fn start(&self, fence: u64, number: u32) -> Start {
        let mut start = marked_start(fence, number);
        start.execution.run_id = run_id(self.done as u32);
        start.first.header.append_id = self.append_id();
        start
    }

    fn identified(&self, mut append: Append) -> Change {
        append.draft.header.append_id = self.append_id();
        append.into()
    }

    fn append_id(&self) -> Vec<u8> {
        (self.done as u128).to_be_bytes().into()
    }
}
