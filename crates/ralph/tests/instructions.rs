//! The hook must not grow: the instructions of its two paths, counted on the release build, stay within 10 % of the recorded numbers.
//!
//! The counting is `cargo xtask instructions`; this test runs it. Cargo has let go of its build folder by the time that tests run, so a
//! build from within one waits for nobody.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the test starts cargo")]

use std::process::Command;

use ralph_testkit::Skip;

/// What the tool answers where it cannot count.
const SKIPPED: i32 = 77;

#[test]
fn a_hook_call_takes_no_more_instructions_than_recorded() {
    if cfg!(not(target_os = "linux")) {
        return Skip("valgrind counts on Linux only".to_owned()).report();
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).args(["xtask", "instructions"]);
    // Under coverage the tool itself must not be instrumented: its profile would end up among the product's.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "LLVM_PROFILE_FILE"] {
        cargo.env_remove(name);
    }
    let output = cargo.output().expect("cargo runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.code() {
        Some(0) => {}
        Some(SKIPPED) => Skip(stdout.trim().trim_start_matches("skipped: ").to_owned()).report(),
        _ => panic!("{stdout}\n{stderr}"),
    }
}
