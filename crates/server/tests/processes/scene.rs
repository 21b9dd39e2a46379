//! One server with a folder of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::binary::{Folder, Running, Said, command};
use crate::effects::Effects;

/// Nothing here takes so long.
pub const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

/// How long a worker of these tests may be silent.
pub const LEASE: Duration = Duration::from_millis(1_500);

pub struct Scene {
    server: Option<Running>,
    url: String,
    pub effects: Effects,
    // Goes last: the server writes into it.
    folder: Folder,
}

impl Scene {
    pub fn new(name: &str) -> Scene {
        let folder = Folder::new(name);
        let effects = Effects::new(&folder.0);
        let server = begin(&folder, "127.0.0.1:0");
        let url = server.url.clone();
        Scene { server: Some(server), url, effects, folder }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// `kill -9` for the server.
    pub fn kill_server(&mut self) {
        let server = self.server.take().expect("it runs");
        server.signal("-KILL");
        server.end();
    }

    /// The next server, on the same store and the same port.
    pub fn next_server(&mut self) {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        self.server = Some(begin(&self.folder, &address));
    }

    pub fn stop_server(&mut self) -> Said {
        self.server.take().expect("it runs").stop()
    }

    pub fn ask(&self, arguments: &[&str]) -> Said {
        self.server.as_ref().expect("it runs").ask(&self.folder, arguments)
    }

    /// The process of the server.
    pub fn server_process(&self) -> u32 {
        self.server.as_ref().expect("it runs").id()
    }

    /// How many workers the server knows.
    pub fn workers(&self) -> usize {
        let said = self.ask(&["--json", "workers"]);
        assert_eq!(said.exit, 0, "{said:?}");
        let shown: serde_json::Value = serde_json::from_str(&said.out).expect("it is JSON");
        shown["workers"].as_array().unwrap_or_else(|| panic!("{shown}")).len()
    }

    pub fn start(&self, id: &str) {
        let input = format!("{id:?}");
        let said = self.ask(&["start", "job", id, &input, "--workflow-version", "1"]);
        assert_eq!(said.exit, 0, "{said:?}");
    }

    pub fn status(&self, id: &str) -> String {
        let said = self.ask(&["--json", "show", id]);
        assert_eq!(said.exit, 0, "{said:?}");
        let shown: serde_json::Value = serde_json::from_str(&said.out).expect("it is JSON");
        shown["status"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
    }

    pub fn until_status(&self, id: &str, status: &str) {
        eventually(&format!("{id} is {status}"), || self.status(id) == status);
    }

    /// Waits until an attempt of the work of `id` has begun, the `n`th in all.
    pub fn until_works(&self, id: &str, n: usize) {
        eventually(&format!("{id} works"), || self.effects.of("work", id).len() >= n);
    }
}

fn begin(folder: &Folder, listen: &str) -> Running {
    let mut server = command(&folder.0);
    let lease = format!("{}ms", LEASE.as_millis());
    server.args(["server", "--listen", listen, "--lease", &lease, "--log", "debug"]);
    Running::begin(server)
}

/// Other processes have no clock that could be stopped.
pub fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        // tidy: allow-sleep the other side is another process
        std::thread::sleep(LOOK);
    }
}
