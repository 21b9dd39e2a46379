//! What is printed.

use std::time::Duration;

use serde::Serialize;

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
    steps: Option<u64>,
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
            steps: None,
        })
    }

    /// Each workflow had so many steps, and what one of them took is of interest.
    pub fn with_steps(self, steps: u64) -> Measured {
        Measured { steps: Some(steps), ..self }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us_per_step: Option<f64>,
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
        p50_us_per_step: measured.steps.map(|steps| rounded(ms(measured.p50) * 1e3 / steps as f64)),
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
    if let Some(us) = line.p50_us_per_step {
        row("  per step, µs", format!("{us:.1}"));
    }
    row("  p50 in synced 4 KiB appends", format!("{:.1}", ratio(p50, line.fdatasync_p50_ms)));
    row("  p50 in one-row SQLite commits", format!("{:.1}", ratio(p50, line.sqlite_commit_p50_ms)));
    row("processor time per workflow, µs", format!("{:.1}", line.cpu_s * 1e6 / n));
    row("bytes written per workflow", format!("{:.0}", line.bytes_written as f64 / n));
    row("peak memory, MiB", format!("{:.1}", line.rss_peak_mib));
    row("reference: synced append, ms", format!("{:.3}", line.fdatasync_p50_ms));
    row("reference: SQLite commit, ms", format!("{:.3}", line.sqlite_commit_p50_ms));
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
