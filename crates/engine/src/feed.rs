//! A live feed of committed rows.

use std::sync::Arc;

use backstitch_core::row::Row;
use tokio::sync::broadcast;

use crate::program::ExecutionFacts;

/// Rows that a slow reader may be behind before it misses some.
const FEED_ROWS_MAX: usize = 4_096;

/// One row that has become durable.
#[derive(Clone, Debug)]
pub struct FeedItem {
    /// The execution and its run.
    pub execution: Arc<ExecutionFacts>,
    /// The row.
    pub row: Arc<Row>,
}

/// What a reader of the feed gets.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    /// The next row; rows of one run come in order.
    Row(FeedItem),
    /// The reader was too slow, and so many rows are missing: read the journals.
    Missed(u64),
}

/// A reader of the feed. It sees what is committed after it was made.
pub struct Feed(broadcast::Receiver<FeedItem>);

impl Feed {
    /// The next row; `None` when the engine is gone.
    pub async fn next(&mut self) -> Option<FeedEvent> {
        match self.0.recv().await {
            Ok(item) => Some(FeedEvent::Row(item)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(FeedEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// Where drivers publish what they have committed.
pub(crate) struct FeedSender(broadcast::Sender<FeedItem>);

impl FeedSender {
    pub fn new() -> FeedSender {
        FeedSender(broadcast::Sender::new(FEED_ROWS_MAX))
    }

    pub fn subscribe(&self) -> Feed {
        Feed(self.0.subscribe())
    }

    /// Whether anybody listens; if not, nothing is decoded.
    pub fn is_watched(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub fn publish(&self, execution: &Arc<ExecutionFacts>, row: Row) {
        // Whoever listened a moment ago may be gone.
        let _ = self.0.send(FeedItem { execution: execution.clone(), row: Arc::new(row) });
    }
}
