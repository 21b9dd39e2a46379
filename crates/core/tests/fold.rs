//! What the fold refuses: each illegal transition, one by one.

mod story;

use backstitch_core::event::{AbandonWhy, BlockKind, EndKind, Event};
use backstitch_core::row::RowKind;
use backstitch_core::run::Run;
use story::*;

/// A run after the `rows`, each a turn.
fn after(rows: &[Vec<Event>]) -> Run {
    let mut run = run();
    for row in rows {
        then(&mut run, RowKind::Turn, row.clone()).expect("what comes before is legal");
    }
    run
}

/// Checks that each `event` is refused after its rows, with a reason that says `why`.
fn refused(cases: Vec<(Vec<Vec<Event>>, Event, &str)>) {
    for (rows, event, why) in cases {
        let mut run = after(&rows);
        let names: Vec<&str> = rows.iter().flatten().map(Event::name).collect();
        let Err(illegal) = then(&mut run, RowKind::Turn, vec![event.clone()]) else {
            panic!("{} was accepted after {names:?}", event.name());
        };
        assert_eq!((illegal.seq, illegal.event), (rows.len() as u64 + 2, event.name()));
        assert!(illegal.why.contains(why), "{} after {names:?}: {illegal}", event.name());
    }
}

fn one_step() -> Vec<Event> {
    vec![scheduled(1), started(1, 1)]
}

fn two_steps() -> Vec<Event> {
    [one_step(), vec![scheduled(2), started(2, 1)]].concat()
}

#[test]
fn p3_what_is_recorded_is_final() {
    let done = || vec![one_step(), vec![succeeded(1, 1)]];
    let lost = || vec![one_step(), vec![attempt_failed(1, 1, None), failed(1)]];
    let gone = || vec![one_step(), vec![dropped(1), abandoned(1, AbandonWhy::Cancelled)]];
    let held =
        || vec![one_step(), vec![attempt_failed(1, 1, None), blocked(BlockKind::Step, Some(1))]];
    refused(vec![
        (done(), succeeded(1, 1), "not in flight"),
        (done(), started(1, 2), "Succeeded"),
        (done(), attempt_failed(1, 1, Some(NOW_US)), "not in flight"),
        (done(), failed(1), "Succeeded"),
        (done(), abandoned(1, AbandonWhy::Lost), "Succeeded"),
        (done(), retry_step(1, 1), "Succeeded"),
        (done(), blocked(BlockKind::Step, Some(1)), "Succeeded"),
        (lost(), succeeded(1, 1), "not in flight"),
        (lost(), started(1, 2), "Failed"),
        (lost(), failed(1), "Failed"),
        (lost(), retry_step(1, 1), "Failed"),
        (gone(), succeeded(1, 1), "not in flight"),
        (gone(), started(1, 2), "Abandoned"),
        (gone(), abandoned(1, AbandonWhy::Lost), "Abandoned"),
        (held(), started(1, 2), "Blocked"),
        (held(), succeeded(1, 1), "not in flight"),
    ]);
}

#[test]
fn p3_attempts_are_counted_one_by_one() {
    let waiting = || vec![one_step(), vec![attempt_failed(1, 1, Some(NOW_US))]];
    let second = || [waiting(), vec![vec![started(1, 2)]]].concat();
    refused(vec![
        (vec![one_step()], started(1, 1), "Running"),
        (vec![one_step()], started(1, 2), "Running"),
        (vec![one_step()], given_up(1, 2), "attempt 2 is given up, not 1"),
        (vec![vec![scheduled(1)]], started(1, 2), "attempt 2 follows attempt 0"),
        (vec![vec![scheduled(1)]], succeeded(1, 0), "not in flight"),
        (waiting(), started(1, 1), "attempt 1 follows attempt 1"),
        (waiting(), started(1, 3), "attempt 3 follows attempt 1"),
        (second(), succeeded(1, 1), "attempt 1 is not in flight"),
        (second(), attempt_failed(1, 1, None), "attempt 1 is not in flight"),
        (vec![one_step()], failed(1), "Running"),
        (vec![one_step()], retry_step(1, 1), "Running"),
    ]);
}

#[test]
fn p5_nothing_goes_forward_after_the_decision() {
    let decided = || vec![two_steps(), vec![succeeded(2, 1), rollback(&[2, 1])]];
    let waiting = vec![one_step(), vec![attempt_failed(1, 1, Some(NOW_US)), rollback(&[1])]];
    let with_timer = vec![vec![timer(1)], vec![rollback(&[])]];
    let held = vec![
        one_step(),
        vec![attempt_failed(1, 1, None), blocked(BlockKind::Step, Some(1)), rollback(&[1])],
    ];
    refused(vec![
        (decided(), scheduled(3), "rolling back"),
        (decided(), timer(3), "rolling back"),
        (decided(), started(1, 2), "rolling back"),
        (decided(), shown(1), "rolling back"),
        (decided(), dropped(1), "rolling back"),
        (decided(), rollback(&[1]), "rolling back"),
        (decided(), blocked(BlockKind::Mismatch, None), "rolling back"),
        (waiting, started(1, 2), "rolling back"),
        (with_timer.clone(), fired(1), "rolling back"),
        (with_timer, timer_dropped(1), "rolling back"),
        (held, retry_step(1, 1), "rolling back"),
    ]);
}

