//! What is printed.

use std::io::{self, IsTerminal, Write};
use std::process::ExitStatus;

use backstitch::timeline::{self, Style};

use crate::args::Output;
use crate::report::{Effects, money};
use crate::run::Finished;
use crate::scenario::{A_OPENED_WITH_CENTS, B_OPENED_WITH_CENTS, Scenario, TRANSFER_CENTS};

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

    /// One transfer that is over.
    pub fn print_transfer(&self, finished: &Finished) -> io::Result<()> {
        match self.output {
            Output::Json => {
                let line = serde_json::to_string(&finished.report).expect("it is plain data");
                writeln!(io::stdout(), "{line}")
            }
            Output::Text => {
                let picture = timeline::draw(&finished.journal, self.style);
                write!(io::stdout(), "\n{picture}")
            }
        }
    }

    pub fn welcome(&self) -> String {
        let title = self.paint("1", "Backstitch: money between two banks");
        let amount = money(TRANSFER_CENTS);
        let text = prose(&format!(
            "Three transfers of {amount}, each from an account at bank A to one at bank B, in two \
             steps: debit-a and credit-b. Each step brings its own undo. The banks are outside \
             systems with a database of their own. Below stand the journals of the transfers: the \
             left rail is the way forward; the right one, whose arrows point up, is the way back."
        ));
        format!("\n  {title}\n\n{text}")
    }

    pub fn heading(&self, no: u32, scenario: &Scenario) -> String {
        let title = format!("{no} · {} · {}", scenario.id, scenario.heading);
        self.rule(&title) + &prose(scenario.explanation)
    }

    /// How the process that was to die has ended.
    pub fn victim(&self, status: ExitStatus) -> String {
        let said = match status.success() {
            true => "(These files are from before, and so is the end of the first process.)".into(),
            false => format!("(How the first process ended: {status}.)"),
        };
        format!("\n{}", prose(&said))
    }

    /// Why nothing happens at first.
    pub fn lease(&self) -> String {
        prose("(The server leaves the transfer to the first process until its lease has ended.)")
    }

    /// What the banks have, and the verdict.
    pub fn conclusion(&self, finished: &[Finished], wrong: &[String]) -> String {
        let had_a = format!("A: {} →", money(A_OPENED_WITH_CENTS));
        let had_b = format!("B: {} →", money(B_OPENED_WITH_CENTS));
        let head = ["transfer", "status", "rollback", "crashes", &had_a, &had_b, "effects applied"];
        let mut text = self.rule("What the banks have") + &self.paint("2", &row(head)) + "\n";
        for Finished { report, .. } in finished {
            let line = row([
                &report.id,
                &report.status,
                report.rollback,
                &report.crashes.to_string(),
                &money(report.balances.a),
                &money(report.balances.b),
                &applied(&report.effects),
            ]);
            text.push_str(&format!("{line}\n"));
        }
        format!("{text}\n  {}\n\n", self.verdict(finished, wrong))
    }

    fn verdict(&self, finished: &[Finished], wrong: &[String]) -> String {
        let before = (A_OPENED_WITH_CENTS + B_OPENED_WITH_CENTS) * finished.len() as i64;
        let after = finished.iter().map(|f| f.report.balances.a + f.report.balances.b).sum();
        let sums = format!("{} before, {} after", money(before), money(after));
        match wrong {
            [] => {
                let verdict = "no money was lost or made, each effect was applied exactly once";
                self.paint("1;32", &format!("✔ {sums}: {verdict}"))
            }
            _ => self.paint("1;31", &format!("✘ {sums}: this is wrong")),
        }
    }

    /// What to try next.
    pub fn hint(&self) -> String {
        let hint =
            "Kill it where you like: --crash-after-event N --dir PATH, then --resume --dir PATH";
        format!("  {}\n\n", self.paint("2", hint))
    }

    fn rule(&self, title: &str) -> String {
        let line = "━".repeat(COLUMNS.saturating_sub(title.chars().count() + 5));
        format!("\n{}\n\n", self.paint("1", &format!("━━━ {title} {line}")))
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.style {
            Style::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
            Style::Plain => text.to_owned(),
        }
    }
}

/// A paragraph.
fn prose(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if line.chars().count() + 1 + word.chars().count() <= PROSE_COLUMNS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!(" {word}"));
        }
    }
    lines.iter().map(|line| format!(" {line}\n")).collect()
}

/// A row of the table.
fn row(cells: [&str; 7]) -> String {
    let [id, status, rollback, crashes, a, b, effects] = cells;
    format!("  {id:<11}{status:<11}{rollback:<10}{crashes:>7}{a:>14}{b:>13}   {effects}")
}

/// The effects that were applied at all, and how often.
fn applied(effects: &Effects) -> String {
    let seen = effects.named().into_iter().filter(|(_, times)| *times > 0);
    let named: Vec<String> = seen.map(|(name, times)| format!("{name} ×{times}")).collect();
    named.join(", ")
}
