//! The scenarios: what is special about each, and what has to come out.

use std::time::Duration;

use crate::provider::{API_KEY, Mood};
use crate::warehouse::NOWHERE;
use crate::workflow::Order;

/// What everything costs.
pub const CENTS: i64 = 4_900;

/// How long the shop usually waits for an answer: far longer than any takes.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// One order, of an item and for a customer that no other one has.
pub struct Scenario {
    pub name: &'static str,
    /// The id of the execution.
    pub id: &'static str,
    pub heading: &'static str,
    /// What a person should look for in its journal.
    pub explanation: &'static str,
    /// What a hand-written saga would have lost.
    pub by_hand: &'static str,
    pub item: &'static str,
    town: &'static str,
    pub trouble: Trouble,
    pub expected: Expected,
}

/// What is wrong at first.
pub struct Trouble {
    pub mood: Mood,
    /// What the shop takes for its API key.
    pub api_key: &'static str,
    /// How long the shop waits for an answer.
    pub patience: Duration,
    pub operator: Operator,
}

/// What a person does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Nothing,
    RepairsTheKey,
    HasRefundsSwitchedOn,
    UndoesWhatSucceeded,
}

/// How the order has to end.
pub struct Expected {
    pub status: &'static str,
    pub rollback: &'static str,
    pub shipments: i64,
}

const NO_TROUBLE: Trouble =
    Trouble { mood: Mood::Good, api_key: API_KEY, patience: PATIENCE, operator: Operator::Nothing };

const SHIPPED: Expected = Expected { status: "succeeded", rollback: "none", shipments: 1 };
const UNDONE: Expected = Expected { status: "failed", rollback: "complete", shipments: 0 };

pub static SCENARIOS: [Scenario; 7] = [
    Scenario {
        name: "success",
        id: "order-1",
        heading: "Everything works",
        explanation: "Three steps, each with an undo that is never needed.",
        by_hand: "three calls in a row do it as well, as long as nothing goes wrong.",
        item: "teapot",
        town: "Ulm",
        trouble: NO_TROUBLE,
        expected: SHIPPED,
    },
    Scenario {
        name: "lost-answer",
        id: "order-2",
        heading: "The card is charged, and the answer gets lost",
        explanation: "The provider has charged the card, but the shop gives up waiting after \
                      300 ms. Nobody knows, so the step is tried again under the same \
                      Idempotency-Key: the provider gives the answer that it has stored, and the \
                      card is charged once.",
        by_hand: "a timeout looks like a failure. With a new key per attempt the customer pays \
                  twice; without a retry she pays, and nothing is shipped.",
        item: "kettle",
        town: "Ulm",
        trouble: Trouble {
            mood: Mood::LosesAnAnswer,
            patience: Duration::from_millis(300),
            ..NO_TROUBLE
        },
        expected: SHIPPED,
    },
    Scenario {
        name: "refused",
        id: "order-3",
        heading: "The card is refused",
        explanation: "402 means no, and no retry will change that. The stock goes back. The charge \
                      needs no undo: the provider has said for certain that there was none.",
        by_hand: "the stock is released in an error branch; a crash in there, and it stays \
                  reserved for nobody.",
        item: "lamp",
        town: "Ulm",
        trouble: Trouble { mood: Mood::RefusesTheCard, ..NO_TROUBLE },
        expected: UNDONE,
    },
    Scenario {
        name: "wrong-key",
        id: "order-4",
        heading: "The shop's API key is wrong",
        explanation: "401 is neither the customer's fault nor will it heal by itself. The step is \
                      blocked, and is an open matter until a person has it tried again.",
        by_hand: "every order of that hour fails, and has to be found in the logs and placed \
                  again; the stock of each stays reserved.",
        item: "mug",
        town: "Ulm",
        trouble: Trouble { api_key: "test-key", operator: Operator::RepairsTheKey, ..NO_TROUBLE },
        expected: SHIPPED,
    },
    Scenario {
        name: "busy",
        id: "order-5",
        heading: "The provider is busy, and says until when",
        explanation: "503 with Retry-After: 1. The next attempt begins after the second that the \
                      provider has asked for, whatever the retry policy says.",
        by_hand: "retries at a pace of our own are refused again, and a crash forgets that there \
                  was something to wait for.",
        item: "tray",
        town: "Ulm",
        trouble: Trouble { mood: Mood::Busy { until: None }, ..NO_TROUBLE },
        expected: SHIPPED,
    },
    Scenario {
        name: "refund-refused",
        id: "order-6",
        heading: "No carrier goes there, and the provider keeps the money",
        explanation: "The shipment fails for good, so the order turns around. The refund is \
                      refused, but the stock goes back all the same. Then the order is stuck: a \
                      person is called, and whoever waits for it is told.",
        by_hand: "the error in the error branch hides the first one, the stock is never released, \
                  and nowhere does it say that a customer is owed 49.00.",
        item: "bowl",
        town: NOWHERE,
        trouble: Trouble {
            mood: Mood::KeepsTheMoney,
            operator: Operator::HasRefundsSwitchedOn,
            ..NO_TROUBLE
        },
        expected: UNDONE,
    },
    Scenario {
        name: "undone-later",
        id: "order-7",
        heading: "The order succeeded, and then somebody wants it undone",
        explanation: "The customer calls. Support finds her order by her number and has it rolled \
                      back; the undos that were written for errors do that too.",
        by_hand: "the error branches are gone with the process that ran them; recall, refund and \
                  stock are three scripts, and one of them is forgotten.",
        item: "vase",
        town: "Ulm",
        trouble: Trouble { operator: Operator::UndoesWhatSucceeded, ..NO_TROUBLE },
        expected: Expected { status: "cancelled", ..UNDONE },
    },
];

impl Scenario {
    /// Each order is of a customer of its own.
    pub fn customer(&self) -> String {
        self.id.replace("order", "c")
    }

    pub fn order(&self) -> Order {
        Order {
            customer: self.customer(),
            item: self.item.to_owned(),
            cents: CENTS,
            town: self.town.to_owned(),
        }
    }
}
