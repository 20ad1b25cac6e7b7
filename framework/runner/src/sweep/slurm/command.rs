//! Calls Slurm's own programs, and passes on in their words what goes wrong.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Submits a script and returns the job's id.
pub fn sbatch(script: &Path) -> anyhow::Result<String> {
    let said = output(Command::new("sbatch").arg("--parsable").arg(script))?;
    // Behind a semicolon stands the cluster.
    let id = said.trim().split(';').next().unwrap_or_default();
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
        bail!("sbatch said `{}`, expected the id of a job", said.trim());
    }
    Ok(id.to_owned())
}

/// How many tasks an array may have on this cluster.
pub fn longest_array() -> anyhow::Result<usize> {
    let config = output(Command::new("scontrol").args(["show", "config"]))?;
    let longest = max_array_size(&config).context("`scontrol show config` does not tell MaxArraySize")?;
    if longest == 0 {
        bail!("this cluster does not take job arrays: its MaxArraySize is 0");
    }
    Ok(longest)
}

/// Indices are below it, so that it is also the number of tasks.
fn max_array_size(config: &str) -> Option<usize> {
    let value = config.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "MaxArraySize").then(|| value.trim())
    });
    value?.parse().ok()
}

/// Has a running task started again from the beginning of the queue.
pub fn requeue(task: &str) -> anyhow::Result<()> {
    output(Command::new("scontrol").args(["requeue", task])).map(|_| ())
}

/// What squeue knows of jobs, a line for each task: array, index, state and reason.
pub fn squeue(jobs: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("squeue");
    command.args(["--noheader", "--array", "--states=all", "--format=%F|%K|%T|%r"]);
    let listed = output(command.arg(format!("--jobs={}", jobs.join(","))));
    match listed {
        // All of them ended a while ago.
        Err(error) if error.to_string().contains("Invalid job id") => Ok(String::new()),
        listed => listed,
    }
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            anyhow::anyhow!("there is no {name} here; --launcher slurm is for machines from which one can submit to Slurm")
        }
        _ => anyhow::Error::new(error).context(format!("starting {name}")),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} refused: {}", said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_found_among_the_settings() {
        let config = "Configuration data as of 2026-01-01T00:00:00\nMaxArraySize            = 1001\nMaxArraySizeX = 3\n";
        assert_eq!(max_array_size(config), Some(1001));
        assert_eq!(max_array_size("MaxJobCount = 7"), None);
    }
}
