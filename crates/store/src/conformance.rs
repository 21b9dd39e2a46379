//! What every store has to do, as async tests that a store's own test file runs.
//!
//! Implement [`Subject`] and call [`conformance_tests!`](crate::conformance_tests) with an
//! expression that makes one; it expands to one `#[tokio::test]` per behaviour.
//!
//! # Examples
//! ```
//! use std::sync::{Arc, Mutex};
//! use backstitch_store::conformance::{self, Subject};
//! use backstitch_store::memory::MemoryStore;
//! use backstitch_store::{NowUs, Store};
//!
//! #[derive(Default)]
//! struct Memory(Mutex<Option<MemoryStore>>);
//!
//! impl Subject for Memory {
//!     fn open(&self, now: NowUs) -> Arc<dyn Store> {
//!         let mut newest = self.0.lock().unwrap();
//!         let next = match &*newest {
//!             None => MemoryStore::new(now),
//!             Some(older) => older.reopen(),
//!         };
//!         *newest = Some(next.clone());
//!         Arc::new(next)
//!     }
//!
//!     fn take_over(&self, now: NowUs) -> Arc<dyn Store> {
//!         self.open(now)
//!     }
//!
//!     fn another(&self) -> Box<dyn Subject> {
//!         Box::new(Memory::default())
//!     }
//! }
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! conformance::p1_reopening_shows_everything_acknowledged(Memory::default()).await;
//! # });
//! ```

mod append;
mod attention;
mod attributes;
mod bench;
mod calls;
pub mod changes;
mod closed;
mod crowd;
mod death;
mod deletion;
mod fence;
mod inbox;
mod life;
pub mod marks;
mod read;
mod script;
mod start;
mod whole;

use std::sync::Arc;

use crate::{NowUs, Store};

pub use append::*;
pub use attention::*;
pub use attributes::*;
pub use calls::*;
pub use closed::*;
pub use crowd::*;
pub use death::*;
pub use deletion::*;
pub use fence::*;
pub use inbox::*;
pub use life::*;
pub use read::*;
pub use script::Script;
pub use start::*;
pub use whole::{Whole, WholeRun};

/// A place where a store can be opened, again and again.
pub trait Subject: Send + Sync + 'static {
    /// Opens the store: an empty one at the first call, the same data at every later one, as the
    /// next process would. Before a later call the handle of the call before was closed, or
    /// dropped; then it may take the store a moment to let go, and this has to wait for it.
    /// `now` is the same clock every time.
    fn open(&self, now: NowUs) -> Arc<dyn Store>;

    /// Opens the store while the handle of the call before lives and may write at any moment, as when
    /// its process was only thought to be dead. From then on it is fenced.
    fn take_over(&self, now: NowUs) -> Arc<dyn Store>;

    /// Another place of the same kind, where no store is yet.
    fn another(&self) -> Box<dyn Subject>;
}

