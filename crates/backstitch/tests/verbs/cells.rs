//! One test for each verb in each status.

use crate::cell::cell;
use crate::scene::On;
use crate::table::Ask;

macro_rules! cells {
    ($($name:ident: $ask:ident, $on:ident;)*) => {
        $(#[tokio::test]
        async fn $name() {
            cell(Ask::$ask, On::$on).await;
        })*

        #[test]
        fn b38_no_cell_is_left_out() {
            let cells = [$((Ask::$ask, On::$on)),*];
            for (at, cell) in cells.iter().enumerate() {
                assert!(!cells[..at].contains(cell), "{cell:?} is there twice");
            }
            assert_eq!(cells.len(), 13 * 13);
        }
    };
}

cells! {
    b38_event_on_pending: Event, Pending;
    b38_event_on_running: Event, Running;
    b38_event_on_suspended: Event, Suspended;
    b38_event_on_paused: Event, Paused;
    b38_event_on_blocked: Event, Blocked;
    b38_event_on_rolling_back: Event, RollingBack;
    b38_event_on_paused_rolling_back: Event, PausedRollingBack;
    b38_event_on_stuck: Event, Stuck;
    b38_event_on_succeeded: Event, Succeeded;
    b38_event_on_failed: Event, Failed;
    b38_event_on_cancelled: Event, Cancelled;
    b38_event_on_terminated: Event, Terminated;
    b38_event_on_killed: Event, Killed;

    b38_cancel_on_pending: Cancel, Pending;
    b38_cancel_on_running: Cancel, Running;
    b38_cancel_on_suspended: Cancel, Suspended;
    b38_cancel_on_paused: Cancel, Paused;
    b38_cancel_on_blocked: Cancel, Blocked;
    b38_cancel_on_rolling_back: Cancel, RollingBack;
    b38_cancel_on_paused_rolling_back: Cancel, PausedRollingBack;
    b38_cancel_on_stuck: Cancel, Stuck;
    b38_cancel_on_succeeded: Cancel, Succeeded;
    b38_cancel_on_failed: Cancel, Failed;
    b38_cancel_on_cancelled: Cancel, Cancelled;
    b38_cancel_on_terminated: Cancel, Terminated;
    b38_cancel_on_killed: Cancel, Killed;

    b38_terminate_on_pending: Terminate, Pending;
    b38_terminate_on_running: Terminate, Running;
    b38_terminate_on_suspended: Terminate, Suspended;
    b38_terminate_on_paused: Terminate, Paused;
    b38_terminate_on_blocked: Terminate, Blocked;
    b38_terminate_on_rolling_back: Terminate, RollingBack;
    b38_terminate_on_paused_rolling_back: Terminate, PausedRollingBack;
    b38_terminate_on_stuck: Terminate, Stuck;
    b38_terminate_on_succeeded: Terminate, Succeeded;
    b38_terminate_on_failed: Terminate, Failed;
    b38_terminate_on_cancelled: Terminate, Cancelled;
    b38_terminate_on_terminated: Terminate, Terminated;
    b38_terminate_on_killed: Terminate, Killed;

    b38_rollback_on_pending: Rollback, Pending;
    b38_rollback_on_running: Rollback, Running;
    b38_rollback_on_suspended: Rollback, Suspended;
    b38_rollback_on_paused: Rollback, Paused;
    b38_rollback_on_blocked: Rollback, Blocked;
    b38_rollback_on_rolling_back: Rollback, RollingBack;
    b38_rollback_on_paused_rolling_back: Rollback, PausedRollingBack;
    b38_rollback_on_stuck: Rollback, Stuck;
    b38_rollback_on_succeeded: Rollback, Succeeded;
    b38_rollback_on_failed: Rollback, Failed;
    b38_rollback_on_cancelled: Rollback, Cancelled;
    b38_rollback_on_terminated: Rollback, Terminated;
    b38_rollback_on_killed: Rollback, Killed;

    b38_kill_on_pending: Kill, Pending;
    b38_kill_on_running: Kill, Running;
    b38_kill_on_suspended: Kill, Suspended;
    b38_kill_on_paused: Kill, Paused;
    b38_kill_on_blocked: Kill, Blocked;
    b38_kill_on_rolling_back: Kill, RollingBack;
    b38_kill_on_paused_rolling_back: Kill, PausedRollingBack;
    b38_kill_on_stuck: Kill, Stuck;
    b38_kill_on_succeeded: Kill, Succeeded;
    b38_kill_on_failed: Kill, Failed;
    b38_kill_on_cancelled: Kill, Cancelled;
    b38_kill_on_terminated: Kill, Terminated;
    b38_kill_on_killed: Kill, Killed;

    b38_pause_on_pending: Pause, Pending;
    b38_pause_on_running: Pause, Running;
    b38_pause_on_suspended: Pause, Suspended;
    b38_pause_on_paused: Pause, Paused;
    b38_pause_on_blocked: Pause, Blocked;
    b38_pause_on_rolling_back: Pause, RollingBack;
    b38_pause_on_paused_rolling_back: Pause, PausedRollingBack;
    b38_pause_on_stuck: Pause, Stuck;
    b38_pause_on_succeeded: Pause, Succeeded;
    b38_pause_on_failed: Pause, Failed;
    b38_pause_on_cancelled: Pause, Cancelled;
    b38_pause_on_terminated: Pause, Terminated;
    b38_pause_on_killed: Pause, Killed;

    b38_resume_on_pending: Resume, Pending;
    b38_resume_on_running: Resume, Running;
    b38_resume_on_suspended: Resume, Suspended;
    b38_resume_on_paused: Resume, Paused;
    b38_resume_on_blocked: Resume, Blocked;
    b38_resume_on_rolling_back: Resume, RollingBack;
    b38_resume_on_paused_rolling_back: Resume, PausedRollingBack;
    b38_resume_on_stuck: Resume, Stuck;
    b38_resume_on_succeeded: Resume, Succeeded;
    b38_resume_on_failed: Resume, Failed;
    b38_resume_on_cancelled: Resume, Cancelled;
    b38_resume_on_terminated: Resume, Terminated;
    b38_resume_on_killed: Resume, Killed;

    b38_retry_step_on_pending: RetryStep, Pending;
    b38_retry_step_on_running: RetryStep, Running;
    b38_retry_step_on_suspended: RetryStep, Suspended;
    b38_retry_step_on_paused: RetryStep, Paused;
    b38_retry_step_on_blocked: RetryStep, Blocked;
    b38_retry_step_on_rolling_back: RetryStep, RollingBack;
    b38_retry_step_on_paused_rolling_back: RetryStep, PausedRollingBack;
    b38_retry_step_on_stuck: RetryStep, Stuck;
    b38_retry_step_on_succeeded: RetryStep, Succeeded;
    b38_retry_step_on_failed: RetryStep, Failed;
    b38_retry_step_on_cancelled: RetryStep, Cancelled;
    b38_retry_step_on_terminated: RetryStep, Terminated;
    b38_retry_step_on_killed: RetryStep, Killed;

    b38_retry_undo_on_pending: RetryUndo, Pending;
    b38_retry_undo_on_running: RetryUndo, Running;
    b38_retry_undo_on_suspended: RetryUndo, Suspended;
    b38_retry_undo_on_paused: RetryUndo, Paused;
    b38_retry_undo_on_blocked: RetryUndo, Blocked;
    b38_retry_undo_on_rolling_back: RetryUndo, RollingBack;
    b38_retry_undo_on_paused_rolling_back: RetryUndo, PausedRollingBack;
    b38_retry_undo_on_stuck: RetryUndo, Stuck;
    b38_retry_undo_on_succeeded: RetryUndo, Succeeded;
    b38_retry_undo_on_failed: RetryUndo, Failed;
    b38_retry_undo_on_cancelled: RetryUndo, Cancelled;
    b38_retry_undo_on_terminated: RetryUndo, Terminated;
    b38_retry_undo_on_killed: RetryUndo, Killed;

    b38_waive_undo_on_pending: WaiveUndo, Pending;
    b38_waive_undo_on_running: WaiveUndo, Running;
    b38_waive_undo_on_suspended: WaiveUndo, Suspended;
    b38_waive_undo_on_paused: WaiveUndo, Paused;
    b38_waive_undo_on_blocked: WaiveUndo, Blocked;
    b38_waive_undo_on_rolling_back: WaiveUndo, RollingBack;
    b38_waive_undo_on_paused_rolling_back: WaiveUndo, PausedRollingBack;
    b38_waive_undo_on_stuck: WaiveUndo, Stuck;
    b38_waive_undo_on_succeeded: WaiveUndo, Succeeded;
    b38_waive_undo_on_failed: WaiveUndo, Failed;
    b38_waive_undo_on_cancelled: WaiveUndo, Cancelled;
    b38_waive_undo_on_terminated: WaiveUndo, Terminated;
    b38_waive_undo_on_killed: WaiveUndo, Killed;

    b38_set_attributes_on_pending: SetAttributes, Pending;
    b38_set_attributes_on_running: SetAttributes, Running;
    b38_set_attributes_on_suspended: SetAttributes, Suspended;
    b38_set_attributes_on_paused: SetAttributes, Paused;
    b38_set_attributes_on_blocked: SetAttributes, Blocked;
    b38_set_attributes_on_rolling_back: SetAttributes, RollingBack;
    b38_set_attributes_on_paused_rolling_back: SetAttributes, PausedRollingBack;
    b38_set_attributes_on_stuck: SetAttributes, Stuck;
    b38_set_attributes_on_succeeded: SetAttributes, Succeeded;
    b38_set_attributes_on_failed: SetAttributes, Failed;
    b38_set_attributes_on_cancelled: SetAttributes, Cancelled;
    b38_set_attributes_on_terminated: SetAttributes, Terminated;
    b38_set_attributes_on_killed: SetAttributes, Killed;

    b38_delete_on_pending: Delete, Pending;
    b38_delete_on_running: Delete, Running;
    b38_delete_on_suspended: Delete, Suspended;
    b38_delete_on_paused: Delete, Paused;
    b38_delete_on_blocked: Delete, Blocked;
    b38_delete_on_rolling_back: Delete, RollingBack;
    b38_delete_on_paused_rolling_back: Delete, PausedRollingBack;
    b38_delete_on_stuck: Delete, Stuck;
    b38_delete_on_succeeded: Delete, Succeeded;
    b38_delete_on_failed: Delete, Failed;
    b38_delete_on_cancelled: Delete, Cancelled;
    b38_delete_on_terminated: Delete, Terminated;
    b38_delete_on_killed: Delete, Killed;

    b38_restart_on_pending: Restart, Pending;
    b38_restart_on_running: Restart, Running;
    b38_restart_on_suspended: Restart, Suspended;
    b38_restart_on_paused: Restart, Paused;
    b38_restart_on_blocked: Restart, Blocked;
    b38_restart_on_rolling_back: Restart, RollingBack;
    b38_restart_on_paused_rolling_back: Restart, PausedRollingBack;
    b38_restart_on_stuck: Restart, Stuck;
    b38_restart_on_succeeded: Restart, Succeeded;
    b38_restart_on_failed: Restart, Failed;
    b38_restart_on_cancelled: Restart, Cancelled;
    b38_restart_on_terminated: Restart, Terminated;
    b38_restart_on_killed: Restart, Killed;
}
