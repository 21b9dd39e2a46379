//! One text that may be a duration.

use std::time::Duration;

use backstitch::IntoDuration;
use backstitch::core::limits::DURATION_US_MAX;
use backstitch::jiff::SignedDuration;

/// Gives what `text` means; whatever is a duration is the same one when it is written in any way.
pub fn read(text: &str) -> Option<u64> {
    let read = text.into_us();
    assert_eq!(text.to_owned().into_us(), read);
    match read {
        Ok(us) => {
            assert!(us <= DURATION_US_MAX, "{text:?}");
            assert_eq!(Duration::from_micros(us).into_us(), Ok(us), "{text:?}");
            let signed = SignedDuration::from_micros(us.try_into().expect("100 years fit"));
            for again in [format!("{us}us"), format!("{signed}"), format!("{signed:#}")] {
                assert_eq!(again.as_str().into_us(), Ok(us), "{text:?} is {again:?}");
            }
            Some(us)
        }
        Err(why) => {
            let quoted = format!("{text:?}");
            assert!(why.contains(&quoted) || why.contains("100 years"), "{text:?}: {why}");
            None
        }
    }
}
