//! What an HTTP status means for a step.

use std::time::Duration;

use backstitch_core::failure::{Class, Effect, Failure, Origin};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::duration::IntoDuration;

/// The failure that an HTTP response with an error status is: type name `HttpStatus`, the status
/// as its code.
///
/// | status | class | because (RFC 9110, section 15, where nothing else stands) |
/// | --- | --- | --- |
/// | 408, 425, 429 | transient | the server says that a repetition may succeed: too slow, too early ([RFC 8470], section 5.2), too many (RFC 6585, section 4) |
/// | 401, 403, 404 | attention | credentials, rights or an address are wrong; a person can mend that |
/// | other 4xx | permanent | the request itself is wrong; it will not get better |
/// | 5xx | transient | the server failed, "erred or is incapable" |
/// | any other | permanent | it is no error, or no status at all: a mistake of the caller. The message says so, and the effect may have happened |
///
/// Where the rule does not fit an API, the lists of the policy change it by the code:
/// [`Retry::transient_on(["409"])`](crate::Retry::transient_on).
///
/// `retry_after` is the value of the response's `Retry-After` (RFC 9110, section 10.2.3): seconds,
/// or a date in any of the three forms of section 5.6.7. It counts for transient failures; a date
/// in the past means at once. What is neither is ignored, and the message says so.
///
/// [RFC 8470]: https://www.rfc-editor.org/rfc/rfc8470
///
/// # Examples
///
/// ```
/// use backstitch::{Class, Ctx, Failure, Result, Retry, http_failure, workflow};
///
/// # struct Response { status: u16, retry_after: Option<&'static str>, body: &'static str }
/// # async fn post(_path: &str, _key: String) -> Result<Response> {
/// #     Ok(Response { status: 503, retry_after: Some("120"), body: "in maintenance" })
/// # }
/// async fn book(key: String) -> Result<String> {
///     let answer = post("/bookings", key).await?;     // your HTTP client; its errors are transient
///     match answer.status {
///         200..=299 => Ok(answer.body.to_owned()),
///         status => Err(http_failure(status, answer.retry_after, answer.body)),
///     }
/// }
///
/// #[workflow]
/// async fn trip(ctx: Ctx, (): ()) -> Result<String> {
///     ctx.step("book-hotel", async |s| book(s.idempotency_key()).await)
///         .retry(Retry::exponential("1s").permanent_on(["404"]))   // here: the hotel is gone
///         .await
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let failure = book("key".into()).await.unwrap_err();
/// assert_eq!((failure.class(), failure.code.as_str()), (Class::Transient, "503"));
/// assert_eq!(failure.retry_after_us, Some(120_000_000));
/// assert_eq!(failure.message, "in maintenance");
/// # });
/// ```
pub fn http_failure(status: u16, retry_after: Option<&str>, message: impl Into<String>) -> Failure {
    failure_at(Timestamp::now(), status, retry_after, message.into())
}

fn failure_at(now: Timestamp, status: u16, retry_after: Option<&str>, message: String) -> Failure {
    let message = match message.is_empty() {
        true => format!("status {status}"),
        false => message,
    };
    let mut failure = Failure::new(class_of(status), Origin::Body, "HttpStatus", message);
    failure.code = status.to_string();
    if let Some(mistake) = mistake(status) {
        failure.set_effect(Effect::Possible);
        failure.message.push_str(mistake);
    }
    if let (Class::Transient, Some(retry_after)) = (failure.class(), retry_after) {
        match delay_us(now, retry_after.trim()) {
            Ok(delay_us) => failure.retry_after_us = Some(delay_us),
            Err(why) => failure.message.push_str(&format!(" [Retry-After ignored: {why}]")),
        }
    }
    failure
}

fn class_of(status: u16) -> Class {
    match status {
        408 | 425 | 429 | 500..=599 => Class::Transient,
        401 | 403 | 404 => Class::Attention,
        _ => Class::Permanent,
    }
}

/// What is wrong with a status that should not have come here.
fn mistake(status: u16) -> Option<&'static str> {
    match status {
        400..=599 => None,
        100..=399 => Some(" [this status is no error; do not make a failure of it]"),
        _ => Some(" [this is no HTTP status; they go from 100 to 599]"),
    }
}

