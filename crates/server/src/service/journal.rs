//! The story of an execution: row by row, and as a picture.

mod event;

use backstitch::Row;
use backstitch::core::row::RowKind;
use backstitch::store::RunNo;
use backstitch::timeline::{self, Style};
use backstitch_api::http::{JournalPage, JournalRow, Problem};

use super::{Service, Target, instant, invalid, told};

/// Most rows in one answer.
pub const ROWS_MAX: usize = 1_000;

/// Rows in one answer, unless the request says how many.
const ROWS_DEFAULT: usize = 200;

/// Rows that are read at a time, so that large ones are not all in memory at once.
const ROWS_AT_ONCE: usize = 16;

/// A page that holds so many bytes of events takes no further row: it is in memory until its reader has taken it, and
/// there can be one for each request.
const PAGE_BYTES_SOFT_MAX: usize = 1024 * 1024;

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
        let (mut page, mut last, mut bytes) = (Vec::new(), after, 0);
        while page.len() < limit {
            let at_once = ROWS_AT_ONCE.min(limit - page.len());
            let rows = self.engine().journal_after(run, last, at_once).await.map_err(told)?;
            for one in &rows {
                page.push(row(one));
                last = one.header.seq;
                bytes += one.events.iter().map(|event| event.encoded_len()).sum::<usize>();
                if bytes >= PAGE_BYTES_SOFT_MAX {
                    return Ok(JournalPage { rows: page, next_after: Some(last) });
                }
            }
            if rows.len() < at_once {
                return Ok(JournalPage { rows: page, next_after: None });
            }
        }
        Ok(JournalPage { rows: page, next_after: Some(last) })
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
