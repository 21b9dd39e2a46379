//! The table of docs/verbs.md, as the tests go by it.

use crate::scene::On;

/// What is asked of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Event,
    Cancel,
    Terminate,
    Rollback,
    Kill,
    Pause,
    Resume,
    RetryStep,
    RetryUndo,
    WaiveUndo,
    SetAttributes,
    Delete,
    Restart,
}

/// What a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Accepted, `changed: true`.
    Yes,
    /// Accepted, `changed: false`.
    NoChange,
    Refused,
    /// Yes for steps that are blocked.
    BlockedSteps,
    /// Yes for undos that failed for good.
    FailedUndos,
    /// Yes for undos that failed for good and those that have not started.
    FailedOrNotStarted,
    /// Yes after success.
    AfterSuccess,
    /// Yes if an open matter is about the step.
    OpenMatters,
    /// Yes if no matter is open.
    NothingOpen,
}

impl Cell {
    fn parse(text: &str) -> Cell {
        match text {
            "yes" => Cell::Yes,
            "no change" => Cell::NoChange,
            "refused" => Cell::Refused,
            "blocked steps" => Cell::BlockedSteps,
            "failed undos" => Cell::FailedUndos,
            "failed or not started" => Cell::FailedOrNotStarted,
            "after success" => Cell::AfterSuccess,
            "open matters" => Cell::OpenMatters,
            "nothing open" => Cell::NothingOpen,
            other => panic!("the cell {other:?} of docs/verbs.md means nothing"),
        }
    }
}

/// The columns, with the statuses that each stands for.
const COLUMNS: [(&str, &[On]); 7] = [
    ("pending, running, suspended", &[On::Pending, On::Running, On::Suspended]),
    ("paused", &[On::Paused]),
    ("blocked", &[On::Blocked]),
    ("rolling back", &[On::RollingBack]),
    ("paused on the way back", &[On::PausedRollingBack]),
    ("stuck", &[On::Stuck]),
    ("closed", &[On::Succeeded, On::Failed, On::Cancelled, On::Terminated, On::Killed]),
];

/// What is expected, row by row.
const ROWS: [(Ask, &str, [Cell; 7]); 13] = {
    use Cell::{
        AfterSuccess, BlockedSteps, FailedOrNotStarted, FailedUndos, NoChange, NothingOpen,
        OpenMatters, Refused, Yes,
    };
    let decides = [Yes, Yes, Yes, NoChange, NoChange, NoChange, Refused];
    [
        (Ask::Event, "send event", [Yes, Yes, Yes, Refused, Refused, Refused, Refused]),
        (Ask::Cancel, "cancel", decides),
        (Ask::Terminate, "terminate", decides),
        (Ask::Rollback, "rollback", [Yes, Yes, Yes, NoChange, NoChange, NoChange, AfterSuccess]),
        (Ask::Kill, "kill", [Yes, Yes, Yes, Yes, Yes, Yes, Refused]),
        (Ask::Pause, "pause", [Yes, NoChange, Yes, Yes, NoChange, Refused, Refused]),
        (Ask::Resume, "resume", [NoChange, Yes, NoChange, NoChange, Yes, NoChange, Refused]),
        (
            Ask::RetryStep,
            "retry step",
            [Refused, BlockedSteps, BlockedSteps, Refused, Refused, Refused, Refused],
        ),
        (
            Ask::RetryUndo,
            "retry undo",
            [Refused, Refused, Refused, FailedUndos, FailedUndos, FailedUndos, Refused],
        ),
        (
            Ask::WaiveUndo,
            "waive undo",
            [
                Refused,
                Refused,
                Refused,
                FailedOrNotStarted,
                FailedOrNotStarted,
                FailedOrNotStarted,
                OpenMatters,
            ],
        ),
        (Ask::SetAttributes, "set attributes", [Yes; 7]),
        (
            Ask::Delete,
            "delete",
            [Refused, Refused, Refused, Refused, Refused, Refused, NothingOpen],
        ),
        (Ask::Restart, "restart", [Refused, Refused, Refused, Refused, Refused, Refused, Yes]),
    ]
};

/// The cell of the table.
pub fn expected(ask: Ask, on: On) -> Cell {
    let column = COLUMNS.iter().position(|(_, statuses)| statuses.contains(&on));
    let row = ROWS.iter().find(|(asked, _, _)| *asked == ask);
    row.expect("each verb has a row").2[column.expect("each status has a column")]
}

/// The rows of the first table of a page, as cells.
fn first_table(page: &str) -> Vec<Vec<String>> {
    let lines = page.lines().skip_while(|line| !line.starts_with("| "));
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect())
        .collect()
}

#[test]
fn b38_the_page_says_what_the_tests_expect() {
    let table = first_table(include_str!("../../../../docs/verbs.md"));
    let columns: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    assert_eq!(table[0][1..], columns, "the columns");
    let on_the_page: Vec<(String, Vec<Cell>)> = table[2..]
        .iter()
        .map(|row| (row[0].clone(), row[1..].iter().map(|cell| Cell::parse(cell)).collect()))
        .collect();
    let wanted: Vec<(String, Vec<Cell>)> =
        ROWS.iter().map(|(_, name, cells)| ((*name).to_owned(), cells.to_vec())).collect();
    assert_eq!(on_the_page, wanted);
}
