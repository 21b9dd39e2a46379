//! The other process: this test binary, started once more in a role.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use backstitch::{Backstitch, Client};

use crate::busy;
use crate::job::{Place, ask_without_end, job};

/// What the child is to be; only a child has it.
const ROLE: &str = "BACKSTITCH_TEST_ROLE";
/// Where the child finds the store.
const FOLDER: &str = "BACKSTITCH_TEST_FOLDER";

/// A folder with a store in it, which is removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let folder = std::env::temp_dir().join(format!("backstitch-two-{pid}-{count}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("work.db")
    }

    pub fn url(&self) -> String {
        url_in(&self.0)
    }

    /// What bodies and undos look at and write to.
    pub fn place(&self) -> Place {
        Place::new(&self.0)
    }

    /// A guest in this process.
    pub async fn connect(&self) -> Client {
        Backstitch::connect(&self.url()).await.unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn url_in(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("work.db").display())
}

/// Another process. It ends when it is told to, when it is killed, and when this one dies.
pub struct Other {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// A process that owns the store and works.
    pub fn owner(folder: &Folder) -> Other {
        Other::start("owner", folder)
    }

    /// A process that owns the store and has no code.
    pub fn idle_owner(folder: &Folder) -> Other {
        Other::start("idle owner", folder)
    }

    /// A process that starts executions and sends events without end, and says what it was told.
    pub fn guest(folder: &Folder) -> Other {
        Other::start("guest", folder)
    }

    /// A process that asks for all kinds of things for a while, and then ends.
    pub fn busy_guest(folder: &Folder) -> Other {
        Other::start("busy guest", folder)
    }

    fn start(role: &str, folder: &Folder) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["process::the_other_process", "--exact", "--nocapture"])
            .env(ROLE, role)
            .env(FOLDER, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut other = Other { child, said };
        assert_eq!(other.next_word().as_deref(), Some("opened"), "the {role} has trouble");
        other
    }

    /// The next thing that it says; `None` when it is gone.
    pub fn next_word(&mut self) -> Option<String> {
        self.said
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("said ").map(str::to_owned))
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it in good order.
    pub fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One write per line, so that a death leaves no half of two lines in one.
pub fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\nsaid {word}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Not a test: what the other process does.
#[tokio::test]
async fn the_other_process() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let url = url_in(&folder);
    if role == "guest" || role == "busy guest" {
        let guest = Backstitch::connect(&url).await.unwrap();
        say("opened");
        return if role == "guest" {
            ask_without_end(&guest).await
        } else {
            busy::ask(guest).await
        };
    }
    let builder = Backstitch::open(url).state(Place::new(&folder));
    let builder = if role == "owner" { builder.register(job) } else { builder };
    let app = builder.run().await.unwrap();
    say("opened");
    // Until the parent says so, or is dead.
    let told = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    let _ = told.await;
    app.shutdown().await.unwrap();
}
