//! What the steps return: about 100 bytes of JSON.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Receipt {
    pub number: u64,
    account: String,
    amount: String,
    note: String,
}

impl Receipt {
    pub fn new(number: u64) -> Receipt {
        Receipt {
            number,
            account: "DE02120300000000202051".to_owned(),
            amount: "1249.99 EUR".to_owned(),
            note: "order 2026-0042".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_has_about_a_hundred_bytes() {
        let bytes = serde_json::to_vec(&Receipt::new(12_345)).unwrap().len();
        assert!((95..=110).contains(&bytes), "{bytes} bytes");
    }
}
