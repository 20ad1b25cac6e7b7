//! System programs that tests start, and their installation. Without them those tests are skipped.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::output;

struct Wanted {
    /// Looked up on the PATH.
    programs: &'static [&'static str],
    /// The Debian packages that contain them.
    packages: &'static [&'static str],
    /// The tests that start them.
    tests: &'static str,
}

const WANTED: [Wanted; 2] = [
    Wanted {
        programs: &["slurmctld", "slurmd", "sbatch", "munged"],
        packages: &["slurm-wlm", "munge"],
        tests: "tests with a real Slurm",
    },
    Wanted {
        programs: &["chromium", "chromedriver"],
        packages: &["chromium", "chromium-driver"],
        tests: "tests of reports in a real browser",
    },
];

/// Installs missing packages if possible; otherwise reports which tests will be skipped.
pub fn install_for_tests() {
    let missing = missing();
    if missing.is_empty() {
        return;
    }
    let packages: Vec<_> = missing
        .iter()
        .flat_map(|wanted| wanted.packages)
        .copied()
        .collect();
    if !may_install() {
        report(&missing, "as root on Debian or Ubuntu this command installs them");
        return;
    }
    println!("Installing {} for the tests ...", packages.join(", "));
    // The package lists may be missing or too old.
    let installed = install(&packages).or_else(|_| apt_get(&["update"]).and_then(|()| install(&packages)));
    if let Err(trouble) = installed {
        report(&self::missing(), &trouble);
    }
}

fn missing() -> Vec<&'static Wanted> {
    let there = |program: &&'static str| {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).any(|folder: PathBuf| folder.join(program).is_file())
    };
    let all_there = |wanted: &&Wanted| wanted.programs.iter().all(there);
    WANTED.iter().filter(|wanted| !all_there(wanted)).collect()
}

/// Whether this runs as root on a system with Debian packages.
fn may_install() -> bool {
    let user = output::of(Command::new("id").arg("-u"));
    user.is_some_and(|user| user.trim() == "0") && output::runs("apt-get")
}

fn install(packages: &[&str]) -> Result<(), String> {
    apt_get(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}

/// Runs apt-get without questions; its output matters only if it fails.
fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("apt-get")
        // Another apt-get may be running, such as from cargo xtask test in another checkout.
        .args(["-qq", "-o", "DPkg::Lock::Timeout=120"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("could not start apt-get: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("apt-get {} failed: {said}", arguments.join(" ")))
}

fn report(missing: &[&Wanted], why: &str) {
    let list = |of: fn(&Wanted) -> String| missing.iter().map(|wanted| of(wanted)).collect::<Vec<_>>();
    let tests = list(|wanted| wanted.tests.to_owned()).join(" and ");
    let packages = list(|wanted| wanted.packages.join(", ")).join(", ");
    eprintln!("The {tests} will be skipped; they need {packages} ({why}).");
}
