//! Names, ids and keys.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::limits::NAME_CHARS_MAX;

/// Number of a thing that the code asked for, in journal order, from 1.
pub type Ordinal = u32;

/// The id of one run of an execution: a UUID version 7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub Uuid);

impl RunId {
    /// Reads the 16 bytes that a journal holds; `None` for any other length.
    pub fn from_slice(bytes: &[u8]) -> Option<RunId> {
        Uuid::from_slice(bytes).ok().map(RunId)
    }

    /// The 16 bytes that a journal holds.
    pub fn to_vec(self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }

    /// The idempotency key of the step `ord`: the same over all its attempts, different in every
    /// other run. `UUIDv5(run_id, "step" ‖ ord as 4 bytes, big endian)`, frozen by a golden test.
    pub fn step_key(self, ord: Ordinal) -> String {
        self.key(b"step", ord)
    }

    /// The idempotency key of the undo of step `ord`: the same over all attempts, operators'
    /// retries and further rollbacks of the run. `UUIDv5(run_id, "undo" ‖ ord)`.
    pub fn undo_key(self, ord: Ordinal) -> String {
        self.key(b"undo", ord)
    }

    fn key(self, what: &[u8; 4], ord: Ordinal) -> String {
        let mut name = [0; 8];
        name[..4].copy_from_slice(what);
        name[4..].copy_from_slice(&ord.to_be_bytes());
        Uuid::new_v5(&self.0, &name).to_string()
    }
}

/// Reads what [`RunId`] is printed as.
impl FromStr for RunId {
    type Err = String;

    fn from_str(text: &str) -> Result<RunId, String> {
        Uuid::try_parse(text).map(RunId).map_err(|_| {
            format!(
                "{text:?} is no run id; it is written like 018f2b9c-5a7e-7d3a-9c41-6f0d8e2b7a55, as lists show it"
            )
        })
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What kind of thing a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum KeyKind {
    /// A step.
    Step = 0,
    /// A sleep.
    Timer = 1,
    /// A wait for an event.
    Wait = 2,
}

/// The identity of a thing that the code asks for: (scope, kind, name, count).
///
/// Counts are per scope, kind and name, taken when the thing is *built*, in program order.
/// Printed as `name#count`, after the path of branch names.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Message)]
pub struct Key {
    /// Branch names from the root; empty at the root.
    #[prost(string, repeated, tag = "1")]
    pub scope: Vec<String>,
    /// What is named.
    #[prost(enumeration = "KeyKind", tag = "2")]
    pub kind: i32,
    /// The name that the code gave.
    #[prost(string, tag = "3")]
    pub name: String,
    /// From 1.
    #[prost(uint32, tag = "4")]
    pub count: u32,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for branch in &self.scope {
            write!(f, "{branch}/")?;
        }
        write!(f, "{}#{}", self.name, self.count)
    }
}

/// Says why `name` cannot be the name of a `what`; `None` if it can.
///
/// Names have 1 to 256 characters, no control characters, and are compared byte for byte.
pub fn name_defect(what: &str, name: &str) -> Option<String> {
    if name.is_empty() {
        return Some(format!("the {what} is empty; give it 1 to {NAME_CHARS_MAX} characters"));
    }
    let chars = name.chars().count();
    if chars > NAME_CHARS_MAX {
        let head: String = name.chars().take(32).collect();
        return Some(format!(
            "the {what} {head:?}… has {chars} characters; at most {NAME_CHARS_MAX} are allowed"
        ));
    }
    if let Some(bad) = name.chars().find(|c| c.is_control()) {
        return Some(format!(
            "the {what} {name:?} holds the control character U+{:04X}; leave it out",
            bad as u32
        ));
    }
    None
}

/// The random number `k` of group `g`: splitmix64 over the seed, the group and the draw.
///
/// The finaliser is that of Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators" (2014), with Stafford's mix 13. Frozen by a golden test: replay needs it.
pub fn draw(seed: u64, g: u64, k: u64) -> u64 {
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |z: u64| {
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let a = mix(seed.wrapping_add(GAMMA));
    let b = mix(a ^ g.wrapping_add(1).wrapping_mul(GAMMA));
    mix(b ^ k.wrapping_add(1).wrapping_mul(GAMMA))
}