#[test]
fn p7_no_undo_and_no_end_under_a_running_step() {
    let running = || vec![two_steps(), vec![succeeded(2, 1), rollback(&[2, 1])]];
    refused(vec![
        (running(), undo_started(2, 1), "step 1 is still in flight"),
        (running(), finished(), "step 1 is still in flight"),
        (running(), ended_failed(), "step 1 is still in flight"),
        (vec![vec![scheduled_plain(1), started(1, 1)]], ended_well(), "in flight"),
        (vec![vec![scheduled_plain(1), started(1, 1)]], ended_failed(), "in flight"),
        (vec![vec![scheduled_plain(1), started(1, 1)]], ended_cancelled(), "in flight"),
        (vec![vec![scheduled_plain(1), started(1, 1)]], ended_terminated(), "in flight"),
    ]);
}

#[test]
fn p6_no_end_while_an_undo_is_owed() {
    let done = || vec![one_step(), vec![succeeded(1, 1)]];
    let decided = || [done(), vec![vec![rollback(&[1])]]].concat();
    let failed_undo = || {
        let undo = vec![undo_started(1, 1), undo_attempt_failed(1, 1, None), undo_failed(1)];
        [decided(), vec![undo]].concat()
    };
    let lost_race =
        || vec![one_step(), vec![dropped(1)], vec![abandoned(1, AbandonWhy::Cancelled)]];
    refused(vec![
        (decided(), finished(), "still owed"),
        (decided(), ended_failed(), "not finished"),
        (failed_undo(), finished(), "still owed"),
        (failed_undo(), ended_failed(), "not finished"),
        (done(), ended_failed(), "owed"),
        (done(), ended_cancelled(), "owed"),
        (done(), ended_terminated(), "owed"),
        (lost_race(), ended_well(), "owed"),
    ]);
}

#[test]
fn p6_nothing_ends_in_a_way_that_nobody_has_asked_for() {
    refused(vec![
        (vec![], ended_cancelled(), "nobody has asked"),
        (vec![], ended_terminated(), "nobody has asked"),
    ]);
}

#[test]
fn r10_the_first_decision_names_the_end() {
    let paid = |kind| {
        let undo = vec![undo_started(1, 1), undo_succeeded(1, 1), finished()];
        vec![one_step(), vec![succeeded(1, 1), rollback_into(kind, &[1])], undo]
    };
    let ends = [
        (EndKind::Failed, ended_failed()),
        (EndKind::Cancelled, ended_cancelled()),
        (EndKind::Terminated, ended_terminated()),
        (EndKind::Succeeded, ended_well()),
    ];
    for (kind, end) in &ends {
        let mut run = after(&paid(*kind));
        then(&mut run, RowKind::Turn, vec![end.clone()]).expect("the decision named it");
        let others = ends.iter().filter(|(other, _)| other != kind);
        refused(others.map(|(_, end)| (paid(*kind), end.clone(), "decided")).collect());
    }
}

#[test]
fn r3_undos_run_one_at_a_time_and_each_once() {
    let decided = || vec![two_steps(), vec![succeeded(1, 1), succeeded(2, 1), rollback(&[2, 1])]];
    let on = |events: &[Event]| [decided(), vec![events.to_vec()]].concat();
    let paid = || on(&[undo_started(2, 1), undo_succeeded(2, 1)]);
    let debt = || on(&[undo_started(2, 1), undo_attempt_failed(2, 1, None), undo_failed(2)]);
    refused(vec![
        (vec![one_step(), vec![succeeded(1, 1)]], undo_started(1, 1), "not rolling back"),
        (on(&[undo_started(2, 1)]), undo_started(1, 1), "another undo"),
        (on(&[undo_started(2, 1)]), undo_started(2, 2), "Running"),
        (on(&[undo_started(2, 1)]), undo_failed(2), "Running"),
        (on(&[undo_started(2, 1)]), not_needed(2), "Running"),
        (on(&[undo_started(2, 1)]), waived(2, 1), "neither failed nor waits"),
        (on(&[undo_started(2, 1)]), undo_succeeded(2, 2), "not in flight"),
        (decided(), undo_started(2, 2), "attempt 2 follows attempt 0"),
        (decided(), undo_succeeded(2, 1), "not in flight"),
        (decided(), undo_attempt_failed(2, 1, None), "not in flight"),
        (decided(), retry_undo(2, 1), "not failed"),
        (paid(), undo_started(2, 2), "Succeeded"),
        (paid(), undo_succeeded(2, 1), "not in flight"),
        (paid(), retry_undo(2, 1), "not failed"),
        (paid(), waived(2, 1), "neither failed nor waits"),
        (paid(), not_needed(2), "Succeeded"),
        (debt(), undo_started(2, 2), "Failed"),
        (debt(), undo_failed(2), "Failed"),
    ]);
}

