//! Lets a task whose time is up ask for its next turn.

use anyhow::Context;

use super::command;

/// Asks Slurm to queue the task again that this process is, which Slurm ends at once.
pub fn requeue_this_task() -> anyhow::Result<()> {
    let task = this_task(|name| std::env::var(name).ok())
        .context("this is no task of Slurm: SLURM_JOB_ID is not set")?;
    command::requeue(&task)
}

/// As Slurm calls it; the id of a whole array would mean all its tasks.
fn this_task(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let in_array = || {
        let (job, index) = (variable("SLURM_ARRAY_JOB_ID")?, variable("SLURM_ARRAY_TASK_ID")?);
        Some(format!("{job}_{index}"))
    };
    in_array().or_else(|| variable("SLURM_JOB_ID"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_an_array_is_not_the_array() {
        let with = |variables: &[(&str, &str)]| {
            this_task(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let array = [
            ("SLURM_JOB_ID", "12"),
            ("SLURM_ARRAY_JOB_ID", "12"),
            ("SLURM_ARRAY_TASK_ID", "3"),
        ];
        assert_eq!(with(&array).as_deref(), Some("12_3"));
        assert_eq!(with(&array[..1]).as_deref(), Some("12"));
        assert_eq!(with(&[]), None);
    }
}
