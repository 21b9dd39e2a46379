//! Asking a server, and asking a file: the answers are the same.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::binary::{Folder, Running, Said, command, run};

const GOOD: &str = r#"{"from":"alice","to":"bob","cents":3000}"#;
const CLOSED: &str = r#"{"from":"alice","to":"closed","cents":3000}"#;
const STUCK: &str =
    r#"{"customer":"c-9","item":"tea","cents":1,"card":"no-refund","town":"Nowhere"}"#;

fn json(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{why}: {said:?}"))
}

#[test]
fn a_server_and_a_guest_of_its_file_give_the_same_answers() {
    let folder = Folder::new("same");
    let store = folder.store("a.db");
    let server = Running::dev(&folder, &store);
    let started = server.ask(&folder, &["start", "transfer", "t-1", GOOD]);
    assert_eq!(started.exit, 0, "{started:?}");
    assert!(started.out.starts_with("t-1 started, as run "), "{started:?}");
    let as_guest = |arguments: &[&str]| run(&folder, &[&["--store", &store], arguments].concat());
    let start = ["start", "transfer", "t-2", CLOSED, "--workflow-version", "1", "--json"];
    let started = as_guest(&start);
    assert_eq!(json(&started)["status"], "pending", "{started:?}");

    assert_eq!(server.ask(&folder, &["result", "t-1"]).exit, 0);
    let failed = as_guest(&["result", "t-2"]);
    assert_eq!(failed.exit, 1, "{failed:?}");
    assert!(failed.err.contains("account closed is closed (everything was undone)"), "{failed:?}");

    let stuck = server.ask(&folder, &["start", "fulfil", "o-1", STUCK]);
    assert_eq!(stuck.exit, 0, "{stuck:?}");
    assert_eq!(server.ask(&folder, &["result", "o-1"]).exit, 1);
    let looks: &[&[&str]] = &[
        &["list"],
        &["list", "--json"],
        &["list", "--status", "failed", "--workflow", "transfer"],
        &["list", "--attribute", "CustomerId=c-9"],
        &["list", "--limit", "1"],
        &["show", "t-2"],
        &["show", "t-2", "--json"],
        &["show", "t-2", "--follow"],
        &["journal", "t-2"],
        &["journal", "t-2", "--json", "--after", "2"],
        &["journal", "t-2", "--follow"],
        &["result", "t-1", "--json"],
        &["attention"],
        &["attention", "--json"],
        &["show", "nobody"],
        &["kill", "t-1", "--yes"],
        &["retry-undo", "o-1", "no-step"],
        &["list", "--limit", "0"],
    ];
    for look in looks {
        let (from_server, from_file) = (server.ask(&folder, look), as_guest(look));
        assert_eq!(format!("{from_server:?}"), format!("{from_file:?}"), "{look:?}");
        assert!(!from_server.out.contains('\u{1b}'), "no colours in a pipe: {look:?}");
    }
    let picture = as_guest(&["show", "t-2"]).out;
    assert!(
        picture.contains("╘══╗ ROLLBACK") && picture.contains("↺ debit is undone"),
        "{picture}"
    );
    assert_eq!(picture, as_guest(&["show", "t-2", "--follow"]).out);

    let waived = as_guest(&["waive-undo", "o-1", "charge-card", "--yes", "--by", "Ada"]);
    assert_eq!(waived.exit, 0, "{waived:?}");
    assert_eq!(server.ask(&folder, &["result", "o-1"]).exit, 1);
    let again = server.ask(&folder, &["restart", "t-2", "--request-id", "r-1", "--json"]);
    let twice = as_guest(&["restart", "t-2", "--request-id", "r-1", "--json"]);
    assert_eq!(json(&again)["run_id"], json(&twice)["run_id"]);
    let set = as_guest(&["set-attributes", "t-1", "A=7", "B=x"]);
    assert_eq!(set.exit, 0, "{set:?}");
    let stopped = server.stop();
    assert_eq!(stopped.exit, 0, "{stopped:?}");
    // With trace on, the log has names, and neither inputs nor outputs.
    assert!(stopped.err.contains("t-1"), "it logs at all");
    assert!(!stopped.err.contains("alice") && !stopped.err.contains("cents"), "{}", stopped.err);
}

