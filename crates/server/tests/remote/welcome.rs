//! Being taken on, or not.

use std::pin::Pin;

use backstitch::{Backstitch, ErrorKind};
use backstitch_api::worker as api;
use backstitch_api::worker::worker_server::{Worker, WorkerServer};
use futures_util::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use crate::house::House;
use crate::leases::ship;
use crate::net::Net;
use crate::world::{Effects, Gate};

/// A server that speaks another protocol, and says so in one way or the other.
enum Stranger {
    Refuses,
    Welcomes,
}

#[tonic::async_trait]
impl Worker for Stranger {
    type WorkStream = Pin<Box<dyn Stream<Item = Result<api::FromServer, Status>> + Send>>;

    async fn work(
        &self,
        _: Request<Streaming<api::FromWorker>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        match self {
            Stranger::Refuses => Err(Status::failed_precondition("this server speaks 8 to 9")),
            Stranger::Welcomes => {
                let welcome =
                    api::Welcome { protocol: 9, lease_us: 1_000_000, ..api::Welcome::default() };
                let message = Some(api::from_server::Message::Welcome(welcome));
                let said = futures_util::stream::iter([Ok(api::FromServer { message })]);
                Ok(Response::new(Box::pin(said)))
            }
        }
    }

    async fn journal(
        &self,
        _: Request<api::JournalRequest>,
    ) -> Result<Response<api::JournalPage>, Status> {
        Err(Status::unimplemented("nothing is leased here"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_of_another_protocol_is_told_of_with_the_way_out() {
    for (stranger, says) in [(Stranger::Refuses, "8 to 9"), (Stranger::Welcomes, "protocol 9")] {
        let net = Net::new();
        let arriving = futures_util::stream::unfold(net.listen(), |mut arriving| async {
            arriving.recv().await.map(|arrived| (arrived, arriving))
        });
        let service = WorkerServer::new(stranger);
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(arriving));
        let builder = Backstitch::open_through(net.channel()).register(ship(&Effects::default()));
        let error = builder.run().await.err().expect("it is not taken on");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains("update"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_an_error_at_once() {
    let net = Net::new();
    let builder = Backstitch::open_through(net.channel()).register(ship(&Effects::default()));
    let error = builder.run().await.err().expect("there is no server");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_cannot_accept_of_a_worker_is_told() {
    let house = House::new().await;
    let error = Backstitch::open_through(house.net.channel())
        .register(ship(&house.effects))
        .state(Gate::closed())
        .slots(0)
        .run()
        .await
        .err()
        .expect("it is not taken on");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("slots"), "{error}");
}

#[tokio::test]
async fn a_worker_without_workflows_is_told_to_register_one() {
    let house = House::new().await;
    let error = Backstitch::open_through(house.net.channel()).run().await;
    let error = error.err().expect("it is not taken on");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("`register` one"), "{error}");
}

/// It speaks HTTP/1, as most do.
async fn web_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.expect("it is open");
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn what_is_no_backstitch_server_is_told_of() {
    let url = web_server().await;
    let worker = Backstitch::open(&url).register(ship(&Effects::default())).run().await;
    let caller = Backstitch::connect(&url).await;
    for error in [worker.err().expect("not taken on"), caller.err().expect("not there")] {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        let words = "what answers there is no Backstitch server; look at the address";
        assert!(error.to_string().contains(words), "{error}");
    }
}
