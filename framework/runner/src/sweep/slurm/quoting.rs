//! Writes texts so that a shell, or sbatch in its directives, reads them as they are.

/// A word of a shell script.
pub fn for_shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A value in a line of `#SBATCH`, where quotes, backslashes and # have a meaning.
pub fn for_directive(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,=+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#))
}

/// A path in which sbatch replaces nothing.
pub fn without_patterns(path: &str) -> String {
    path.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in ["plain", "it's $HOME `x` \"y\" \\ # ; é", "two\nlines", ""] {
            let script = format!("printf %s {}", for_shell(text));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }

    #[test]
    fn directives_are_quoted_only_where_they_must_be() {
        assert_eq!(for_directive("/runs/a-b_c.0/%a.txt"), "/runs/a-b_c.0/%a.txt");
        assert_eq!(for_directive(r#"my "runs" \ #1"#), r#""my \"runs\" \\ #1""#);
        assert_eq!(without_patterns("/a%b"), "/a%%b");
    }
}