#[test]
fn what_destroys_is_confirmed_and_the_rest_has_a_code() {
    let folder = Folder::new("codes");
    let server = Running::dev(&folder, "a.db");
    assert_eq!(server.ask(&folder, &["start", "transfer", "t-1", GOOD]).exit, 0);
    let waited = server.ask(&folder, &["result", "t-1", "--wait", "50s"]);
    assert!(waited.out.contains("\"debit\":"), "{waited:?}");
    let refusals: &[(&[&str], i32, &str)] = &[
        (&["kill", "t-1"], 6, "so say --yes"),
        (&["delete", "t-1"], 6, "so say --yes"),
        (&["waive-undo", "t-1", "debit"], 6, "so say --yes"),
        (&["show", "nobody"], 3, "no execution \"nobody\""),
        (&["start", "transfr", "t-2"], 3, "these are: fulfil \"1\", transfer \"1\""),
        (&["start", "transfer", "t-2", "{no"], 2, "the input is not JSON"),
        (&["event", "t-1", "go", "no"], 2, "is not JSON"),
        (&["event", "t-1", "go"], 3, "closed"),
        (&["result", "t-1", "--wait", "soon"], 2, "not a duration"),
        (&["list", "--status", "asleep"], 2, "unknown variant `asleep`"),
        (&["list", "--attribute", "A"], 2, "write NAME=VALUE"),
        (&["shw", "t-1"], 2, "show"),
        (&["backup", "copy.db"], 2, "--store sqlite:PATH"),
    ];
    for (arguments, exit, says) in refusals {
        let said = server.ask(&folder, arguments);
        assert_eq!(said.exit, *exit, "{arguments:?}: {said:?}");
        assert!(said.err.contains(says), "{arguments:?}: {said:?}");
        assert!(said.out.is_empty(), "{arguments:?}: {said:?}");
    }
    assert_eq!(server.ask(&folder, &["delete", "t-1", "--yes"]).exit, 0);
    assert_eq!(server.ask(&folder, &["show", "t-1"]).exit, 3);
    server.stop();
}

#[test]
fn nobody_there_is_told_with_the_way_out() {
    let folder = Folder::new("nobody");
    let away = run(&folder, &["--server", "http://127.0.0.1:1", "list"]);
    assert_eq!(away.exit, 4, "{away:?}");
    assert!(away.err.contains("no server answers at http://127.0.0.1:1"), "{away:?}");
    assert!(away.err.contains("backstitch dev"), "{away:?}");
    let no_file = run(&folder, &["--store", "none.db", "list"]);
    assert_eq!(no_file.exit, 4, "{no_file:?}");
    assert!(no_file.err.contains("there is no file"), "{no_file:?}");
    for (url, says) in [
        ("127.0.0.1:7070", "write for example http://127.0.0.1:7070"),
        ("https://localhost", "speaks no TLS"),
        ("http://localhost/x", "it has a path"),
        ("http://localhost?x=1", "more than a host and a port"),
        ("http://localhost:7070/#f", "more than a host and a port"),
        ("http://me:pw@localhost", "a name or a password"),
        ("http://127.0.0.1:99999", "a port is 1 to 65535"),
        ("http://127.0.0.1:", "a port is 1 to 65535"),
        ("", "no URL"),
    ] {
        let said = run(&folder, &["--server", url, "list"]);
        assert_eq!(said.exit, 2, "{said:?}");
        assert!(said.err.contains(says), "{said:?}");
    }
    for (arguments, says) in [
        (&["--store", "a.db", "list", "--server", "http://localhost"][..], "one of the two"),
        (&["dev", "--server", "http://localhost"], "with --listen"),
        (&["server", "--json"], "leave it out"),
        (&["--store", "http://localhost", "list"], "asked with --server"),
        (&["server", "--store", "http://localhost"], "asked with --server"),
        (&["--store", "mysql:x", "list"], "write sqlite:PATH"),
    ] {
        let said = run(&folder, arguments);
        assert_eq!(said.exit, 2, "{said:?}");
        assert!(said.err.contains(says), "{said:?}");
    }
    // The environment says what is asked if nothing else is said.
    let mut list = command(&folder.0);
    list.args(["--store", "none.db", "list"]).env("BACKSTITCH_SERVER", "http://127.0.0.1:1");
    let said = Said::from(list.output().expect("it runs"));
    assert!(said.err.contains("there is no file"), "{said:?}");
    let mut list = command(&folder.0);
    let said = list.arg("list").env("BACKSTITCH_SERVER", "http://127.0.0.1:1").output();
    let said = Said::from(said.expect("it runs"));
    assert!(said.err.contains("no server answers at http://127.0.0.1:1"), "{said:?}");
    let help = run(&folder, &["--help"]);
    assert!(help.out.contains("Exit codes:") && help.out.contains("waive-undo"), "{help:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new("pipe");
    let server = Running::dev(&folder, "a.db");
    assert_eq!(server.ask(&folder, &["demo", "--json"]).exit, 0);
    let mut list = command(&folder.0);
    list.args(["--server", &server.url, "list"]);
    let mut list = list.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    drop(list.stdout.take());
    let said = Said::from(list.wait_with_output().expect("it ends"));
    assert_eq!((said.exit, said.err.as_str()), (0, ""), "{said:?}");
    server.stop();
}

#[test]
fn an_execution_is_shown_live() {
    let folder = Folder::new("live");
    let server = Running::dev(&folder, "a.db");
    let busy = r#"{"from":"alice","to":"busy","cents":1}"#;
    assert_eq!(server.ask(&folder, &["start", "transfer", "t-1", busy]).exit, 0);
    let mut show = command(&folder.0);
    show.args(["--server", &server.url, "show", "t-1", "--follow"]).stdout(Stdio::piped());
    let mut show = show.spawn().expect("it runs");
    let lines = BufReader::new(show.stdout.take().expect("it was asked for")).lines();
    let lines: Vec<String> = lines.map(|line| line.expect("it is text")).collect();
    assert!(lines.iter().any(|line| line.contains("credit, attempt 3")), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("■    succeeded")), "{lines:#?}");
    assert!(show.wait().expect("it ends").success());
    let whole = server.ask(&folder, &["show", "t-1"]).out;
    assert_eq!(lines.join("\n"), whole.trim_end(), "nothing is printed twice or left out");
    server.stop();
}

