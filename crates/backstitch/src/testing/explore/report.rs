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
    /// The process dies in the body, at each of its awaits and behind its effect, and nothing is
    /// recorded; the next one runs the body again, or undoes what it does not know.
    DiesUnrecorded,
    /// It fails for good, in each class, with and without an effect, and by its timeout.
    FailsForGood,
    /// The execution is cancelled while the body is in flight, before and after its effect.
    Cancelled,
    /// Its undo runs twice, also because the process dies in it.
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
            Column::DiesUnrecorded => "dies in it",
            Column::FailsForGood => "fails for good",
            Column::Cancelled => "cancelled in it",
            Column::UndoTwice => "undo run twice",
            Column::UndoFails => "undo fails",
        }
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The check does not hold in a world, or the world does not come to its end.
    World,
    /// When nothing goes wrong the execution does not come to an end that the workflow gives it, so
    /// there was nothing to explore.
    PlainCase,
    /// An event that the exploration was told of was never waited for.
    EventNotTaken,
    /// An undo fails whoever has it tried again, and was waived.
    UndoWaived,
    /// The code asks for something else in the same situation: what is found in the other worlds, and
    /// what is not, may be luck.
    NotDeterministic,
    /// The check does not hold after a rollback in which nothing else goes wrong, so no step and no
    /// fault is to blame for it in other worlds that say the same.
    EveryRollback,
}

/// Something that the exploration found: mostly a world in which the check does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
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
    /// The name of the exploration: that of the workflow, unless it was given one.
    pub name: String,
    /// How many worlds were run, the plain one among them, and those left out that are `unfired`.
    pub worlds: u64,
    /// The worlds in which what should go wrong never took effect, because they went another way
    /// before. They show nothing.
    pub unfired: Vec<String>,
    /// The steps, in the order in which they first ran, each with its cells.
    pub steps: Vec<(String, BTreeMap<Column, String>)>,
    /// What happened to the execution as a whole: in words, and how it came out.
    pub execution: Vec<(String, String)>,
    /// Steps that were attempted only when something had gone wrong: nothing was tried on them.
    pub unexplored: Vec<String>,
    /// What else the exploration does not show, in words.
    pub notes: Vec<String>,
    /// Where the check does not hold.
    pub findings: Vec<Finding>,
}

/// No cell is wider.
const CELL_CHARS_MAX: usize = 60;

/// No more matters are printed, and no more worlds of one of them; all of them are in the data.
const MATTERS_SHOWN_MAX: usize = 20;
const WORLDS_SHOWN_MAX: usize = 5;

impl Report {
    /// Whether nothing was found in worlds that were run. A report of an exploration that was left
    /// out, because `BACKSTITCH_EXPLORE` names a world of another one, is not clean.
    pub fn is_clean(&self) -> bool {
        self.worlds > 0 && self.findings.is_empty()
    }

    /// The report as Markdown, to be kept and compared.
    pub fn to_markdown(&self) -> String {
        self.to_string()
    }

    /// The findings, those of one cell together, and elsewhere those that say the same.
    fn matters(&self) -> Vec<Vec<&Finding>> {
        let mut matters: Vec<Vec<&Finding>> = Vec::new();
        for finding in &self.findings {
            let same = |matter: &&mut Vec<&Finding>| {
                let first = matter[0];
                let says = first.step.is_some() || first.says == finding.says;
                (first.kind, &first.step, first.column)
                    == (finding.kind, &finding.step, finding.column)
                    && says
            };
            match matters.iter_mut().find(same) {
                Some(matter) => matter.push(finding),
                None => matters.push(vec![finding]),
            }
        }
        matters
    }

    fn table(&self, matters: &[Vec<&Finding>]) -> Vec<Vec<String>> {
        let titles = Column::ALL.iter().map(|column| column.title().to_owned());
        let mut rows = vec![std::iter::once("step".to_owned()).chain(titles).collect::<Vec<_>>()];
        for (step, cells) in &self.steps {
            let cell = |column: &Column| {
                let of_cell = |matter: &Vec<&Finding>| {
                    matter[0].step.as_ref() == Some(step) && matter[0].column == Some(*column)
                };
                match matters.iter().position(of_cell) {
                    Some(place) => format!("**not ok: {}**", place + 1),
                    None => escape(cells.get(column).map_or("–", String::as_str)),
                }
            };
            let cells = Column::ALL.iter().map(cell);
            // The first of its name is known by the name.
            let step = step.strip_suffix("#1").unwrap_or(step);
            rows.push(std::iter::once(escape(step)).chain(cells).collect());
        }
        rows
    }

    fn fmt_matter(
        &self,
        f: &mut fmt::Formatter<'_>,
        place: usize,
        matter: &[&Finding],
    ) -> fmt::Result {
        let first = matter[0];
        writeln!(f, "\n{}. {}", place + 1, first.says.trim_end().replace('\n', "\n   "))?;
        writeln!(f, "   when {}", first.fault)?;
        for finding in matter.iter().skip(1).take(WORLDS_SHOWN_MAX) {
            match finding.says == first.says {
                true => writeln!(f, "   and when {}", finding.fault)?,
                false => writeln!(f, "   and when {}: {}", finding.fault, short(&finding.says))?,
            }
        }
        if let more @ 1.. = matter.len().saturating_sub(1 + WORLDS_SHOWN_MAX) {
            writeln!(f, "   and in {more} more")?;
        }
        writeln!(f, "   again: {}", first.again)
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
        let matters = self.matters();
        let rows = self.table(&matters);
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
        for note in &self.notes {
            writeln!(f, "- {note}")?;
        }
        if let unfired @ 1.. = self.unfired.len() {
            let shown = self.unfired.iter().take(WORLDS_SHOWN_MAX).map(String::as_str);
            let names = shown.collect::<Vec<_>>().join(", ");
            let more = if unfired > WORLDS_SHOWN_MAX { ", …" } else { "" };
            writeln!(f, "- never took effect, and show nothing: {unfired} more ({names}{more})")?;
        }
        let said = [&self.unexplored, &self.notes, &self.unfired];
        if !self.execution.is_empty() || said.iter().any(|said| !said.is_empty()) {
            writeln!(f)?;
        }
        let (name, worlds) = (&self.name, self.worlds);
        match self.findings.len() {
            0 if worlds == 0 => writeln!(f, "{name}: nothing was run")?,
            0 => writeln!(f, "{name}: the check holds in all {worlds} worlds")?,
            n if self.findings.iter().all(|found| found.kind == FindingKind::World) => {
                writeln!(f, "{name}: the check does not hold in {n} of {worlds} worlds")?;
            }
            1 => writeln!(f, "{name}: not clean: 1 finding (worlds: {worlds})")?,
            n => writeln!(f, "{name}: not clean: {n} findings (worlds: {worlds})")?,
        }
        for (place, matter) in matters.iter().take(MATTERS_SHOWN_MAX).enumerate() {
            self.fmt_matter(f, place, matter)?;
        }
        if let more @ 1.. = matters.len().saturating_sub(MATTERS_SHOWN_MAX) {
            writeln!(f, "\n… and {more} more")?;
        }
        Ok(())
    }
}
