//! What is printed.

use std::io::{self, IsTerminal, Write};

use backstitch::timeline::{self, Style};

use crate::args::Output;
use crate::report::money;
use crate::run::Finished;
use crate::scenario::{CENTS, Scenario};
use crate::warehouse::STOCK_AT_FIRST;

/// Columns that prose takes.
const PROSE_COLUMNS: usize = 92;
/// Columns that everything takes.
const COLUMNS: usize = 100;

/// Prints for people, or for programs.
pub struct Screen {
    output: Output,
    style: Style,
}

impl Screen {
    pub fn of(output: Output) -> Screen {
        let terminal = io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let style = if terminal && !no_colour { Style::Colour } else { Style::Plain };
        Screen { output, style }
    }

    /// For people only.
    pub fn print(&self, text: &str) -> io::Result<()> {
        match self.output {
            Output::Text => io::stdout().write_all(text.as_bytes()),
            Output::Json => Ok(()),
        }
    }

    /// An order that is over.
    pub fn print_order(&self, finished: &Finished, scenario: &Scenario) -> io::Result<()> {
        match self.output {
            Output::Json => {
                let line = serde_json::to_string(&finished.report).expect("it is plain data");
                writeln!(io::stdout(), "{line}")
            }
            Output::Text => {
                let picture = timeline::draw(&finished.journal, self.style);
                let by_hand = prose("", &format!("By hand: {}", scenario.by_hand));
                write!(io::stdout(), "\n{picture}\n{by_hand}")
            }
        }
    }

    pub fn welcome(&self) -> String {
        let title = self.paint("1", "Backstitch: an online shop fulfils orders");
        let text = format!(
            "Each order is one workflow of three steps: reserve-stock, charge-card, book-shipment. \
             Each step brings its own undo. The cards are charged by a payment provider over HTTP; \
             provider and warehouse know nothing of the workflow. Everything costs {}.",
            money(CENTS)
        );
        format!("\n  {title}\n\n{}", prose("", &text))
    }

    pub fn heading(&self, scenario: &Scenario) -> String {
        let title = format!("━━━ {} · {} ", scenario.name, scenario.heading);
        let line = "━".repeat(COLUMNS.saturating_sub(title.chars().count()));
        let title = self.paint("1", &format!("{title}{line}"));
        format!("\n{title}\n\n{}", prose("", scenario.explanation))
    }

    /// What people saw and did while the order was open.
    pub fn seen(&self, seen: &[String]) -> String {
        let lines: String = seen.iter().map(|seen| prose("» ", seen)).collect();
        if lines.is_empty() { lines } else { format!("\n{lines}") }
    }

    /// What stands where in the end, and the verdict.
    pub fn conclusion(&self, finished: &[Finished], wrong: &[String]) -> String {
        let rule = self.paint("1", &format!("━━━ In the end {}", "━".repeat(COLUMNS - 15)));
        let had = format!("shelf: {STOCK_AT_FIRST} →");
        let head =
            ["scenario", "status", "rollback", &had, "paid", "charges", "refunds", "parcels"];
        let mut text = format!("\n{rule}\n\n{}\n", self.paint("2", &row(head)));
        for Finished { report, .. } in finished {
            let line = row([
                report.scenario,
                report.status,
                report.rollback,
                &report.stock.to_string(),
                &money(report.charged_cents),
                &report.charges.to_string(),
                &report.refunds.to_string(),
                &report.shipments.to_string(),
            ]);
            text.push_str(&format!("{line}\n"));
        }
        let verdict = match wrong {
            [] => self.paint("1;32", "✔ stock, charges, the shop's own books and shipments agree"),
            _ => self.paint("1;31", "✘ stock, charges, the shop's own books and shipments differ"),
        };
        format!("{text}\n  {verdict}\n\n")
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.style {
            Style::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
            Style::Plain => text.to_owned(),
        }
    }
}

/// A paragraph, whose first line begins with a mark.
fn prose(mark: &str, text: &str) -> String {
    let indent = " ".repeat(mark.chars().count());
    let mut lines = vec![mark.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        let space = if line.ends_with(' ') || line.is_empty() { "" } else { " " };
        if line.chars().count() + space.len() + word.chars().count() <= PROSE_COLUMNS {
            line.push_str(space);
            line.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// A row of the table.
fn row(cells: [&str; 8]) -> String {
    let [scenario, status, rollback, shelf, paid, charges, refunds, parcels] = cells;
    format!(
        "  {scenario:<16}{status:<11}{rollback:<10}{shelf:>12}{paid:>9}{charges:>9}{refunds:>9}\
         {parcels:>9}"
    )
}
