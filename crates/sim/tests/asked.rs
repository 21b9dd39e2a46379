//! What the program answers to what it is asked for.

use std::process::{Command, Output, Stdio};

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sim")).args(args).output().unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = sim(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn help_goes_to_the_output_and_explains_each_option() {
    let output = sim(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    for option in ["--seeds N ", "--from S ", "--jobs N ", "--seed S ", "--trace ", "--no-shrink "]
    {
        assert!(said.contains(&format!("\n  {option}")), "{option}: {said}");
    }
    assert!(said.contains("(default: 1000)"), "{said}");
}

#[test]
fn what_cannot_be_meant_is_refused_by_its_name() {
    for (args, why) in [
        (&["--sedes", "3"][..], "there is no option \"--sedes\""),
        (&["--seeds"], "--seeds needs a number"),
        (&["--seeds", "many"], "--seeds takes a whole number from 0 to "),
        (&["--seed", "-1"], "and \"-1\" is none"),
        (&["--from", "18446744073709551616"], "\"18446744073709551616\" is none"),
        (&["--seeds", "0"], "--seeds 0 asks for nothing"),
        (&["--jobs", "0"], "--jobs 0 is out of range"),
        (&["--jobs", "5000"], "--jobs 5000 is out of range"),
        (&["--seed", "1", "--seeds", "2"], "--seed asks for one seed and --seeds for others"),
        (&["--seed", "1", "--from", "2"], "--from for others"),
        (&["--trace"], "say which one with --seed"),
        (&["--seeds", "1", "--seeds", "2"], "--seeds is given twice"),
        (&["--from", "18446744073709551615", "--seeds", "2"], "go beyond the last seed"),
    ] {
        let said = refused(args);
        assert!(said.contains(why), "{args:?}: {said}");
        assert!(said.contains("sim --help"), "{args:?}: {said}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let mut sim = Command::new(env!("CARGO_BIN_EXE_sim"));
    sim.args(["--seed", "1", "--trace"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = sim.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    // Whether the seed breaks a promise is for other tests.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
}
