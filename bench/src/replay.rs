//! Recovery: a process dies behind a journal of many steps, another one takes over.
//!
//! The journal is written once, by a child process that aborts while the step after the last one
//! runs. Then its files are copied and opened again and again: the time counts from `open` to the
//! moment at which the body of that step begins anew. In between lie the replay of the whole
//! journal and one append, which says that the attempt was lost and the next one begins.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use backstitch::{App, Ctx, workflow};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::closed_loop::Laps;
use crate::receipt::Receipt;
use crate::report::Measured;
use crate::{Result, process, store_dir};

const STEPS: u64 = 5_000;

/// Longer than any replay takes; only a hang gets there.
const HANG: Duration = Duration::from_secs(60);

/// The step after the last one: tells that it was reached, then never ends.
struct Gate(Mutex<Option<oneshot::Sender<()>>>);

#[workflow]
async fn long_journal(ctx: Ctx, steps: u64) -> backstitch::Result<u64> {
    let mut sum = 0;
    for number in 0..steps {
        let receipt = ctx.step("parcel", async move |_s| Ok(Receipt::new(number))).await?;
        sum += receipt.number;
    }
    let gate = async move |s: backstitch::StepCtx| {
        let reached = s.state::<Gate>().0.lock().expect("nothing panics under it").take();
        if let Some(reached) = reached {
            let _ = reached.send(());
        }
        std::future::pending::<backstitch::Result<()>>().await
    };
    ctx.step("gate", gate).await?;
    Ok(sum)
}

async fn open(dir: &Path) -> Result<(App, oneshot::Receiver<()>)> {
    let (reached, when_reached) = oneshot::channel();
    let gate = Gate(Mutex::new(Some(reached)));
    let app = store_dir::open(dir)?.state(gate).register(long_journal).run().await?;
    Ok((app, when_reached))
}

/// The child process: runs a workflow up to its gate, and dies there without a word.
pub fn write_and_die(dir: &Path, steps: u64) -> Result<()> {
    Runtime::new()?.block_on(async {
        let (app, reached) = open(dir).await?;
        app.start(long_journal, "long", steps).await?;
        reached.await?;
        std::process::abort()
    })
}

pub fn measure(name: &str, dir: &Path, n: u64) -> Result<Measured> {
    let written = dir.join("written");
    std::fs::create_dir(&written)?;
    let child = Command::new(std::env::current_exe()?)
        .args(["write-journal", "--n", &STEPS.to_string(), "--dir"])
        .arg(&written)
        .status()?;
    if child.success() || store_dir::files(&written)?.is_empty() {
        return Err(format!("the process that writes the journal ended with {child}").into());
    }
    let copies = (0..n).map(|number| copy(&written, dir, number)).collect::<Result<Vec<_>>>()?;
    let before = process::usage()?;
    let latencies = copies.iter().map(|copy| recover(copy)).collect::<Result<Vec<Duration>>>()?;
    let usage = process::usage()?.since(&before);
    let laps = Laps::new(n, latencies.iter().sum(), latencies, usage);
    Ok(Measured::of_laps(name, "", &laps)?.with_steps(STEPS))
}

fn recover(dir: &Path) -> Result<Duration> {
    let runtime = Runtime::new()?;
    let took = runtime.block_on(async {
        let began = Instant::now();
        let (app, reached) = open(dir).await?;
        tokio::time::timeout(HANG, reached).await??;
        let took = began.elapsed();
        drop(app);
        Ok(took)
    });
    runtime.shutdown_background();
    took
}

fn copy(written: &Path, dir: &Path, number: u64) -> Result<PathBuf> {
    let to = dir.join(format!("copy-{number}"));
    std::fs::create_dir(&to)?;
    for file in store_dir::files(written)? {
        let name = file.file_name().expect("it was listed in a folder");
        std::fs::copy(&file, to.join(name))?;
    }
    Ok(to)
}
