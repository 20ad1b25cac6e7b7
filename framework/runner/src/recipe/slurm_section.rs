//! What a run asks of Slurm, where a sweep is launched on a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run asks of Slurm; it changes no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SlurmSection {
    /// Partition, or several with commas; null takes the cluster's default.
    pub partition: Option<String>,
    /// Account that is charged.
    pub account: Option<String>,
    /// Time limit in Slurm's words, e.g. "2:00:00" or "1-12:00:00"; a run that needs more is queued again.
    pub time: Option<String>,
    /// Main memory. [GiB]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub memory: Option<f64>,
    /// CPUs, each of which gets a thread. [CPUs]
    #[schemars(range(min = 1))]
    pub cpus: Option<u32>,
    /// GPUs. [GPUs]
    #[schemars(range(min = 1))]
    pub gpus: Option<u32>,
    /// How long before the time limit a run writes its checkpoint and is queued again. [s]
    #[schemars(range(min = 1, max = 65535))]
    pub checkpoint_before: u32,
    /// Lines of shell to run first, e.g. "module load cuda".
    pub setup: Vec<String>,
    /// Further options of sbatch, e.g. "--exclude=node7".
    pub directives: Vec<String>,
}

impl Default for SlurmSection {
    fn default() -> Self {
        Self {
            partition: None,
            account: None,
            time: None,
            memory: None,
            cpus: None,
            gpus: None,
            checkpoint_before: 120,
            setup: Vec::new(),
            directives: Vec::new(),
        }
    }
}

/// Options without which a member would not be started, interrupted or queued again as it should.
const OURS: [&str; 6] = [
    "--array",
    "--signal",
    "--requeue",
    "--no-requeue",
    "--open-mode",
    "--ntasks",
];

impl SlurmSection {
    /// What is wrong beyond types and ranges: an option, and what would be right.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if let Some(time) = &self.time {
            match seconds(time) {
                None => {
                    let message = format!(
                        "found `{time}`, expected minutes, minutes:seconds, hours:minutes:seconds, days-hours, \
                         days-hours:minutes or days-hours:minutes:seconds"
                    );
                    found.push(("time", message));
                }
                Some(limit) if limit <= u64::from(self.checkpoint_before) => {
                    let message = format!(
                        "found {} s, expected less than `time`, which is {limit} s",
                        self.checkpoint_before
                    );
                    found.push(("checkpoint_before", message));
                }
                Some(_) => {}
            }
        }
        for directive in &self.directives {
            let option = directive.split(['=', ' ']).next().unwrap_or_default();
            if !directive.starts_with('-') {
                let message =
                    format!("found `{directive}`, expected options of sbatch, e.g. --exclude=node7");
                found.push(("directives", message));
            } else if OURS.contains(&option) {
                found.push(("directives", format!("`{option}` is set by the launcher")));
            }
        }
        let texts = [("partition", &self.partition), ("account", &self.account)];
        let texts = texts
            .into_iter()
            .flat_map(|(name, text)| text.iter().map(move |text| (name, text)));
        let directives = self.directives.iter().map(|text| ("directives", text));
        for (name, text) in texts.chain(directives) {
            if text.contains(['\n', '\r']) {
                found.push((name, "found a line break, expected a single line".into()));
            }
        }
        found
    }
}

/// A time limit as sbatch reads it.
fn seconds(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(number(days)?), rest),
        None => (None, text),
    };
    let parts: Vec<_> = rest.split(':').map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match (days, &parts[..]) {
        (None, [minutes]) => (0, *minutes, 0),
        (None, [minutes, seconds]) => (0, *minutes, *seconds),
        (Some(_), [hours]) => (*hours, 0, 0),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        _ => return None,
    };
    Some(((days.unwrap_or(0) * 24 + hours) * 60 + minutes) * 60 + seconds)
}

/// One without a sign, and small enough to reckon with.
fn number(text: &str) -> Option<u64> {
    let digits = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_read_like_sbatch_does() {
        let found = ["90", "1:30", "2:00:00", "1-12", "1-0:05", "0-00:00:07"].map(seconds);
        assert_eq!(found, [5400, 90, 7200, 129_600, 86_700, 7].map(Some));
        for wrong in [
            "",
            "two hours",
            "1:2:3:4",
            "-5",
            "1-",
            "1-2-3",
            "+5",
            "9999999999",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_would_go_wrong_on_the_cluster_is_found_before() {
        let names = |section: SlurmSection| {
            section
                .problems()
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
        };
        let default = SlurmSection::default();
        assert_eq!(names(default.clone()), [""; 0]);
        let time = |text: &str| SlurmSection {
            time: Some(text.into()),
            ..default.clone()
        };
        assert_eq!(names(time("2 h")), ["time"]);
        assert_eq!(names(time("2")), ["checkpoint_before"]);
        assert_eq!(names(time("3")), [""; 0]);
        let directive = |text: &str| SlurmSection {
            directives: vec!["--exclusive".into(), text.into()],
            ..default.clone()
        };
        for wrong in [
            "#SBATCH --exclusive",
            "--array=0-3",
            "--signal USR1@60",
            "--comment=a\nb",
        ] {
            assert_eq!(names(directive(wrong)), ["directives"], "{wrong}");
        }
    }
}
