//! The shop's client of the payment provider.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::{Result, http_failure, msg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::http;
use crate::workflow::Order;

/// A charge that was booked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    pub id: String,
    pub cents: i64,
}

/// The client: application state. What can be set is the same for all clones.
#[derive(Clone)]
pub struct Payments {
    address: SocketAddr,
    settings: Arc<Mutex<Settings>>,
}

#[derive(Clone)]
struct Settings {
    api_key: String,
    patience: Duration,
}

impl Payments {
    pub fn new(address: SocketAddr, api_key: &str, patience: Duration) -> Payments {
        let settings = Settings { api_key: api_key.to_owned(), patience };
        Payments { address, settings: Arc::new(Mutex::new(settings)) }
    }

    /// Sets the API key, and how long to wait for an answer.
    pub fn set(&self, api_key: &str, patience: Duration) {
        let settings = Settings { api_key: api_key.to_owned(), patience };
        *self.settings.lock().expect("no code panics under this lock") = settings;
    }

    pub fn set_api_key(&self, api_key: &str) {
        let mut settings = self.settings.lock().expect("no code panics under this lock");
        settings.api_key = api_key.to_owned();
    }

    /// Charges a card, once per key.
    pub async fn charge(&self, key: &str, order: &Order) -> Result<Charge> {
        self.post("/charges", key, json!({"customer": order.customer, "cents": order.cents})).await
    }

    /// Pays back, once per key, what was charged under `charged_under`, if anything was. If nothing
    /// was, nothing ever will be.
    pub async fn refund(&self, key: &str, charged_under: &str) -> Result<()> {
        let _: Value = self.post("/refunds", key, json!({"charged_under": charged_under})).await?;
        Ok(())
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, key: &str, body: Value) -> Result<T> {
        let Settings { api_key, patience } =
            self.settings.lock().expect("no code panics under this lock").clone();
        let authorization = format!("Bearer {api_key}");
        let headers = [("Authorization", authorization.as_str()), ("Idempotency-Key", key)];
        let body = body.to_string();
        let sent = http::post(self.address, path, &headers, &body);
        let response = tokio::time::timeout(patience, sent).await.map_err(|_| {
            msg(format!(
                "no answer within {} ms; it may be done all the same",
                patience.as_millis()
            ))
        })??;
        match response.status {
            200..=299 => Ok(serde_json::from_str(&response.body)?),
            status => {
                let retry_after = response.retry_after.as_deref();
                Err(http_failure(status, retry_after, reason(&response.body)))
            }
        }
    }
}

/// The reason in the body of a refusal: `{"error": "…"}`.
fn reason(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    body["error"].as_str().unwrap_or_default().to_owned()
}
