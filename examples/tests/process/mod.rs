//! Processes of the examples, and folders for their files.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

/// Longer than any run takes; only a hang gets there.
const HANG: Duration = Duration::from_secs(60);

/// A process that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    #[cfg(unix)]
    pub fn was_aborted(&self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        const SIGABRT: i32 = 6;
        self.status.signal() == Some(SIGABRT)
    }

    #[cfg(not(unix))]
    pub fn was_aborted(&self) -> bool {
        !self.status.success()
    }
}

/// Runs an example.
pub fn run(example: &str, flags: &[&str]) -> Ended {
    ended(command(example, flags))
}

/// Runs it where `folder` is the place for temporary files.
pub fn run_in(folder: &Folder, example: &str, flags: &[&str]) -> Ended {
    let mut command = command(example, flags);
    command.env("TMPDIR", folder.path()).env("TMP", folder.path());
    ended(command)
}

/// Runs it with a variable in its environment.
pub fn run_with(example: &str, variable: &str, value: &str) -> Ended {
    let mut command = command(example, &[]);
    command.env(variable, value);
    ended(command)
}

/// Runs it and kills it (SIGKILL) as soon as it has printed so many lines. It may be faster than
/// the signal, and end by itself.
pub fn kill_after_lines(lines: usize, example: &str, flags: &[&str]) {
    let mut child = command(example, flags).stdout(Stdio::piped()).spawn().expect("it starts");
    // Open until the end: nobody dies of a broken pipe instead.
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let seen = stdout.by_ref().lines().take(lines).filter(|line| line.is_ok()).count();
    child.kill().expect("it is ours");
    let status = child.wait().expect("it is ours");
    assert_eq!(seen, lines, "it ended after {seen} lines: {status}");
}

fn command(example: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(binary(example));
    command.args(flags).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

fn ended(mut command: Command) -> Ended {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (id, (sender, receiver)) = (child.id(), mpsc::channel());
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(HANG);
    let output = output.unwrap_or_else(|_| panic!("process {id} hangs: {command:?}"));
    let Output { status, stdout, stderr } = output.expect("its output is read");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    Ended { code: status.code(), status, stdout: text(stdout), stderr: text(stderr) }
}

/// Cargo builds the examples of a package before it runs its tests, beside the folder of the tests.
fn binary(example: &str) -> PathBuf {
    let way_out = "run `cargo test -p examples` without naming a target, or \
                   `cargo build -p examples --examples` before";
    built(&format!("examples/{example}"), way_out)
}

/// What is built with this profile.
fn built(name: &str, way_out: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows itself");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("it is in target/…/deps");
    let binary = profile.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "{} is not there; {way_out}", binary.display());
    binary
}

/// A server with its store in a folder; killed at the end.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    /// `backstitch` with these arguments, which begin with what it is to be: `server`, or `dev`.
    pub fn begin(folder: &Folder, arguments: &[&str]) -> Server {
        let way_out = "run `cargo test --workspace`, or `cargo build -p backstitch-server` before";
        let mut server = Command::new(built("backstitch", way_out));
        let store = format!("sqlite:{}/server.db", folder.path());
        server.args(arguments).args(["--store", &store, "--listen", "127.0.0.1:0"]);
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = server.spawn().expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("{line:?} says no address")).to_owned();
        Server { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What each line says.
pub fn json_lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in: {line}"));
    text.lines().map(parse).collect()
}

/// A folder of one test, removed with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let name = format!("examples-{}-{name}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        // What a failed run with the same process id may have left.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the folder of the tests is ours");
        Folder(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("it is text")
    }

    /// An empty file in it.
    pub fn file(&self, name: &str) -> String {
        fs::write(self.0.join(name), "").expect("the folder is ours");
        format!("{}/{name}", self.path())
    }

    /// What is in it.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is ours");
        let name =
            |entry: std::io::Result<fs::DirEntry>| entry.expect("it is readable").file_name();
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Kept for a look if the test fails.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
