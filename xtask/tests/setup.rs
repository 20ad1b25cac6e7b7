//! Runs the real set-up against stubs of the programs that it calls, to check without network
//! that each failure is reported to users.

#![allow(clippy::unwrap_used)]

mod stubs;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// Imitates pip: logs the call, then fills the target.
const PIP: &str = r#"
case "$*" in
--version | "-m pip --version") exit 0 ;;
"-c "*)
    echo "$*" >>"$SCRATCH/python.log"
    echo 3.11
    exit 0
    ;;
esac
echo "$*" >>"$SCRATCH/pip.log"
[ -d "$TMPDIR" ] || exit 9
echo "$TMPDIR" >"$SCRATCH/pip.tmpdir"
everything="$*"
while [ "$1" != --target ]; do shift; done
target=$2
case $everything in
*torch==*)
    mkdir -p "$target/torch/lib" "$target/torch-2.13.0.dist-info"
    for library in torch torch_cpu torch_cuda torch_nvshmem torch_python c10 c10_cuda; do
        touch "$target/torch/lib/lib$library.so"
    done
    touch "$target/torch/lib/libtorch_cuda_linalg.so"
    cat >"$target/torch-2.13.0.dist-info/METADATA" <<END
Name: torch
Requires-Dist: sympy>=1.13.3
Requires-Dist: cuda-toolkit[cublas,cudart]==13.0.3; platform_system == "Linux"
Requires-Dist: nvidia-nccl-cu13==2.29.7; platform_system == "Linux"
Requires-Dist: triton==3.7.1; platform_system == "Linux"
END
    ;;
*cmake==*)
    mkdir -p "$target/cmake/data/bin" "$target/cmake-4.4.4.dist-info"
    touch "$target/cmake/data/bin/cmake"
    ;;
esac
"#;

const TOO_SMALL: &str = "echo 'Filesystem 1024-blocks Used Available Capacity Mounted on'
echo '/dev/my disk 9000000 8000000 1000000 89% /some where'";

/// An isolated machine: a PATH with only stubs, and a folder for `.deps`.
struct Machine {
    scratch: TempDir,
    variables: Vec<(String, String)>,
}

impl Machine {
    /// A machine on which everything works.
    fn new() -> Self {
        let machine = Self {
            scratch: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        };
        machine.stub("python3", PIP);
        machine.stub("c++", "exit 0");
        machine.stub("uname", "echo Linux x86_64");
        machine.stub("getconf", "echo glibc 2.36");
        machine.stub("df", "echo header; echo '/dev/disk 99000000 1 98000000 1% /'");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn deps(&self, name: &str) -> PathBuf {
        self.path("deps").join(name)
    }

    /// Puts a script on the PATH.
    fn stub(&self, name: &str, script: &str) {
        let script = format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n");
        stubs::write(&self.path("bin").join(name), &script);
    }

    fn without(&self, name: &str) {
        fs::remove_file(self.path("bin").join(name)).unwrap();
    }

    fn set(&mut self, name: &str, value: impl AsRef<Path>) {
        let value = value.as_ref().to_str().unwrap().to_owned();
        self.variables.push((name.to_owned(), value));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .args(arguments)
            .current_dir(self.scratch.path())
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("SCRATCH", self.scratch.path())
            .envs(self.variables.clone());
        command
    }

    fn setup(&self, arguments: &[&str]) -> Outcome {
        let deps = self.path("deps");
        let fixed = ["setup", "--into", deps.to_str().unwrap()];
        let mut command = self.command(&[&fixed, arguments].concat());
        Outcome::of(stubs::output(&mut command))
    }

    /// The arguments of pip, call by call.
    fn pip_calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("pip.log")).unwrap_or_default();
        log.lines().map(String::from).collect()
    }

    /// The user's own libtorch, with a version in one of the files that may contain it.
    fn own_libtorch(&self, file: &str, version: &str) -> PathBuf {
        let own = self.path("own libtorch");
        fs::create_dir_all(own.join("lib")).unwrap();
        fs::write(own.join("lib/libtorch_cpu.so"), "").unwrap();
        let file = own.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, version).unwrap();
        own
    }
}

struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Outcome {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    fn succeeds(&self) {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        assert_eq!(self.stdout, "The set-up is complete.\n");
    }

    #[track_caller]
    fn fails_with(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(1), "{}", self.stderr);
        assert_eq!(self.stdout, "");
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in:\n{}", self.stderr);
        }
    }
}

fn libraries(machine: &Machine) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(machine.deps("libtorch/torch/lib"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn installs_for_cpu_and_reports_what_it_downloads() {
    let machine = Machine::new();
    let outcome = machine.setup(&[]);
    outcome.succeeds();
    let into = machine.deps("libtorch");
    let line = format!(
        "Fetching libtorch 2.13.0 for cpu (about 540 MB) into {}",
        into.display()
    );
    assert!(outcome.stderr.contains(&line), "{}", outcome.stderr);

    assert_eq!(
        libraries(&machine),
        ["libc10.so", "libtorch.so", "libtorch_cpu.so"]
    );
    let stamp = fs::read_to_string(machine.deps("libtorch/.complete")).unwrap();
    assert_eq!(stamp, "torch 2.13.0 cpu\ntorch 2.13.0\n");
    let stamp = fs::read_to_string(machine.deps("cmake/.complete")).unwrap();
    assert_eq!(stamp, "cmake 4.4\ncmake 4.4.4\n");
    assert!(machine.deps("cmake/cmake/data/bin/cmake").exists());

    let calls = machine.pip_calls();
    assert_eq!(calls.len(), 2);
    assert!(calls[0].contains("torch==2.13.0 nvidia-cuda-runtime==13.0.*"));
    assert!(calls.iter().all(|call| call.contains("--no-deps")));
}

#[test]
fn pip_uses_a_temporary_folder_that_is_removed_afterwards() {
    let machine = Machine::new();
    machine.setup(&[]).succeeds();
    let temporary = fs::read_to_string(machine.path("pip.tmpdir")).unwrap();
    assert!(Path::new(temporary.trim()).starts_with(machine.path("deps")));
    let mut left: Vec<_> = fs::read_dir(machine.path("deps"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["cmake", "libtorch", "lock"]);
    assert!(!machine.deps("libtorch/.tmp").exists());
}

#[test]
fn a_second_set_up_neither_calls_pip_nor_needs_python() {
    let machine = Machine::new();
    machine.setup(&[]).succeeds();
    machine.without("python3");
    let outcome = machine.setup(&[]);
    outcome.succeeds();
    assert_eq!(outcome.stderr, "");
    assert_eq!(machine.pip_calls().len(), 2);
}

#[test]
fn cuda_replaces_cpu_and_is_kept_by_a_plain_set_up() {
    let machine = Machine::new();
    machine.setup(&[]).succeeds();
    machine.setup(&["--cuda"]).succeeds();
    let calls = machine.pip_calls();
    assert_eq!(calls.len(), 4);
    assert!(calls[2].contains("--no-deps") && calls[2].contains("torch==2.13.0"));
    // Of torch's dependencies, only those that are not Python packages, and with their dependencies.
    assert!(!calls[3].contains("--no-deps"));
    assert!(calls[3].ends_with(" cuda-toolkit[cublas,cudart]==13.0.3 nvidia-nccl-cu13==2.29.7"));

    let names = libraries(&machine);
    assert!(names.contains(&"libtorch_cuda.so".to_owned()));
    assert!(!names.contains(&"libtorch_python.so".to_owned()));
    assert!(!machine.deps("libtorch.replaced").exists());

    machine.setup(&[]).succeeds();
    machine.setup(&["--cuda"]).succeeds();
    assert_eq!(machine.pip_calls().len(), 4);
}

#[test]
fn installs_the_benchs_peers_on_request() {
    let machine = Machine::new();
    machine.setup(&[]).succeeds();
    assert!(!machine.deps("bench").exists());
    assert!(
        !machine.path("python.log").exists(),
        "the version is queried only where it matters"
    );
    machine.setup(&["--peers"]).succeeds();
    let calls = machine.pip_calls();
    assert_eq!(calls.len(), 3);
    assert!(
        calls[2].ends_with(" torch==2.13.0 jax==0.10.* numpy==2.*"),
        "{calls:?}"
    );
    assert!(!calls[2].contains("--no-deps"));
    let stamp = fs::read_to_string(machine.deps("bench/.complete")).unwrap();
    assert!(stamp.contains("for Python 3.11"), "{stamp}");

    machine.setup(&["--peers"]).succeeds();
    assert_eq!(machine.pip_calls().len(), 3, "once is enough");
    machine.without("python3");
    machine.setup(&["--peers"]).fails_with(&["python3"]);
}

#[test]
fn a_libtorch_of_another_version_is_replaced() {
    let machine = Machine::new();
    machine.setup(&[]).succeeds();
    fs::write(machine.deps("libtorch/.complete"), "torch 2.12.0 cpu\n").unwrap();
    machine.setup(&[]).succeeds();
    assert_eq!(machine.pip_calls().len(), 3);
}

#[test]
fn a_failed_download_leaves_nothing_and_can_be_repeated() {
    let machine = Machine::new();
    machine.stub(
        "python3",
        r#"case "$*" in *--version) exit 0 ;; esac
        while [ "$1" != --target ]; do shift; done
        mkdir -p "$2/torch"
        echo 'ERROR: Could not find a version that satisfies torch' >&2
        exit 1"#,
    );
    machine.setup(&[]).fails_with(&[
        "ERROR: Could not find a version that satisfies torch",
        "error: pip failed",
        "PIP_INDEX_URL",
        "set LIBTORCH to the folder of a libtorch 2.13.0",
        "CMAKE to a cmake 3.26 or newer",
    ]);
    assert!(!machine.deps("libtorch").exists());
    assert!(!machine.deps("libtorch.partial").exists());

    machine.stub("python3", PIP);
    machine.setup(&[]).succeeds();
}

#[test]
fn a_killed_set_up_is_repeated() {
    let machine = Machine::new();
    // Ends the whole set-up in the middle of the download, without a chance to clean up.
    machine.stub(
        "python3",
        r#"case "$*" in *--version) exit 0 ;; esac
        while [ "$1" != --target ]; do shift; done
        mkdir -p "$2/torch/lib"
        touch "$2/torch/lib/libtorch_half.so"
        kill -9 $PPID"#,
    );
    assert_eq!(machine.setup(&[]).code, None);
    assert!(machine.deps("libtorch.partial").exists());
    assert!(!machine.deps("libtorch").exists());

    machine.stub("python3", PIP);
    machine.setup(&[]).succeeds();
    assert!(!libraries(&machine).contains(&"libtorch_half.so".to_owned()));
    assert!(!machine.deps("libtorch.partial").exists());
}

#[test]
fn a_folder_without_a_stamp_is_installed_again() {
    let machine = Machine::new();
    for folder in ["libtorch", "cmake"] {
        fs::create_dir_all(machine.deps(folder)).unwrap();
        fs::write(machine.deps(folder).join("half"), "").unwrap();
    }
    machine.setup(&[]).succeeds();
    assert_eq!(machine.pip_calls().len(), 2);
    assert!(!machine.deps("libtorch/half").exists());
    assert!(!machine.deps("cmake/half").exists());
}

#[test]
fn two_set_ups_at_once_take_turns() {
    let machine = Machine::new();
    // The first one continues only when the second one waits for it.
    let go = machine.path("go");
    let wait = format!(
        "target=$2; while [ ! -e '{}' ]; do sleep 0.01; done",
        go.display()
    );
    machine.stub("python3", &PIP.replace("target=$2", &wait));
    let deps = machine.path("deps");
    let arguments = ["setup", "--into", deps.to_str().unwrap()];
    let first = stubs::spawn(&mut machine.command(&arguments));
    while machine.pip_calls().is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    let mut second = stubs::spawn(&mut machine.command(&arguments));
    let mut stderr = BufReader::new(second.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Waiting for another set-up") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    fs::write(go, "").unwrap();
    Outcome::of(second.wait_with_output().unwrap()).succeeds();
    Outcome::of(first.wait_with_output().unwrap()).succeeds();
    assert_eq!(machine.pip_calls().len(), 2);
}

#[test]
fn reports_a_missing_python() {
    let machine = Machine::new();
    machine.without("python3");
    machine
        .setup(&[])
        .fails_with(&["python3 is not on the PATH", "apt install", "dnf install"]);
}

#[test]
fn reports_a_missing_pip() {
    let machine = Machine::new();
    machine.stub("python3", "[ \"$1\" = --version ]");
    machine.setup(&[]).fails_with(&[
        "python3 has no pip",
        "apt install python3-pip",
        "dnf install python3-pip",
        "ensurepip",
    ]);
}

#[test]
fn reports_a_missing_compiler() {
    let mut machine = Machine::new();
    machine.without("c++");
    machine
        .setup(&[])
        .fails_with(&["no C++ compiler", "apt install g++", "set CXX"]);

    machine.stub("clang++", "exit 0");
    machine
        .setup(&[])
        .fails_with(&["only clang++", "export CXX=clang++"]);

    machine.set("CXX", "clang++ -O1");
    machine.setup(&[]).succeeds();

    machine.set("CXX", "nonsense++");
    machine
        .setup(&[])
        .fails_with(&["CXX names, nonsense++, does not run"]);
}

#[test]
fn reports_a_small_or_full_disk() {
    let machine = Machine::new();
    machine.stub("df", TOO_SMALL);
    machine.setup(&[]).fails_with(&[
        "too little disk space",
        "2.2 GiB are needed, 1.0 GiB are free",
        "symbolic link",
    ]);
    assert!(machine.pip_calls().is_empty());

    machine.stub("df", "exit 1");
    machine.stub(
        "python3",
        "case \"$*\" in *--version) exit 0 ;; esac
        echo 'ERROR: [Errno 28] No space left on device' >&2; exit 1",
    );
    machine.setup(&[]).fails_with(&["is full", "Free some space"]);
}

#[test]
fn reports_an_unsupported_platform() {
    let machine = Machine::new();
    machine.stub("getconf", "echo glibc 2.27");
    machine.setup(&[]).fails_with(&["with glibc 2.27"]);
    machine.without("getconf");
    machine.setup(&[]).fails_with(&["without glibc"]);
    machine.stub("uname", "echo Darwin arm64");
    machine.setup(&[]).fails_with(&[
        "only be installed on Linux x86_64 with glibc 2.28 or newer, but this is Darwin arm64",
        "set LIBTORCH",
    ]);
    assert!(machine.pip_calls().is_empty());
}

#[test]
fn reports_missing_write_permission() {
    let machine = Machine::new();
    fs::write(machine.path("deps"), "a file in the way").unwrap();
    machine
        .setup(&[])
        .fails_with(&["could not create", "then run the command again"]);
}

#[test]
fn reports_all_problems_at_once() {
    let mut machine = Machine::new();
    machine.without("python3");
    machine.without("c++");
    machine.stub("df", TOO_SMALL);
    machine.stub("uname", "echo Linux aarch64");
    machine.set("CMAKE", machine.path("none"));
    let outcome = machine.setup(&[]);
    outcome.fails_with(&[
        "python3 is not on the PATH",
        "no C++ compiler",
        "too little disk space",
        "Linux aarch64",
        "does not run",
    ]);
    assert_eq!(outcome.stderr.matches("error: ").count(), 5);
}

#[test]
fn accepts_the_users_own_libtorch_and_cmake_of_the_right_version() {
    for (file, version) in [
        ("build-version", "2.13.0+cpu\n"),
        ("version.py", "debug = False\n__version__ = '2.13.0+cu130'\n"),
        (
            "include/torch/headeronly/version.h",
            "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 13\n\
             #define TORCH_VERSION_PATCH 0\n",
        ),
    ] {
        let mut machine = Machine::new();
        let own = machine.own_libtorch(file, version);
        machine.set("LIBTORCH", own);
        machine.stub("my-cmake", "echo cmake version 3.26.4");
        machine.set("CMAKE", "my-cmake");
        // Nothing is left to install, so no installer is needed.
        machine.without("python3");
        machine.stub("uname", "echo Darwin arm64");
        machine.setup(&[]).succeeds();
        assert!(!machine.path("deps").exists());

        machine
            .setup(&["--cuda"])
            .fails_with(&["LIBTORCH=", "hence no CUDA"]);
    }
}

#[test]
fn installs_only_cmake_beside_the_users_own_libtorch() {
    let mut machine = Machine::new();
    let own = machine.own_libtorch("build-version", "2.13.0+cpu");
    machine.set("LIBTORCH", own);
    machine.setup(&[]).succeeds();
    assert!(machine.deps("cmake/.complete").exists());
    assert!(!machine.deps("libtorch").exists());
}

#[test]
fn refuses_an_unsuitable_libtorch_of_the_user() {
    let mut machine = Machine::new();
    let own = machine.own_libtorch("version.py", "__version__ = '2.1.0+cpu'\n");
    machine.set("LIBTORCH", &own);
    machine
        .setup(&[])
        .fails_with(&["LIBTORCH=", "is version 2.1.0, not 2.13.0", "unset it"]);
    fs::remove_file(own.join("version.py")).unwrap();
    machine.setup(&[]).fails_with(&["does not state its version"]);
    fs::remove_file(own.join("lib/libtorch_cpu.so")).unwrap();
    machine.setup(&[]).fails_with(&["has no lib/libtorch_cpu.so"]);
    machine.set("LIBTORCH", "own libtorch");
    machine.setup(&[]).fails_with(&["is not an absolute path"]);
    assert!(machine.pip_calls().is_empty());
}

#[test]
fn refuses_a_cmake_of_the_user_that_is_too_old() {
    let mut machine = Machine::new();
    machine.stub("old-cmake", "echo cmake version 3.9.1");
    machine.set("CMAKE", "old-cmake");
    machine
        .setup(&[])
        .fails_with(&["CMAKE=old-cmake is version 3.9.1, older than 3.26", "unset it"]);
}

/// Cargo sets both variables for us; they must not be mistaken for the user's own.
#[test]
fn cargos_defaults_are_not_the_users_own() {
    let mut machine = Machine::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    machine.set("LIBTORCH", root.join(".deps/libtorch/torch"));
    machine.set("CMAKE", root.join(".deps/cmake/cmake/data/bin/cmake"));
    machine.setup(&[]).succeeds();
    assert_eq!(machine.pip_calls().len(), 2);

    let config = fs::read_to_string(root.join(".cargo/config.toml")).unwrap();
    assert!(config.contains("\".deps/libtorch/torch\""));
    assert!(config.contains("\".deps/cmake/cmake/data/bin/cmake\""));
}

#[test]
fn a_wrong_command_line_shows_the_usage() {
    let machine = Machine::new();
    for arguments in [&[][..], &["nonsense"], &["setup", "--cudo"], &["setup", "--into"]] {
        let output = stubs::output(&mut machine.command(arguments));
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("Usage:"), "{stderr}");
    }
}
