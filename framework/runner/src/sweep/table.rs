//! Sets out how the members of a sweep are, one line each.

use std::fmt::Write;

use super::slurm::Task;
use super::{Manifest, Status};
use crate::run::State;

/// All members with their states, and how many there are of each state.
pub fn status_table(manifest: &Manifest, statuses: &[Status]) -> String {
    let labels: Vec<_> = manifest
        .members
        .iter()
        .map(|member| manifest.label(member))
        .collect();
    let width = labels
        .iter()
        .map(|label| label.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (label, status) in labels.iter().zip(statuses) {
        let mut words = vec![progress(status)];
        // How it ended is in its files, and all that matters then.
        let over = status.state == State::Finished || status.state.is_failure();
        words.extend(status.slurm.iter().filter(|_| !over).map(Task::words));
        words.retain(|word| !word.is_empty());
        let line = format!("{label:<width$}  {:<11}  {}", status.state, words.join("  "));
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(reason) = &status.reason {
            let _ = writeln!(text, "    {}", reason.replace('\n', "\n    "));
        }
    }
    text + &counts(statuses.iter().map(|status| status.state)) + "\n"
}

/// How far a member is, with its last measurement.
pub fn progress(status: &Status) -> String {
    let mut words = Vec::new();
    if let Some(account) = &status.progress {
        let epoch = if account.step == 0 { 0 } else { account.epoch + 1 };
        words.push(format!("epoch {epoch}/{}", account.epochs));
        words.push(format!("step {}/{}", account.step, account.steps));
        match status.state {
            State::Running => {
                words.extend(
                    status
                        .seconds_left()
                        .map(|left| format!("ETA {}", duration(left))),
                );
            }
            _ => words.push(duration(account.seconds + account.recording_seconds)),
        }
    }
    words.extend(
        status
            .metric
            .as_ref()
            .map(|(name, value)| format!("{name} {value:.4}")),
    );
    words.join("  ")
}

/// `3 finished, 2 running, 7 waiting`.
pub fn counts(states: impl Iterator<Item = State> + Clone) -> String {
    let count = |state| states.clone().filter(|other| *other == state).count();
    let words: Vec<_> = State::ALL
        .into_iter()
        .map(|state| (count(state), state))
        .filter(|(count, _)| *count > 0)
        .map(|(count, state)| format!("{count} {state}"))
        .collect();
    words.join(", ")
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3600..172_800 => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_readable() {
        let told = [0.25, 59.0, 61.0, 3600.0, 90_061.0, 259_200.0].map(duration);
        let expected = [
            "0.2 s",
            "59.0 s",
            "1 min 01 s",
            "1 h 00 min",
            "25 h 01 min",
            "3.0 days",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn states_are_counted_in_order_of_interest() {
        let states = [State::Waiting, State::Failed, State::Finished, State::Waiting];
        assert_eq!(counts(states.into_iter()), "1 finished, 2 waiting, 1 failed");
    }
}
