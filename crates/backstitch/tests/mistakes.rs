//! What the compiler says to the usual mistakes.
//!
//! The expected messages are those of the pinned toolchain; `TRYBUILD=overwrite` writes them anew.
//! Read them before you keep them: they are for people.

#[test]
fn the_usual_mistakes_get_messages_that_say_what_to_do() {
    let mistakes = trybuild::TestCases::new();
    mistakes.compile_fail("tests/mistakes/*.rs");
}
