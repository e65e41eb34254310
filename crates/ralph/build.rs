//! Arguments for the linker.

#[expect(clippy::disallowed_methods, reason = "cargo and xtask tell a build script by variables what it builds")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The standard library looks for this function at run time, and a static binary has only what was asked for when it was linked. Without it every program
    // that is started in a folder of its own costs a copy of the whole process.
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu")
        && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
    {
        println!("cargo::rustc-link-arg=-Wl,-u,posix_spawn_file_actions_addchdir_np");
    }
    // Set by xtask for what is released: a script that puts the functions of a hook call side by side, and where the linker says which function is where.
    for (variable, option) in [("RALPH_LINKER_SCRIPT", "-T,"), ("RALPH_LINKER_MAP", "-Map=")] {
        println!("cargo::rerun-if-env-changed={variable}");
        let Ok(path) = std::env::var(variable) else { continue };
        if variable.ends_with("SCRIPT") {
            println!("cargo::rerun-if-changed={path}");
        }
        println!("cargo::rustc-link-arg-bins=-Wl,{option}{path}");
    }
}
