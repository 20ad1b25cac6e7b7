//! What is spent on anything but computing: starting up, and writing records.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::Settings;
use super::stopwatch::{Contender, race};
use super::table::Table;
use crate::run::Account;

/// Starts the program itself: to list plugins, and to train in a folder that is removed afterwards.
pub fn measure(settings: &Settings) -> anyhow::Result<Vec<Table>> {
    let program = std::env::current_exe().context("looking for this program")?;
    let list = || start(Command::new(&program).arg("list"));
    let seconds = race(&mut [Contender::new("list", list)], settings.rounds.max(5))?;

    let folder = tempfile::tempdir()?;
    let mut train = Command::new(&program);
    train
        .args(["--recipe", "quickstart"])
        // Evaluation is work that the recipe asks for, not the price of keeping records.
        .args(["--set", "evaluate.metrics.sliced_w2=null"])
        .arg("--out")
        .arg(folder.path());
    start(&mut train)?;
    let run = run_in(folder.path())?;
    let account = Account::of(&run).with_context(|| format!("{} keeps no account", run.display()))?;

    let mut startup = Table::new("Starting up", &["s"]);
    startup.row("runner list", vec![Some(seconds[0])]);
    let mut records = Table::new(
        "Records of quickstart at defaults: metrics, TensorBoard, checkpoints, particles, pictures",
        &["s", "% of training"],
    );
    records.row("training", vec![Some(account.seconds), None]);
    let share = 100.0 * account.recording_seconds / account.seconds;
    records.row("records", vec![Some(account.recording_seconds), Some(share)]);
    Ok(vec![startup, records])
}

fn start(command: &mut Command) -> anyhow::Result<()> {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = quiet.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

fn run_in(folder: &Path) -> anyhow::Result<std::path::PathBuf> {
    let mut entries = std::fs::read_dir(folder)?;
    let entry = entries.next().context("the training left no folder")?;
    Ok(entry?.path())
}