/// The three forms of RFC 9110, section 5.6.7: the one to write, and two obsolete ones to accept.
const DATE_FORMS: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

fn delay_us(now: Timestamp, retry_after: &str) -> Result<u64, String> {
    if !retry_after.is_empty() && retry_after.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = retry_after.parse().unwrap_or(u64::MAX);
        return Duration::from_secs(seconds).into_us();
    }
    let date = DATE_FORMS.iter().find_map(|form| DateTime::strptime(form, retry_after).ok());
    let at = date.and_then(|date| Offset::UTC.to_timestamp(date).ok());
    let at = at.ok_or_else(|| format!("{retry_after:?} is neither seconds nor a date"))?;
    // In the past: at once.
    Duration::try_from(at.duration_since(now)).unwrap_or_default().into_us()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds before the date that RFC 9110 has in its examples.
    fn now() -> Timestamp {
        "1994-11-06T08:49:27Z".parse().unwrap()
    }

    fn failure(status: u16, retry_after: Option<&str>) -> Failure {
        failure_at(now(), status, retry_after, "no".into())
    }

    #[test]
    fn b04_every_status_has_the_class_of_its_meaning() {
        for status in 0..=1_000 {
            let failure = failure(status, None);
            let wanted = match status {
                408 | 425 | 429 => Class::Transient,
                401 | 403 | 404 => Class::Attention,
                500..=599 => Class::Transient,
                _ => Class::Permanent,
            };
            assert_eq!(failure.class(), wanted, "{status}");
            assert_eq!((failure.origin(), &*failure.type_name), (Origin::Body, "HttpStatus"));
            assert_eq!(failure.code, status.to_string());
            let certain = (400..500).contains(&status) && wanted != Class::Transient;
            let effect = if certain { Effect::None } else { Effect::Possible };
            assert_eq!(failure.effect(), effect, "{status}");
        }
    }

    #[test]
    fn b09_a_status_that_is_no_error_says_so() {
        assert_eq!(failure(402, None).message, "no");
        assert_eq!(failure_at(now(), 402, None, String::new()).message, "status 402");
        for status in [100, 200, 304, 399] {
            assert!(failure(status, None).message.contains("no error"), "{status}");
        }
        for status in [0, 99, 600, u16::MAX] {
            assert!(failure(status, None).message.contains("no HTTP status"), "{status}");
        }
    }

    #[test]
    fn b07_retry_after_is_read_in_all_its_forms() {
        let delay = |text| failure(503, Some(text)).retry_after_us;
        assert_eq!(delay("120"), Some(120_000_000));
        assert_eq!(delay(" 0 "), Some(0));
        assert_eq!(delay("Sun, 06 Nov 1994 08:49:37 GMT"), Some(10_000_000));
        assert_eq!(delay("Sunday, 06-Nov-94 08:49:37 GMT"), Some(10_000_000));
        assert_eq!(delay("Sun Nov  6 08:49:37 1994"), Some(10_000_000));
        assert_eq!(delay("Sun, 06 Nov 1994 08:49:27 GMT"), Some(0));
        assert_eq!(delay("Sat, 05 Nov 1994 08:49:37 GMT"), Some(0), "the past means at once");
        assert_eq!(failure(503, Some("120")).message, "no");
    }

    #[test]
    fn b09_a_retry_after_that_means_nothing_is_ignored_and_named() {
        for text in [
            "",
            "soon",
            "-1",
            "1.5",
            "+1",
            "99999999999999999999999999",
            "9999999999",
            "Sun, 06 Nov 2294 08:49:37 GMT",
            "Sun, 31 Feb 1995 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "1994-11-06T08:49:37Z",
        ] {
            let failure = failure(429, Some(text));
            assert_eq!(
                (failure.class(), failure.retry_after_us),
                (Class::Transient, None),
                "{text}"
            );
            let message = &failure.message;
            assert!(message.starts_with("no [Retry-After ignored: "), "{message}");
        }
    }

    #[test]
    fn b07_retry_after_counts_only_where_there_is_a_retry() {
        for status in [301, 404, 413] {
            let failure = failure(status, Some("120"));
            assert_eq!(failure.retry_after_us, None, "{status}");
            assert!(!failure.message.contains("Retry-After"), "{failure}");
        }
    }
}
