//! Runs `xtask test` against a stub of cargo, to see which tests it would run and how.

#![allow(clippy::unwrap_used)]

mod stubs;

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn passes_arguments_and_exit_code_on() {
    let scratch = tempfile::tempdir().unwrap();
    let stub = |name: &str, script: &str| {
        let path = scratch.path().join(name);
        stubs::write(&path, &format!("#!/bin/sh\n{script}\n"));
        path
    };
    // A libtorch and a cmake of the user's own, so that the set-up has nothing to do.
    let libtorch = scratch.path().join("libtorch");
    fs::create_dir_all(libtorch.join("lib")).unwrap();
    fs::write(libtorch.join("lib/libtorch_cpu.so"), "").unwrap();
    fs::write(libtorch.join("build-version"), "2.13.0+cpu").unwrap();
    let cmake = stub("cmake", "echo cmake version 4.0.0");
    stub("c++", "exit 0");
    let cargo = stub("cargo", "pwd; printf '<%s>' \"$@\"; echo; echo $LIBTORCH; exit 7");

    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .args(["test", "a name", "--", "--nocapture"])
        .current_dir(scratch.path())
        .env_clear()
        .env("PATH", scratch.path())
        .env("CARGO", cargo)
        .env("LIBTORCH", &libtorch)
        .env("CMAKE", cmake);
    let output = stubs::output(&mut command);

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let expected = format!(
        "{}\n<test><--release><--workspace><a name><--><--nocapture>\n{}\n",
        root.display(),
        libtorch.display()
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.status.code(), Some(7));
}
