//! Runs members on a cluster: submits them to Slurm as job arrays, and hears from it how they are.

mod array;
mod command;
mod jobs;
mod queue;
mod quoting;
mod requeue;
mod script;

use std::path::{Path, PathBuf};

use anyhow::Context;
use ebipla_core::system::files::write_bytes;
use jobs::Jobs;
use queue::Queue;

use crate::recipe::SlurmSection;
pub use queue::Task;
pub use requeue::requeue_this_task;
use script::Surroundings;

/// A cluster that takes members.
#[derive(Clone, Debug)]
pub struct Slurm {
    /// How many tasks of an array run at a time; `None` leaves it to Slurm.
    jobs: Option<u32>,
    /// How many tasks an array may have.
    longest: usize,
}

/// An array that Slurm has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The array's id in Slurm.
    pub job: String,
    pub tasks: usize,
    pub script: PathBuf,
}

impl Slurm {
    /// Asks the cluster of this machine what it takes.
    pub fn find(jobs: Option<u32>) -> anyhow::Result<Self> {
        let longest = command::longest_array()?;
        Ok(Self { jobs, longest })
    }

    /// Submits members of a sweep given by name and by what they ask for.
    ///
    /// Each array is told of as soon as it is accepted, and noted in `slurm/jobs.json`, so that those before a refused
    /// one are not lost.
    pub fn submit<'a>(
        &self,
        sweep: &str,
        folder: &Path,
        members: impl IntoIterator<Item = (&'a str, &'a SlurmSection)>,
        mut tell: impl FnMut(&Submission) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // Paths in scripts must not depend on where they are submitted.
        let folder = std::path::absolute(folder)?;
        let directory = std::env::current_dir().context("finding the current folder")?;
        let program = std::env::current_exe().context("finding this program")?;
        let surroundings = Surroundings {
            name: sweep,
            folder: text(&folder)?,
            directory: text(&directory)?,
            program: text(&program)?,
            jobs: self.jobs,
        };
        let mut jobs = Jobs::read(&folder)?.unwrap_or_else(Jobs::none);
        for array in array::arrays(members, self.longest, jobs.next_number()) {
            let number = array.number;
            let list = folder.join(format!("slurm/array-{number}.txt"));
            write_bytes(&list, array.members.join("\n") + "\n")?;
            let script = folder.join(format!("slurm/array-{number}.sh"));
            write_bytes(&script, script::script(&array, &surroundings))?;
            let job = command::sbatch(&script).with_context(|| format!("submitting {}", script.display()))?;
            jobs.add(&folder, &array, job.clone())?;
            tell(&Submission {
                job,
                tasks: array.members.len(),
                script,
            })?;
        }
        Ok(())
    }
}

/// The members that were submitted, and what Slurm says of them now.
#[derive(Clone, Debug)]
pub struct Submitted {
    jobs: Jobs,
    queue: Queue,
}

impl Submitted {
    /// Those of the sweep in `folder`; `None`, without asking, if nothing of it was submitted.
    pub fn ask(folder: &Path) -> anyhow::Result<Option<Self>> {
        let Some(jobs) = Jobs::read(folder)? else {
            return Ok(None);
        };
        let queue = Queue::ask(&jobs)?;
        Ok(Some(Self { jobs, queue }))
    }

    /// A member's last task.
    pub fn task(&self, member: &str) -> Option<Task> {
        Some(self.queue.task(self.jobs.place(member)?))
    }
}

/// A path that can be written in a script.
fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .filter(|text| !text.contains(['\n', '\r']))
        .with_context(|| {
            format!(
                "{} cannot stand in a script for Slurm: use another folder",
                path.display()
            )
        })
}
