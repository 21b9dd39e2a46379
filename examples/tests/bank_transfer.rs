//! The example `bank_transfer`, as real processes: run, aborted, killed, resumed.

mod process;

use process::{Ended, Folder, json_lines};
use serde_json::{Value, json};

fn bank_transfer(flags: &[&str]) -> Ended {
    process::run("bank_transfer", flags)
}

/// What `--json` prints for a transfer that succeeded.
fn succeeded() -> Value {
    json!({
        "id": "t-success", "status": "succeeded", "rollback": "none",
        "balances": {"a": 7000, "b": 5000},
        "effects": {"debit-a": 1, "credit-b": 1, "undo-debit-a": 0, "undo-credit-b": 0},
        "crashes": 0,
    })
}

/// What it prints for one that was undone.
fn undone(id: &str, crashes: u32) -> Value {
    json!({
        "id": id, "status": "failed", "rollback": "complete",
        "balances": {"a": 10_000, "b": 2_000},
        "effects": {"debit-a": 1, "credit-b": 0, "undo-debit-a": 1, "undo-credit-b": 0},
        "crashes": crashes,
    })
}

/// Goes on with the refused transfer in `folder`, and returns what came out.
fn resume(folder: &Folder) -> Value {
    let resumed = bank_transfer(&["--resume", "--json", "--dir", folder.path()]);
    assert_eq!((resumed.code, resumed.stderr.as_str()), (Some(0), ""), "{resumed:?}");
    let [report] = <[Value; 1]>::try_from(json_lines(&resumed.stdout)).expect("one line");
    report
}

#[test]
fn three_journals_are_drawn_and_nothing_is_lost_or_made() {
    let run = bank_transfer(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let wide = run.stdout.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None, "more than 100 columns");
    let wanted = include_str!("bank_transfer.txt");
    let drawn = without_times(&run.stdout);
    assert_eq!(drawn, wanted, "the output is another one:\n{drawn}");
}

/// Each number of milliseconds as `#`.
fn without_times(text: &str) -> String {
    let line = |line: &str| {
        let mut out = String::new();
        let mut parts = line.split(" ms").peekable();
        while let Some(part) = parts.next() {
            let part = match parts.peek() {
                Some(_) => part.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned() + "# ms",
                None => part.to_owned(),
            };
            out.push_str(&part);
        }
        // The time stands to the right of its column.
        match out.trim_start().strip_prefix("# ms") {
            Some(rest) => format!("{:>10}{rest}\n", "# ms"),
            None => out + "\n",
        }
    };
    text.lines().map(line).collect::<String>().replace(" (core dumped)", "")
}

