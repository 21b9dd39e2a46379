//! Bytes of any origin never bring anything down (P11): golden rows and journals are mutated, the
//! same way in every run of the tests, and read. `BACKSTITCH_FUZZ=100` goes on a hundred times as long.

#[path = "../dice/mod.rs"]
mod dice;
#[path = "../examples/mod.rs"]
mod examples;

mod bytes;
mod corpus;
mod rows;
mod targets;

use backstitch_core::run::Phase;
use dice::Dice;

/// So many mutants take a second or two where nothing is optimised.
const ROWS: usize = 40_000;
const JOURNALS: usize = 10_000;

/// `mutants`, or as many times more as somebody wants.
fn rounds(mutants: usize) -> usize {
    let times = std::env::var("BACKSTITCH_FUZZ").ok().and_then(|times| times.parse().ok());
    mutants * times.unwrap_or(1)
}

#[test]
fn p11_mutated_rows_are_read_or_refused_and_what_is_read_is_written_again_the_same() {
    let (mut dice, rows) = (Dice::new(11), corpus::rows());
    for row in &rows {
        let read = targets::read_row(row.clone()).expect("the corpus is read");
        assert_eq!(&targets::sealed(&read), row, "and written to the same bytes");
    }
    let (mut read, rounds) = (0, rounds(ROWS));
    for _ in 0..rounds {
        let row = &rows[dice.below(rows.len())];
        let other = &rows[dice.below(rows.len())];
        let mutant = bytes::mutate(&mut dice, row, other);
        read += usize::from(targets::read_row(mutant).is_some());
    }
    assert!(read > rounds / 20, "some are still rows: {read}");
}

#[test]
fn p11_mutated_journals_are_folded_and_replayed_or_refused() {
    let (mut dice, journals) = (Dice::new(13), corpus::journals());
    let journals: Vec<_> = journals.iter().map(|journal| corpus::decoded(journal)).collect();
    for journal in &journals {
        for length in 1..=journal.len() {
            targets::read_journal(&journal[..length]).expect("the corpus folds");
        }
    }
    let (mut folded, mut open, rounds) = (0, 0, rounds(JOURNALS));
    for _ in 0..rounds {
        let mut mutant = journals[dice.below(journals.len())].clone();
        mutant.truncate(1 + dice.below(mutant.len()));
        let others = &journals[dice.below(journals.len())];
        rows::mutate(&mut dice, &mut mutant, others);
        if dice.below(4) == 0 {
            let at = dice.below(mutant.len());
            bytes::mutate_header(&mut dice, &mut mutant[at]);
        }
        if let Some(run) = targets::read_journal(&mutant) {
            folded += 1;
            open += usize::from(!matches!(run.phase, Phase::Closed(_)));
        }
    }
    assert!(folded > rounds / 10, "some are still journals: {folded}");
    assert!(open > rounds / 20, "of runs that are open: {open}");
}

#[test]
fn p11_journals_of_mutated_bytes_are_folded_and_replayed_or_refused() {
    let (mut dice, journals) = (Dice::new(17), corpus::journals());
    for _ in 0..rounds(JOURNALS) {
        let mut mutant = journals[dice.below(journals.len())].clone();
        let others = &journals[dice.below(journals.len())];
        let at = dice.below(mutant.len());
        let other = &others[dice.below(others.len())];
        mutant[at] = bytes::mutate(&mut dice, &mutant[at], other);
        let rows: Option<Vec<_>> =
            mutant.into_iter().map(|row| backstitch_core::row::Row::decode(row).ok()).collect();
        if let Some(rows) = rows {
            targets::read_journal(&rows);
        }
    }
}
