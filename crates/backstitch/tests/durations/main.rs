//! Texts of any origin are durations or they are not; none brings anything down (P12).

mod text;

use std::time::Duration;

use backstitch::IntoDuration;
use backstitch::core::id::draw;
use backstitch::core::limits::DURATION_US_MAX;

use text::read;

/// So many mutants take a second or two where nothing is optimised.
const TEXTS: usize = 60_000;

const CORPUS: &[&str] = &[
    "30s",
    "1h 30m",
    "250ms",
    "2 days",
    "1 week 2 days",
    "1.5h",
    "3,000.25 seconds",
    "0.000001s",
    "999ns",
    "15 minutes, 7 seconds",
    "02:30:15.5",
    "2d 02:30:15",
    "PT1H30M",
    "P1DT2H",
    "P2W",
    "-PT5S",
    "-3s",
    "5m ago",
    "1y",
    "2 months",
    "P1Y2M",
    "36600 days",
    "36601 days",
    "3162240000000000us",
    "9223372036854775807us",
    "631107417600s",
    "99999999999999999999h",
    "1µs",
    "",
    " ",
    "s",
    "1",
    "forever",
    "1h1h",
    "\u{0}1s",
    "１s",
];

/// What mutants are made of, besides pieces of the corpus.
const ALPHABET: &[&str] = &[
    "0", "1", "9", "99999999", "-", "+", ".", ",", ":", " ", "P", "T", "Y", "M", "W", "D", "H",
    "S", "y", "mo", "w", "d", "h", "m", "s", "ms", "µs", "us", "ns", "ago", "e", "\u{0}", "\n",
    "é",
];

/// The `n`th number below `bound` of mutant `mutant`.
fn pick(mutant: usize, n: u64, bound: usize) -> usize {
    (draw(19, mutant as u64, n) % bound as u64) as usize
}

/// A text of the corpus, of which some characters are replaced, taken out or brought in.
fn mutated(mutant: usize) -> String {
    let mut text: Vec<char> = CORPUS[pick(mutant, 0, CORPUS.len())].chars().collect();
    for round in 0..=pick(mutant, 1, 4) as u64 {
        let n = 10 * (round + 1);
        let at = pick(mutant, n, text.len() + 1);
        let end = (at + pick(mutant, n + 1, 3)).min(text.len());
        let piece = match pick(mutant, n + 2, 3) {
            0 => "",
            1 => CORPUS[pick(mutant, n + 3, CORPUS.len())],
            _ => ALPHABET[pick(mutant, n + 3, ALPHABET.len())],
        };
        text.splice(at..end, piece.chars());
    }
    text.into_iter().collect()
}

#[test]
fn p12_texts_of_the_corpus_mean_what_they_say() {
    let meant = CORPUS.iter().filter_map(|text| read(text));
    let meant: Vec<u64> = meant.collect();
    let second = 1_000_000;
    let (minute, hour, day) = (60 * second, 3_600 * second, 86_400 * second);
    assert_eq!(
        meant[..6],
        [30 * second, hour + 30 * minute, 250_000, 2 * day, 9 * day, hour + 30 * minute]
    );
    assert_eq!(read("36600 days"), Some(DURATION_US_MAX));
    for nothing in ["36601 days", "-3s", "1y", "forever", "", "9223372036854775807us"] {
        assert_eq!(read(nothing), None, "{nothing:?}");
    }
}

#[test]
fn p12_mutated_texts_are_durations_or_refused() {
    let read = (0..TEXTS).filter(|mutant| read(&mutated(*mutant)).is_some()).count();
    assert!(read > TEXTS / 20, "some are durations: {read}");
}

#[test]
fn p12_durations_at_the_edges_are_durations_or_refused() {
    let longest = Duration::from_micros(DURATION_US_MAX);
    assert_eq!(longest.into_us(), Ok(DURATION_US_MAX));
    assert_eq!((longest + Duration::from_nanos(999)).into_us(), Ok(DURATION_US_MAX));
    for longer in [longest + Duration::from_micros(1), Duration::MAX] {
        assert!(longer.into_us().is_err_and(|why| why.contains("100 years")));
    }
}
