//! What the log of a server says of a panic.

use std::any::Any;

/// Has the log say where a panic was, and its words if they are part of the program: others may hold inputs and outputs.
pub fn log() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let words = words(panic.payload()).unwrap_or("words that may hold inputs are left out");
        tracing::error!(place, words, "panicked");
    }));
}

/// The words, unless they were put together when it happened.
fn words(panic: &dyn Any) -> Option<&'static str> {
    panic.downcast_ref::<&'static str>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_values_in_them_are_left_out() {
        let constant = std::panic::catch_unwind(|| panic!("a constant")).unwrap_err();
        assert_eq!(words(&*constant), Some("a constant"));
        let secret = String::from("s3cr3t");
        let made = std::panic::catch_unwind(|| panic!("it was {secret}")).unwrap_err();
        assert_eq!(words(&*made), None);
    }
}
