//! Turns panics into errors: libtorch's errors arrive as panics, and none may reach a user.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use crate::system::interrupt::Interrupted;

/// Keeps panics from printing our insides, unless a backtrace was asked for.
pub fn silence() {
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|value| value == "0") {
        panic::set_hook(Box::new(|_| {}));
    }
}

/// Runs `work`; a panic becomes an error that says what it said, an interruption the error [`Interrupted`].
pub fn caught<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        Err(match payload.downcast_ref::<Interrupted>() {
            Some(interrupted) => (*interrupted).into(),
            None => anyhow::anyhow!("internal error: {}", text(&*payload)),
        })
    })
}

/// What a panic said.
fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    without_stack(text)
}

/// What libtorch said, without its C++ stack.
pub fn without_stack(text: &str) -> &str {
    // In the message of an unwrapped error, line breaks are escaped.
    let stack = [
        "\nException raised from",
        "\\nException raised from",
        "\nframe #0:",
        "\\nframe #0:",
    ];
    let end = stack.iter().find_map(|start| text.find(start));
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::Tensor;

    use super::*;

    #[test]
    fn an_error_of_libtorch_says_what_is_wrong_and_no_more() {
        let [a, b] = [2, 3].map(|n| Tensor::zeros([n, n], tch::kind::FLOAT_CPU));
        let error = caught(|| Ok(a.matmul(&b))).unwrap_err().to_string();
        assert!(
            error.starts_with("internal error") && error.contains("shapes cannot be multiplied"),
            "{error}"
        );
        assert!(!error.contains("Exception raised"), "{error}");
    }

    #[test]
    fn errors_and_values_pass_through() {
        assert_eq!(caught(|| Ok(3)).unwrap(), 3);
        assert_eq!(
            caught::<()>(|| anyhow::bail!("no")).unwrap_err().to_string(),
            "no"
        );
    }
}
