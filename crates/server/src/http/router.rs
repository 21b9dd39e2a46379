//! Which request goes where, and what holds for all of them.

use std::any::Any;
use std::net::SocketAddr;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use backstitch_api::http::Code;
use tower_http::catch_panic::CatchPanicLayer;

use super::answer::Refusal;
use super::limits::{ANSWER_TIME_MAX, HEAD_BYTES_MAX};
use super::{Shared, executions, health, journal, openapi, verbs};
use crate::grpc::{ClientService, WorkerService};

pub(super) fn router(shared: Shared, address: SocketAddr) -> Router {
    let execution = "/v1/executions/{id}";
    let of = |what: &str| format!("{execution}/{what}");
    let hello_time_max = shared.options.limits.hello_time_max;
    let workers = WorkerService::server_within(shared.service.engine().clone(), hello_time_max);
    let callers = ClientService::server(shared.service.engine().clone());
    let router = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/v1/openapi.json", get(openapi::openapi))
        .route("/v1/executions", get(executions::list).post(executions::start))
        .route(execution, get(executions::show).delete(verbs::delete))
        .route(&of("result"), get(executions::result))
        .route(&of("journal"), get(journal::journal))
        .route(&of("timeline"), get(journal::timeline))
        .route(&of("events"), post(verbs::event))
        .route(&of("cancel"), post(verbs::cancel))
        .route(&of("terminate"), post(verbs::terminate))
        .route(&of("rollback"), post(verbs::rollback))
        .route(&of("kill"), post(verbs::kill))
        .route(&of("pause"), post(verbs::pause))
        .route(&of("resume"), post(verbs::resume))
        .route(&of("retry-step"), post(verbs::retry_step))
        .route(&of("retry-undo"), post(verbs::retry_undo))
        .route(&of("waive-undo"), post(verbs::waive_undo))
        .route(&of("set-attributes"), post(verbs::set_attributes))
        .route(&of("restart"), post(verbs::restart))
        .route("/v1/attention", get(health::attention))
        .route("/v1/workers", get(health::workers))
        .route_service("/backstitch.v1.Worker/{method}", workers)
        .route_service("/backstitch.v1.Client/{method}", callers)
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed);
    guarded(router, shared, address)
}

/// What holds for all requests, whatever they ask for.
fn guarded(router: Router<Shared>, shared: Shared, address: SocketAddr) -> Router {
    let router = match address.ip().is_loopback() {
        true => router.layer(from_fn(only_local)),
        false => router,
    };
    router
        .layer(from_fn(head_in_bounds))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(in_time))
        .layer(from_fn_with_state(shared.clone(), until_stopped))
        .with_state(shared)
}

async fn unknown_route(uri: Uri) -> Refusal {
    let detail = format!(
        "there is nothing at {}; GET /v1/openapi.json says what there is (an id in a path is escaped, \
         also its slashes)",
        uri.path()
    );
    Refusal::new(Code::UnknownRoute, detail)
}

async fn method_not_allowed(method: Method, uri: Uri) -> Refusal {
    let detail = format!("{} takes no {method}; the header allow says what it takes", uri.path());
    Refusal::new(Code::MethodNotAllowed, detail)
}

/// A page in a browser can be sent to this server under a name of its own, by a name server that
/// answers with 127.0.0.1. So the name has to be one of this machine.
async fn only_local(request: Request, next: Next) -> Response {
    let host = request.headers().get("host").and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().host()).unwrap_or_default();
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((six, _)) => six,
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if is_loopback || name.eq_ignore_ascii_case("localhost") {
        return next.run(request).await;
    }
    let detail = format!(
        "this server listens on this machine only, and {name:?} is no name of it; ask for \
         127.0.0.1 or localhost"
    );
    Refusal::new(Code::NotLocal, detail).into_response()
}

/// The HTTP layer looks at the size of a head only as long as it has not all of it.
async fn head_in_bounds(request: Request, next: Next) -> Response {
    let bytes = head_bytes(&request);
    if bytes <= HEAD_BYTES_MAX {
        return next.run(request).await;
    }
    let detail = format!(
        "the path, the query and the headers have {bytes} bytes; at most {HEAD_BYTES_MAX} are allowed"
    );
    Refusal::new(Code::HeadTooLarge, detail).into_response()
}

fn head_bytes(request: &Request) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let headers = request.headers().iter();
    target + headers.map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
}

/// Logs what was asked and how it was answered; the query and the body are left out.
async fn in_time(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let began = Instant::now();
    let answered = tokio::time::timeout(ANSWER_TIME_MAX, next.run(request)).await;
    let response = answered.unwrap_or_else(|_| {
        let detail =
            format!("no answer was made within {} s; try again", ANSWER_TIME_MAX.as_secs());
        Refusal::new(Code::TimedOut, detail).into_response()
    });
    let (status, ms) = (response.status().as_u16(), began.elapsed().as_millis() as u64);
    tracing::debug!(%method, path, status, ms, "request");
    response
}

/// Whoever waits for something when the server stops is told so.
async fn until_stopped(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let mut stop = shared.stop.clone();
    let waits = request.uri().path().ends_with("/result");
    tokio::select! {
        response = next.run(request) => response,
        _ = stop.wait_for(|stop| *stop), if waits => {
            let detail = "the server is stopping; ask again when it is back";
            Refusal::new(Code::Stopped, detail).into_response()
        }
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    // What a panic says may hold parts of a request.
    drop(panic);
    tracing::error!("a handler panicked; this is a bug of Backstitch");
    Refusal::new(Code::Internal, "a bug of the server; its log says where").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstitch::Backstitch;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::{Semaphore, watch};

    use crate::http::limits::Limits;
    use crate::http::{HttpOptions, connections};
    use crate::service::Service;

    async fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it is text");
        answer
    }

    #[test]
    fn a_head_has_the_bytes_of_its_target_and_its_headers() {
        let request = Request::get("http://localhost/a?b=c").header("x", "yz");
        let request = request.body(axum::body::Body::empty()).expect("it is a request");
        assert_eq!(head_bytes(&request), "/a?b=c".len() + "xyz".len());
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_for_and_the_others_go_on() {
        let app = Backstitch::open("memory:").run().await.expect("memory is there");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = watch::channel(false);
        let shared = Shared {
            service: Service::new((*app).clone()),
            options: HttpOptions::default(),
            streams: Arc::new(Semaphore::new(1)),
            stop: stopped.clone(),
        };
        let router = Router::new()
            .route("/panic", get(|| async { panic!("a bug, with s3cr3t") as String }))
            .route("/healthz", get(health::healthz));
        let router = guarded(router, shared, address);
        let served = tokio::spawn(connections::serve(listener, router, Limits::default(), stopped));
        for _ in 0..3 {
            let answer = ask(address, "/panic").await;
            assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
            assert!(answer.contains("content-type: application/problem+json"), "{answer}");
            assert!(answer.contains("\"code\":\"internal\""), "{answer}");
            assert!(!answer.contains("s3cr3t"), "{answer}");
            assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        }
        stop.send_replace(true);
        served.await.expect("it ends");
        app.shutdown().await.expect("memory closes");
    }
}
