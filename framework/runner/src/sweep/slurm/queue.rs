//! What Slurm knows of a sweep's members: which wait, run, or are gone.

use std::collections::BTreeMap;

use serde::Serialize;

use super::command::squeue;
use super::jobs::{Jobs, Place};

/// What Slurm says of the tasks of some arrays.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// State and reason by array and index.
    tasks: BTreeMap<(String, usize), (String, String)>,
}

/// A member's last task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// As Slurm calls it, e.g. 12_3.
    pub id: String,
    /// In Slurm's words, e.g. PENDING; `None` if it has forgotten the task.
    pub state: Option<String>,
    /// Why it waits, if it does.
    pub reason: Option<String>,
    /// What Slurm wrote about the task, in the sweep's folder.
    pub output: String,
}

impl Queue {
    /// Asks Slurm.
    pub fn ask(jobs: &Jobs) -> anyhow::Result<Self> {
        Ok(Self::parse(&squeue(&jobs.ids())?))
    }

    fn parse(listed: &str) -> Self {
        let task = |line: &str| {
            let mut fields = line.trim().split('|');
            let mut next = || Some(fields.next()?.trim().to_owned());
            let (job, index) = (next()?, next()?.parse().ok()?);
            Some(((job, index), (next()?, next()?)))
        };
        Self {
            tasks: listed.lines().filter_map(task).collect(),
        }
    }

    /// What it says of the task at a place.
    pub fn task(&self, place: Place) -> Task {
        let (id, output) = (place.task(), place.output.display().to_string());
        let found = self.tasks.get(&(place.job, place.index));
        Task {
            id,
            state: found.map(|(state, _)| state.clone()),
            reason: found
                .map(|(_, reason)| reason.clone())
                .filter(|reason| reason != "None"),
            output,
        }
    }
}

impl Task {
    /// Whether it has a turn still to come.
    pub fn is_pending(&self) -> bool {
        matches!(
            self.state.as_deref(),
            Some("PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "SPECIAL_EXIT")
        )
    }

    /// Whether it has a node, be it that it is about to start or to end.
    pub fn is_running(&self) -> bool {
        matches!(
            self.state.as_deref(),
            Some(
                "RUNNING"
                    | "CONFIGURING"
                    | "COMPLETING"
                    | "SUSPENDED"
                    | "STOPPED"
                    | "SIGNALING"
                    | "STAGE_OUT"
                    | "RESIZING"
            )
        )
    }

    /// What there is to say beyond what the files tell.
    pub fn words(&self) -> String {
        let Self { id, output, .. } = self;
        match (self.is_pending(), &self.state, &self.reason) {
            (true, _, Some(reason)) => format!("Slurm {id}: pending, {reason}"),
            (_, Some(state), _) if self.is_pending() || self.is_running() => {
                format!("Slurm {id}: {}", state.to_lowercase())
            }
            (_, Some(state), _) => format!("Slurm {id}: ended, {}; see {output}", state.to_lowercase()),
            (_, None, _) => format!("Slurm {id}: no longer in the queue; see {output}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn place(job: &str, index: usize) -> Place {
        Place {
            job: job.into(),
            index,
            output: "out.txt".into(),
        }
    }

    #[test]
    fn what_squeue_lists_is_put_into_words() {
        let listed = "12|0|PENDING|BeginTime\n12|3|RUNNING|None\n13|0|TIMEOUT|TimeLimit\n7|N/A|RUNNING|None\ngarbage\n";
        let queue = Queue::parse(listed);
        let told = |job, index| queue.task(place(job, index)).words();
        assert_eq!(told("12", 0), "Slurm 12_0: pending, BeginTime");
        assert_eq!(told("12", 3), "Slurm 12_3: running");
        assert_eq!(told("13", 0), "Slurm 13_0: ended, timeout; see out.txt");
        assert_eq!(told("12", 4), "Slurm 12_4: no longer in the queue; see out.txt");
        let known = |job, index| {
            let task = queue.task(place(job, index));
            (task.is_pending(), task.is_running())
        };
        assert_eq!(known("12", 0), (true, false));
        assert_eq!(known("12", 3), (false, true));
        assert_eq!(known("13", 0), (false, false));
        assert_eq!(known("99", 0), (false, false));
    }
}
