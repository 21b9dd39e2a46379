//! How long to wait before the next attempt (B07, B09), and whether there is one (B04).

use backstitch_core::failure::{Class, Effect, Failure, Origin};
use backstitch_core::limits::DURATION_US_MAX;
use backstitch_core::retry::{Backoff, ClassLists, Jitter, Retry, StepPolicy, UndoPolicy};
use prost::Message;

const S: u64 = 1_000_000;

fn policy(backoff: Backoff, initial_us: u64) -> Retry {
    Retry {
        backoff: backoff as i32,
        initial_us,
        cap_us: DURATION_US_MAX,
        jitter: Jitter::None as i32,
        ..Retry::step_default()
    }
}

fn delays(retry: &Retry, n: u32) -> Vec<u64> {
    (1..=n).map(|nth| retry.delay_us(nth, 0)).collect()
}

#[test]
fn b07_delays_grow_as_the_policy_says() {
    let constant = policy(Backoff::Constant, 3 * S);
    assert_eq!(delays(&constant, 4), [3 * S; 4]);
    let linear = policy(Backoff::Linear, 3 * S);
    assert_eq!(delays(&linear, 4), [3 * S, 6 * S, 9 * S, 12 * S]);
    let exponential = policy(Backoff::Exponential, 3 * S);
    assert_eq!(delays(&exponential, 4), [3 * S, 6 * S, 12 * S, 24 * S]);
    let slower = Retry { factor: 1.5, ..exponential };
    assert_eq!(delays(&slower, 4), [3 * S, 4_500_000, 6_750_000, 10_125_000]);
    let flat = Retry { factor: 1.0, ..policy(Backoff::Exponential, S) };
    assert_eq!(delays(&flat, 3), [S; 3]);
}

#[test]
fn b07_no_delay_is_longer_than_the_cap() {
    for backoff in [Backoff::Constant, Backoff::Linear, Backoff::Exponential] {
        let retry = Retry { cap_us: 5 * S, ..policy(backoff, 2 * S) };
        assert!(delays(&retry, 100).iter().all(|delay| *delay <= 5 * S), "{backoff:?}");
        let at_once = Retry { cap_us: 0, ..retry };
        assert_eq!(delays(&at_once, 3), [0; 3], "{backoff:?}");
    }
    let retry = Retry { cap_us: 5 * S, ..policy(Backoff::Exponential, 2 * S) };
    assert_eq!(delays(&retry, 4), [2 * S, 4 * S, 5 * S, 5 * S]);
}

#[test]
fn b07_full_jitter_picks_a_point_between_zero_and_the_delay() {
    let retry = Retry { jitter: Jitter::Full as i32, ..policy(Backoff::Constant, 10 * S) };
    assert_eq!(retry.delay_us(1, 0), 0);
    assert_eq!(retry.delay_us(1, u64::MAX), 10 * S, "the whole delay is among them");
    assert_eq!(retry.delay_us(1, 1 << 63), 5 * S);
    let mut last = 0;
    for part in 0..1_000 {
        let delay = retry.delay_us(1, u64::MAX / 1_000 * part);
        assert!((last..=10 * S).contains(&delay), "it grows with the draw");
        last = delay;
    }
    let none = Retry { initial_us: 0, ..retry };
    assert_eq!(none.delay_us(1, u64::MAX), 0);
}

