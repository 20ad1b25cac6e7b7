//! How a run ended, or why it has not.

use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Finished,
    /// Its files have changed within the last minute.
    Running,
    /// It has a folder, and has not begun.
    Waiting,
    Interrupted,
    /// It has begun, nothing says that it ended, and nothing happens: it was killed, or it hangs.
    Stopped,
    Diverged(String),
    Failed(String),
}

/// Letters of a reason that are shown.
const REASON: usize = 400;

impl State {
    /// By `outcome.json` and `provenance.json`, where they can be read; `begun` and `active` say whether the run has
    /// written files, and whether they have just changed.
    pub fn of(
        outcome: Option<&Value>,
        provenance: Option<&Map<String, Value>>,
        begun: bool,
        active: bool,
    ) -> Self {
        if let Some((code, outcome)) = outcome.and_then(|outcome| Some((outcome["code"].as_i64()?, outcome)))
        {
            let message = reason(outcome["message"].as_str().unwrap_or("no reason given"));
            return match code {
                0 => Self::Finished,
                3 => Self::Diverged(message),
                130 => Self::Interrupted,
                _ => Self::Failed(message),
            };
        }
        let ended = provenance.and_then(|provenance| provenance.get("outcome")?.as_str());
        match ended {
            Some("finished") => Self::Finished,
            Some("interrupted") => Self::Interrupted,
            Some(message) if message.contains("diverged:") => Self::Diverged(reason(message)),
            Some(message) => Self::Failed(reason(message)),
            None if !begun => Self::Waiting,
            None if active => Self::Running,
            None => Self::Stopped,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
            Self::Stopped => "stopped",
            Self::Diverged(_) => "diverged",
            Self::Failed(_) => "failed",
        }
    }

    pub fn reason(&self) -> &str {
        match self {
            Self::Finished => "",
            Self::Running => "not at its end yet",
            Self::Waiting => "not begun",
            Self::Interrupted => "asked to stop; --resume goes on",
            Self::Stopped => "began, and says nothing of an end: killed, perhaps; --resume goes on",
            Self::Diverged(reason) | Self::Failed(reason) => reason,
        }
    }
}

fn reason(message: &str) -> String {
    let message = message.trim();
    match message.char_indices().nth(REASON) {
        Some((end, _)) => format!("{} …", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_say_how_it_ended() {
        let state = |outcome: Value, provenance: Value, active| {
            let begun = !provenance.is_null();
            let outcome = Some(&outcome).filter(|outcome| !outcome.is_null());
            State::of(outcome, provenance.as_object(), begun, active).word()
        };
        let none = || Value::Null;
        assert_eq!(state(none(), none(), false), "waiting");
        assert_eq!(state(none(), json!({"outcome": null}), true), "running");
        assert_eq!(state(none(), json!({"outcome": null}), false), "stopped");
        assert_eq!(state(none(), json!({"outcome": "finished"}), false), "finished");
        let diverged = json!({"outcome": "in step 3: diverged: x"});
        assert_eq!(state(none(), diverged, false), "diverged");
        assert_eq!(state(json!({"code": 130}), none(), false), "interrupted");
        assert_eq!(
            state(json!({"code": 3, "message": "m"}), none(), false),
            "diverged"
        );
        assert_eq!(
            state(json!({"code": 1}), json!({"outcome": "finished"}), false),
            "failed"
        );
        // Damaged files say nothing.
        assert_eq!(
            state(json!([]), json!({"outcome": "finished"}), false),
            "finished"
        );
        assert_eq!(state(none(), json!("half"), false), "stopped");
    }
}
