//! The story of an execution: row by row, and as a picture.

mod event;

use backstitch::Row;
use backstitch::core::row::RowKind;
use backstitch::store::RunNo;
use backstitch::timeline::{self, Style};
use backstitch_api::http::{JournalPage, JournalRow, Problem};

use super::{Service, Target, instant, invalid, told};
use crate::paging::{self, ROWS_AT_ONCE};

/// Most rows in one answer.
pub const ROWS_MAX: usize = 1_000;

/// Rows in one answer, unless the request says how many.
const ROWS_DEFAULT: usize = 200;

/// A journal that is followed. It stays with the run that was meant at first.
pub struct Followed {
    service: Service,
    run: RunNo,
    after: u64,
}

impl Service {
    /// A page of the journal of a run, after row `after`.
    ///
    /// # Errors
    /// `not_found`; `invalid` for a limit that cannot be; `unreadable`; trouble of the store.
    pub async fn journal(
        &self,
        target: &Target,
        after: u64,
        limit: Option<usize>,
    ) -> Result<JournalPage, Problem> {
        let limit = match limit.unwrap_or(ROWS_DEFAULT) {
            limit @ 1..=ROWS_MAX => limit,
            limit => {
                return Err(invalid(format!("the limit is {limit}; it can be 1 to {ROWS_MAX}")));
            }
        };
        let run = self.meant(target).await?.run;
        let read = |after, limit| self.engine().journal_after(run, after, limit);
        let bytes = |one: &Row| one.events.iter().map(|event| event.encoded_len()).sum();
        let size_and_number = |one: &Row, _| (bytes(one), one.header.seq);
        let page = paging::page(after, limit, read, size_and_number).await;
        let (rows, is_end) = page.map_err(told)?;
        let last = rows.last().map_or(after, |last| last.header.seq);
        Ok(JournalPage {
            rows: rows.iter().map(row).collect(),
            next_after: (!is_end).then_some(last),
        })
    }

    /// The journal of a run, after row `after` and as it grows.
    ///
    /// # Errors
    /// `not_found`; trouble of the store.
    pub async fn follow(&self, target: &Target, after: u64) -> Result<Followed, Problem> {
        let run = self.meant(target).await?.run;
        Ok(Followed { service: self.clone(), run, after })
    }

    /// The journal of a run as a picture for the terminal.
    ///
    /// # Errors
    /// `not_found`; `unreadable`; trouble of the store.
    pub async fn timeline(&self, target: &Target, style: Style) -> Result<String, Problem> {
        let run = self.meant(target).await?.run;
        let (view, rows) = self.engine().view_with_journal(run).await.map_err(told)?;
        let waits_for = view.run.waits_for(view.owned);
        Ok(timeline::draw_as_it_stands(&rows, view.status(), &waits_for, style))
    }
}

impl Followed {
    /// The next rows, at least one; waits for them. `None` when the run is closed and there are no
    /// more.
    ///
    /// # Errors
    /// `not_found` when it was deleted; `stopped` when the server stops meanwhile; trouble of the
    /// store.
    pub async fn next(&mut self) -> Result<Option<Vec<JournalRow>>, Problem> {
        let engine = self.service.engine();
        let rows = engine.next_rows(self.run, self.after, ROWS_AT_ONCE).await.map_err(told)?;
        let Some(last) = rows.last() else { return Ok(None) };
        self.after = last.header.seq;
        Ok(Some(rows.iter().map(row).collect()))
    }
}

fn row(row: &Row) -> JournalRow {
    let header = &row.header;
    JournalRow {
        seq: header.seq,
        at: instant(header.at_us),
        turn: header.kind() == RowKind::Turn,
        fence: header.fence,
        worker: header.worker.clone(),
        version: header.version.clone(),
        events: row.events.iter().map(event::event).collect(),
    }
}
