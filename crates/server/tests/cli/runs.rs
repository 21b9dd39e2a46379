//! Naming a run that is not the newest of its id.

use crate::binary::{Folder, Running, Said, run};

/// Nobody delivers there, and the bank refuses the refund.
const STUCK: &str =
    r#"{"customer":"c-9","item":"tea","cents":1,"card":"no-refund","town":"Nowhere"}"#;

fn json(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{why}: {said:?}"))
}

#[test]
fn a_run_is_named_by_its_id_at_a_server_and_in_a_file() {
    let folder = Folder::new("runs");
    let store = folder.store("a.db");
    let server = Running::dev(&folder, &store);
    let started = server.ask(&folder, &["start", "fulfil", "o-1", STUCK, "--json"]);
    let first = json(&started)["run_id"].as_str().expect("a text").to_owned();
    assert_eq!(server.ask(&folder, &["result", "o-1"]).exit, 1, "it is stuck");
    assert_eq!(server.ask(&folder, &["kill", "o-1", "--yes"]).exit, 0);
    let page = server.ask(&folder, &["journal", "o-1", "--follow"]);
    assert!(page.out.contains("execution killed"), "{page:?}");
    let again = ["start", "fulfil", "o-1", STUCK, "--reuse", "allow", "--json"];
    let second = json(&server.ask(&folder, &again))["run_id"].as_str().expect("a text").to_owned();
    assert_ne!(first, second);
    assert_eq!(server.ask(&folder, &["result", "o-1"]).exit, 1, "it is stuck as well");

    let listed = json(&server.ask(&folder, &["list", "--json"]));
    assert_eq!(listed["executions"][1]["run_id"], first.as_str());
    let matters = server.ask(&folder, &["attention"]);
    assert!(matters.out.contains(&first) && matters.out.contains(&second), "{matters:?}");
    let as_guest = |arguments: &[&str]| run(&folder, &[&["--store", &store], arguments].concat());
    let nobody = "018f2b9c-5a7e-7d3a-9c41-6f0d8e2b7a55";
    let looks: &[&[&str]] = &[
        &["show", "o-1", "--run-id", &first],
        &["show", "o-1", "--run-id", &first, "--json"],
        &["show", "o-1", "--run-id", &first, "--follow"],
        &["journal", "o-1", "--run-id", &first],
        &["journal", "o-1", "--run-id", &first, "--follow"],
        &["result", "o-1", "--run-id", &first],
        &["attention"],
        &["show", "o-1", "--run-id", nobody],
        &["show", "o-1", "--run-id", "7"],
        &["kill", "o-1", "--yes", "--run-id", &first],
        &["restart", "o-1", "--run-id", &first],
    ];
    for look in looks {
        let (from_server, from_file) = (server.ask(&folder, look), as_guest(look));
        assert_eq!(format!("{from_server:?}"), format!("{from_file:?}"), "{look:?}");
    }
    let shown = server.ask(&folder, &["show", "o-1", "--run-id", &first]);
    assert!(shown.out.contains("killed"), "{shown:?}");
    let unknown = server.ask(&folder, &["show", "o-1", "--run-id", nobody]);
    assert_eq!(unknown.exit, 3, "{unknown:?}");
    assert!(unknown.err.contains("has no run"), "{unknown:?}");
    let none = server.ask(&folder, &["show", "o-1", "--run-id", "7"]);
    assert_eq!(none.exit, 2, "{none:?}");
    assert!(none.err.contains("is no run id"), "{none:?}");

    // What the first run has left is settled, and the second one's debt stays.
    let waive = ["waive-undo", "o-1", "charge-card", "--by", "Ada", "--run-id", &first];
    let asked = server.ask(&folder, &waive);
    assert_eq!(asked.exit, 6, "{asked:?}");
    let waived = server.ask(&folder, &[&waive[..], &["--yes"]].concat());
    assert_eq!(waived.exit, 0, "{waived:?}");
    server.stop();
    // The file says it, whether its owner has read it by now or not.
    let second_run = as_guest(&["show", "o-1", "--json"]);
    assert_eq!(json(&second_run)["status"], "stuck", "{second_run:?}");
}

#[test]
fn a_delete_names_the_run_that_goes_and_one_that_stays() {
    let folder = Folder::new("delete");
    let store = folder.store("a.db");
    let server = Running::dev(&folder, &store);
    let input = r#"{"from":"alice","to":"closed","cents":3000}"#;
    let run_of = |arguments: &[&str]| {
        let started = server.ask(&folder, &[arguments, &["--json"]].concat());
        assert_eq!(server.ask(&folder, &["result", "t-1"]).exit, 1, "it fails");
        json(&started)["run_id"].as_str().expect("a text").to_owned()
    };
    let first = run_of(&["start", "transfer", "t-1", input]);
    let second = run_of(&["restart", "t-1"]);
    let third = run_of(&["restart", "t-1"]);
    let asked = server.ask(&folder, &["delete", "t-1"]);
    assert_eq!(asked.exit, 6, "{asked:?}");
    assert!(
        asked.err.contains(&format!("known of run {third} of \"t-1\" will be gone")),
        "{asked:?}"
    );

    let gone = server.ask(&folder, &["delete", "t-1", "--yes"]);
    let says = format!("run {third} of \"t-1\" is gone; run {second} is still there");
    assert!(gone.out.contains(&says) && gone.out.contains("--run-id"), "{gone:?}");
    let gone = run(&folder, &["--store", &store, "delete", "t-1", "--yes", "--run-id", &first]);
    assert!(gone.out.contains(&format!("run {second} is still there")), "{gone:?}");
    let gone = server.ask(&folder, &["delete", "t-1", "--yes", "--json"]);
    assert_eq!(json(&gone)["run_id"], second.as_str());
    assert!(json(&gone)["still_there"].is_null(), "{gone:?}");
    server.stop();
}
