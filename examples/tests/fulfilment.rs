//! The example `fulfilment`, as real processes: each scenario by what it says in JSON, the output
//! for people by the lines that matter.

mod process;

use process::{Ended, Folder, json_lines};
use serde_json::{Value, json};

const SCENARIOS: [&str; 7] =
    ["success", "lost-answer", "refused", "wrong-key", "busy", "refund-refused", "undone-later"];

fn fulfilment(flags: &[&str]) -> Ended {
    process::run("fulfilment", flags)
}

/// What `--json` says of one scenario that agrees.
fn report(scenario: &str) -> Value {
    let run = fulfilment(&["--json", "--scenario", scenario]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let [report] = <[Value; 1]>::try_from(json_lines(&run.stdout)).expect("one line");
    report
}

/// What it says of an order that was shipped.
fn shipped(scenario: &str, id: &str, charge_attempts: u32) -> Value {
    json!({
        "scenario": scenario, "id": id, "status": "succeeded", "rollback": "none",
        "stock": 9, "charged_cents": 4900, "charges": 1, "refunds": 0, "shipments": 1,
        "attempts": {"reserve-stock": 1, "charge-card": charge_attempts, "book-shipment": 1},
        "agrees": true,
    })
}

/// What it says of an order that was charged and undone.
fn undone(scenario: &str, id: &str, status: &str, refund_attempts: u32) -> Value {
    json!({
        "scenario": scenario, "id": id, "status": status, "rollback": "complete",
        "stock": 10, "charged_cents": 0, "charges": 1, "refunds": 1, "shipments": 0,
        "attempts": {
            "reserve-stock": 1, "charge-card": 1, "book-shipment": 1,
            "undo-book-shipment": 1, "undo-charge-card": refund_attempts, "undo-reserve-stock": 1,
        },
        "agrees": true,
    })
}

/// The output for people of one scenario, which contains these lines, in this order.
fn drawn(scenario: &str, lines: &[&str]) {
    let run = fulfilment(&["--scenario", scenario]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let wide = run.stdout.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None, "more than 100 columns");
    let mut rest = run.stdout.as_str();
    let verdict = "✔ stock, charges, the shop's own books and shipments agree";
    for line in lines.iter().chain(&["By hand: ", verdict]) {
        let at = rest.find(line);
        let at = at.unwrap_or_else(|| panic!("{line:?} is missing in what is left:\n{rest}"));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn what_succeeds_is_reserved_charged_and_shipped_once() {
    assert_eq!(report("success"), shipped("success", "order-1", 1));
    drawn("success", &["✔ reserve-stock", "✔ charge-card", "✔ book-shipment", "■    succeeded"]);
}

#[test]
fn an_answer_that_gets_lost_charges_once() {
    let mut report = report("lost-answer");
    // On a slow machine an answer may come late once more.
    let attempts = report["attempts"]["charge-card"].take();
    assert!(attempts.as_u64().is_some_and(|attempts| attempts >= 2), "{attempts} attempts");
    report["attempts"]["charge-card"] = json!(2);
    assert_eq!(report, shipped("lost-answer", "order-2", 2));
    drawn(
        "lost-answer",
        &["✘ charge-card: no answer within 300 ms", "charge-card, attempt 2", "✔ charge-card"],
    );
}

#[test]
fn a_refused_card_is_not_tried_again_and_the_stock_goes_back() {
    let wanted = json!({
        "scenario": "refused", "id": "order-3", "status": "failed", "rollback": "complete",
        "stock": 10, "charged_cents": 0, "charges": 0, "refunds": 0, "shipments": 0,
        "attempts": {"reserve-stock": 1, "charge-card": 1, "undo-reserve-stock": 1},
        "agrees": true,
    });
    assert_eq!(report("refused"), wanted);
    drawn(
        "refused",
        &[
            "✘ charge-card: HttpStatus: the card has expired",
            "permanent: it is not tried again",
            "to undo, newest start first: reserve-stock\n",
            "↺ reserve-stock is undone",
            "■    failed: HttpStatus: the card has expired",
        ],
    );
}

#[test]
fn a_wrong_key_blocks_the_step_until_an_operator_has_it_tried_again() {
    assert_eq!(report("wrong-key"), shipped("wrong-key", "order-4", 2));
    drawn(
        "wrong-key",
        &[
            "» order-4 is blocked",
            "» open matter step_blocked: ",
            "HttpStatus: unknown",
            "‼ charge-card is blocked until a person has it tried again",
            "» Ada has charge-card tried again: the key is repaired",
            "✔ charge-card",
            "■    succeeded",
        ],
    );
}

#[test]
fn a_busy_provider_is_asked_again_when_it_said() {
    // It refuses whoever comes earlier, so a second attempt that succeeds has waited.
    assert_eq!(report("busy"), shipped("busy", "order-5", 2));
    drawn("busy", &["✘ charge-card: HttpStatus: ", "◷ next attempt", "✔ charge-card"]);
}

#[test]
fn a_refused_refund_leaves_the_order_stuck_and_the_stock_back() {
    let wanted = undone("refund-refused", "order-6", "failed", 2);
    assert_eq!(report("refund-refused"), wanted);
    drawn(
        "refund-refused",
        &[
            "» whoever waits is told: execution \"order-6\" is stuck",
            "» open matter undo_failed: the undo of step charge-card",
            "» stock on the shelf: 10 of 10",
            "✘ undo charge-card: HttpStatus: ",
            "↺ reserve-stock is undone",
            "» Ada has the undo of charge-card tried again: refunds are on again",
            "↺ charge-card is undone",
            "■    failed: no carrier goes to Nowhere",
        ],
    );
}

#[test]
fn an_order_that_had_succeeded_is_undone_on_request() {
    let wanted = undone("undone-later", "order-7", "cancelled", 1);
    assert_eq!(report("undone-later"), wanted);
    drawn(
        "undone-later",
        &[
            "» customer c-7 has order-7, succeeded",
            "rolled back by Grace (it arrived broken)",
            "stays readable: charge-1, parcel-1",
            "# CustomerId = \"c-7\"",
            "■    succeeded",
            "» Grace has the run rolled back: it arrived broken",
            "↺ book-shipment is undone",
            "↺ charge-card is undone",
            "↺ reserve-stock is undone",
            "■    cancelled",
        ],
    );
}

#[test]
fn all_scenarios_run_in_order_and_leave_no_files() {
    let folder = Folder::new("fulfilment-all");
    let run = process::run_in(&folder, "fulfilment", &["--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let reports = json_lines(&run.stdout);
    let names: Vec<&str> = reports.iter().filter_map(|it| it["scenario"].as_str()).collect();
    assert_eq!(names, SCENARIOS);
    assert_eq!(folder.names(), Vec::<String>::new());
    let first =
        r#"{"scenario":"success","id":"order-1","status":"succeeded","rollback":"none","stock":9,"#;
    assert!(run.stdout.starts_with(first), "the order of the fields: {}", run.stdout);
}

#[test]
fn p3_p4_killed_and_run_again_everything_agrees_and_nothing_happens_twice() {
    // In the lost answer, and in the second that the provider is busy.
    for lines in [1, 4] {
        let folder = Folder::new(&format!("fulfilment-killed-{lines}"));
        let flags = ["--json", "--dir", folder.path()];
        process::kill_after_lines(lines, "fulfilment", &flags);
        let [again, once_more] = [fulfilment(&flags), fulfilment(&flags)];
        assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "{again:?}");
        assert_eq!(json_lines(&again.stdout).len(), SCENARIOS.len());
        assert_eq!(again.stdout, once_more.stdout);
    }
}

#[test]
fn a_card_that_is_charged_twice_is_noticed() {
    let flags = ["--provider-forgets", "--scenario", "lost-answer"];
    let run = fulfilment(&flags);
    assert_eq!(run.code, Some(1), "{run:?}");
    let wrong = "wrong: lost-answer: paid, by the provider's ledger: ";
    assert!(run.stderr.contains(wrong), "{}", run.stderr);
    assert!(run.stdout.contains("✘ stock, charges, the shop's own books"), "{}", run.stdout);
    let reports = json_lines(&fulfilment(&[&flags[..], &["--json"]].concat()).stdout);
    assert_eq!(reports[0]["agrees"], json!(false));
}

#[test]
fn the_names_of_the_scenarios_can_be_listed() {
    let run = fulfilment(&["--list"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let names: Vec<&str> =
        run.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, SCENARIOS);
}

#[test]
fn bad_flags_are_named() {
    let folder = Folder::new("fulfilment-flags");
    let in_file = format!("{}/below", folder.file("a-file"));
    let unknown = format!("there is no scenario \"sucess\"; there are {}", SCENARIOS.join(", "));
    let cases: [(&[&str], &str); 6] = [
        (&["--scenario", "sucess"], &unknown),
        (&["--scenario"], "--scenario needs a NAME"),
        (&["success"], "unknown argument \"success\""),
        (&["--list=all"], "--list takes no value"),
        (&["--dir="], "--dir needs a PATH"),
        (&["--dir", &in_file], "--dir"),
    ];
    for (flags, said) in cases {
        let run = fulfilment(flags);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{flags:?}: {run:?}");
        let first = run.stderr.lines().next().unwrap_or_default();
        assert!(first.starts_with("error: ") && first.contains(said), "{flags:?}: {first}");
        assert!(run.stderr.contains("\nUsage: fulfilment"), "{flags:?}: {}", run.stderr);
    }
    let help = fulfilment(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    for flag in ["--scenario NAME", "--list", "--json", "--dir PATH", "--server URL"] {
        assert!(help.stdout.contains(flag), "{flag} is not in the help");
    }
}
