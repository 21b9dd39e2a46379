//! The payment provider: an HTTP server on this machine, with a ledger of its own.
//!
//! ```text
//! POST /charges  {"customer": "c-1", "cents": 4900}   200 {"id": "charge-1", "cents": 4900}
//! POST /refunds  {"charged_under": "<a key>"}           200 {"refunded_cents": 4900}
//! ```
//!
//! Both want `Authorization: Bearer …` and an `Idempotency-Key`: what was answered under a key is
//! answered again, and nothing is booked twice. A refusal looks like `{"error": "…"}`.

mod ledger;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::http::{self, Message};

pub use self::ledger::{Account, Keys, Ledger};

/// The one key that it knows.
pub const API_KEY: &str = "live-key";

/// How long it is busy: a little less than the second that it asks for.
const BUSY: Duration = Duration::from_millis(950);

/// What the provider does besides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Nothing.
    Good,
    /// Does what it is asked, and answers when the other side has hung up; once.
    LosesAnAnswer,
    /// Has no time for the next second, from the first request on.
    Busy { until: Option<Instant> },
    /// Charges no card.
    RefusesTheCard,
    /// Pays nothing back.
    KeepsTheMoney,
}

/// The server. Cheap to clone.
#[derive(Clone)]
pub struct Provider {
    pub address: SocketAddr,
    pub ledger: Ledger,
    mood: Arc<Mutex<Mood>>,
}

/// A status and a body.
struct Answer(u16, Value);

impl Provider {
    /// Opens the ledger and answers requests until the program ends.
    pub async fn start(ledger: &Path, keys: Keys) -> Result<Provider, String> {
        let ledger = Ledger::open(ledger, keys)?;
        let no_port = |error: io::Error| format!("no port on this machine: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(no_port)?;
        let address = listener.local_addr().map_err(no_port)?;
        let provider = Provider { address, ledger, mood: Arc::new(Mutex::new(Mood::Good)) };
        let server = provider.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                // Whoever hangs up early learns nothing; the ledger knows what was done.
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        Ok(provider)
    }

    /// Tells it how to behave from now on.
    pub fn set_mood(&self, mood: Mood) {
        *self.mood.lock().expect("no code panics under this lock") = mood;
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let request = http::read(&mut stream).await?;
        let mood = self.mood_of_the_moment();
        let Answer(status, body) = self.answer(&request, mood).await;
        if mood == Mood::LosesAnAnswer {
            // Until the other side has given up.
            stream.read_to_end(&mut Vec::new()).await?;
        }
        let first_line = format!("HTTP/1.1 {status} {}", phrase(status));
        let headers: &[_] = if status == 503 { &[("Retry-After", "1")] } else { &[] };
        http::write(&mut stream, &first_line, headers, &body.to_string()).await
    }

    /// The mood for one request.
    fn mood_of_the_moment(&self) -> Mood {
        let mut mood = self.mood.lock().expect("no code panics under this lock");
        if matches!(*mood, Mood::Busy { until: Some(until) } if until <= Instant::now()) {
            *mood = Mood::Good;
        }
        let this_time = *mood;
        match this_time {
            Mood::LosesAnAnswer => *mood = Mood::Good,
            Mood::Busy { until: None } => *mood = Mood::Busy { until: Some(Instant::now() + BUSY) },
            Mood::Good
            | Mood::Busy { until: Some(_) }
            | Mood::RefusesTheCard
            | Mood::KeepsTheMoney => {}
        }
        this_time
    }

    async fn answer(&self, request: &Message, mood: Mood) -> Answer {
        if request.header("Authorization") != Some(&format!("Bearer {API_KEY}")) {
            return refusal(401, "unknown API key");
        }
        if matches!(mood, Mood::Busy { .. }) {
            return refusal(503, "in maintenance");
        }
        let Some(key) = request.header("Idempotency-Key") else {
            return refusal(400, "the header Idempotency-Key is missing");
        };
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let booked = match request.first_line.as_str() {
            "POST /charges HTTP/1.1" if mood == Mood::RefusesTheCard => {
                return refusal(402, "the card has expired");
            }
            "POST /charges HTTP/1.1" => {
                let customer = body["customer"].as_str().unwrap_or_default();
                let cents = body["cents"].as_i64().unwrap_or_default();
                self.ledger.charge(key, customer, cents).await
            }
            "POST /refunds HTTP/1.1" if mood == Mood::KeepsTheMoney => {
                return refusal(403, "refunds are switched off for this account");
            }
            "POST /refunds HTTP/1.1" => {
                self.ledger.refund(key, body["charged_under"].as_str().unwrap_or_default()).await
            }
            _ => return refusal(404, "there is nothing here"),
        };
        booked.unwrap_or_else(|error| refusal(500, &error.to_string()))
    }
}

fn refusal(status: u16, why: &str) -> Answer {
    Answer(status, json!({"error": why}))
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        503 => "Service Unavailable",
        _ => "No",
    }
}
