//! Soaks: callers start executions and wait for their results without a pause, while every few seconds a worker is
//! ended, in turn by `kill -9` and by SIGTERM, and another one begun; or the server is. In the end nothing is stuck,
//! what was done outside is right, and the server has not grown.

mod errands;
mod memory;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use backstitch::{Backstitch, Client, Error, ErrorKind};
use tokio::task::JoinSet;

use crate::effects::{Effect, Effects};
use crate::scene::{PATIENCE, Scene, eventually};
use crate::worker::Worker;

use errands::Kind;
pub use errands::errand;
use memory::Memory;

/// How long it takes, in seconds: CI gives it more.
const SECONDS: &str = "BACKSTITCH_SOAK_SECONDS";
const SECONDS_DEFAULT: u64 = 10;

/// How often a worker is ended.
const RESTART_EVERY: Duration = Duration::from_secs(3);

/// How often the server is killed.
const SERVER_EVERY: Duration = Duration::from_millis(700);

/// How many executions are under way at a time. Several are always in the middle of a step.
const CALLERS: usize = 24;

/// How long a caller waits before it asks again for a server that is away.
const LOOK: Duration = Duration::from_millis(10);

/// What each caller sends with its first event, in bytes. It goes through the pages of the inbox and of the
/// journal, so that SQLite's cache is full before the memory is judged.
const FIRST_EVENT_BYTES: usize = 160 * 1024;

/// What the server may grow from the second quarter of the time to the last one, in KiB.
///
/// It keeps nothing of an execution that is closed. What grows by itself is the cache of SQLite's writer, up to 4 MiB:
/// by some 55 KiB a second, if nothing fills it. With a full one, 24 KiB were seen in 60 s and 2,600 executions; the
/// rest is for allocators of machines with more cores. 2 KiB kept of each execution would be noticed.
const GROWTH_KIB_MAX: u64 = 2 * 1024;

/// Every execution that a caller has started, with what it was.
type Started = BTreeMap<String, Kind>;

/// Whether callers find their server at any time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    Stays,
    ComesAndGoes,
}

/// Asks until there is an answer, if the server may be away.
async fn heard<T, A>(server: Server, ask: impl Fn() -> A) -> Result<T, Error>
where
    A: IntoFuture<Output = Result<T, Error>>,
{
    loop {
        match ask().await {
            Err(error) if server == Server::ComesAndGoes && is_away(&error) => {
                // tidy: allow-sleep the other side is another process
                tokio::time::sleep(LOOK).await;
            }
            answer => return answer,
        }
    }
}

fn is_away(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Stopped | ErrorKind::Unavailable)
}

/// Starts one execution after the other until `end`, and looks at the outcome of each.
async fn calls(client: Client, server: Server, caller: usize, end: Instant) -> Started {
    let mut started = Started::new();
    for n in 0.. {
        if Instant::now() >= end {
            break;
        }
        let kind = Kind::ALL[(caller + n) % Kind::ALL.len()];
        let id = format!("{}-{caller}-{n}", kind.name());
        let handle = heard(server, || client.start(errand, &id, id.clone())).await.unwrap();
        if kind == Kind::Waits {
            // Every other event comes when it is waited for; the rest at once.
            if n % 2 == 0 {
                let stage = || {
                    let mut stage = handle.follow("stage");
                    async move { stage.next().await }
                };
                assert_eq!(heard(server, stage).await.unwrap(), Some(1), "{id}");
            }
            let bytes = if n < Kind::ALL.len() { FIRST_EVENT_BYTES } else { 1 };
            let go = "x".repeat(bytes);
            heard(server, || handle.send_event("go", &go).id("1")).await.unwrap();
        }
        if kind == Kind::Works {
            // Nobody waits for them: they come in while its body is at work, also to a server that does not know
            // yet at which worker.
            for event in ["1", "2", "3", "4", "5"] {
                let sent = heard(server, || handle.send_event("go", "x").id(event)).await;
                if let Err(error) = sent {
                    assert_eq!(error.kind(), ErrorKind::Refused, "only when it is over: {error}");
                    break;
                }
                // tidy: allow-sleep others are at work meanwhile
                tokio::time::sleep(LOOK * 3).await;
            }
        }
        match (kind, handle.result().await) {
            (Kind::Fails, Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::Failed, "{id}: {error}");
                assert!(error.to_string().ends_with("(everything was undone)"), "{id}: {error}");
            }
            (Kind::Succeeds | Kind::Sleeps | Kind::Waits | Kind::Works, Ok(said)) => {
                assert_eq!(said, id);
            }
            (_, other) => panic!("{id}: {other:?}"),
        }
        started.insert(id, kind);
    }
    started
}

