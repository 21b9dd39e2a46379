//! The code that is made from the .proto files is committed, so that nobody who builds Backstitch has to
//! make it. This test makes it again and compares; with `BACKSTITCH_GENERATE=1` it writes it.

use std::fs;
use std::path::Path;

#[test]
fn the_generated_code_is_that_of_the_proto_files() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let proto = here.join("proto");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let files =
        protox::compile(["backstitch/v1/worker.proto", "backstitch/v1/client.proto"], [&proto])
            .expect("it compiles");
    tonic_prost_build::configure().out_dir(out).compile_fds(files).expect("code can be made of it");
    let name = "backstitch.v1.rs";
    let made = fs::read_to_string(out.join(name)).expect("it was made");
    let kept = here.join("src/generated").join(name);
    if std::env::var_os("BACKSTITCH_GENERATE").is_some() {
        fs::create_dir_all(kept.parent().expect("it has one")).expect("the folder can be made");
        fs::write(&kept, &made).expect("it can be written");
    }
    let kept = fs::read_to_string(kept).unwrap_or_default();
    assert!(
        kept == made,
        "the .proto files have changed: run this test with BACKSTITCH_GENERATE=1, and commit src/generated"
    );
}
