//! Has the linker take one function of the C library along.

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script what it builds for by variables")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The standard library looks for this function at run time, and a static binary has only what was asked for when it was linked. Without it every program
    // that is started in a folder of its own costs a copy of the whole process.
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu")
        && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
    {
        println!("cargo::rustc-link-arg=-Wl,-u,posix_spawn_file_actions_addchdir_np");
    }
}
