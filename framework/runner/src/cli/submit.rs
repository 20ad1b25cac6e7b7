//! `runner sweep --launcher slurm`: submits members, says how to look after them, and is done.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::arguments::SweepArguments;
use super::{Misuse, print};
use crate::sweep::{Plan, Slurm};

/// Looks for Slurm before anything is written.
pub fn find_slurm(arguments: &SweepArguments) -> anyhow::Result<Slurm> {
    if arguments.fail_fast {
        let message =
            "--fail-fast needs somebody who watches, and with --launcher slurm nobody does: leave it out";
        return Err(Misuse(message.into()).into());
    }
    Slurm::find(arguments.jobs)
}

/// Submits members given by folder and label.
pub fn submit(
    slurm: &Slurm,
    plan: &Plan,
    members: &[(PathBuf, String)],
    folder: &Path,
) -> anyhow::Result<ExitCode> {
    let chosen = |name: &str| members.iter().any(|(folder, _)| folder.ends_with(name));
    let wanted: Vec<_> = plan
        .members
        .iter()
        .map(|member| (member.name(), &member.recipe.slurm))
        .filter(|(name, _)| chosen(name))
        .collect();
    if wanted.is_empty() {
        print("nothing to submit\n")?;
    }
    let wanted = wanted.iter().map(|(name, section)| (name.as_str(), *section));
    let mut ids = Vec::new();
    let submitted = slurm.submit(&plan.name, folder, wanted, |submission| {
        ids.push(submission.job.clone());
        let tasks = match submission.tasks {
            1 => "1 task".to_owned(),
            tasks => format!("{tasks} tasks"),
        };
        let script = submission.script.display();
        print(&format!(
            "submitted job {} with {tasks}: {script}\n",
            submission.job
        ))
    });
    let place = folder.display();
    print(&format!("  how they are    runner sweep status {place}\n"))?;
    if !ids.is_empty() {
        print(&format!("  to stop them    scancel {}\n", ids.join(" ")))?;
    }
    print("  to go on        the same command with --resume\n")?;
    submitted.map(|()| ExitCode::SUCCESS)
}
