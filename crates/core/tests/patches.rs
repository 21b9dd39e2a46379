//! Places where the code was patched: the new way for runs that come there, the old one for those
//! that went by (P11, B82).

mod owner;
mod story;

use backstitch_core::event::Event;
use backstitch_core::row::RowKind;
use backstitch_core::session::{Found, Patches, Report};
use owner::{Owner, asks, publishes, sets, sleep, step};
use story::attribute;

/// Code that takes the new way at `p` and asks for a step there.
fn patched() -> Report {
    Report { patched: vec!["p".into()], ..asks(vec![step("new")]) }
}

fn old() -> Report {
    asks(vec![step("old")])
}

/// What a session says of patches to code that does `report` in its only group.
fn told(owner: &mut Owner, report: Report) -> Patches {
    owner.crash_without_code();
    let mut told = None;
    let fits = owner.attach_to(|group| {
        told.get_or_insert(group.patches.clone());
        report.clone()
    });
    fits.expect("it fits");
    told.expect("there is a group")
}

#[test]
fn p11_live_code_takes_the_new_way_and_that_is_recorded_before_what_it_asks_for() {
    let mut owner = Owner::begin();
    let mut seen = Vec::new();
    owner.row(|group| {
        seen.push(group.patches.clone());
        let notes = vec![publishes("k"), sets(attribute("A", Some(1)))];
        Report { notes, ..patched() }
    });
    assert_eq!(seen, [Patches::Live]);
    let last =
        ["MarkerRecorded", "ValuePublished", "AttributesSet", "StepScheduled", "StepStarted"];
    assert_eq!((owner.last(), owner.last_kind()), (last.to_vec(), RowKind::Turn));
    assert_eq!(told(&mut owner, patched()), Patches::Recorded(vec!["p".into()]));
}

#[test]
fn p11_code_that_was_patched_since_takes_the_old_way_where_the_journal_went_by() {
    let mut owner = Owner::begin();
    owner.row(|_| old()).expect("the first turn");
    assert_eq!(told(&mut owner, old()), Patches::Recorded(vec![]));
    // Where the journal ends it takes the new one, unless it went the old way before.
    owner.idle().expect("the attempt was lost");
    owner.returned(1);
    owner.row(|group| {
        assert_eq!(group.patches, Patches::Live);
        patched()
    });
    assert_eq!(owner.last(), ["StepSucceeded", "MarkerRecorded", "StepScheduled", "StepStarted"]);
    owner.crash_without_code();
    let mut told = Vec::new();
    let mut reports = vec![patched(), old()];
    let fits = owner.attach_to(|group| {
        told.push(group.patches.clone());
        reports.pop().expect("two groups")
    });
    assert_eq!(fits, Ok(()));
    assert_eq!(told, [Patches::Recorded(vec![]), Patches::Recorded(vec!["p".into()])]);
}

#[test]
fn p11_several_patches_of_a_group_are_told_in_their_order_each_group_its_own() {
    let two = || Report { patched: vec!["p".into(), "q".into()], ..asks(vec![step("s")]) };
    let third = || Report { patched: vec!["r".into()], ..asks(vec![sleep("z", 0)]) };
    let mut owner = Owner::begin();
    owner.row(|_| two()).expect("the first turn");
    owner.returned(1);
    owner.row(|group| if group.group == 2 { third() } else { Report::default() });
    owner.crash();
    let told: Vec<_> = owner.played.iter().map(|(group, _)| group.patches.clone()).collect();
    let recorded =
        |names: &[&str]| Patches::Recorded(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(told, [recorded(&["p", "q"]), recorded(&["r"]), recorded(&[])]);
}

#[test]
fn b82_code_without_a_patch_that_was_recorded_does_not_fit() {
    let mut owner = Owner::begin();
    owner.row(|_| patched()).expect("the first turn");
    owner.crash_without_code();
    let mismatch = owner.attach_to(|_| asks(vec![step("new")])).expect_err("the patch is gone");
    assert_eq!((mismatch.seq, mismatch.found), (2, Found::InReplay));
    assert!(mismatch.recorded.contains("\"p\""), "{mismatch}");
    owner.idle().expect("the run is blocked");
    assert_eq!(owner.last()[0], "Blocked");
    owner.crash_without_code();
    let other = Report { patched: vec!["P".into()], ..asks(vec![step("new")]) };
    owner.attach_to(|_| other.clone()).expect_err("names are compared letter by letter");
    owner.crash_without_code();
    assert_eq!(owner.attach_to(|_| patched()), Ok(()));
}

#[test]
fn p11_code_that_was_mended_records_a_patch_once() {
    let mut owner = Owner::begin();
    // The code passes a patch, and then awaits something that the engine does not know.
    owner.row(|_| Report { patched: vec!["p".into()], ..Report::default() }).expect("a turn");
    owner::blocks(&mut owner);
    owner.idle().expect("it is blocked");
    owner.crash_without_code();
    owner.attach_to(|_| asks(vec![step("new")])).expect_err("the patch is gone");
    owner.crash_without_code();
    assert_eq!(owner.attach_to(|_| patched()), Ok(()));
    owner.session.fits();
    owner.rows(|_| Report::default());
    let events = owner.rows.iter().flat_map(|row| &row.events);
    let names: Vec<&str> = events.map(Event::name).collect();
    assert_eq!(names.iter().filter(|name| **name == "MarkerRecorded").count(), 1, "{names:?}");
    assert!(names.contains(&"StepScheduled"), "it goes on from there: {names:?}");
}