#[test]
fn r4_a_plan_names_steps_newest_first() {
    let done = || vec![two_steps(), vec![succeeded(1, 1), succeeded(2, 1), timer(3)]];
    refused(vec![
        (done(), rollback(&[1, 2]), "the plan has 2 after 1"),
        (done(), rollback(&[2, 2]), "the plan has 2 after 2"),
        (done(), rollback(&[3]), "timer"),
        (done(), rollback(&[4]), "no step 4"),
        (done(), rollback(&[0]), "no step 0"),
    ]);
}

#[test]
fn p6_a_plan_names_what_is_owed_and_how_the_run_ends() {
    let done = || vec![two_steps(), vec![succeeded(1, 1), succeeded(2, 1)]];
    let plain = || vec![vec![scheduled_plain(1), started(1, 1), succeeded(1, 1)]];
    let mut endless = rollback(&[2, 1]);
    let Event::RollbackStarted(decision) = &mut endless else { panic!("it is a decision") };
    decision.ends_in.failure = None;
    refused(vec![
        (done(), rollback(&[2]), "leaves out step 1"),
        (done(), rollback(&[]), "leaves out step 2"),
        (plain(), rollback(&[1]), "no undo"),
        (done(), endless, "no failure"),
        (done(), rollback_on_request(2, &[2, 1]), "rollback 2 follows rollback 0"),
    ]);
}

#[test]
fn p9_a_timer_ends_once() {
    let (open, over) = (|| vec![vec![timer(1)]], || vec![vec![timer(1)], vec![fired(1)]]);
    let gone = || vec![vec![timer(1)], vec![timer_dropped(1)]];
    refused(vec![
        (over(), fired(1), "Fired"),
        (over(), timer_dropped(1), "Fired"),
        (gone(), fired(1), "Cancelled"),
        (gone(), timer_dropped(1), "Cancelled"),
        (open(), fired(2), "no timer 2"),
        (open(), started(1, 1), "timer, not a step"),
        (vec![one_step()], fired(1), "step, not a timer"),
    ]);
}

#[test]
fn p13_asks_are_numbered_in_the_order_of_the_journal() {
    refused(vec![
        (vec![], scheduled(2), "ordinal 2 where 1 is next"),
        (vec![], scheduled(0), "ordinal 0 where 1 is next"),
        (vec![one_step()], scheduled(1), "ordinal 1 where 2 is next"),
        (vec![one_step()], timer(3), "ordinal 3 where 2 is next"),
        (vec![one_step()], started(2, 1), "no step 2"),
        (vec![one_step()], succeeded(0, 1), "no step 0"),
        (vec![one_step()], succeeded(u32::MAX, 1), "no step"),
    ]);
}

#[test]
fn p8_inbox_rows_are_copied_in_order_and_once() {
    refused(vec![
        (vec![vec![verb_refused(2)]], verb_refused(2), "copied before"),
        (vec![vec![verb_refused(2)]], pause(1), "copied before"),
        (vec![vec![pause(2)]], resume(2), "copied before"),
        (vec![], resume(1), "not paused"),
        (vec![vec![pause(1), resume(2)]], resume(3), "not paused"),
    ]);
}

#[test]
fn p10_a_block_is_about_something_and_ends_once() {
    let held = || vec![vec![blocked(BlockKind::Mismatch, None)]];
    refused(vec![
        (vec![one_step()], blocked(BlockKind::Step, Some(1)), "Running, not blocked"),
        (vec![one_step()], blocked(BlockKind::Step, None), "no ordinal"),
        (vec![one_step()], blocked(BlockKind::Step, Some(2)), "no step 2"),
        (vec![], unblocked(BlockKind::Mismatch, None), "no such block"),
        (held(), unblocked(BlockKind::ForeignWait, None), "no such block"),
        (held(), blocked(BlockKind::Mismatch, None), "already"),
        (vec![one_step()], blocked(BlockKind::Mismatch, Some(1)), "not 1"),
        (
            [held(), vec![vec![unblocked(BlockKind::Mismatch, None)]]].concat(),
            unblocked(BlockKind::Mismatch, None),
            "no such block",
        ),
    ]);
}

#[test]
fn p11_nothing_is_asked_for_where_replay_would_not_find_it() {
    let key_of = |event: &Event| match event {
        Event::StepScheduled(e) => e.key.clone(),
        Event::TimerStarted(e) => e.key.clone(),
        Event::WaitStarted(e) => e.key.clone(),
        other => panic!("{} has no key", other.name()),
    };
    let asks = [scheduled(1), timer(1), wait(1, "a", None)];
    for ask in &asks {
        for other in asks.iter().filter(|other| *other != ask) {
            let mut wrong = ask.clone();
            match &mut wrong {
                Event::StepScheduled(e) => e.key = key_of(other),
                Event::TimerStarted(e) => e.key = key_of(other),
                Event::WaitStarted(e) => e.key = key_of(other),
                other => panic!("{} has no key", other.name()),
            }
            refused(vec![(vec![], wrong, "another kind")]);
        }
        let in_an_engine_row = then(&mut run(), RowKind::Engine, vec![ask.clone()]);
        assert!(in_an_engine_row.is_err_and(|illegal| illegal.why.contains("only a turn")));
    }
}
