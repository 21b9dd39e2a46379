//! Executions come and go; what they took is given back (T14).

mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstitch::engine::ManualClock;
use backstitch::{App, Backstitch, Ctx, Result, Status, msg, workflow};
use world::{EPOCH_US, eventually};

const ROUNDS: usize = 24;

/// From here on nothing may grow any more.
const WARM: usize = 8;

const AT_A_TIME: usize = 60;

const KEPT: Duration = Duration::from_secs(3_600);

/// Removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every third fails at its second step and goes back; every third waits for an event.
#[workflow]
async fn passer_by(ctx: Ctx, number: usize) -> Result<usize> {
    let note = "x".repeat(2_000);
    ctx.step("take", async move |_s| Ok(note)).rollback(async |_u| Ok(())).await?;
    if number % 3 == 1 {
        ctx.wait_event::<u32>("go", "go", "1d").await?;
    }
    if number % 3 == 2 {
        let no = async |_s| Err::<(), _>(backstitch::FailureExt::permanent(msg("no")));
        ctx.step("refuse", no).await?;
    }
    Ok(number)
}

/// What the process and its files hold at an instant.
#[derive(Debug)]
struct Held {
    file_bytes: u64,
    memory_bytes: u64,
}

fn held(file: &Path) -> Held {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
    let log = file.with_extension("db-wal");
    // Resident pages; 0 where the system does not say.
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    Held { file_bytes: length(file) + length(&log), memory_bytes: pages.unwrap_or(0) * 4_096 }
}

async fn round(app: &App, clock: &ManualClock, round: usize) {
    let mut handles = Vec::new();
    for number in 0..AT_A_TIME {
        let id = format!("{round}-{number}");
        handles.push((number, app.start(passer_by, id, number).await.unwrap()));
    }
    for (number, handle) in handles {
        if number % 3 == 1 {
            handle.send_event("go", &7_u32).await.unwrap();
        }
        let wanted = if number % 3 == 2 { Status::Failed } else { Status::Succeeded };
        assert_eq!(handle.closed().await.unwrap(), wanted);
    }
    clock.advance(KEPT);
    eventually("all have expired", async || app.list(1).await.unwrap().is_empty()).await;
}

#[tokio::test]
async fn t14_executions_that_come_and_go_leave_neither_rows_nor_bytes() {
    let folder = std::env::temp_dir().join(format!("backstitch-soak-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let folder = Folder(folder);
    let file = folder.0.join("work.db");
    let clock = ManualClock::new(EPOCH_US);
    let builder = Backstitch::open(format!("sqlite:{}", file.display()));
    let builder = builder.clock(Arc::new(clock.clone())).retention(KEPT).register(passer_by);
    let app = builder.run().await.unwrap();
    let mut warm = None;
    for number in 0..ROUNDS {
        round(&app, &clock, number).await;
        if number == WARM {
            warm = Some(held(&file));
        }
    }
    let (warm, end) = (warm.unwrap(), held(&file));
    assert!(end.file_bytes <= warm.file_bytes * 3 / 2, "{warm:?} and then {end:?}");
    assert!(end.memory_bytes <= warm.memory_bytes + (16 << 20), "{warm:?} and then {end:?}");
    app.shutdown().await.unwrap();
}