/// Expands to one `#[tokio::test]` for each behaviour of the suite.
///
/// The crate that calls it needs tokio with the features `rt` and `macros`.
#[macro_export]
macro_rules! conformance_tests {
    ($subject:expr) => {
        $crate::conformance_tests! { $subject;
            start_gives_a_run_with_its_first_row
            start_is_answered_with_the_run_that_has_the_id
            start_after_the_expected_run_makes_the_next_one
            start_that_expects_a_run_which_is_not_there_is_refused
            b96_a_repeated_start_gets_the_same_answer
            p4_a_start_under_an_older_fence_is_refused
            ids_are_apart_in_each_namespace

            rows_come_back_in_order_and_byte_for_byte
            rows_offered_in_a_row_are_applied_in_that_order
            b96_a_repeated_append_gets_the_same_answer
            b96_a_repeated_append_is_recognised_after_the_run_closed_and_the_owner_changed
            an_append_with_another_seq_is_refused
            an_append_to_an_unknown_run_is_refused
            p4_an_append_under_an_older_fence_is_refused
            p8_a_closing_row_is_refused_while_a_cancel_stands_unread
            a_guard_looks_only_at_its_kinds_and_at_what_is_unread
            p8_a_wait_does_not_time_out_while_its_event_stands_unread
            a_refused_append_changes_nothing
            a_closed_run_refuses_rows_and_requests
            an_update_changes_the_execution_row
            p4_of_two_rows_for_one_place_one_is_applied
            sixty_four_appenders_at_once_keep_their_orders

            p1_each_acknowledged_row_of_many_appenders_is_there_exactly_once
            p4_of_rivals_for_one_place_exactly_one_wins
            p8_requests_of_many_at_once_are_numbered_in_order_of_acceptance
            p8_a_request_that_many_send_at_once_is_there_once
            p4_starts_of_one_id_by_many_at_once_make_one_run

            a_row_that_finds_the_run_in_another_state_is_refused
            a_row_without_an_update_leaves_a_closed_run_closed
            an_update_of_a_closed_run_stamps_its_end_anew
            a_closed_run_can_be_opened_again
            a_closed_run_takes_only_what_is_for_closed_runs

            attention_items_open_and_close_with_their_rows
            attention_items_are_listed_oldest_first

            requests_are_numbered_per_run_in_order
            p8_a_repeated_request_gets_its_first_answer
            p8_a_request_id_with_another_content_is_refused
            p8_a_repeated_request_gets_its_first_answer_after_the_run_closed
            p8_accepted_at_never_runs_backwards
            a_request_to_an_unknown_run_is_refused
            p8_a_repeated_request_is_told_what_the_first_was
            p10_a_request_does_not_overtake_what_it_was_not_judged_with
            a_full_inbox_takes_nothing_new

            an_open_run_is_not_called_by_its_owner
            runs_that_nobody_drives_are_called
            p1_a_run_that_closes_over_what_is_for_closed_runs_is_called
            a_call_that_has_grown_is_not_taken_off_the_list
            an_owner_that_is_alone_hears_no_news

            runs_are_found_by_their_attributes
            a_value_is_found_as_the_kind_that_it_is
            what_is_not_a_number_is_not_found
            found_runs_are_read_page_by_page_newest_first
            a_row_that_is_refused_or_repeated_sets_no_attribute

            a_deleted_run_is_seen_by_nobody
            a_run_that_is_open_or_called_is_not_deleted
            b94_a_run_is_never_deleted_while_an_attention_item_is_open
            the_id_of_a_deleted_run_has_the_run_before_it_or_is_free
            numbers_of_deleted_runs_are_not_used_again
            purging_frees_so_many_rows_at_a_time
            expired_runs_are_listed_in_the_order_of_their_expiry

            p1_b96_after_a_death_at_any_change_the_next_owner_gets_the_same_store
            b96_changes_that_are_offered_again_and_again_are_applied_once
            p1_a_death_in_the_middle_of_many_changes_tears_none

            open_runs_are_read_page_by_page
            runs_are_read_page_by_page_newest_first
            a_run_is_found_by_its_execution_and_its_own_id
            reads_of_what_is_not_there_are_empty
            a_read_sees_what_was_acknowledged_before_it

            p4_an_older_owner_writes_nothing_of_any_kind
            p4_an_older_owner_reads_and_gets_its_first_answers
            p4_what_an_older_owner_has_offered_is_there_at_the_takeover_or_never

            p1_reopening_shows_everything_acknowledged
            fences_grow_with_each_owner
            offers_are_applied_though_their_futures_are_dropped
            dropping_the_store_applies_what_was_offered
            closing_applies_what_was_offered
            a_closed_store_says_so
        }
    };
    ($subject:expr; $($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                $crate::conformance::$name($subject).await;
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    /// A behaviour that the macro does not name would never run.
    #[test]
    fn the_macro_names_every_behaviour() {
        let sources = [
            include_str!("conformance/append.rs"),
            include_str!("conformance/attention.rs"),
            include_str!("conformance/attributes.rs"),
            include_str!("conformance/calls.rs"),
            include_str!("conformance/closed.rs"),
            include_str!("conformance/crowd.rs"),
            include_str!("conformance/death.rs"),
            include_str!("conformance/deletion.rs"),
            include_str!("conformance/fence.rs"),
            include_str!("conformance/inbox.rs"),
            include_str!("conformance/life.rs"),
            include_str!("conformance/read.rs"),
            include_str!("conformance/start.rs"),
        ];
        let named: Vec<_> = include_str!("conformance.rs").lines().map(str::trim).collect();
        let functions = sources.iter().flat_map(|source| source.split("\npub async fn ").skip(1));
        let mut count = 0;
        for function in functions {
            let name = function.split('(').next().expect("has one part at least");
            assert!(named.contains(&name), "{name} is not in conformance_tests!");
            count += 1;
        }
        assert!(count > 60, "{count}");
    }
}
