//! What is printed.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::closed_loop::Laps;
use crate::references::{References, ratio};
use crate::{Result, process};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// One object per line.
    Json,
}

/// The figures of one run.
pub struct Measured {
    workload: String,
    /// What was measured, where a workload measures several things.
    pub detail: String,
    n: u64,
    elapsed: Duration,
    p50: Duration,
    p99: Duration,
    cpu_s: f64,
    rss_peak_mib: f64,
    bytes_written: u64,
    more: Figures,
}

/// What only this workload has to tell.
#[derive(Default)]
struct Figures(Vec<Figure>);

struct Figure {
    /// In JSON.
    name: &'static str,
    /// In the table.
    label: &'static str,
    value: Value,
}

#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Value {
    Count(u64),
    Amount(f64),
}

impl Measured {
    pub fn of_laps(workload: &str, detail: &str, laps: &Laps) -> Result<Measured> {
        Ok(Measured {
            workload: workload.to_owned(),
            detail: detail.to_owned(),
            n: laps.n,
            elapsed: laps.elapsed,
            p50: laps.quantile(0.5),
            p99: laps.quantile(0.99),
            cpu_s: laps.usage.cpu_s,
            rss_peak_mib: process::rss_peak_mib()?,
            bytes_written: laps.usage.bytes_written,
            more: Figures::default(),
        })
    }

    /// Each workflow had so many steps, and what one of them took is of interest.
    pub fn with_steps(self, steps: u64) -> Measured {
        let us = ms(self.p50) * 1e3 / steps as f64;
        self.with_amount("p50_us_per_step", "p50 per step, µs", us)
    }

    /// One more figure: its name in JSON, its label in the table.
    pub fn with_amount(self, name: &'static str, label: &'static str, amount: f64) -> Measured {
        self.with(name, label, Value::Amount(rounded(amount)))
    }

    /// One more figure that is a count.
    pub fn with_count(self, name: &'static str, label: &'static str, count: u64) -> Measured {
        self.with(name, label, Value::Count(count))
    }

    fn with(mut self, name: &'static str, label: &'static str, value: Value) -> Measured {
        self.more.0.push(Figure { name, label, value });
        self
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|figure| (figure.name, figure.value)))
    }
}

#[derive(Serialize)]
struct Line<'a> {
    workload: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
    n: u64,
    workflows_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    #[serde(flatten)]
    more: &'a Figures,
    cpu_s: f64,
    rss_peak_mib: f64,
    bytes_written: u64,
    fdatasync_p50_ms: f64,
    sqlite_commit_p50_ms: f64,
}

pub fn print(measured: &Measured, references: &References, output: Output) -> Result<()> {
    let line = Line {
        workload: &measured.workload,
        detail: &measured.detail,
        n: measured.n,
        workflows_per_s: rounded(measured.n as f64 / measured.elapsed.as_secs_f64()),
        p50_ms: rounded(ms(measured.p50)),
        p99_ms: rounded(ms(measured.p99)),
        more: &measured.more,
        cpu_s: rounded(measured.cpu_s),
        rss_peak_mib: rounded(measured.rss_peak_mib),
        bytes_written: measured.bytes_written,
        fdatasync_p50_ms: rounded(references.fdatasync_p50_ms),
        sqlite_commit_p50_ms: rounded(references.sqlite_commit_p50_ms),
    };
    match output {
        Output::Json => println!("{}", serde_json::to_string(&line)?),
        Output::Table => table(&line, measured.p50),
    }
    Ok(())
}

fn table(line: &Line<'_>, p50: Duration) {
    let row = |name: &str, value: String| println!("  {name:34} {value:>12}");
    let n = line.n as f64;
    println!("{} {}", line.workload, line.detail);
    row("workflows", line.n.to_string());
    row("workflows per second", format!("{:.0}", line.workflows_per_s));
    row("latency p50, ms", format!("{:.3}", line.p50_ms));
    row("latency p99, ms", format!("{:.3}", line.p99_ms));
    row("  p50 in synced 4 KiB appends", format!("{:.1}", ratio(p50, line.fdatasync_p50_ms)));
    row("  p50 in one-row SQLite commits", format!("{:.1}", ratio(p50, line.sqlite_commit_p50_ms)));
    for Figure { name: _, label, value } in &line.more.0 {
        match value {
            Value::Count(count) => row(label, count.to_string()),
            Value::Amount(amount) => row(label, format!("{amount:.1}")),
        }
    }
    row("processor time per workflow, µs", format!("{:.1}", line.cpu_s * 1e6 / n));
    row("bytes written per workflow", format!("{:.0}", line.bytes_written as f64 / n));
    row("peak memory, MiB", format!("{:.1}", line.rss_peak_mib));
    row("reference: synced append, ms", format!("{:.3}", line.fdatasync_p50_ms));
    row("reference: SQLite commit, ms", format!("{:.3}", line.sqlite_commit_p50_ms));
}

/// In milliseconds.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Usage;

    #[test]
    fn figures_of_one_workload_stand_in_its_line() {
        let usage = Usage { cpu_s: 0.0, bytes_written: 0 };
        let laps = Laps::new(1, Duration::from_secs(1), vec![Duration::from_millis(5)], usage);
        let measured = Measured::of_laps("w0", "", &laps).unwrap().with_steps(100);
        let measured = measured.with_count("effects", "effects", 1_500);
        let line = serde_json::to_string(&measured.more).unwrap();
        assert_eq!(line, r#"{"p50_us_per_step":50.0,"effects":1500}"#);
    }
}
