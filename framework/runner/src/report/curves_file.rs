//! Reads the curves of a run from `metrics.jsonl`.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use serde_json::{Map, Value};

/// Numbers over steps by name, in the order in which they first appear.
pub type Curves = Vec<(String, Vec<(f64, f64)>)>;

/// All numbers that are finite; lines that cannot be read are counted in a note.
pub fn read(folder: &Path, notes: &mut Vec<String>) -> Curves {
    let path = folder.join("metrics.jsonl");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                notes.push(format!("reading {}: {error}", path.display()));
            }
            return Curves::new();
        }
    };
    let mut curves = Curves::new();
    let mut unread = 0usize;
    for line in BufReader::new(file).split(b'\n') {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                notes.push(format!("reading {}: {error}", path.display()));
                break;
            }
        };
        if line.is_empty() {
            continue;
        }
        let parsed: Option<Map<String, Value>> = serde_json::from_slice(&line).ok();
        let step = parsed.as_ref().and_then(|line| line.get("step")?.as_f64());
        let (Some(parsed), Some(step)) = (parsed, step) else {
            unread += 1;
            continue;
        };
        for (name, value) in parsed {
            if let Some(number) = value.as_f64().filter(|_| name != "step" && name != "epoch") {
                match curves.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, points)) => points.push((step, number)),
                    None => curves.push((name, vec![(step, number)])),
                }
            }
        }
    }
    if unread > 0 {
        notes.push(format!("{}: lines that cannot be read: {unread}", path.display()));
    }
    curves
}
