//! What an exploration found, as a table.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// What happens to a step or its undo. A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// Its body runs twice, or an attempt of a process that was given up lands late.
    RunTwice,
    /// The process dies when the body has had its effect and nothing is recorded.
    DiesUnrecorded,
    /// It fails for good, in each class, with and without an effect.
    FailsForGood,
    /// The execution is cancelled while the body is in flight, before and after its effect.
    Cancelled,
    /// Its undo runs twice, also because the process dies when it has had its effect.
    UndoTwice,
    /// Its undo fails for good, and a person has it tried again.
    UndoFails,
}

impl Column {
    const ALL: [Column; 6] = [
        Column::RunTwice,
        Column::DiesUnrecorded,
        Column::FailsForGood,
        Column::Cancelled,
        Column::UndoTwice,
        Column::UndoFails,
    ];

    /// As it stands above the table.
    pub fn title(self) -> &'static str {
        match self {
            Column::RunTwice => "run twice",
            Column::DiesUnrecorded => "dies before the effect is recorded",
            Column::FailsForGood => "fails for good",
            Column::Cancelled => "cancelled meanwhile",
            Column::UndoTwice => "undo run twice",
            Column::UndoFails => "undo fails",
        }
    }
}

/// A world in which the check does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What goes wrong in it; `nothing goes wrong` in the plain one.
    pub fault: String,
    /// The step that it happens to, by its printed key; absent if it happens to the execution.
    pub step: Option<String>,
    /// What happens to the step.
    pub column: Option<Column>,
    /// What the check says.
    pub says: String,
    /// A line for the shell that runs this world again, and draws its timeline.
    pub again: String,
}

/// What an exploration found. Prints as a Markdown table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The workflow.
    pub workflow: String,
    /// How many worlds were run.
    pub worlds: u64,
    /// The steps, in the order in which they first ran, each with its cells.
    pub steps: Vec<(String, BTreeMap<Column, String>)>,
    /// What happened to the execution as a whole: in words, and how it came out.
    pub execution: Vec<(String, String)>,
    /// Steps that were attempted only when something had gone wrong: nothing was tried on them.
    pub unexplored: Vec<String>,
    /// Where the check does not hold.
    pub findings: Vec<Finding>,
}

/// No cell is wider.
const CELL_CHARS_MAX: usize = 60;

/// No more findings are printed; all of them are in the data.
const FINDINGS_SHOWN_MAX: usize = 20;

impl Report {
    /// Whether the check holds in every world.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The report as Markdown, to be kept and compared.
    pub fn to_markdown(&self) -> String {
        self.to_string()
    }

    fn table(&self) -> Vec<Vec<String>> {
        let titles = Column::ALL.iter().map(|column| column.title().to_owned());
        let mut rows = vec![std::iter::once("step".to_owned()).chain(titles).collect::<Vec<_>>()];
        for (step, cells) in &self.steps {
            let cell = |column| cells.get(column).map_or("–", String::as_str);
            let cells = Column::ALL.iter().map(|column| escape(cell(column)));
            // The first of its name is known by the name.
            let step = step.strip_suffix("#1").unwrap_or(step);
            rows.push(std::iter::once(escape(step)).chain(cells).collect());
        }
        rows
    }
}

/// One line that fits a cell.
pub(super) fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(CELL_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.table();
        let width = |place: usize| {
            rows.iter().map(|row: &Vec<String>| row[place].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..=Column::ALL.len()).map(width).collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
        };
        if !self.steps.is_empty() {
            writeln!(f, "{}", line(&rows[0]))?;
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            writeln!(f, "{}", line(&rule))?;
            for row in &rows[1..] {
                writeln!(f, "{}", line(row))?;
            }
            writeln!(f)?;
        }
        for (what, came_out) in &self.execution {
            writeln!(f, "- {what}: {came_out}")?;
        }
        if !self.unexplored.is_empty() {
            let steps = self.unexplored.join(", ");
            writeln!(f, "- attempted only after something went wrong, and not explored: {steps}")?;
        }
        if !self.execution.is_empty() || !self.unexplored.is_empty() {
            writeln!(f)?;
        }
        match self.findings.len() {
            0 => writeln!(f, "{}: the check holds in all {} worlds", self.workflow, self.worlds)?,
            n => writeln!(
                f,
                "{}: the check does not hold in {n} of {} worlds",
                self.workflow, self.worlds
            )?,
        }
        for (place, finding) in self.findings.iter().take(FINDINGS_SHOWN_MAX).enumerate() {
            writeln!(f, "\n{}. {}", place + 1, finding.says.trim_end().replace('\n', "\n   "))?;
            writeln!(f, "   when {}", finding.fault)?;
            writeln!(f, "   again: {}", finding.again)?;
        }
        if let more @ 1.. = self.findings.len().saturating_sub(FINDINGS_SHOWN_MAX) {
            writeln!(f, "\n… and {more} more")?;
        }
        Ok(())
    }
}