/// Ends workers until `end`. Says how many, and which are left.
fn restarts(scene: &Scene, memory: &mut Memory, end: Instant) -> (u32, VecDeque<Worker>) {
    let mut workers = VecDeque::from([Worker::begin(scene), Worker::begin(scene)]);
    let mut ended = 0;
    loop {
        memory.watch_until(end.min(Instant::now() + RESTART_EVERY));
        if Instant::now() >= end {
            return (ended, workers);
        }
        let mut oldest = workers.pop_front().expect("there are two");
        match ended % 2 {
            0 => oldest.kill(),
            _ => oldest.stop(),
        }
        workers.push_back(Worker::begin(scene));
        ended += 1;
    }
}

/// What the callers have started, once they are all through.
async fn through(callers: JoinSet<Started>, client: &Client) -> Started {
    let all = tokio::time::timeout(PATIENCE, callers.join_all()).await;
    let Ok(all) = all else {
        let runs = client.list(usize::MAX).await.unwrap();
        let open: Vec<_> = runs.into_iter().filter(|run| !run.status.is_closed()).collect();
        panic!("nobody ends workers any more, and still open are {open:#?}");
    };
    all.into_iter().flatten().collect()
}

/// Nothing is open, blocked or listed, and every execution is there once, with its outcome.
async fn check_what_is_kept(started: &Started, client: &Client) {
    let runs = client.list(usize::MAX).await.unwrap();
    let kept: BTreeMap<&str, &str> =
        runs.iter().map(|run| (run.id.as_str(), run.status.name())).collect();
    let wanted: BTreeMap<&str, &str> =
        started.iter().map(|(id, kind)| (id.as_str(), kind.status())).collect();
    assert_eq!(runs.len(), started.len(), "one run each");
    assert_eq!(kept, wanted);
    assert_eq!(client.attention(100).await.unwrap(), []);
}

/// Says how often something was done again.
fn check_what_was_done(started: &Started, effects: &Effects) -> usize {
    let mut done: HashMap<String, Vec<Effect>> = HashMap::new();
    for effect in effects.all() {
        done.entry(effect.id.clone()).or_default().push(effect);
    }
    assert!(done.keys().all(|id| started.contains_key(id)), "an effect of nothing");
    let of = |id: &String| done.get(id).map_or(&[][..], Vec::as_slice);
    started.iter().map(|(id, kind)| errands::check(id, *kind, of(id))).sum()
}

fn seconds() -> u64 {
    std::env::var(SECONDS).map_or(SECONDS_DEFAULT, |s| s.parse().expect("a number"))
}

#[test]
fn p3_p4_p6_workers_come_and_go_and_nothing_is_stuck_or_lost_and_the_server_does_not_grow() {
    let seconds = seconds();
    let scene = Scene::new("soak");
    let mut memory = Memory::of(scene.server_process());
    let end = Instant::now() + Duration::from_secs(seconds);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(Backstitch::connect(scene.url())).unwrap();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let calls = calls(client.clone(), Server::Stays, caller, end);
        callers.spawn_on(calls, runtime.handle());
    }
    let (ended, workers) = restarts(&scene, &mut memory, end);
    let started = runtime.block_on(through(callers, &client));

    runtime.block_on(check_what_is_kept(&started, &client));
    let again = check_what_was_done(&started, &scene.effects);
    let kib = memory.second_and_last_quarter_kib();
    println!("{} executions, {ended} workers ended, {again} effects again, {kib:?}", started.len());
    if let Some((second, last)) = kib {
        assert!(last <= second + GROWTH_KIB_MAX, "it has grown from {second} to {last} KiB");
    }
    let kinds: BTreeSet<Kind> = started.values().copied().collect();
    assert_eq!(kinds.len(), Kind::ALL.len(), "only {kinds:?} were begun");
    assert!(ended >= 2 && again > 0, "{ended} workers were ended, {again} effects came again");
    eventually("workers that have gone are forgotten", || scene.workers() == workers.len());
}

/// Workers keep what they run, whatever comes in for it before they have found the next server.
#[test]
fn p1_p8_servers_come_and_go_and_nothing_is_stuck_or_lost() {
    let mut scene = Scene::new("soak-servers");
    let _workers = [Worker::begin(&scene), Worker::begin(&scene)];
    let end = Instant::now() + Duration::from_secs(seconds());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(Backstitch::connect(scene.url())).unwrap();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let calls = calls(client.clone(), Server::ComesAndGoes, caller, end);
        callers.spawn_on(calls, runtime.handle());
    }
    let mut killed = 0;
    while Instant::now() < end {
        // tidy: allow-sleep others are at work meanwhile
        std::thread::sleep(SERVER_EVERY);
        scene.kill_server();
        scene.next_server();
        killed += 1;
    }
    let started = runtime.block_on(through(callers, &client));
    runtime.block_on(check_what_is_kept(&started, &client));
    let again = check_what_was_done(&started, &scene.effects);
    println!("{} executions, {killed} servers killed, {again} effects again", started.len());
    assert!(killed >= 2 && started.len() >= CALLERS, "{killed} servers, {} runs", started.len());
}
