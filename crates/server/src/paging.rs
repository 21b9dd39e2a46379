//! Pages of rows, of journals and of inboxes, whoever reads them.

use backstitch_core::inbox::InboxRow;
use backstitch_engine::Error;
use bytes::Bytes;

/// So much of rows goes into one page or one message, in bytes, if it is more than one row: a page is in memory until its
/// reader has taken it, and there can be one for each request; messages of many runs share a connection, and none should
/// wait long for another.
pub(crate) const PAGE_BYTES_SOFT_MAX: usize = 1024 * 1024;

/// Rows that are read at a time: each can be larger than a page, and what has no room is read again.
pub(crate) const ROWS_AT_ONCE: usize = 16;

/// Reads rows of a journal, or of an inbox, for one message: a few at a time until there are `limit`, or as many as it
/// has room for. Gives them, and whether there are no more.
pub(crate) async fn page<T, F>(
    after: u64,
    limit: usize,
    read: impl Fn(u64, usize) -> F,
    size_and_number: impl Fn(&T, u64) -> (usize, u64),
) -> Result<(Vec<T>, bool), Error>
where
    F: Future<Output = Result<Vec<T>, Error>>,
{
    let (mut rows, mut sum, mut last) = (Vec::new(), 0, after);
    while rows.len() < limit {
        let at_once = ROWS_AT_ONCE.min(limit - rows.len());
        let more = read(last, at_once).await?;
        let is_end = more.len() < at_once;
        for row in more {
            let (bytes, number) = size_and_number(&row, last);
            sum += bytes;
            if sum > PAGE_BYTES_SOFT_MAX && !rows.is_empty() {
                return Ok((rows, false));
            }
            rows.push(row);
            last = number;
        }
        if is_end {
            return Ok((rows, true));
        }
    }
    Ok((rows, false))
}

/// Of a row of a journal, after the row `last`: journals have no gaps.
pub(crate) fn journal_row(row: &Bytes, last: u64) -> (usize, u64) {
    (row.len(), last + 1)
}

/// Of a row of an inbox.
pub(crate) fn numbered(row: &InboxRow, _last: u64) -> (usize, u64) {
    (row.payload.len(), row.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A page after `after` of a journal of 500 rows, and how many rows were read for it.
    async fn read(after: u64, limit: usize, row_bytes: usize) -> (usize, bool, usize) {
        let was_read = Cell::new(0);
        let journal = |after: u64, limit: usize| {
            let rows = usize::try_from(500_u64.saturating_sub(after)).unwrap().min(limit);
            was_read.set(was_read.get() + rows);
            std::future::ready(Ok(vec![Bytes::from(vec![0; row_bytes]); rows]))
        };
        let (rows, is_last) = page(after, limit, journal, journal_row).await.unwrap();
        (rows.len(), is_last, was_read.get())
    }

    #[tokio::test]
    async fn no_more_is_read_for_a_page_than_a_few_rows_beyond_it() {
        assert_eq!(read(0, 1_000, 300_000).await, (3, false, 16));
        assert_eq!(read(0, 1_000, 3_000_000).await, (1, false, 16));
        assert_eq!(read(480, 1_000, 30_000).await, (20, true, 20));
        assert_eq!(read(0, 1_000, 10).await, (500, true, 500));
        assert_eq!(read(0, 100, 10).await, (100, false, 100));
        assert_eq!(read(400, 100, 10).await, (100, false, 100));
        assert_eq!(read(500, 100, 10).await, (0, true, 0));
        assert_eq!(read(900, 100, 10).await, (0, true, 0));
    }
}
