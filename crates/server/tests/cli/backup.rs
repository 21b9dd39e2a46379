//! Copies of a store that is worked on.

use crate::binary::{Folder, Running, run};

#[test]
fn a_copy_of_a_live_store_is_opened_and_goes_on() {
    let folder = Folder::new("backup");
    let store = folder.store("a.db");
    let server = Running::dev(&folder, &store);
    let input = r#"{"customer":"c-9","item":"tea","cents":1,"card":"no-refund","town":"Nowhere"}"#;
    assert_eq!(server.ask(&folder, &["start", "fulfil", "o-1", input]).exit, 0);
    assert_eq!(server.ask(&folder, &["result", "o-1"]).exit, 1, "it is stuck");
    let backup = ["backup", "copy.db", "--store", &store];
    let copied = run(&folder, &backup);
    assert_eq!(copied.exit, 0, "{copied:?}");
    let twice = run(&folder, &backup);
    assert_eq!(twice.exit, 4, "{twice:?}");
    assert!(twice.err.contains("there is a file copy.db already"), "{twice:?}");
    let nowhere = run(&folder, &["backup", "no/copy.db", "--store", &store]);
    assert_eq!(nowhere.exit, 4, "{nowhere:?}");
    let names = std::fs::read_dir(&folder.0).expect("it is there");
    let parts = names.filter(|name| {
        name.as_ref().is_ok_and(|name| name.file_name().to_string_lossy().ends_with(".part"))
    });
    assert_eq!(parts.count(), 0, "nothing is left behind");

    // What comes after the copy is not in it, and the original goes on.
    assert_eq!(server.ask(&folder, &["start", "transfer", "later", "{}"]).exit, 0);
    server.stop();
    let server = Running::dev(&folder, "copy.db");
    let list = server.ask(&folder, &["list"]).out;
    assert!(list.contains("o-1") && !list.contains("later"), "{list}");
    assert_eq!(server.ask(&folder, &["waive-undo", "o-1", "charge-card", "--yes"]).exit, 0);
    let over = server.ask(&folder, &["result", "o-1", "--json"]);
    assert!(over.out.contains("\"status\":\"failed\""), "{over:?}");
    server.stop();
}

#[test]
fn what_is_no_store_is_not_copied() {
    let folder = Folder::new("no-store");
    std::fs::write(
        folder.file("text.db"),
        "not a database at all, but long enough to be looked at",
    )
    .expect("it is writable");
    for store in ["text.db", "none.db", "memory:"] {
        let said = run(&folder, &["backup", "copy.db", "--store", store]);
        assert_ne!(said.exit, 0, "{said:?}");
        assert!(!folder.file("copy.db").exists(), "{said:?}");
    }
}
