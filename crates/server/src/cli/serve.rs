//! `backstitch dev` and `backstitch server`.

use backstitch::{Backstitch, Builder};
use tokio::net::TcpListener;
use tokio::signal;

use super::arguments::{Dev, SERVER_DEFAULT, Server, Talk};
use super::fault::{Fault, UNREACHABLE, USAGE};
use super::files::connections_max;
use super::log;
use super::panics;
use super::paper::Paper;
use crate::config::{Config, Settings};
use crate::dev;
use crate::http::{HttpOptions, HttpServer, Limits};
use crate::service::{Service, told};

/// How this program is called and whom it asks, for what people are told to type.
pub fn command(talk: &Talk) -> String {
    let this = std::env::args().next().unwrap_or_else(|| "backstitch".to_owned());
    match (&talk.store, talk.server.as_deref()) {
        (Some(store), _) => format!("{this} --store {store}"),
        (None, None | Some(SERVER_DEFAULT)) => this,
        (None, Some(server)) => format!("{this} --server {server}"),
    }
}

/// A server on a file in this folder, with a worker.
pub async fn dev(given: Dev, talk: &Talk) -> Result<(), Fault> {
    let settings = Settings::default()
        .flag("store", talk.store.clone())
        .flag("listen", given.listen)
        .flag("log", Some(given.log));
    let config = settings.read().map_err(usage)?;
    log(&config);
    let builder = dev::with_worker(Backstitch::open(&config.store));
    let paper = Paper::new(false);
    let store = config.store.clone();
    serve(config, builder, |address| {
        let head = format!(
            "Backstitch listens on http://{address} and keeps everything in {store}\n\
             It runs two workflows, `transfer` and `fulfil`, against banks and a warehouse in memory.\n"
        );
        paper.line(&head)?;
        paper.line("In another terminal:\n")?;
        let asked = Talk { server: Some(format!("http://{address}")), store: None, ..talk.clone() };
        let this = command(&asked);
        let next = [
            ("demo", "starts a few executions; some of them roll back"),
            ("list", "what there is"),
            ("show ID", "an execution: its steps and undos in time"),
            ("--help", "what else can be done"),
        ];
        for (arguments, what) in next {
            paper.line(&format!("  {this} {arguments:<8}  {what}"))?;
        }
        paper.line("\nCtrl-C stops it; what is open goes on when it is started again.")
    })
    .await
}

/// A server.
pub async fn server(given: Server, talk: &Talk) -> Result<(), Fault> {
    let settings = match &given.config {
        Some(path) => Settings::default().file(path).map_err(usage)?,
        None => Settings::default(),
    };
    let settings = settings
        .environment(std::env::vars_os().filter_map(|(name, value)| {
            // What is no text is none of ours.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }))
        .flag("store", talk.store.clone())
        .flag("listen", given.listen)
        .flag("insecure", given.insecure.then(|| "true".to_owned()))
        .flag("stop_grace", given.stop_grace)
        .flag("lease", given.lease)
        .flag("ready_pending_max", given.ready_pending_max)
        .flag("retention", given.retention)
        .flag("log", given.log);
    let config = settings.read().map_err(usage)?;
    log(&config);
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    if !config.listen.ip().is_loopback() {
        let address = config.listen;
        tracing::warn!(%address, "insecure: whoever reaches this address can start, read, kill and delete executions");
    }
    let builder = Backstitch::open(&config.store).keep_unknown_workflows();
    let paper = Paper::new(false);
    let store = config.store.clone();
    serve(config, builder, |address| {
        paper.line(&format!(
            "Backstitch listens on http://{address} and keeps everything in {store}"
        ))
    })
    .await
}

fn usage(error: impl std::fmt::Display) -> Fault {
    Fault::new(USAGE, error.to_string())
}

fn log(config: &Config) {
    log::begin(config.log);
    panics::log();
}

/// Serves until a signal comes, and then stops in good order.
async fn serve(
    config: Config,
    builder: Builder,
    tell: impl FnOnce(std::net::SocketAddr) -> std::io::Result<()>,
) -> Result<(), Fault> {
    // Before anything is said, so that nobody who was told can stop it in the wrong way.
    let mut stop = Stop::listen()?;
    let listener = TcpListener::bind(config.listen).await.map_err(|error| {
        let message = format!(
            "{} cannot be listened on: {error}; stop what listens there, or say another address with \
             --listen",
            config.listen
        );
        Fault::new(UNREACHABLE, message)
    })?;
    let builder = match config.retention {
        Some(kept) => builder.retention(kept),
        None => builder.keep_forever(),
    };
    let app =
        builder.lease(config.lease).stop_grace(config.stop_grace).run().await.map_err(told)?;
    let options = HttpOptions {
        ready_pending_max: config.ready_pending_max,
        limits: Limits { connections_max: connections_max(), ..Limits::default() },
    };
    let served = HttpServer::begin(listener, Service::new((*app).clone()), options);
    let served = served.map_err(|error| Fault::new(UNREACHABLE, error.to_string()))?;
    // A terminal that is gone is no reason to stop.
    let _ = tell(served.address());
    let signal = stop.wait().await;
    tracing::info!(signal, "stopping");
    // The same one goes on listening: there is no instant in which a second signal would be lost.
    tokio::spawn(async move {
        stop.wait().await;
        log::say("stopped at once, at the second signal");
        log::flush();
        std::process::exit(i32::from(UNREACHABLE));
    });
    // Workers need their streams to give back what they have, and end them when they have.
    let (_, stopped) = tokio::join!(served.stop(config.stop_grace), app.shutdown());
    stopped.map_err(told)?;
    tracing::info!("stopped");
    Ok(())
}

/// The signals that stop a server, or a backup.
pub struct Stop {
    #[cfg(unix)]
    terminate: signal::unix::Signal,
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
}

impl Stop {
    #[cfg(unix)]
    pub fn listen() -> Result<Stop, Fault> {
        use signal::unix::{SignalKind, signal};
        let on = |kind| {
            signal(kind).map_err(|error| {
                Fault::new(UNREACHABLE, format!("signals cannot be listened to: {error}"))
            })
        };
        Ok(Stop {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    pub async fn wait(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    #[cfg(not(unix))]
    pub fn listen() -> Result<Stop, Fault> {
        Ok(Stop {})
    }

    #[cfg(not(unix))]
    pub async fn wait(&mut self) -> &'static str {
        // Without a console there is nobody who could press Ctrl-C.
        if signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
