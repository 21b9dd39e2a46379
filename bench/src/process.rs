//! What this process has used, from the kernel's own books (Linux).

use crate::Result;

/// Clock ticks per second in `/proc/self/stat`: 100 on every Linux that there is.
const TICKS_PER_S: f64 = 100.0;

/// Up to a moment, or between two.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time in user and kernel mode, all threads.
    pub cpu_s: f64,
    /// Bytes that this process caused to be sent to disk.
    pub bytes_written: u64,
}

impl Usage {
    pub fn since(&self, before: &Usage) -> Usage {
        Usage {
            cpu_s: self.cpu_s - before.cpu_s,
            bytes_written: self.bytes_written - before.bytes_written,
        }
    }
}

pub fn usage() -> Result<Usage> {
    Ok(Usage { cpu_s: cpu_s()?, bytes_written: line("/proc/self/io", "write_bytes:")? })
}

/// The most memory that this process has had at a time.
pub fn rss_peak_mib() -> Result<f64> {
    Ok(line("/proc/self/status", "VmHWM:")? as f64 / 1024.0)
}

/// The memory that this process has now, in bytes.
pub fn rss_bytes() -> Result<u64> {
    Ok(line("/proc/self/status", "VmRSS:")? * 1024)
}

/// The same of another process.
pub fn rss_bytes_of(pid: u32) -> Result<u64> {
    Ok(line(&format!("/proc/{pid}/status"), "VmRSS:")? * 1024)
}

fn cpu_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The second field, the name in parentheses, may hold anything.
    let after_name = stat.rsplit_once(')').ok_or("/proc/self/stat has another form")?.1;
    let mut times = after_name.split_ascii_whitespace().skip(11);
    let mut ticks =
        || -> Result<f64> { Ok(times.next().ok_or("/proc/self/stat has another form")?.parse()?) };
    Ok((ticks()? + ticks()?) / TICKS_PER_S)
}

/// The number behind `name` in a file of lines.
fn line(path: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(path)?;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.split_ascii_whitespace().next());
    Ok(number.ok_or_else(|| format!("{path} has no line {name}"))?.parse()?)
}
