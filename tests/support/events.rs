//! Reads TensorBoard's event files as far as tests compare them: tags and the steps of their points.

use std::fs;
use std::path::Path;

/// Tag and step of every point that TensorBoard keeps, sorted; a session that starts at a step voids points at or after
/// it.
pub fn points(run: &Path) -> Vec<(u64, String)> {
    let entries = fs::read_dir(run.join("tensorboard")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut points: Vec<(u64, String)> = Vec::new();
    for file in files {
        for event in records(&fs::read(file).unwrap()) {
            let fields = fields(event);
            let step = match find(&fields, 2) {
                Some(Value::Varint(step)) => *step,
                _ => 0,
            };
            // Field 7 is the session log, whose status 1 is START.
            if find(&fields, 7).is_some() {
                points.retain(|(at, _)| *at < step);
            }
            let Some(Value::Bytes(summary)) = find(&fields, 5) else {
                continue;
            };
            for (_, value) in self::fields(summary) {
                let Value::Bytes(value) = value else { continue };
                if let Some(Value::Bytes(tag)) = find(&self::fields(value), 1) {
                    points.push((step, String::from_utf8(tag.to_vec()).unwrap()));
                }
            }
        }
    }
    points.sort();
    points
}

/// Complete records: length, its checksum, the bytes, their checksum.
fn records(mut file: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while file.len() >= 12 {
        let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        let Some(record) = file.get(12..12 + length) else {
            break;
        };
        all.push(record);
        file = file.get(12 + length + 4..).unwrap_or_default();
    }
    all
}

enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed,
}

fn find<'a, 'b>(fields: &'b [(u64, Value<'a>)], number: u64) -> Option<&'b Value<'a>> {
    fields
        .iter()
        .find(|(known, _)| *known == number)
        .map(|(_, value)| value)
}

/// The fields of a protobuf message.
fn fields(mut message: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut all = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut message)),
            1 => {
                message = &message[8..];
                Value::Fixed
            }
            2 => {
                let length = varint(&mut message) as usize;
                let (bytes, rest) = message.split_at(length);
                message = rest;
                Value::Bytes(bytes)
            }
            5 => {
                message = &message[4..];
                Value::Fixed
            }
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, value));
    }
    all
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}
