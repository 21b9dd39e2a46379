//! Beginning and stopping a server.

use std::io::{BufRead, BufReader};

use crate::binary::{Folder, Running, command, run};

#[test]
fn signals_stop_a_server_in_good_order_and_it_goes_on_later() {
    let folder = Folder::new("stop");
    let store = folder.store("a.db");
    for signal in ["-TERM", "-INT"] {
        let mut server = command(&folder.0);
        server.args(["server", "--store", &store, "--listen", "127.0.0.1:0"]);
        let server = Running::begin(server);
        let id = format!("a{signal}");
        let start = ["start", "else", "--workflow-version", "1", "--json", "--", &id];
        let started = server.ask(&folder, &start);
        assert_eq!(started.exit, 0, "{started:?}");
        let early = server.ask(&folder, &["result", "--wait", "1ms", "--", &id]);
        assert_eq!(early.exit, 5, "{early:?}");
        let says = "is not over: it is pending, waiting for a worker that knows else 1";
        assert!(early.err.contains(says), "{early:?}");
        let unversioned = server.ask(&folder, &["start", "else", "b"]);
        assert_eq!(unversioned.exit, 3, "{unversioned:?}");
        assert!(unversioned.err.contains("--workflow-version"), "{unversioned:?}");
        let shown = server.ask(&folder, &["show", "--", &id]);
        assert!(
            shown.out.ends_with("pending, waiting for a worker that knows else 1\n"),
            "{shown:?}"
        );
        let workers = server.ask(&folder, &["workers"]);
        assert!(workers.out.contains("no workers"), "{workers:?}");
        server.signal(signal);
        let stopped = server.end();
        assert_eq!(stopped.exit, 0, "{stopped:?}");
        assert!(stopped.err.contains("stopping") && stopped.err.contains("stopped"), "{stopped:?}");
    }
    let kept = run(&folder, &["--store", &store, "list"]);
    assert!(kept.out.contains("a-TERM") && kept.out.contains("a-INT"), "{kept:?}");
}

#[test]
fn a_kill_loses_nothing_that_was_acknowledged() {
    let folder = Folder::new("kill");
    let server = Running::dev(&folder, "a.db");
    let input = r#"{"from":"alice","to":"closed","cents":1}"#;
    assert_eq!(server.ask(&folder, &["start", "transfer", "t-1", input]).exit, 0);
    server.signal("-KILL");
    server.end();
    let server = Running::dev(&folder, "a.db");
    let result = server.ask(&folder, &["result", "t-1"]);
    assert_eq!(result.exit, 1, "{result:?}");
    assert!(result.err.contains("everything was undone"), "{result:?}");
    server.stop();
}

#[test]
fn a_log_that_cannot_be_written_is_no_reason_to_stop() {
    let folder = Folder::new("full-log");
    let mut dev = command(&folder.0);
    dev.args(["dev", "--listen", "127.0.0.1:0", "--log", "trace", "--store", "a.db"]);
    let server = Running::begin_with_log(dev, "/dev/full".into());
    let input = r#"{"from":"alice","to":"closed","cents":1}"#;
    assert_eq!(server.ask(&folder, &["start", "transfer", "t-1", input]).exit, 0);
    assert_eq!(server.ask(&folder, &["result", "t-1"]).exit, 1, "it goes on as ever");
    server.signal("-KILL");
}

#[test]
fn a_log_that_nobody_reads_holds_up_nobody() {
    let folder = Folder::new("unread-log");
    let mut dev = command(&folder.0);
    dev.args(["dev", "--listen", "127.0.0.1:0", "--log", "trace", "--store", "a.db"]);
    let (server, mut log) = Running::begin_with_pipe(dev);
    // More than a pipe and the server together keep.
    let path = format!("/{}", "x".repeat(20_000));
    for _ in 0..100 {
        server.get(&path);
    }
    let input = r#"{"from":"alice","to":"closed","cents":1}"#;
    assert_eq!(server.ask(&folder, &["start", "transfer", "t-1", input]).exit, 0);
    assert_eq!(server.ask(&folder, &["result", "t-1"]).exit, 1, "it goes on as ever");
    let mut read = BufReader::new(&mut log).lines().map(|line| line.expect("it is text"));
    assert!(read.any(|line| line.contains("lines of the log were lost here")));
    for _ in 0..100 {
        server.get(&path);
    }
    let stopped = server.stop();
    assert_eq!(stopped.exit, 0, "{stopped:?}");
}

#[test]
fn settings_that_are_no_good_are_refused() {
    let folder = Folder::new("settings");
    std::fs::write(folder.file("bad.toml"), "stroe = \"sqlite:a.db\"\n").expect("it is writable");
    let bad: &[(&[&str], &str)] = &[
        (&["--config", "bad.toml"], "no setting \"stroe\"; perhaps \"store\" is meant"),
        (&["--config", "none.toml"], "none.toml cannot be read"),
        (&["--listen", "0.0.0.0:0"], "say `backstitch server --insecure` if the network is closed"),
        (&["--stop-grace", "soon"], "--stop-grace is \"soon\""),
        (&["--store", "mysql:x"], "write sqlite:PATH"),
    ];
    for (arguments, says) in bad {
        let said = run(&folder, &[&["server"], *arguments].concat());
        assert_eq!(said.exit, 2, "{said:?}");
        assert!(said.err.contains(says), "{said:?}");
    }
}

#[test]
fn a_flag_counts_more_than_the_environment_and_that_more_than_the_file() {
    let folder = Folder::new("order");
    let file = "store = \"sqlite:file.db\"\nlisten = \"127.0.0.1:0\"\nlog = \"warn\"\n";
    std::fs::write(folder.file("good.toml"), file).expect("it is writable");
    let mut server = command(&folder.0);
    server.args(["server", "--config", "good.toml", "--store", "sqlite:flag.db"]);
    server.env("BACKSTITCH_STORE", "env.db").env("BACKSTITCH_LISTN", "x");
    let stopped = Running::begin(server).stop();
    assert_eq!(stopped.exit, 0, "{stopped:?}");
    assert!(stopped.err.contains("perhaps \"listen\" is meant"), "{stopped:?}");
    assert!(folder.file("flag.db").exists() && !folder.file("env.db").exists());

    let mut server = command(&folder.0);
    server.args(["server", "--config", "good.toml"]).env("BACKSTITCH_STORE", "env.db");
    Running::begin(server).stop();
    assert!(folder.file("env.db").exists() && !folder.file("file.db").exists());
}

#[test]
fn a_server_that_others_can_reach_says_what_that_means() {
    let folder = Folder::new("insecure");
    for (listen, is_told) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let mut server = command(&folder.0);
        server.args(["server", "--store", "sqlite:a.db", "--insecure", "--listen", listen]);
        let stopped = Running::begin(server).stop();
        let told = stopped.err.contains("WARN") && stopped.err.contains("whoever reaches");
        assert_eq!((stopped.exit, told), (0, is_told), "{stopped:?}");
    }
}

#[test]
fn an_address_and_a_store_that_are_taken_are_told() {
    let folder = Folder::new("taken");
    let server = Running::dev(&folder, "a.db");
    let address = server.url.trim_start_matches("http://").to_owned();
    let said = run(&folder, &["server", "--store", "sqlite:b.db", "--listen", &address]);
    assert_eq!(said.exit, 4, "{said:?}");
    assert!(said.err.contains("cannot be listened on"), "{said:?}");
    let said = run(&folder, &["server", "--store", "sqlite:a.db", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.exit, 4, "{said:?}");
    assert!(said.err.contains("a.db"), "{said:?}");
    server.stop();
}
