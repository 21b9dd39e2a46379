//! Values that other systems remember, or that replay needs: they never change (P11).

use backstitch_core::id::{Key, KeyKind, RunId, draw, name_defect};
/// All its bytes differ.
const RUN_ID: [u8; 16] = [
    0x01, 0x9b, 0x74, 0xa4, 0xd8, 0x00, 0x7c, 0x3e, 0x91, 0x5f, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
];

fn run() -> RunId {
    RunId::from_slice(&RUN_ID).expect("16 bytes")
}

/// Made by another implementation of RFC 9562 from the same parts.
#[test]
fn b93_idempotency_keys_are_frozen() {
    let keys = [
        (1, "3719ba2c-c40d-5ee2-90de-631f5c5caf80", "1f22701b-d7ba-5ac8-9584-bb52af7486fa"),
        (2, "7af94e66-b2fb-51d8-8782-012326302aad", "b4660d3c-e239-5054-b00a-30bca0f3d3ea"),
        (256, "aa8e6d78-c20f-5ca5-9420-ec84a9863158", "46259d00-a03a-562f-a83c-47a359c4ca82"),
        (u32::MAX, "fc78ef30-26fc-5032-bc57-76e053832a4d", "0300cf93-1591-5b68-b9a3-6bb5560a06e6"),
    ];
    for (ord, step, undo) in keys {
        assert_eq!((run().step_key(ord).as_str(), run().undo_key(ord).as_str()), (step, undo));
        assert_eq!(step.len(), 36);
    }
}

#[test]
fn b93_another_run_has_other_keys() {
    let mut other = RUN_ID;
    other[15] ^= 1;
    let other = RunId::from_slice(&other).expect("16 bytes");
    assert_ne!(run().step_key(1), other.step_key(1));
    assert_ne!(run().undo_key(1), other.undo_key(1));
}

#[test]
fn p11_a_run_id_has_16_bytes() {
    assert_eq!(run().to_vec(), RUN_ID);
    assert_eq!(run().to_string(), "019b74a4-d800-7c3e-915f-223344556677");
    assert_eq!(RunId::from_slice(&RUN_ID[..15]), None);
    assert_eq!(RunId::from_slice(&[0; 17]), None);
}

/// Made by another implementation of the same mixing function.
#[test]
fn b83_draws_are_frozen() {
    let draws = [
        ((0, 0, 0), 0xfbe9_8833_5f36_c931),
        ((0, 0, 1), 0x2d17_e7f1_1bf9_caf5),
        ((0, 1, 0), 0x38ba_9042_0059_bfd9),
        ((1, 0, 0), 0x6df1_4215_74b0_d586),
        ((0x0123_4567_89ab_cdef, 7, 3), 0xa84b_edcb_6296_2f18),
        ((u64::MAX, u64::MAX, u64::MAX), 0x179f_01f0_d2fb_a97a),
    ];
    for ((seed, group, k), wanted) in draws {
        assert_eq!(draw(seed, group, k), wanted, "draw {k} of group {group} of seed {seed:#x}");
    }
}

#[test]
fn b83_draws_of_neighbouring_places_differ() {
    let mut seen = std::collections::HashSet::new();
    for seed in 0..20 {
        for group in 0..20 {
            for k in 0..20 {
                assert!(seen.insert(draw(seed, group, k)), "{seed} {group} {k}");
            }
        }
    }
}

#[test]
fn b03_a_key_is_printed_after_the_path_of_its_branches() {
    let kind = KeyKind::Step as i32;
    let root = Key { scope: Vec::new(), kind, name: "charge".into(), count: 1 };
    assert_eq!(root.to_string(), "charge#1");
    let below = Key { scope: vec!["visa".into(), "eu".into()], count: 2, ..root };
    assert_eq!(below.to_string(), "visa/eu/charge#2");
}

#[test]
fn p12_names_have_1_to_256_characters_and_no_control_characters() {
    for fine in ["a", " ", "größe", "🧵", "a/b#1 c", &"x".repeat(256), &"🧵".repeat(256)] {
        assert_eq!(name_defect("step name", fine), None, "{fine:?}");
    }
    let bad = [
        (String::new(), "the step name is empty"),
        ("x".repeat(257), "has 257 characters; at most 256"),
        ("🧵".repeat(257), "has 257 characters; at most 256"),
        ("a\0b".into(), "U+0000"),
        ("a\nb".into(), "U+000A"),
        ("\u{7f}".into(), "U+007F"),
        ("\u{85}".into(), "U+0085"),
    ];
    for (name, wanted) in bad {
        let defect = name_defect("step name", &name).expect("it is refused");
        assert!(defect.contains(wanted), "{defect}");
        assert!(defect.len() < 300, "the message does not repeat a name of any length: {defect}");
    }
}
