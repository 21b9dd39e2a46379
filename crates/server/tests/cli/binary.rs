//! Running the binary.

use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of a test's own, which goes with it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let name = format!("backstitch-cli-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the folder takes folders");
        Folder(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `sqlite:PATH` of a file in it.
    pub fn store(&self, name: &str) -> String {
        format!("sqlite:{}", self.file(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The binary, in an environment that says nothing to it.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backstitch"));
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BACKSTITCH_") {
            command.env_remove(name);
        }
    }
    command
}

/// What it has printed, and its exit code.
#[derive(Debug)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub exit: i32,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            out: String::from_utf8(output.stdout).expect("it is text"),
            err: String::from_utf8(output.stderr).expect("it is text"),
            exit: output.status.code().expect("it was not killed"),
        }
    }
}

/// Runs it to its end.
pub fn run(folder: &Folder, arguments: &[&str]) -> Said {
    command(&folder.0).args(arguments).output().expect("it runs").into()
}

/// A server that runs; killed if it is not stopped.
pub struct Running {
    child: Child,
    /// A file: nobody reads a pipe while the server runs, and of a full one lines are lost.
    log: PathBuf,
    out: BufReader<ChildStdout>,
    pub url: String,
}

impl Running {
    /// Begins a server and waits until it says where it listens.
    pub fn begin(command: Command) -> Running {
        static LOGS: AtomicU32 = AtomicU32::new(0);
        let number = LOGS.fetch_add(1, Ordering::Relaxed);
        let folder = command.get_current_dir().expect("it has one").to_owned();
        Running::begin_with_log(command, folder.join(format!("server-{number}.log")))
    }

    /// The same, with its log in this file.
    pub fn begin_with_log(command: Command, log: PathBuf) -> Running {
        let file = std::fs::File::create(&log).expect("it can be written");
        Running::begin_with(command, file.into(), log)
    }

    /// The same, with its log in a pipe.
    pub fn begin_with_pipe(command: Command) -> (Running, PipeReader) {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        (Running::begin_with(command, writer.into(), "/dev/null".into()), reader)
    }

    fn begin_with(mut command: Command, stderr: Stdio, log: PathBuf) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("it runs");
        let mut out = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it is text");
        let url = line.split(' ').find(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("{line:?} says no address")).to_owned();
        Running { child, log, out, url }
    }

    pub fn dev(folder: &Folder, store: &str) -> Running {
        let mut dev = command(&folder.0);
        dev.args(["dev", "--listen", "127.0.0.1:0", "--log", "trace", "--store", store]);
        Running::begin(dev)
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it.
    pub fn ask(&self, folder: &Folder, arguments: &[&str]) -> Said {
        let asked = command(&folder.0).args(["--server", &self.url]).args(arguments).output();
        asked.expect("it runs").into()
    }

    /// Sends it a GET, and waits for the end of the answer.
    pub fn get(&self, path: &str) {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it reads");
        stream.read_to_end(&mut Vec::new()).expect("it answers");
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.id().to_string()]).status();
        assert!(sent.expect("there is a kill").success());
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("it is text");
        let exit = self.child.wait().expect("it ends").code().unwrap_or(-1);
        let err = std::fs::read_to_string(&self.log).expect("it is text");
        Said { out: rest, err, exit }
    }

    /// Stops it in good order.
    pub fn stop(self) -> Said {
        self.signal("-TERM");
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
