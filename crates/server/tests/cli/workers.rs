//! Programs that work for the binary, over sockets.

use std::sync::Arc;

use backstitch::{Backstitch, Ctx, StepCtx, Workflow, workflow_fn};
use tokio::sync::{Semaphore, watch};

use crate::binary::{Folder, Running, command};

fn server(folder: &Folder, listen: &str) -> Running {
    let mut server = command(&folder.0);
    server.args(["server", "--store", &folder.store("a.db"), "--listen", listen]);
    Running::begin(server)
}

/// Counts how often its code is begun; its step waits.
fn held(
    begun: &watch::Sender<u32>,
    gate: &Arc<Semaphore>,
) -> impl Workflow<Input = String, Output = String> + use<> {
    let (begun, gate) = (begun.clone(), gate.clone());
    workflow_fn("held", move |ctx: Ctx, name: String| {
        let (begun, gate) = (begun.clone(), gate.clone());
        async move {
            begun.send_modify(|times| *times += 1);
            ctx.step("hold", async move |_: StepCtx| {
                drop(gate.acquire().await.expect("it is never closed"));
                Ok(())
            })
            .await?;
            Ok(format!("Hello, {name}"))
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_works_for_a_server_that_is_killed_and_begun_again_as_if_nothing_had_happened() {
    let folder = Folder::new("workers");
    let first = server(&folder, "127.0.0.1:0");
    let url = first.url.trim().to_owned();
    let (begun, gate) = (watch::Sender::new(0), Arc::new(Semaphore::new(0)));
    let app = Backstitch::open(&url).register(held(&begun, &gate)).run().await.unwrap();
    let client = Backstitch::connect(&url).await.unwrap();
    let handle = client.start(held(&begun, &gate), "a", "Ada".into()).await.unwrap();
    begun.subscribe().wait_for(|times| *times == 1).await.unwrap();
    let workers = first.ask(&folder, &["workers"]);
    assert!(workers.out.contains("held"), "{workers:?}");
    let waiting = tokio::spawn(async move { handle.result().await });
    let address = url.strip_prefix("http://").expect("it is one").to_owned();
    first.signal("-KILL");
    first.end();
    let second = server(&folder, &address);
    gate.add_permits(1);
    assert_eq!(waiting.await.unwrap().unwrap(), "Hello, Ada");
    assert_eq!(*begun.borrow(), 1, "the code was not built anew");
    app.shutdown().await.unwrap();
    client.close().await.unwrap();
    let stopped = second.stop();
    assert_eq!(stopped.exit, 0, "{stopped:?}");
}