#[test]
fn b09_nothing_overflows() {
    let extreme = [0, 1, S, DURATION_US_MAX - 1, DURATION_US_MAX, u64::MAX / 2, u64::MAX];
    let factors = [0.0, 1.0, 2.0, 1e300, f64::MAX, f64::INFINITY, f64::NAN, -1.0];
    for backoff in [Backoff::Constant, Backoff::Linear, Backoff::Exponential] {
        for initial_us in extreme {
            for cap_us in extreme {
                for factor in factors {
                    let retry = Retry { factor, cap_us, ..policy(backoff, initial_us) };
                    for nth in [0, 1, 2, 64, 1_000, i32::MAX as u32, u32::MAX] {
                        for jitter in [Jitter::None, Jitter::Full] {
                            let retry = Retry { jitter: jitter as i32, ..retry.clone() };
                            let delay = retry.delay_us(nth, u64::MAX);
                            let bound = cap_us.min(DURATION_US_MAX);
                            assert!(delay <= bound, "{retry:?} {nth}: {delay}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn b09_the_last_of_u32_max_attempts_waits_for_the_cap() {
    let retry = Retry { max_attempts: u32::MAX, ..Retry::step_default() };
    assert_eq!(retry.delay_us(u32::MAX, u64::MAX), 300 * S);
}

#[test]
fn b09_zero_delay_stays_zero() {
    for backoff in [Backoff::Constant, Backoff::Linear, Backoff::Exponential] {
        assert_eq!(delays(&policy(backoff, 0), 3), [0; 3], "{backoff:?}");
        let forever = Retry { factor: f64::INFINITY, ..policy(backoff, 0) };
        assert_eq!(forever.delay_us(1_000, 0), 0, "{backoff:?}");
    }
}

#[test]
fn b07_defaults_are_the_documented_ones() {
    let step = StepPolicy::step_default();
    assert_eq!(
        (step.retry.max_attempts, step.retry.initial_us, step.retry.cap_us),
        (6, S, 300 * S)
    );
    assert_eq!((step.retry.factor, step.retry.jitter()), (2.0, Jitter::Full));
    assert_eq!((step.timeout_us, step.deadline_us), (600 * S, None));
    let undo = UndoPolicy::undo_default();
    assert_eq!((undo.retry.max_attempts, undo.timeout_us), (10, 600 * S));
    assert_eq!(Retry { max_attempts: 6, ..undo.retry }, step.retry);
}

#[test]
fn b07_a_computed_delay_keeps_to_cap_and_jitter() {
    let retry = policy(Backoff::Computed, S);
    assert_eq!(delays(&retry, 3), [S; 3], "where the code was not asked");
    assert_eq!(retry.spread_us(7 * S, u64::MAX), 7 * S);
    let capped = Retry { cap_us: 5 * S, ..retry.clone() };
    assert_eq!(capped.spread_us(7 * S, 0), 5 * S);
    let spread = Retry { jitter: Jitter::Full as i32, ..capped };
    assert_eq!((spread.spread_us(4 * S, 0), spread.spread_us(4 * S, 1 << 63)), (0, 2 * S));
    assert_eq!(retry.spread_us(u64::MAX, 0), DURATION_US_MAX);
}

fn lists() -> Retry {
    let lists = ClassLists {
        transient: vec!["Timeout".into(), "409".into()],
        permanent: vec!["CardDeclined".into()],
        attention: vec!["Unauthorized".into()],
    };
    Retry { lists: Some(Box::new(lists)), ..Retry::step_default() }
}

#[test]
fn b04_a_list_that_names_the_type_or_the_code_goes_before_the_body() {
    let class = |said, type_name: &str, code: &str| {
        let mut failure = Failure::new(said, Origin::Body, type_name, "");
        failure.code = code.into();
        lists().class_of(&failure)
    };
    assert_eq!(class(Class::Transient, "CardDeclined", ""), Class::Permanent);
    assert_eq!(class(Class::Permanent, "Unauthorized", ""), Class::Attention);
    assert_eq!(class(Class::Attention, "Timeout", ""), Class::Transient);
    assert_eq!(class(Class::Permanent, "HttpStatus", "409"), Class::Transient);
    assert_eq!(class(Class::Permanent, "HttpStatus", "410"), Class::Permanent);
    assert_eq!(class(Class::Attention, "carddeclined", "40"), Class::Attention, "letter by letter");
    assert_eq!(class(Class::Transient, "", ""), Class::Transient);
    let both = class(Class::Transient, "Timeout", "Unauthorized");
    assert_eq!(both, Class::Attention, "the list that tries less often");
}

#[test]
fn b04_lists_speak_only_of_what_a_body_returned() {
    for origin in [
        Origin::Timeout,
        Origin::Panic,
        Origin::Lost,
        Origin::Interrupted,
        Origin::Limit,
        Origin::Decode,
        Origin::Engine,
    ] {
        for class in [Class::Transient, Class::Permanent, Class::Attention] {
            let failure = Failure::new(class, origin, "CardDeclined", "");
            assert_eq!(lists().class_of(&failure), class, "{origin:?}");
            assert_eq!(failure.effect(), Effect::Possible);
        }
    }
}

#[test]
fn p11_empty_lists_are_not_written_down() {
    let retry = Retry::step_default();
    assert_eq!(retry.encode_to_vec().len(), 2 + 4 + 9 + 6, "attempts, delay, factor, cap");
    assert_eq!(Retry::decode(lists().encode_to_vec().as_slice()), Ok(lists()));
}
