//! The worker of `backstitch dev`: two workflows, and the outside world that they talk to, in memory.

mod orders;
mod transfers;
mod world;

use backstitch::Builder;

pub use world::World;

/// An execution that `backstitch demo` starts.
pub struct Example {
    /// Its id, with a place for what makes it new.
    pub id: &'static str,
    /// Its workflow.
    pub workflow: &'static str,
    /// Its input, in JSON.
    pub input: &'static str,
    /// What will be seen.
    pub shows: &'static str,
}

/// What there is to try.
pub const EXAMPLES: &[Example] = &[
    Example {
        id: "transfer-ok",
        workflow: "transfer",
        input: r#"{"from":"alice","to":"bob","cents":3000}"#,
        shows: "money moves",
    },
    Example {
        id: "transfer-closed",
        workflow: "transfer",
        input: r#"{"from":"alice","to":"closed","cents":3000}"#,
        shows: "the second account is closed: the first booking is taken back",
    },
    Example {
        id: "transfer-busy",
        workflow: "transfer",
        input: r#"{"from":"alice","to":"busy","cents":500}"#,
        shows: "the bank is busy twice: the step is tried again",
    },
    Example {
        id: "order-ok",
        workflow: "fulfil",
        input: r#"{"customer":"c-17","item":"tea","cents":4900,"card":"good","town":"Rome"}"#,
        shows: "stock, card, parcel",
    },
    Example {
        id: "order-declined",
        workflow: "fulfil",
        input: r#"{"customer":"c-17","item":"tea","cents":4900,"card":"declined","town":"Rome"}"#,
        shows: "the card is declined: the stock is released",
    },
    Example {
        id: "order-nowhere",
        workflow: "fulfil",
        input: r#"{"customer":"c-18","item":"gold","cents":90000,"card":"good","town":"Nowhere"}"#,
        shows: "no carrier goes there: the money is paid back, then the stock is released",
    },
    Example {
        id: "order-stuck",
        workflow: "fulfil",
        input: r#"{"customer":"c-19","item":"tea","cents":100,"card":"no-refund","town":"Nowhere"}"#,
        shows: "the refund is refused: it is stuck, and a person is called",
    },
];

/// Registers the two workflows and the world that they talk to.
pub fn with_worker(builder: Builder) -> Builder {
    builder.state(World::default()).register(transfers::transfer).register(orders::fulfil)
}
