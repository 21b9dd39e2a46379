//! Puts a journal that some other process wrote onto a disk, as if that process had died there.

use backstitch::core::attribute::AttributeChange;
use backstitch::core::event::Event;
use backstitch::core::inbox::InboxKind;
use backstitch::core::row::{Draft, Header};
use backstitch::core::run::{Phase, Run};
use backstitch::store::memory::MemoryStore;
use backstitch::store::{
    Answer, Append, AttentionChange, Change, ExecutionUpdate, Expects, Guard, InboxPut,
    NewExecution, RunNo, Start, Store,
};
use backstitch::{Row, RunId};
use bytes::Bytes;

use crate::world::World;

/// The rows of a journal, as they were sealed, under the fences and at the times that they name.
pub async fn lay_down(world: &World, sealed: &[Bytes]) {
    let first = Row::decode(sealed[0].clone()).expect("it is read");
    let mut store = owner(world, world.reopen(), &first.header);
    let (run_no, mut run) = begin(&store, &first, &sealed[0]).await;
    fill_inbox(&store, run_no, 1..=run.inbox_read).await;
    for bytes in &sealed[1..] {
        let row = Row::decode(bytes.clone()).expect("it is read");
        store = owner(world, store, &row.header);
        let before = run.clone();
        run.apply_row(&row).expect("the journal folds");
        fill_inbox(&store, run_no, before.inbox_read + 1..=run.inbox_read).await;
        let closed = matches!(before.phase, Phase::Closed(_));
        let append = Append {
            run: run_no,
            draft: draft(&row.header, bytes),
            expects: if closed { Expects::Closed } else { Expects::Open },
            read: run.inbox_read,
            guard: Guard::default(),
            update: Some(update(&run)),
            attention: attention(&before, &run),
            attributes: attributes(&row),
        };
        let answer = store.commit(append.into()).await.expect("memory is always available");
        assert_eq!(answer, Answer::Appended { at_us: row.header.at_us });
    }
    let laid_down = store.journal(run_no, 0, sealed.len() + 1).await.expect("it can be read");
    assert_eq!(laid_down, sealed, "to the last bit");
}

/// The owner that wrote the row, at the time when he did.
fn owner(world: &World, mut store: MemoryStore, header: &Header) -> MemoryStore {
    while store.fence() < header.fence {
        store = world.reopen();
    }
    world.clock.set(header.at_us);
    store
}

async fn begin(store: &MemoryStore, row: &Row, sealed: &Bytes) -> (RunNo, Run) {
    let run = Run::begin(row).expect("the journal folds");
    let started = &run.started;
    let execution = NewExecution {
        namespace: started.namespace.clone(),
        id: started.id.clone(),
        run_id: RunId::from_slice(&started.run_id).expect("16 bytes"),
        workflow: started.workflow.clone(),
        version: started.version.clone(),
        input_digest: started.input_digest.as_slice().try_into().expect("32 bytes"),
        after: None,
    };
    let (first, attributes) = (draft(&row.header, sealed), attributes(row));
    let status = run.status(true);
    let start = Start { execution, first, expected: None, status, attributes };
    match store.commit(start.into()).await {
        Ok(Answer::Started { run: run_no, first: true, .. }) => (run_no, run),
        answer => panic!("{answer:?}"),
    }
}

/// The row before it was sealed. Its events are left as they are, whatever their version.
fn draft(header: &Header, sealed: &Bytes) -> Draft {
    let (mut header_len, mut at) = (0, 1);
    loop {
        let byte = sealed[at];
        header_len |= usize::from(byte & 0x7f) << (7 * (at - 1));
        at += 1;
        if byte < 0x80 {
            break;
        }
    }
    let events = sealed.slice(at + header_len..sealed.len() - 4);
    Draft { header: Header { at_us: 0, ..header.clone() }, events }
}

/// What was copied from the inbox stands there still; what it says is of no interest any more.
async fn fill_inbox(store: &MemoryStore, run: RunNo, numbers: std::ops::RangeInclusive<u64>) {
    for wanted in numbers {
        let put = InboxPut {
            run,
            kind: InboxKind::SetAttributes,
            request_id: format!("copied-{wanted}"),
            topic: String::new(),
            payload: Bytes::new(),
            digest: [0; 32],
            changed: true,
            rows_max: u64::MAX,
            seen: 0,
            guard: Vec::new(),
        };
        match store.commit(Change::from(put)).await {
            Ok(Answer::Accepted { number, .. }) => assert_eq!(number, wanted),
            answer => panic!("{answer:?}"),
        }
    }
}

fn update(run: &Run) -> ExecutionUpdate {
    let (status, wake_at_us) = (run.status(true), run.next_due_us());
    ExecutionUpdate { status, wake_at_us, expires_at_us: None }
}

fn attention(before: &Run, after: &Run) -> Vec<AttentionChange> {
    let gone = before.attention.iter().filter(|item| !after.attention.contains(item));
    let gone = gone.map(|item| AttentionChange::Close { seq: item.seq, ord: item.ord });
    let new = after.attention.iter().filter(|item| !before.attention.contains(item));
    let new = new.map(|item| AttentionChange::Open {
        ord: item.ord,
        kind: item.kind.name().to_owned(),
        message: item.message.clone(),
    });
    gone.chain(new).collect()
}

fn attributes(row: &Row) -> Vec<AttributeChange> {
    let sets = row.events.iter().filter_map(|event| match event {
        Event::AttributesSet(set) => Some(set.changes.clone()),
        _ => None,
    });
    sets.flatten().collect()
}
