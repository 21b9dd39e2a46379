//! Lists that are longer than what is printed at a time.

use crate::binary::{Folder, Running, run};

const STUCK: &str =
    r#"{"customer":"c-9","item":"tea","cents":1,"card":"no-refund","town":"Nowhere"}"#;

/// The cursor that a list names at its end.
fn more(out: &str) -> Option<&str> {
    out.lines().last()?.strip_prefix("more: --cursor ")
}

#[test]
fn open_matters_that_are_not_shown_are_named_by_a_cursor() {
    let folder = Folder::new("matters");
    let store = folder.store("a.db");
    let server = Running::dev(&folder, &store);
    for id in ["o-1", "o-2"] {
        assert_eq!(server.ask(&folder, &["start", "fulfil", id, STUCK]).exit, 0);
        assert_eq!(server.ask(&folder, &["result", id]).exit, 1, "it is stuck");
    }
    let as_guest = |arguments: &[&str]| run(&folder, &[&["--store", &store], arguments].concat());
    let first = server.ask(&folder, &["attention", "--limit", "1"]);
    assert!(first.out.contains("o-1") && !first.out.contains("o-2"), "{first:?}");
    let cursor = more(&first.out).unwrap_or_else(|| panic!("there is more: {first:?}"));
    let look = ["attention", "--limit", "2", "--cursor", cursor];
    let rest = server.ask(&folder, &look);
    assert!(rest.out.contains("o-2") && !rest.out.contains("o-1"), "{rest:?}");
    assert_eq!(more(&rest.out), None, "{rest:?}");
    assert_eq!(rest.out, as_guest(&look).out);
    server.stop();
}
