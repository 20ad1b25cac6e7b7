//! Tests when a cache is reused and when it is rebuilt.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::*;

/// A folder with a file `points`, and caches of it.
struct Scratch {
    folder: TempDir,
    built: AtomicUsize,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("points"), b"abcdef").unwrap();
        Self {
            folder,
            built: AtomicUsize::new(0),
        }
    }

    fn source(&self) -> Source {
        Source {
            name: "test-train".into(),
            folder: self.folder.path().into(),
            files: vec!["points".into()],
            preprocessing: "none".into(),
            advice: "get it from somewhere",
        }
    }

    fn caches(&self) -> PathBuf {
        self.folder.path().join("caches")
    }

    /// The points of the file, two bytes each, and whether the cache was rebuilt.
    fn open(&self, source: &Source) -> (Vec<f32>, bool) {
        let before = self.built.load(Ordering::Relaxed);
        let cache = open(&self.caches(), source, |draft| self.build(draft)).unwrap();
        let mut values = vec![0.0; 2 * cache.len()];
        for (i, point) in values.chunks_mut(2).enumerate() {
            cache.read(i, point);
        }
        (values, self.built.load(Ordering::Relaxed) > before)
    }

    fn build(&self, draft: &Draft) -> anyhow::Result<()> {
        self.built.fetch_add(1, Ordering::Relaxed);
        let bytes = fs::read(self.folder.path().join("points"))?;
        let writer = draft.begin(Layout {
            element: Element::U8,
            shape: vec![2],
            count: bytes.len() / 2,
            labelled: true,
        })?;
        for (i, point) in bytes.chunks_exact(2).enumerate().rev() {
            writer.put(i, point)?;
        }
        writer.put_labels(0, &vec![3; bytes.len() / 2])?;
        writer.finish()
    }

    /// The only cache file.
    fn file(&self) -> PathBuf {
        let files = fs::read_dir(self.caches()).unwrap();
        let mut caches: Vec<_> = files
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "cache"))
            .collect();
        assert_eq!(caches.len(), 1);
        caches.remove(0)
    }
}

fn scaled(bytes: &[u8]) -> Vec<f32> {
    bytes.iter().map(|byte| f32::from(*byte) / 127.5 - 1.0).collect()
}

#[test]
fn is_built_once_and_returns_what_was_written() {
    let scratch = Scratch::new();
    assert_eq!(scratch.open(&scratch.source()), (scaled(b"abcdef"), true));
    assert_eq!(scratch.open(&scratch.source()), (scaled(b"abcdef"), false));
    let cache = open(&scratch.caches(), &scratch.source(), |_| {
        anyhow::bail!("built twice")
    })
    .unwrap();
    assert_eq!(cache.labels(), Some(&[3, 3, 3][..]));
}

#[test]
fn other_contents_or_preprocessing_invalidate_it() {
    let scratch = Scratch::new();
    let points = scratch.folder.path().join("points");
    scratch.open(&scratch.source());

    fs::write(&points, b"abcdefgh").unwrap();
    assert_eq!(scratch.open(&scratch.source()), (scaled(b"abcdefgh"), true));

    // Size and time may be the same; a new time alone changes nothing.
    let time = fs::metadata(&points).unwrap().modified().unwrap();
    fs::write(&points, b"ghefcdab").unwrap();
    let file = File::options().write(true).open(&points).unwrap();
    file.set_modified(time).unwrap();
    assert_eq!(scratch.open(&scratch.source()), (scaled(b"ghefcdab"), true));
    file.set_modified(time + Duration::from_secs(5)).unwrap();
    assert_eq!(scratch.open(&scratch.source()), (scaled(b"ghefcdab"), false));
    scratch.file();

    let other = Source {
        preprocessing: "some".into(),
        ..scratch.source()
    };
    assert!(scratch.open(&other).1);
    assert!(!scratch.open(&other).1);
    assert!(!scratch.open(&scratch.source()).1, "both are kept");
}

#[test]
fn a_truncated_longer_or_foreign_file_is_replaced() {
    let scratch = Scratch::new();
    scratch.open(&scratch.source());
    let whole = fs::read(scratch.file()).unwrap();
    let mut longer = whole.clone();
    longer.push(0);
    let lying = [&whole[..24], &u64::MAX.to_le_bytes(), &whole[32..]].concat();
    for bad in [
        &whole[..whole.len() - 1],
        &whole[..100],
        &[],
        b"not ours",
        &longer,
        &lying,
    ] {
        fs::write(scratch.file(), bad).unwrap();
        assert_eq!(scratch.open(&scratch.source()), (scaled(b"abcdef"), true));
    }
}

#[test]
fn a_failed_build_leaves_no_cache_and_names_it() {
    let scratch = Scratch::new();
    let failed = open(&scratch.caches(), &scratch.source(), |draft| {
        let layout = Layout {
            element: Element::U8,
            shape: vec![2],
            count: 3,
            labelled: false,
        };
        let writer = draft.begin(layout)?;
        writer.put(0, b"ab")?;
        writer.finish()
    });
    let error = format!("{:#}", failed.err().unwrap());
    assert!(
        error.contains("1 of 3 points") && error.contains("test-train"),
        "{error}"
    );
    assert!(scratch.open(&scratch.source()).1);
    scratch.file();
}

#[test]
fn a_cache_larger_than_the_disk_is_refused_before_it_is_written() {
    let scratch = Scratch::new();
    let failed = open(&scratch.caches(), &scratch.source(), |draft| {
        let layout = Layout {
            element: Element::U8,
            shape: vec![1 << 20],
            count: 1 << 31,
            labelled: false,
        };
        draft.begin(layout).map(drop)
    });
    let error = format!("{:#}", failed.err().unwrap());
    for part in ["2.00 PiB", "free there", "EBIPLA_CACHE"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_missing_source_is_reported_with_advice() {
    let scratch = Scratch::new();
    let source = Source {
        files: vec!["points".into(), "labels".into()],
        ..scratch.source()
    };
    let error = open(&scratch.caches(), &source, |_| Ok(()))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("/labels is missing: get it from somewhere"),
        "{error}"
    );
}

/// A source that changes while it is read is not cached: the data read are not the data hashed.
#[test]
fn a_source_that_changes_during_reading_is_refused() {
    let scratch = Scratch::new();
    let failed = open(&scratch.caches(), &scratch.source(), |draft| {
        scratch.build(draft)?;
        Ok(fs::write(scratch.folder.path().join("points"), b"other!!!")?)
    });
    let error = format!("{:#}", failed.err().unwrap());
    assert!(error.contains("changed while they were read"), "{error}");
}

#[test]
fn the_folder_of_a_bare_name_is_the_working_folder() {
    assert_eq!(parts(Path::new("d.npy")), (".".into(), "d.npy".into()));
    assert_eq!(parts(Path::new("a/d.npy")), ("a".into(), "d.npy".into()));
    assert_eq!(parts(Path::new("/d.npy")), ("/".into(), "d.npy".into()));
}

/// The second program waits, and builds nothing.
#[test]
fn of_several_processes_one_builds_it() {
    let scratch = Scratch::new();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| assert_eq!(scratch.open(&scratch.source()).0, scaled(b"abcdef")));
        }
    });
    assert_eq!(scratch.built.load(Ordering::Relaxed), 1);
}
