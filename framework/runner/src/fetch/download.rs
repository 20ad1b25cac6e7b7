//! Downloads one file, and goes on where an earlier attempt was cut off.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use ureq::Agent;
use ureq::http::{Response, StatusCode};

/// Attempts in a row that bring nothing.
const PATIENCE: u32 = 3;
/// A connection that takes longer is cut, and the rest asked for on a new one: it may hang.
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(600);
const PATIENCE_FOR_ANSWER: Duration = Duration::from_secs(30);

/// What goes wrong in one attempt.
enum Failure {
    /// Another attempt may get on.
    Cut(anyhow::Error),
    Final(anyhow::Error),
}

/// Downloads `url`, which has so many `bytes`, to the file `part`, of which the beginning may be there.
pub fn download(url: &str, part: &Path, bytes: u64, bar: &ProgressBar) -> anyhow::Result<()> {
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(PATIENCE_FOR_ANSWER))
        .timeout_recv_response(Some(PATIENCE_FOR_ANSWER))
        .timeout_recv_body(Some(PATIENCE_FOR_ALL))
        .build()
        .into();
    let mut file = File::options().create(true).append(true).open(part)?;
    let mut in_vain = 0;
    loop {
        let before = file.metadata()?.len();
        match attempt(&agent, url, &mut file, bytes, bar) {
            Ok(()) => break,
            Err(Failure::Final(error)) => return Err(error.context(format!("fetching {url}"))),
            Err(Failure::Cut(error)) => {
                in_vain = match file.metadata()?.len() > before {
                    true => 0,
                    false => in_vain + 1,
                };
                if in_vain == PATIENCE {
                    let hint = "what has arrived is kept: the same command goes on from there";
                    return Err(error.context(format!("fetching {url} ({hint})")));
                }
                tracing::debug!("{url}: {error:#}; trying again");
                thread::sleep(Duration::from_millis(500) * in_vain);
            }
        }
    }
    file.sync_all()?;
    Ok(())
}

fn attempt(agent: &Agent, url: &str, file: &mut File, bytes: u64, bar: &ProgressBar) -> Result<(), Failure> {
    let start = position(file, bytes).map_err(Failure::Final)?;
    bar.set_position(start);
    if start == bytes {
        return Ok(());
    }
    let mut request = agent.get(url);
    if start > 0 {
        request = request.header("Range", format!("bytes={start}-"));
    }
    let response = request.call().map_err(|error| Failure::Cut(error.into()))?;
    let start = accepted(&response, start, bytes)?;
    // A server that cannot go on in the middle begins again.
    file.set_len(start)
        .map_err(|error| Failure::Final(error.into()))?;
    bar.set_position(start);

    let mut body = response.into_body().into_reader();
    let mut block = vec![0; 1 << 16];
    let mut arrived = start;
    loop {
        let count = body
            .read(&mut block)
            .map_err(|error| Failure::Cut(error.into()))?;
        if count == 0 {
            break;
        }
        arrived += count as u64;
        if arrived > bytes {
            return Err(Failure::Final(wrong_size("more", bytes)));
        }
        file.write_all(&block[..count])
            .context("writing to the disk")
            .map_err(Failure::Final)?;
        bar.set_position(arrived);
    }
    match arrived == bytes {
        true => Ok(()),
        false => Err(Failure::Cut(anyhow!(
            "the connection ended after {arrived} of {bytes} bytes"
        ))),
    }
}

/// Where to go on. What is longer than the whole file is something else.
fn position(file: &mut File, bytes: u64) -> anyhow::Result<u64> {
    if file.metadata()?.len() > bytes {
        file.set_len(0)?;
    }
    Ok(file.seek(SeekFrom::End(0))?)
}

/// Where the bytes that the server is about to send begin.
fn accepted<B>(response: &Response<B>, start: u64, bytes: u64) -> Result<u64, Failure> {
    let status = response.status();
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let start = match status {
        StatusCode::OK => 0,
        StatusCode::PARTIAL_CONTENT => {
            let range = header("content-range").unwrap_or_default();
            if !range.starts_with(&format!("bytes {start}-")) {
                return Err(Failure::Final(anyhow!(
                    "asked for the bytes from {start}, the server sends `{range}`"
                )));
            }
            start
        }
        _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            return Err(Failure::Cut(anyhow!("the server says {status}")));
        }
        _ => return Err(Failure::Final(anyhow!("the server says {status}"))),
    };
    let promised = header("content-length").and_then(|text| text.parse::<u64>().ok());
    if let Some(promised) = promised.filter(|promised| start.saturating_add(*promised) != bytes) {
        let found = start.saturating_add(promised);
        return Err(Failure::Final(wrong_size(&found.to_string(), bytes)));
    }
    Ok(start)
}

fn wrong_size(found: &str, bytes: u64) -> anyhow::Error {
    anyhow!("this is another file: it has {found} bytes, expected {bytes}")
}
