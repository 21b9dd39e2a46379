//! What is printed: tables for people, JSON for programs, colours on a terminal.

use std::io::{IsTerminal, Result, Write, stdout};

use backstitch::timeline::Style;
use backstitch_api::http::Status;
use comfy_table::{Cell, Table, presets};
use jiff::Timestamp;
use serde::Serialize;

/// The standard output. Whoever reads it may go away at any time.
pub struct Paper {
    pub json: bool,
    pub style: Style,
}

impl Paper {
    pub fn new(json: bool) -> Paper {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
        let style = match stdout().is_terminal() && !no_colour {
            true => Style::Colour,
            false => Style::Plain,
        };
        Paper { json, style }
    }

    /// A line for people.
    pub fn line(&self, text: &str) -> Result<()> {
        let mut out = stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// Text as it is.
    pub fn text(&self, text: &str) -> Result<()> {
        let mut out = stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A line for programs.
    pub fn json<T: Serialize>(&self, value: &T) -> Result<()> {
        self.line(&serde_json::to_string(value).expect("answers are JSON by their types"))
    }

    /// JSON if that is wanted, and else a sentence.
    pub fn say<T: Serialize>(&self, value: &T, sentence: &str) -> Result<()> {
        if self.json { self.json(value) } else { self.line(sentence) }
    }

    /// A table for people; `nothing` if it is empty.
    pub fn table(&self, head: &[&str], rows: Vec<Vec<String>>, nothing: &str) -> Result<()> {
        if rows.is_empty() {
            return self.line(nothing);
        }
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(head.iter().map(|name| name.to_uppercase()));
        for row in rows {
            table.add_row(row.iter().map(|text| Cell::new(clean(text))));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        for line in table.lines() {
            self.line(line.trim_end())?;
        }
        Ok(())
    }
}

/// Without what could move the cursor or change colours.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// To the second, as UTC.
pub fn instant(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// As people write it.
pub fn status(status: Status) -> String {
    backstitch::Status::from(status).name().replace('_', " ")
}
