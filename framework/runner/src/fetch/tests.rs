//! Fetching from a server on this machine, and from a folder.
#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::server::{Behaviour, Server};
use super::*;

/// 100,000 bytes that do not repeat every block.
fn content() -> Vec<u8> {
    (0..100_000u32)
        .map(|i| (i.wrapping_mul(i) / 7 % 251) as u8)
        .collect()
}

/// The MD5 of `content()` by md5sum.
const MD5: &str = "e294c701fc8fba3ad2cae00be48832f9";

const SET: Fetch = Fetch {
    name: "set",
    how: How::Files {
        base: "http://127.0.0.1:1/never",
        files: &[Remote {
            name: "points.bin",
            md5: MD5,
            bytes: 100_000,
            folder: None,
        }],
    },
};

struct Fetched {
    folder: TempDir,
    reports: Vec<String>,
    error: Option<String>,
}

impl Fetched {
    fn file(&self) -> Option<Vec<u8>> {
        fs::read(self.folder.path().join("points.bin")).ok()
    }

    fn part(&self) -> Option<Vec<u8>> {
        fs::read(self.folder.path().join("points.bin.part")).ok()
    }
}

/// Fetches into a folder where `part` has arrived before.
fn fetch(from: &str, part: &[u8]) -> Fetched {
    let folder = tempfile::tempdir().unwrap();
    if !part.is_empty() {
        fs::write(folder.path().join("points.bin.part"), part).unwrap();
    }
    fetch_into(from, folder)
}

fn fetch_into(from: &str, folder: TempDir) -> Fetched {
    let reports = Mutex::new(Vec::new());
    let result = super::fetch(&SET, Some(from), folder.path(), |line| {
        reports.lock().unwrap().push(line)
    });
    Fetched {
        reports: reports.into_inner().unwrap(),
        error: result.err().map(|error| format!("{error:#}")),
        folder,
    }
}

fn serving(content: Vec<u8>) -> Behaviour {
    Behaviour {
        files: vec![("points.bin", content)],
        ..Behaviour::default()
    }
}

#[test]
fn a_whole_file_arrives_and_is_not_fetched_again() {
    let server = Server::start(serving(content()));
    let fetched = fetch(&server.url, &[]);
    assert_eq!(fetched.error, None);
    assert!(fetched.file() == Some(content()) && fetched.part().is_none());
    assert!(fetched.reports[0].contains("verified"), "{:?}", fetched.reports);

    let again = fetch_into(&format!("{}/", server.url), fetched.folder);
    assert!(again.reports[0].contains("already"), "{:?}", again.reports);
    assert_eq!(*server.ranges.lock().unwrap(), [""]);
}

#[test]
fn a_connection_that_is_cut_goes_on_where_it_was() {
    let server = Server::start(Behaviour {
        cuts: 2,
        ..serving(content())
    });
    let fetched = fetch(&server.url, &[]);
    assert_eq!(fetched.error, None);
    assert!(fetched.file() == Some(content()));
    assert_eq!(
        *server.ranges.lock().unwrap(),
        ["", "bytes=50000-", "bytes=75000-"]
    );
}

#[test]
fn an_earlier_part_is_taken_up_even_if_the_server_begins_again() {
    for no_ranges in [false, true] {
        let server = Server::start(Behaviour {
            no_ranges,
            ..serving(content())
        });
        let fetched = fetch(&server.url, &content()[..1234]);
        assert_eq!(fetched.error, None);
        assert!(fetched.file() == Some(content()));
        assert_eq!(*server.ranges.lock().unwrap(), ["bytes=1234-"]);
    }
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let mut other = content();
    other[77] ^= 1;
    let server = Server::start(serving(other.clone()));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("points.bin"), &other).unwrap();
    for fetched in [
        fetch(&server.url, &[]),
        fetch(&server.url, &other[..10]),
        fetch(folder.path().to_str().unwrap(), &[]),
    ] {
        let error = fetched.error.as_deref().unwrap();
        assert!(
            error.contains("not the published file") && error.contains(MD5),
            "{error}"
        );
        assert!(fetched.file().is_none() && fetched.part().is_none());
    }
    let there = fetch_into(&server.url, folder);
    let error = there.error.as_deref().unwrap();
    assert!(error.contains("remove it"), "{error}");
    assert!(there.file() == Some(other), "somebody's own file stays");
}

#[test]
fn a_file_of_another_size_is_refused_before_it_is_downloaded() {
    let server = Server::start(serving(vec![b'x'; 2_000_000]));
    let fetched = fetch(&server.url, &[]);
    let error = fetched.error.as_deref().unwrap();
    assert!(error.contains("2000000 bytes, expected 100000"), "{error}");
    assert_eq!(fetched.part(), None);
}

#[test]
fn what_is_missing_is_named() {
    let server = Server::start(Behaviour::default());
    let fetched = fetch(&server.url, &[]);
    let error = fetched.error.as_deref().unwrap();
    assert!(
        error.contains("/sets/points.bin") && error.contains("404"),
        "{error}"
    );

    let folder = tempfile::tempdir().unwrap();
    let missing = fetch(folder.path().to_str().unwrap(), &[]).error.unwrap();
    assert!(missing.contains("points.bin"), "{missing}");
    let nowhere = fetch("no/such/folder", &[]).error.unwrap();
    assert!(nowhere.contains("no such folder"), "{nowhere}");
}

#[test]
fn an_archive_becomes_its_folder() {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(5);
    tar.append_data(&mut header, "set/points.bin", &b"12345"[..])
        .unwrap();
    let archive = tar.into_inner().unwrap().finish().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    fs::write(&path, &archive).unwrap();
    let remote = Remote {
        name: "set.tar.gz",
        md5: checksum::md5(&path).unwrap().leak(),
        bytes: archive.len() as u64,
        folder: Some("set"),
    };
    let server = Server::start(Behaviour {
        files: vec![("set.tar.gz", archive)],
        cuts: 1,
        ..Behaviour::default()
    });
    let out = folder.path().join("out");
    let set = Fetch {
        name: "set",
        how: How::Files {
            base: "http://127.0.0.1:1/never",
            files: Box::leak(Box::new([remote])),
        },
    };
    for _ in 0..2 {
        super::fetch(&set, Some(&server.url), &out, |_| {}).unwrap();
        assert_eq!(fs::read(out.join("set/points.bin")).unwrap(), b"12345");
        assert_eq!(
            fs::read_dir(&out).unwrap().count(),
            1,
            "neither archive nor parts"
        );
    }
    assert_eq!(server.ranges.lock().unwrap().len(), 2, "nothing the second time");
}

/// Port 1 is nobody's.
#[test]
fn a_server_that_does_not_answer_keeps_what_has_arrived() {
    let fetched = fetch("http://127.0.0.1:1/sets", &content()[..99]);
    let error = fetched.error.as_deref().unwrap();
    assert!(error.contains("goes on from there"), "{error}");
    assert_eq!(fetched.part().unwrap().len(), 99);
}

#[test]
fn what_has_to_be_fetched_by_hand_says_where_to_put_it() {
    let by_hand = Fetch {
        name: "set",
        how: How::ByHand("Get it, and put it in {folder}."),
    };
    let error = super::fetch(&by_hand, None, Path::new("data/set"), |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "Get it, and put it in data/set.");
}
