//! Durations, as people write them.

use std::time::Duration;

use backstitch_core::limits::DURATION_US_MAX;
use jiff::SpanRelativeTo;

/// A duration: a [`Duration`], or a text such as `"30s"`, `"1h 30m"`, `"250ms"`, `"2 days"`. A day
/// has 24 hours, a week 7 days; years and months are refused.
///
/// A text that is no duration, a negative one, or one longer than 100 years makes the step that
/// uses it fail permanently, with a message that says so.
pub trait IntoDuration {
    /// In microseconds.
    ///
    /// # Errors
    /// Says what is wrong with the value.
    fn into_us(self) -> Result<u64, String>;
}

impl IntoDuration for Duration {
    fn into_us(self) -> Result<u64, String> {
        match u64::try_from(self.as_micros()) {
            Ok(us) if us <= DURATION_US_MAX => Ok(us),
            _ => Err(format!("{self:?} is longer than 100 years")),
        }
    }
}

impl IntoDuration for &str {
    fn into_us(self) -> Result<u64, String> {
        let way_out = r#"write for example "30s", "1h 30m", "250ms" or "2 days""#;
        let span: jiff::Span =
            self.parse().map_err(|_| format!("{self:?} is not a duration; {way_out}"))?;
        let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| {
            format!("{self:?} has years or months, which are not always equally long; {way_out}")
        })?;
        let duration = Duration::try_from(duration)
            .map_err(|_| format!("the duration {self:?} is negative; {way_out}"))?;
        duration.into_us()
    }
}

impl IntoDuration for String {
    fn into_us(self) -> Result<u64, String> {
        self.as_str().into_us()
    }
}
