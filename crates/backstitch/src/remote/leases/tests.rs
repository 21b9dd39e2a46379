use super::*;

const TERM: Duration = Duration::from_secs(12);
const RUN: RunNo = RunNo(7);

struct Desk {
    leases: Leases,
    notices: mpsc::UnboundedReceiver<Notice>,
    said: mpsc::UnboundedReceiver<FromWorker>,
}

fn connected() -> Desk {
    let (notices_in, notices) = mpsc::unbounded_channel();
    let mut leases = Leases::new(notices_in);
    let (out, said) = mpsc::unbounded_channel();
    leases.prolong(Tick::now(), TERM);
    leases.connected(&[], &[], out);
    Desk { leases, notices, said }
}

fn lease(fence: u64) -> api::Lease {
    api::Lease {
        run: RUN.0,
        fence,
        run_id: vec![1; 16],
        input_digest: vec![2; 32],
        ..api::Lease::default()
    }
}

/// The fence and the trouble of the next message, which is a Release.
fn released(said: &mut mpsc::UnboundedReceiver<FromWorker>) -> Option<(u64, String)> {
    match said.try_recv().ok()?.message? {
        Message::Release(release) => Some((release.fence, release.trouble)),
        other => panic!("a Release was to come, and not {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn p4_nothing_begins_when_the_term_is_over_though_nobody_has_noticed_yet() {
    let Desk { mut leases, mut notices, mut said } = connected();
    leases.leased(lease(1));
    assert!(leases.take_up(RUN).is_some() && leases.holds(RUN));
    tokio::time::advance(TERM).await;
    assert!(!leases.holds(RUN), "asked before an attempt begins");
    assert_eq!(notices.try_recv().ok(), Some(Notice::Lost(RUN)));
    // An answer that comes now does not give back what is being dropped.
    leases.prolong(Tick::now(), TERM);
    assert!(!leases.holds(RUN) && leases.take_up(RUN).is_none());
    assert_eq!(released(&mut said), None, "not before its driver has left");
    leases.left_by_driver(RUN, None);
    assert_eq!(released(&mut said), Some((1, String::new())));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_leased_again_waits_until_the_driver_before_has_left() {
    let Desk { mut leases, mut notices, mut said } = connected();
    leases.leased(lease(1));
    leases.take_up(RUN);
    leases.leased(lease(2));
    assert_eq!(notices.try_recv().ok(), Some(Notice::Lost(RUN)));
    assert!(leases.take_up(RUN).is_none() && leases.calls(RunNo(0), 9).is_empty());
    leases.left_by_driver(RUN, None);
    assert_eq!(leases.calls(RunNo(0), 9), [Call { run: RUN, times: 1 }]);
    assert!(leases.take_up(RUN).is_some());
    assert_eq!(leases.fence(RUN), 2);
    assert_eq!(released(&mut said), None, "the first lease was not ours to give back");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_driven_is_given_back_with_the_reason_each_time() {
    let Desk { mut leases, mut said, .. } = connected();
    leases.leased(lease(1));
    leases.take_up(RUN);
    leases.left_by_driver(RUN, Some("torn"));
    assert_eq!(released(&mut said), Some((1, "torn".into())));
    leases.leased(lease(2));
    assert_eq!(released(&mut said), Some((2, "torn".into())));
    let short = api::Lease { run: 8, run_id: vec![1; 3], ..lease(3) };
    leases.leased(short);
    let (_, trouble) = released(&mut said).expect("it is given back");
    assert!(trouble.contains("3 bytes"), "{trouble}");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_has_taken_up_goes_without_a_word_to_the_engine() {
    let Desk { mut leases, mut notices, mut said } = connected();
    leases.leased(lease(1));
    let why = api::Revoke { run: RUN.0, fence: 1, why: "x".into(), in_good_order: true };
    leases.revoked(api::Revoke { fence: 9, ..why.clone() });
    assert!(leases.holds(RUN), "that was another lease");
    leases.revoked(why);
    assert!(!leases.holds(RUN));
    assert_eq!(released(&mut said), Some((1, String::new())));
    assert_eq!(notices.try_recv().ok(), None);
}