#[test]
fn json_has_one_object_per_transfer_and_nothing_else() {
    let run = bank_transfer(&["--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let wanted = [succeeded(), undone("t-refused", 0), undone("t-killed", 1)];
    assert_eq!(json_lines(&run.stdout), wanted);
    let first = r#"{"id":"t-success","status":"succeeded","rollback":"none","balances":{"a":7000,"#;
    assert!(run.stdout.starts_with(first), "the order of the fields: {}", run.stdout);
}

#[test]
fn p3_p5_aborted_after_any_event_and_resumed_it_comes_out_the_same() {
    for n in 1.. {
        let folder = Folder::new(&format!("abort-{n}"));
        let n_text = n.to_string();
        let flags = ["--crash-after-event", n_text.as_str(), "--json", "--dir", folder.path()];
        let crashed = bank_transfer(&flags);
        if crashed.code == Some(0) {
            assert_eq!(json_lines(&crashed.stdout), [undone("t-refused", 0)]);
            assert_eq!(resume(&folder), undone("t-refused", 0));
            assert!(n > 10, "the journal has only {} events", n - 1);
            return;
        }
        assert!(crashed.was_aborted(), "event {n}: {crashed:?}");
        assert_eq!(crashed.stdout, "", "event {n}");
        assert_eq!(resume(&folder), undone("t-refused", 1), "event {n}");
    }
}

#[test]
fn p3_p5_aborted_again_and_again_it_comes_out_the_same() {
    let folder = Folder::new("abort-again");
    // Each but the first finds a lost attempt, and starts it again: two events more.
    let events = ["2", "4", "8", "12", "16", "19"];
    for n in events {
        let crashed = bank_transfer(&["--crash-after-event", n, "--dir", folder.path()]);
        assert!(crashed.was_aborted(), "event {n}: {crashed:?}");
    }
    assert_eq!(resume(&folder), undone("t-refused", 6));
    assert_eq!(resume(&folder), undone("t-refused", 6), "nothing is left to do");
}

#[test]
fn p3_p4_an_effect_that_the_journal_does_not_know_of_is_applied_once() {
    for effect in ["debit-a", "undo-debit-a"] {
        let folder = Folder::new(&format!("unknown-{effect}"));
        let flags = ["--crash-after-event", "99", "--die-after", effect, "--dir", folder.path()];
        let died = bank_transfer(&flags);
        assert!(died.was_aborted(), "{effect}: {died:?}");
        assert_eq!(resume(&folder), undone("t-refused", 1), "{effect}");
    }
}

#[test]
fn p2_p4_killed_at_any_time_and_resumed_it_comes_out_the_same() {
    for lines in 1..=15 {
        let folder = Folder::new(&format!("kill-{lines}"));
        let flags = ["--print-events", "--dir", folder.path()];
        process::kill_after_lines(lines, "bank_transfer", &flags);
        let mut report = resume(&folder);
        let crashes = report["crashes"].take();
        assert!(crashes == 0 || crashes == 1, "{lines} lines: {crashes} crashes");
        report["crashes"] = json!(0);
        assert_eq!(report, undone("t-refused", 0), "killed after {lines} lines");
    }
}

#[test]
fn on_files_of_an_earlier_run_nothing_happens_twice() {
    let folder = Folder::new("twice");
    let wanted = [succeeded(), undone("t-refused", 0), undone("t-killed", 1)];
    for time in ["first", "second"] {
        let run = bank_transfer(&["--json", "--dir", folder.path()]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{time} time: {run:?}");
        assert_eq!(json_lines(&run.stdout), wanted, "{time} time");
    }
}

#[test]
fn without_dir_no_files_are_left() {
    let folder = Folder::new("temporary");
    let run = process::run_in(&folder, "bank_transfer", &["--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn without_dir_a_crash_says_where_the_files_are() {
    let folder = Folder::new("left");
    let run = process::run_in(&folder, "bank_transfer", &["--crash-after-event", "4"]);
    assert!(run.was_aborted(), "{run:?}");
    let [left] = <[String; 1]>::try_from(folder.names()).expect("one folder is left");
    assert!(run.stderr.contains(&left), "{run:?}");
}

#[test]
fn money_that_is_made_is_noticed() {
    let run = bank_transfer(&["--banks-forget", "--json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    for wrong in [
        "wrong: t-success: money at both banks together: 150.00, not 120.00",
        "wrong: t-success: effects credit-b: 2, not 1",
        "wrong: t-killed: the balance at bank A: 130.00, not 100.00",
        "wrong: t-killed: effects undo-debit-a: 2, not 1",
    ] {
        assert!(run.stderr.contains(wrong), "{wrong:?} is not in {}", run.stderr);
    }
}

#[test]
fn bad_flags_are_named() {
    let folder = Folder::new("flags");
    let (file, missing) = (folder.file("a-file"), format!("{}/missing", folder.path()));
    let in_file = format!("{file}/below");
    let cases: [(&[&str], &str); 12] = [
        (&["--jsn"], "unknown argument \"--jsn\""),
        (&["t-success"], "unknown argument \"t-success\""),
        (&["--json=yes"], "--json takes no value"),
        (&["--dir"], "--dir needs a PATH"),
        (&["--dir="], "--dir needs a PATH"),
        (&["--dir", &in_file], "--dir"),
        (&["--crash-after-event"], "--crash-after-event needs a number"),
        (&["--crash-after-event", "0"], "--crash-after-event counts from 1"),
        (&["--crash-after-event", "many"], "--crash-after-event needs a number"),
        (&["--resume"], "--resume needs --dir"),
        (&["--resume", "--dir", &missing], "--resume: there is no transfers.db"),
        (&["--resume", "--crash-after-event=3"], "--crash-after-event"),
    ];
    for (flags, said) in cases {
        let run = bank_transfer(flags);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{flags:?}: {run:?}");
        let first = run.stderr.lines().next().unwrap_or_default();
        assert!(first.starts_with("error: ") && first.contains(said), "{flags:?}: {first}");
        assert!(run.stderr.contains("\nUsage: bank_transfer"), "{flags:?}: {}", run.stderr);
    }
    assert_eq!(folder.names(), ["a-file"], "a bad flag leaves nothing behind");
}

#[test]
fn help_is_no_error() {
    let run = bank_transfer(&["--help"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    for flag in ["--json", "--dir PATH", "--server URL", "--crash-after-event N", "--resume"] {
        assert!(run.stdout.contains(flag), "{flag} is not in the help");
    }
}
