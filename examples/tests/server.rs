//! The examples as workers of a real server: they come out as they do alone.

mod process;

use process::{Ended, Folder, Server, json_lines};
use serde_json::Value;

/// How long the server waits for a worker that has died.
const LEASE: &[&str] = &["server", "--lease", "500ms"];

fn run(example: &str, server: &Server, flags: &[&str]) -> Ended {
    process::run(example, &[&["--server", &server.url], flags].concat())
}

/// What an example prints, when all is well.
fn printed(example: &str, server: &Server, flags: &[&str]) -> String {
    let run = run(example, server, flags);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    run.stdout
}

/// What it prints at a server, and alone.
fn both(example: &str, server: &Server) -> [Vec<Value>; 2] {
    let alone = process::run(example, &["--json"]);
    assert_eq!(alone.code, Some(0), "{alone:?}");
    [printed(example, server, &["--json"]), alone.stdout].map(|text| json_lines(&text))
}

#[test]
fn the_short_ones_work_for_a_server_and_can_be_run_again() {
    let folder = Folder::new("server-short");
    let server = Server::begin(&folder, LEASE);
    for time in ["first", "second"] {
        let said = printed("fan_out", &server, &[]);
        assert!(said.starts_with("1000 of 1000 items have their own label\n"), "{time}: {said}");
        let said = printed("hedged", &server, &[]);
        assert!(said.contains("\nbooked: a ride with blue-taxi\n"), "{time}: {said}");
        let said = printed("approval", &server, &[]);
        assert!(said.starts_with("bought a chair, approved by Ada\n"), "{time}: {said}");
        assert!(said.contains("nobody approved a yacht in time (everything was undone)"), "{said}");
        let said = printed("subscription", &server, &[]);
        assert!(said.ends_with("newspaper: 1 renewals, then moved away\n"), "{time}: {said}");
    }
}

#[test]
fn p4_a_bank_transfer_whose_worker_dies_is_carried_on_by_the_next_one() {
    let folder = Folder::new("server-bank");
    let server = Server::begin(&folder, LEASE);
    // With other banks each time.
    for time in ["first", "second"] {
        let [at_server, alone] = both("bank_transfer", &server);
        assert_eq!(at_server, alone, "{time} time");
    }
}

#[test]
fn p3_p5_a_bank_transfer_is_aborted_after_an_event_and_resumed() {
    let folder = Folder::new("server-abort");
    let server = Server::begin(&folder, LEASE);
    for n in ["1", "2", "5", "9", "13"] {
        let banks = format!("{}/banks-{n}", folder.path());
        let crash = ["--crash-after-event", n, "--json", "--dir", &banks];
        let crashed = run("bank_transfer", &server, &crash);
        assert!(crashed.was_aborted(), "event {n}: {crashed:?}");
        assert_eq!(crashed.stdout, "", "event {n}");
        let resumed = printed("bank_transfer", &server, &["--resume", "--json", "--dir", &banks]);
        let [report] = <[Value; 1]>::try_from(json_lines(&resumed)).expect("one line");
        assert_eq!((&report["rollback"], &report["crashes"]), (&"complete".into(), &1.into()));
    }
}

/// `dev` has workflows of its own, which are called otherwise.
#[test]
fn a_shop_fulfils_its_orders_at_a_server_for_development() {
    let folder = Folder::new("server-shop");
    let server = Server::begin(&folder, &["dev"]);
    let [mut at_server, mut alone] = both("fulfilment", &server);
    // On a slow machine an answer may come late once more.
    for report in at_server.iter_mut().chain(&mut alone) {
        report["attempts"]["charge-card"].take();
    }
    assert_eq!(at_server, alone);
    // On the files of an earlier run nothing happens twice.
    let shop = format!("{}/shop", folder.path());
    let flags = ["--json", "--dir", &shop];
    assert_eq!(printed("fulfilment", &server, &flags), printed("fulfilment", &server, &flags));
}

#[test]
fn what_is_no_server_is_told() {
    for example in ["approval", "subscription", "fan_out", "hedged", "bank_transfer", "fulfilment"]
    {
        let wrong = process::run(example, &["--server", "sqlite:a.db"]);
        assert_eq!(wrong.code, Some(2), "{wrong:?}");
        let says = "error: --server \"sqlite:a.db\": write a URL, for example http://";
        assert!(wrong.stderr.starts_with(says), "{example}: {wrong:?}");
    }
    let folder = Folder::new("server-resume");
    let flags = ["--resume", "--server", "http://127.0.0.1:1", "--dir", folder.path()];
    let wrong = process::run("bank_transfer", &flags);
    assert!(wrong.stderr.contains("--resume: there is no banks.db"), "{wrong:?}");
}
