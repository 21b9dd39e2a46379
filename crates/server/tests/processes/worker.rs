//! The worker process: this test binary, started once more in a role.

use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use backstitch::{Backstitch, Ctx, FailureExt, Result, StepCtx, msg, workflow};

use tokio::signal::unix::{SignalKind, signal};

use crate::effects::Effects;
use crate::scene::Scene;
use crate::soak::errand;

const SERVER: &str = "BACKSTITCH_TEST_WORKS_FOR";
const FOLDER: &str = "BACKSTITCH_TEST_FOLDER";

/// Books, then works until its gate is open, then ends well, or fails if its id begins with `bad`.
#[workflow]
pub async fn job(ctx: Ctx, id: String) -> Result<u32> {
    let book = ctx.step("book", {
        let id = id.clone();
        async move |s: StepCtx| does(&s, "book", &id)
    });
    book.rollback({
        let id = id.clone();
        async move |u| {
            let key = u.idempotency_key().to_string();
            u.state::<Effects>().add("unbook", &id, &key, u.fence());
            Ok(())
        }
    })
    .await?;
    let work = ctx.step("work", {
        let id = id.clone();
        async move |s: StepCtx| {
            does(&s, "work", &id)?;
            s.state::<Effects>().pass_gate(&id).await;
            does(&s, "worked", &id)
        }
    });
    work.timeout("1h").await?;
    match id.starts_with("bad") {
        true => Err(msg("no").permanent()),
        false => Ok(7),
    }
}

fn does(s: &StepCtx, what: &str, id: &str) -> Result<()> {
    s.state::<Effects>().add(what, id, &s.idempotency_key().to_string(), s.fence());
    Ok(())
}

/// A worker process. It is killed when this is dropped.
pub struct Worker {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Begins it; it need not have reached its server yet.
    pub fn begin(scene: &Scene) -> Worker {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["worker::the_worker_process", "--exact", "--nocapture"])
            .env(SERVER, scene.url())
            .env(FOLDER, scene.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut worker = Worker { child, said };
        let works = worker.said.by_ref().map_while(|line| line.ok()).any(|line| line == "works");
        assert!(works, "the worker has trouble");
        worker
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Stops it in good order.
    pub fn stop(mut self) {
        self.signal("-TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test: what the worker process does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worker_process() {
    let Ok(url) = std::env::var(SERVER) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let builder = Backstitch::open(url).state(Effects::new(&folder)).register(job).register(errand);
    let mut stopped = signal(SignalKind::terminate()).unwrap();
    let app = builder.run().await.unwrap();
    println!("\nworks");
    // In a thread of its own: nobody waits for it at the end.
    let (parent, parent_is_dead) = tokio::sync::oneshot::channel();
    std::thread::spawn(|| parent.send(std::io::stdin().read_line(&mut String::new())));
    tokio::select! {
        biased;
        _ = stopped.recv() => {}
        _ = parent_is_dead => {}
    }
    app.shutdown().await.unwrap();
}
