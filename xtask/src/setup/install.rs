//! Installs a component so that a half-finished installation is never mistaken for a complete one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use super::component::Component;
use crate::problem::Problem;

/// `./runner` looks for it as well.
const STAMP: &str = ".complete";

pub fn is_complete(component: &dyn Component, deps: &Path) -> bool {
    fs::read_to_string(deps.join(component.folder()).join(STAMP)).is_ok_and(|stamp| {
        let first = stamp.lines().next();
        first.is_some_and(|line| component.accepts(line))
    })
}

pub fn install(component: &dyn Component, deps: &Path) -> Result<(), Problem> {
    let finished = deps.join(component.folder());
    let partial = finished.with_extension("partial");
    let replaced = finished.with_extension("replaced");
    remove(&partial)?;
    remove(&replaced)?;
    fs::create_dir_all(&partial).map_err(|error| Problem::io("create", &partial, &error))?;

    eprintln!("Fetching {} into {}", component.description(), finished.display());
    if let Err(problem) = component.fill(&partial) {
        // Frees the space; if this fails as well, the next set-up tries again.
        let _ = fs::remove_dir_all(&partial);
        return Err(problem);
    }
    write_stamp(component, &partial).map_err(|error| Problem::io("write the stamp in", &partial, &error))?;

    // Moved aside, not removed: removing takes long and may be interrupted.
    match fs::rename(&finished, &replaced) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Problem::io("move", &finished, &error));
        }
        _ => {}
    }
    fs::rename(&partial, &finished).map_err(|error| Problem::io("rename", &partial, &error))?;
    remove(&replaced)
}

/// Writes the requested version first, then everything that was installed.
fn write_stamp(component: &dyn Component, folder: &Path) -> io::Result<()> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if let Some(package) = name.to_string_lossy().strip_suffix(".dist-info") {
            packages.push(package.replacen('-', " ", 1));
        }
    }
    packages.sort();

    // Otherwise a power cut could leave a stamp without the files that it vouches for. Without
    // this command, the stamp still detects every other interruption.
    let _ = Command::new("sync").arg("-f").arg(folder).status();
    let mut stamp = File::create(folder.join(STAMP))?;
    writeln!(stamp, "{}\n{}", component.stamp(), packages.join("\n"))?;
    stamp.sync_all()
}

fn remove(folder: &Path) -> Result<(), Problem> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Problem::io("remove", folder, &error)),
        _ => Ok(()),
    }
}
