//! Lists that are longer than what is printed at a time.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use crate::binary::{Folder, Running, run};

const STUCK: &str =
    r#"{"customer":"c-9","item":"tea","cents":1,"card":"no-refund","town":"Nowhere"}"#;

/// The cursor that a list names at its end.
fn more(out: &str) -> Option<&str> {
    out.lines().last()?.strip_prefix("more: --cursor ")
}

#[test]
fn open_matters_that_are_not_shown_are_named_by_a_cursor() {
    let folder = Folder::new("matters");
    let store = folder.store("a.db");
    let server = Running::dev(&folder, &store);
    for id in ["o-1", "o-2"] {
        assert_eq!(server.ask(&folder, &["start", "fulfil", id, STUCK]).exit, 0);
        assert_eq!(server.ask(&folder, &["result", id]).exit, 1, "it is stuck");
    }
    let as_guest = |arguments: &[&str]| run(&folder, &[&["--store", &store], arguments].concat());
    let first = server.ask(&folder, &["attention", "--limit", "1"]);
    assert!(first.out.contains("o-1") && !first.out.contains("o-2"), "{first:?}");
    let cursor = more(&first.out).unwrap_or_else(|| panic!("there is more: {first:?}"));
    let look = ["attention", "--limit", "2", "--cursor", cursor];
    let rest = server.ask(&folder, &look);
    assert!(rest.out.contains("o-2") && !rest.out.contains("o-1"), "{rest:?}");
    assert_eq!(more(&rest.out), None, "{rest:?}");
    assert_eq!(rest.out, as_guest(&look).out);
    server.stop();
}

/// Gives one answer after the other, and tells in the end what was asked for.
fn canned(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let url = format!("http://{}", listener.local_addr().expect("it has one"));
    let served = thread::spawn(move || {
        let answer = |body: String| {
            let (stream, _) = listener.accept().expect("it is asked");
            let head: Vec<String> = BufReader::new(&stream)
                .lines()
                .map(|line| line.expect("it is text"))
                .take_while(|line| !line.is_empty())
                .collect();
            let head_of_answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
            write!(&stream, "{head_of_answer} {}\r\n\r\n{body}", body.len()).expect("it is read");
            head[0].clone()
        };
        answers.into_iter().map(answer).collect()
    });
    (url, served)
}

#[test]
fn a_filter_that_fits_few_of_many_goes_on_until_it_has_found_them() {
    let folder = Folder::new("filter");
    let summary = |id: &str| {
        format!(
            r#"{{"namespace":"default","id":"{id}","run_id":"r","workflow":"w","version":"1",
            "status":"failed","created_at":"2026-01-31T12:00:00Z","closed_at":null}}"#
        )
    };
    let page = |ids: &[&str], next: &str| {
        let executions: Vec<String> = ids.iter().map(|id| summary(id)).collect();
        format!(r#"{{"executions":[{}],"next_cursor":{next}}}"#, executions.join(","))
    };
    let pages = || vec![page(&[], "\"30\""), page(&["a"], "\"20\""), page(&["b", "c"], "\"10\"")];
    let (url, served) = canned(pages());
    let list = ["--server", &url, "list", "--status", "failed", "--limit", "3"];
    let table = run(&folder, &list);
    assert!(["a ", "b ", "c "].iter().all(|id| table.out.contains(id)), "{table:?}");
    assert_eq!(more(&table.out), Some("10"), "{table:?}");
    let asked = served.join().expect("it serves");
    for (asked, says) in asked.iter().zip(["limit=3", "cursor=30&limit=3", "cursor=20&limit=2"]) {
        assert!(asked.contains("status=failed") && asked.contains(says), "{asked}");
    }

    let (url, served) = canned(vec![page(&[], "\"30\""), page(&["a"], "null")]);
    let json = run(&folder, &["--server", &url, "list", "--json"]);
    assert_eq!(json.out.lines().count(), 1, "one answer: {json:?}");
    assert!(json.out.contains(r#""id":"a""#) && json.out.contains(r#""next_cursor":null"#));
    served.join().expect("it serves");
}
