//! Runs `xtask test` against a stub of cargo, to check which tests it would run and how.

#![allow(clippy::unwrap_used)]

mod stubs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A machine with only stubs on its PATH, on which the set-up has nothing to do.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        // The user's own libtorch and cmake.
        let libtorch = machine.path("libtorch");
        fs::create_dir_all(libtorch.join("lib")).unwrap();
        fs::write(libtorch.join("lib/libtorch_cpu.so"), "").unwrap();
        fs::write(libtorch.join("build-version"), "2.13.0+cpu").unwrap();
        machine.stub("cmake", "echo cmake version 4.0.0");
        machine.stub("c++", "exit 0");
        machine.stub("cargo", "exit 0");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn stub(&self, name: &str, script: &str) {
        stubs::write(&self.path(name), &format!("#!/bin/sh\n{script}\n"));
    }

    fn test(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .arg("test")
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear()
            .env("PATH", self.0.path())
            .env("CARGO", self.path("cargo"))
            .env("LIBTORCH", self.path("libtorch"))
            .env("CMAKE", self.path("cmake"));
        stubs::output(&mut command)
    }

    /// As root on Debian, with an apt-get that logs its calls and then runs `script`.
    fn with_apt_get(script: &str) -> Self {
        let machine = Self::new();
        machine.stub("id", "echo 0");
        let log = machine.path("apt.log");
        machine.stub(
            "apt-get",
            &format!(
                "[ \"$1\" = --version ] && exit 0\necho \"$DEBIAN_FRONTEND $*\" >>'{}'\n{script}",
                log.display()
            ),
        );
        machine
    }

    /// The calls of apt-get, without the options that all of them share.
    fn apt_calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("apt.log")).unwrap_or_default();
        let all = "noninteractive -qq -o DPkg::Lock::Timeout=120 ";
        log.lines()
            .map(|line| line.strip_prefix(all).unwrap().to_owned())
            .collect()
    }
}

const INSTALL: &str = "install -y --no-install-recommends";

#[test]
fn forwards_arguments_and_exit_code() {
    let machine = Machine::new();
    machine.stub("cargo", "pwd; printf '<%s>' \"$@\"; echo; echo $LIBTORCH; exit 7");
    let output = machine.test(&["a name", "--", "--nocapture"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let expected = format!(
        "{}\n<test><--release><--workspace><a name><--><--nocapture>\n{}\n",
        root.display(),
        machine.path("libtorch").display()
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.status.code(), Some(7));
}

/// Two programs; one test is missing two things, and a skipped test does not count as passed.
#[test]
fn summarises_the_skipped_tests() {
    let machine = Machine::new();
    let script = "\
printf 'a: first\\tno Slurm\\nb: second\\tno data\\nb: second\\tno weights\\n' >>$EBIPLA_SKIPPED_TESTS
echo 'test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s'
echo 'test result: ok. 10 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.01s'
exit 101";
    machine.stub("cargo", script);
    let output = machine.test(&[]);
    assert_eq!(output.status.code(), Some(101));
    let said = String::from_utf8(output.stdout).unwrap();
    let (_, end) = said.split_once("2 filtered out; finished in 0.01s\n").unwrap();
    assert_eq!(
        end,
        "\nskipped:\n  a: first: no Slurm\n  b: second: no weights\n\n11 passed, 1 failed, 2 skipped\n"
    );
}

#[test]
fn reports_tests_that_will_be_skipped_if_packages_cannot_be_installed() {
    let machine = Machine::with_apt_get("exit 0");
    machine.stub("id", "echo 1000");
    let output = machine.test(&[]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    for word in [
        "tests with a real Slurm",
        "real browser will be skipped",
        "slurm-wlm, munge, chromium, chromium-driver",
    ] {
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(machine.apt_calls(), [""; 0]);
}

#[test]
fn installs_only_the_missing_packages() {
    let machine = Machine::with_apt_get("exit 0");
    for program in ["slurmctld", "slurmd", "sbatch", "munged"] {
        machine.stub(program, "exit 0");
    }
    assert!(machine.test(&[]).status.success());
    assert_eq!(
        machine.apt_calls(),
        [format!("{INSTALL} chromium chromium-driver")]
    );
    machine.stub("chromium", "exit 0");
    machine.stub("chromedriver", "exit 0");
    fs::remove_file(machine.path("apt.log")).unwrap();
    assert!(machine.test(&[]).status.success());
    assert_eq!(machine.apt_calls(), [""; 0]);
}

#[test]
fn updates_missing_package_lists_and_continues_if_that_fails() {
    let machine = Machine::with_apt_get("echo E: no such package >&2; exit 100");
    let output = machine.test(&[]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("will be skipped") && said.contains("E: no such package"),
        "{said}"
    );
    let install = format!("{INSTALL} slurm-wlm munge chromium chromium-driver");
    assert_eq!(machine.apt_calls(), [install.clone(), "update".into()]);

    let machine = Machine::with_apt_get("case \"$*\" in *update) touch lists ;; *) [ -e lists ] ;; esac");
    machine.stub("touch", ": >\"$1\"");
    assert!(machine.test(&[]).status.success());
    assert_eq!(machine.apt_calls(), [install.clone(), "update".into(), install]);
}
