//! Copies of a store that is worked on.

use std::process::{Command, Stdio};

use crate::binary::{Folder, Running, Said, command, run};

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
    assert_eq!(twice.exit, 3, "{twice:?}");
    assert!(twice.err.contains("there is a file copy.db already"), "{twice:?}");
    let nowhere = run(&folder, &["backup", "no/copy.db", "--store", &store]);
    assert_eq!(nowhere.exit, 4, "{nowhere:?}");
    assert!(
        nowhere.err.contains("the copy no/copy.db cannot be written: No such file"),
        "{nowhere:?}"
    );
    let prefixed = run(&folder, &["backup", "sqlite:other.db", "--store", &store, "--json"]);
    assert!(prefixed.out.contains(r#""path":"other.db""#), "{prefixed:?}");
    assert!(folder.file("other.db").exists(), "{prefixed:?}");
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
fn a_backup_that_is_stopped_leaves_nothing() {
    let folder = Folder::new("stopped-backup");
    let store = folder.store("a.db");
    let server = Running::dev(&folder, &store);
    let large = format!("\"{}\"", "x".repeat(100_000));
    for i in 0..50 {
        let start = ["start", "transfer", &format!("t-{i}"), &large];
        assert_eq!(server.ask(&folder, &start).exit, 0);
    }
    let mut backup = command(&folder.0);
    backup.args(["backup", "copy.db", "--store", &store]);
    let backup = backup.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let part = folder.file(&format!("copy.db.{}.part", backup.id()));
    while !part.exists() && !folder.file("copy.db").exists() {
        std::thread::yield_now();
    }
    let stop = Command::new("kill").args(["-INT", &backup.id().to_string()]).status();
    assert!(stop.is_ok());
    let said = Said::from(backup.wait_with_output().expect("it ends"));
    // It may have been faster than the signal.
    match said.exit {
        0 => assert!(folder.file("copy.db").exists()),
        4 => assert!(said.err.contains("stopped by SIGINT"), "{said:?}"),
        _ => panic!("{said:?}"),
    }
    assert!(!part.exists(), "{said:?}");
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
