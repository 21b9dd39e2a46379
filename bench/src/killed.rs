//! A process is killed with many workflows in flight; the next one brings them to their ends.
//!
//! Each step appends a line with its idempotency key to a file outside of the store. That file is
//! how the parent sees that the child is in the middle, and the witness in the end: of every step
//! there is an effect (nothing was lost), under one key, however often the step ran.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use backstitch::{App, Ctx, Handle, StepCtx, workflow};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::closed_loop::{self, Laps};
use crate::report::{Measured, ms};
use crate::{Result, process, store_dir};

const STEPS: [&str; 3] = ["reserve", "charge", "ship"];

/// Starts that the child has under way at a time.
const STARTS: usize = 64;

/// How often the parent looks how far the child is.
const LOOK: Duration = Duration::from_micros(500);

/// Longer than the child takes for all; only a hang gets there.
const HANG: Duration = Duration::from_secs(60);

const SIGKILL: i32 = 9;

/// What the steps work on.
struct Outside {
    effects: File,
    /// Steps begin when all workflows are started, so that all of them are in flight.
    go: watch::Receiver<bool>,
}

#[workflow]
async fn three_effects(ctx: Ctx, number: u64) -> backstitch::Result<u64> {
    for step in STEPS {
        let effect = async move |s: StepCtx| {
            let outside = s.state::<Outside>();
            outside.go.clone().wait_for(|go| *go).await?;
            let line = format!("{number} {step} {}\n", s.idempotency_key());
            (&outside.effects).write_all(line.as_bytes())?;
            Ok(())
        };
        ctx.step(step, effect).await?;
    }
    Ok(number)
}

async fn open(dir: &Path, go: watch::Receiver<bool>) -> Result<App> {
    let effects = OpenOptions::new().append(true).create(true).open(effects_path(dir))?;
    let outside = Outside { effects, go };
    Ok(store_dir::open(dir)?.state(outside).register(three_effects).run().await?)
}

/// The child process: runs the workflows, and waits for its end.
pub fn run_until_killed(dir: &Path, n: u64) -> Result<()> {
    Runtime::new()?.block_on(async {
        let (go, when_to_go) = watch::channel(false);
        let app = open(dir, when_to_go).await?;
        let start = move |number| {
            let app = app.clone();
            async move { Ok(app.start(three_effects, id(number), number).await?) }
        };
        closed_loop::each(0..n, STARTS, &start).await?;
        go.send_replace(true);
        std::future::pending().await
    })
}

/// The time counts from before the store is opened; a latency is that of one workflow's end.
pub fn measure(name: &str, runtime: &Runtime, dir: &Path, n: u64) -> Result<Measured> {
    let path = effects_path(dir);
    let all = n * STEPS.len() as u64;
    let child = Command::new(std::env::current_exe()?)
        .args(["run-until-killed", "--n", &n.to_string(), "--dir"])
        .arg(dir)
        .spawn()?;
    kill_in_the_middle(child, &path, all / 2)?;
    let at_the_kill = Effects::read(&path)?;
    let before = process::usage()?;
    let (recovery, latencies) = runtime.block_on(recover(dir, n))?;
    let usage = process::usage()?.since(&before);
    let effects = Effects::read(&path)?;
    if effects.steps != all || effects.distinct != all {
        return Err(format!(
            "of {all} steps {} had an effect, under {} keys",
            effects.steps, effects.distinct
        )
        .into());
    }
    let laps = Laps::new(n, recovery, latencies, usage);
    Ok(Measured::of_laps(name, "latency: from open to the end of one", &laps)?
        .with_amount("recovery_ms", "from open to the end of all, ms", ms(recovery))
        .with_count("effects_at_kill", "effects at the kill", at_the_kill.lines)
        .with_count("effects", "effects", effects.lines)
        .with_count("distinct_effects", "distinct effects", effects.distinct)
        .with_count("repeated_effects", "repeated effects", effects.lines - effects.distinct))
}

fn kill_in_the_middle(mut child: Child, path: &Path, effects: u64) -> Result<()> {
    let began = Instant::now();
    while !path.exists() || Effects::read(path)?.lines < effects {
        if let Some(status) = child.try_wait()? {
            return Err(format!("the process that is to be killed ended with {status}").into());
        }
        if began.elapsed() > HANG {
            child.kill()?;
            return Err("the process that is to be killed hangs".into());
        }
        std::thread::sleep(LOOK);
    }
    child.kill()?;
    let status = child.wait()?;
    if status.signal() != Some(SIGKILL) {
        return Err(format!("the process ended with {status} before it was killed").into());
    }
    if Effects::read(path)?.lines >= effects * 2 {
        return Err("the kill came after the last effect; more workflows (--n) take longer".into());
    }
    Ok(())
}

async fn recover(dir: &Path, n: u64) -> Result<(Duration, Vec<Duration>)> {
    let (_go, at_once) = watch::channel(true);
    let began = Instant::now();
    let app = open(dir, at_once).await?;
    let waiter = app.clone();
    let wait = move |number| {
        let app = waiter.clone();
        async move {
            let handle: Handle<u64> = app.handle(&id(number)).await?;
            assert_eq!(handle.result().await?, number, "each workflow gets its own result");
            Ok(began.elapsed())
        }
    };
    let latencies = closed_loop::each(0..n, n as usize, &wait).await?;
    let recovery = began.elapsed();
    app.shutdown().await?;
    Ok((recovery, latencies))
}

fn id(number: u64) -> String {
    format!("order-{number}")
}

fn effects_path(dir: &Path) -> PathBuf {
    dir.join("effects.txt")
}

/// What the file of the effects says.
struct Effects {
    lines: u64,
    /// Different keys.
    distinct: u64,
    /// Different steps of different workflows.
    steps: u64,
}

impl Effects {
    fn read(path: &Path) -> Result<Effects> {
        let text = std::fs::read_to_string(path)?;
        let lines: Vec<_> = text.lines().filter_map(|line| line.rsplit_once(' ')).collect();
        let steps: HashSet<_> = lines.iter().map(|(step, _)| step).collect();
        let keys: HashSet<_> = lines.iter().map(|(_, key)| key).collect();
        let count = |n| n as u64;
        Ok(Effects {
            lines: count(lines.len()),
            distinct: count(keys.len()),
            steps: count(steps.len()),
        })
    }
}
