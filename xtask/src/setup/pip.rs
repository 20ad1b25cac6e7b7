//! Downloads packages with pip, which supports mirrors, proxies, retries and a progress bar.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{output, own, platform};
use crate::problem::Problem;

#[derive(PartialEq)]
pub enum Dependencies {
    Install,
    Skip,
}

/// The Python that the packages are for.
#[derive(PartialEq)]
pub enum Python {
    /// None: the parts of them that we use are not run by Python.
    None,
    /// The one on the PATH, which will import them.
    This,
}

pub fn problem() -> Option<Problem> {
    if !output::runs("python3") {
        return Some(Problem::new(
            "python3 is not on the PATH; its pip downloads libtorch and CMake",
            "Install it with pip: `apt install python3-pip` (Debian, Ubuntu) or \
             `dnf install python3-pip` (Fedora).",
        ));
    }
    let pip = output::of(Command::new("python3").args(["-m", "pip", "--version"]));
    pip.is_none().then(|| {
        Problem::new(
            "python3 has no pip, which downloads libtorch and CMake",
            "Install it: `apt install python3-pip` (Debian, Ubuntu), \
             `dnf install python3-pip` (Fedora), or else `python3 -m ensurepip --user`.",
        )
    })
}

/// Installs `packages` into `folder`. Existing folders inside it are left as they are.
pub fn install(
    packages: &[String],
    dependencies: Dependencies,
    python: Python,
    folder: &Path,
) -> Result<(), Problem> {
    // Not in /tmp, which is often small and on another disk than the one that was checked.
    let temporary = folder.join(".tmp");
    fs::create_dir_all(&temporary).map_err(|error| Problem::io("create", &temporary, &error))?;

    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--no-compile"])
        // Older versions of pip hold files in memory to cache them, even such big ones.
        .arg("--no-cache-dir")
        .arg("--only-binary=:all:")
        .args(match python {
            Python::None => platforms(),
            Python::This => Vec::new(),
        })
        .arg("--target")
        .arg(folder)
        .args(packages)
        .env("TMPDIR", &temporary)
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        // The warning concerns system folders.
        .env("PIP_ROOT_USER_ACTION", "ignore")
        // Settings of some users that conflict with `--target`.
        .env("PIP_USER", "0")
        .env("PIP_REQUIRE_VIRTUALENV", "0");
    if dependencies == Dependencies::Skip {
        pip.arg("--no-deps");
    }
    run(&mut pip, folder)?;
    fs::remove_dir_all(&temporary).map_err(|error| Problem::io("remove", &temporary, &error))
}

/// Specifies the packages' platform, so that the Python that runs pip does not matter.
fn platforms() -> Vec<String> {
    let mut arguments = vec![
        "--python-version=3.12".to_owned(),
        "--platform=manylinux2014_x86_64".to_owned(),
    ];
    // For pip, a platform does not include the older ones that it is compatible with.
    let (major, newest) = platform::OLDEST_GLIBC;
    for minor in (17..=newest).rev() {
        arguments.push(format!("--platform=manylinux_{major}_{minor}_x86_64"));
    }
    arguments
}

/// Shows pip's output, progress bar included, and scans its errors.
fn run(pip: &mut Command, folder: &Path) -> Result<(), Problem> {
    let failed = |error: &io::Error| Problem::io("run pip for", folder, error);
    let mut child = pip
        .stdout(Stdio::from(io::stderr()))
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;

    let mut disk_full = false;
    if let Some(errors) = child.stderr.take() {
        for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line);
            disk_full |= text.contains("No space left") || text.contains("quota exceeded");
            // The installation continues even if the terminal has gone away.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
    if child.wait().map_err(|error| failed(&error))?.success() {
        Ok(())
    } else if disk_full {
        Err(Problem::new(
            format!("the disk of {} is full", folder.display()),
            "Free some space, then run the command again.",
        ))
    } else {
        Err(Problem::new(
            "pip failed (see its messages above), most often because the package index cannot be reached",
            format!(
                "Check the network and run the command again, or set a proxy or an index for \
                 pip (HTTPS_PROXY, PIP_INDEX_URL).\n  Or provide both yourself: {}.",
                own::advice()
            ),
        ))
    }
}