#[test]
fn what_is_shown_live_and_waits_says_for_whom() {
    let folder = Folder::new("waits");
    let server = Running::dev(&folder, "a.db");
    assert_eq!(server.ask(&folder, &["start", "fulfil", "o-1", STUCK]).exit, 0);
    let mut show = command(&folder.0);
    show.args(["--server", &server.url, "show", "o-1", "--follow"]).stdout(Stdio::piped());
    let mut show = show.spawn().expect("it runs");
    let lines = BufReader::new(show.stdout.take().expect("it was asked for")).lines();
    let mut lines = lines.map(|line| line.expect("it is text"));
    assert!(lines.any(|line| line.ends_with("not closed: stuck")), "it says what it is");
    let next = lines.next().expect("it is not over");
    assert!(next.starts_with("a person is needed: "), "{next}");
    let waive = ["waive-undo", "o-1", "charge-card", "--yes"];
    assert_eq!(server.ask(&folder, &waive).exit, 0);
    let rest: Vec<String> = lines.collect();
    assert!(rest.last().is_some_and(|line| line.contains("■    failed")), "{rest:#?}");
    assert!(!rest.iter().any(|line| line.contains("person is needed")), "once: {rest:#?}");
    assert!(show.wait().expect("it ends").success());
    server.stop();
}

#[test]
fn a_journal_shows_values_as_they_were_written() {
    let folder = Folder::new("values");
    let server = Running::dev(&folder, "a.db");
    let deep = format!("{}7{}", "[".repeat(200), "]".repeat(200));
    let values = [r#"{"n":1e400}"#, r#"{"n":1.50,"n":12345678901234567890123}"#, &deep];
    for (i, value) in values.iter().enumerate() {
        let id = format!("t-{i}");
        assert_eq!(server.ask(&folder, &["start", "transfer", &id, value]).exit, 0);
        let journal = server.ask(&folder, &["journal", &id]);
        assert!(journal.out.contains(&format!(r#""value":{value}"#)), "{value}: {journal:?}");
    }
    let blocked = server.ask(&folder, &["result", "t-0", "--wait", "1ms"]);
    assert_eq!(blocked.exit, 5, "{blocked:?}");
    assert!(blocked.err.contains("it is blocked, waiting for a person"), "{blocked:?}");
    server.stop();
}

#[test]
fn who_asks_has_a_name() {
    let folder = Folder::new("by");
    let server = Running::dev(&folder, "a.db");
    let asked_by = |id: &str, user: &str, by: &[&str]| {
        let mut start = command(&folder.0);
        start.env("USER", user).args(["--server", &server.url, "start", "transfer", id]).args(by);
        assert!(start.output().expect("it runs").status.success());
        let shown = json(&server.ask(&folder, &["show", id, "--json"]));
        shown["started_by"].as_str().expect("a text").to_owned()
    };
    assert_eq!(asked_by("t-1", "ada", &[]), "ada");
    assert_eq!(asked_by("t-2", "ada", &["--by", ""]), "ada");
    assert_eq!(asked_by("t-3", "ada", &["--by", "Eve"]), "Eve");
    assert_eq!(asked_by("t-4", "", &["--by", " "]), "the command line");
    server.stop();
}
