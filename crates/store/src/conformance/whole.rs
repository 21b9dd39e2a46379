//! Everything that can be read of a store, to be compared with what it ought to be.

use std::collections::BTreeMap;

use backstitch_core::attribute::AttributeValue;
use backstitch_core::inbox::{InboxKind, InboxRow};
use backstitch_core::row::Row;

use super::marks::MARK;
use crate::{AttentionPlace, AttentionRow, Call, RunInfo, RunNo, Store};

/// What all reads of a store have given. Read while nothing is being written.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// All runs, oldest first.
    pub runs: Vec<WholeRun>,
    /// The newest run of each id.
    pub newest: BTreeMap<(String, String), RunNo>,
    /// The open runs.
    pub open: Vec<RunNo>,
    /// The list of calls.
    pub calls: Vec<Call>,
    /// What is expired at the end of time.
    pub expired: Vec<RunNo>,
    /// The open attention items.
    pub attention: Vec<AttentionRow>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeRun {
    /// Its execution row.
    pub info: RunInfo,
    /// Its journal.
    pub rows: Vec<Row>,
    /// Its inbox.
    pub inbox: Vec<InboxRow>,
    /// The values of [`MARK`] by which it is found, among those that it can have had.
    pub marks: Vec<u64>,
}

impl Whole {
    /// Reads everything, and checks that the reads agree with each other.
    pub async fn read(store: &dyn Store) -> Whole {
        let all = usize::MAX;
        let mut runs = Vec::new();
        let infos = store.runs(RunNo(i64::MAX), all).await.expect("the store works");
        for info in infos.into_iter().rev() {
            let run = info.run;
            assert_eq!(store.run(run).await.expect("the store works").as_ref(), Some(&info));
            let rows = store.journal(run, 0, all).await.expect("the store works");
            let rows = rows.into_iter().map(|row| Row::decode(row).expect("a sealed row"));
            let inbox = store.inbox(run, 0, all).await.expect("the store works");
            runs.push(WholeRun { info, rows: rows.collect(), inbox, marks: Vec::new() });
        }
        let longest = runs.iter().map(|run| run.rows.len()).max().unwrap_or(0) as u64;
        // One more than there are rows: a mark that came without its row.
        for seq in 1..=longest + 1 {
            let value = AttributeValue::Integer(seq as i64);
            let found = store.find(MARK, &value, RunNo(i64::MAX), all).await;
            for info in found.expect("the store works") {
                let run = runs.iter_mut().find(|run| run.info == info);
                run.expect("what is found is a run").marks.push(seq);
            }
        }
        let mut newest = BTreeMap::new();
        for run in &runs {
            let id = (run.info.new.namespace.clone(), run.info.new.id.clone());
            let found = store.newest(&id.0, &id.1).await.expect("the store works");
            newest.insert(id, found.expect("there is at least this one").run);
        }
        let open = store.open_runs(RunNo(i64::MIN), all).await.expect("the store works");
        let whole = Whole {
            runs,
            newest,
            open: open.iter().map(|info| info.run).collect(),
            calls: store.calls(RunNo(i64::MIN), all).await.expect("the store works"),
            expired: store.expired(i64::MAX, all).await.expect("the store works"),
            attention: store.attention(AttentionPlace::START, all).await.expect("the store works"),
        };
        whole.check();
        whole
    }

    /// The same as any owner would have written it.
    pub fn without_fences(mut self) -> Whole {
        for row in self.runs.iter_mut().flat_map(|run| &mut run.rows) {
            row.header.fence = 0;
        }
        self
    }

    /// One run of it.
    pub fn run(&self, run: RunNo) -> Option<&WholeRun> {
        self.runs.iter().find(|other| other.info.run == run)
    }

    /// What holds in every store, whatever was written to it.
    fn check(&self) {
        for WholeRun { info, rows, inbox, .. } in &self.runs {
            assert!(!rows.is_empty(), "a run without its first row: {info:?}");
            for (seq, row) in (1..).zip(rows) {
                assert_eq!(row.header.seq, seq, "a journal has a hole: {info:?}");
            }
            for (number, row) in (1..).zip(inbox) {
                assert_eq!(row.number, number, "an inbox has a hole: {info:?}");
            }
            let stamps = inbox.iter().map(|row| row.accepted_at_us);
            assert!(stamps.is_sorted(), "accepted_at runs backwards (P8): {info:?}");
            assert_eq!(info.closed_at_us.is_some(), info.update.status.is_closed(), "{info:?}");
            assert_eq!(self.open.contains(&info.run), info.closed_at_us.is_none(), "{info:?}");
        }
        let newest = self.runs.iter().map(|run| {
            let new = &run.info.new;
            ((new.namespace.clone(), new.id.clone()), run.info.run)
        });
        // The runs are in order, so the last one of an id stays.
        assert_eq!(newest.collect::<BTreeMap<_, _>>(), self.newest);
        for run in self.calls.iter().map(|call| call.run) {
            assert!(self.run(run).is_some(), "{run:?} is called and not there");
        }
        for item in &self.attention {
            let run = self.run(item.run).expect("an attention item is of a run");
            let row = run.rows.get(item.seq as usize - 1).expect("its row opened it");
            assert_eq!(item.opened_at_us, row.header.at_us);
        }
        assert!(self.open.is_sorted() && self.calls.is_sorted_by_key(|call| call.run));
    }

    /// Checks a store in which runs were written by [`super::marks`] only and no call was heard: each
    /// change is there with all that belongs to it, or with nothing.
    pub fn check_marks(&self) {
        for WholeRun { info, rows, inbox, marks } in &self.runs {
            let (run, last) = (info.run, rows.last().expect("was checked"));
            let (seq, closed) = (last.header.seq, info.closed_at_us);
            assert_eq!(*marks, [seq], "attributes and journal differ: {info:?}");
            let wake_at_us = (seq > 1).then_some(seq as i64);
            assert_eq!(info.update.wake_at_us, wake_at_us, "update and journal differ");
            assert!(closed.is_none_or(|at_us| at_us == last.header.at_us), "{info:?}");
            let expires_at_us = closed.map(|_| seq as i64);
            assert_eq!(info.update.expires_at_us, expires_at_us, "{info:?}");
            let items = self.attention.iter().filter(|item| item.run == run);
            let items: Vec<_> = items.map(|item| item.seq).collect();
            let expected: &[u64] = if seq > 1 && closed.is_none() { &[seq] } else { &[] };
            assert_eq!(items, expected, "attention and journal differ: {info:?}");
            let over = inbox.iter().any(|row| row.kind == InboxKind::WaiveUndo) && closed.is_some();
            let times = u64::from(rows[0].header.fence == 0) + u64::from(over);
            let call = self.calls.iter().find(|call| call.run == run);
            assert_eq!(call.map_or(0, |call| call.times), times, "calls differ: {info:?}");
        }
    }
}
