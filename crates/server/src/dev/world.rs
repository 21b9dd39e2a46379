//! Banks, a warehouse, a card and a carrier: what is outside, in memory.
//!
//! Each effect has a key, and is there once however often it is asked for; its opposite settles that it
//! can never come later. That is what workflows need of real systems as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backstitch::{FailureExt, Result, msg};

/// The outside world. Cheap to clone.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<Effects>>);

#[derive(Default)]
struct Effects {
    /// By key: the number of the effect, or nothing if it was settled that there is none.
    done: HashMap<String, Option<u32>>,
    /// How often each key was asked for.
    asked: HashMap<String, u32>,
    last: u32,
}

impl World {
    /// Has the effect of `key`, once. Gives its number.
    pub fn once(&self, key: &str) -> Result<u32> {
        let mut world = self.0.lock().expect("no code panics under this lock");
        match world.done.get(key) {
            Some(Some(number)) => Ok(*number),
            Some(None) => Err(msg("the request was withdrawn before it came").permanent()),
            None => {
                world.last += 1;
                let number = world.last;
                world.done.insert(key.to_owned(), Some(number));
                Ok(number)
            }
        }
    }

    /// Takes the effect of `key` back, or settles that it never comes.
    pub fn take_back(&self, key: &str) {
        let mut world = self.0.lock().expect("no code panics under this lock");
        world.done.insert(key.to_owned(), None);
    }

    /// How often this was asked for `key`, with this time.
    pub fn asked(&self, key: &str) -> u32 {
        let mut world = self.0.lock().expect("no code panics under this lock");
        let asked = world.asked.entry(key.to_owned()).or_default();
        *asked += 1;
        *asked
    }
}
