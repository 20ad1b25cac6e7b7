//! A small HTTP server for tests, which can cut connections.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the server does.
#[derive(Clone, Default)]
pub struct Behaviour {
    /// Files by name.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Cuts the first so many connections halfway through what they asked for.
    pub cuts: usize,
    /// Sends whole files, whatever part was asked for.
    pub no_ranges: bool,
}

/// A running server; it ends with the test program.
pub struct Server {
    pub url: String,
    /// The `Range` of each request so far, empty where there was none.
    pub ranges: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/sets", listener.local_addr().expect("an address"));
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let seen = ranges.clone();
        thread::spawn(move || {
            let mut cuts = behaviour.cuts;
            for stream in listener.incoming().flatten() {
                // A client that goes away is its own business.
                let _ = answer(stream, &behaviour, &mut cuts, &seen);
            }
        });
        Self { url, ranges }
    }
}

fn answer(
    mut stream: TcpStream,
    behaviour: &Behaviour,
    cuts: &mut usize,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut range = String::new();
    for line in lines {
        let line = line?.to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("range: ") {
            range = value.to_owned();
        }
    }
    if let Ok(mut seen) = seen.lock() {
        seen.push(range.clone());
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let Some(name) = path.strip_prefix("/sets/") else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let Some((_, file)) = behaviour.files.iter().find(|(known, _)| *known == name) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let start = range
        .strip_prefix("bytes=")
        .and_then(|range| range.strip_suffix('-')?.parse().ok())
        .filter(|_| !behaviour.no_ranges)
        .unwrap_or(0);
    let body = &file[start..];
    let first = match start {
        0 => "HTTP/1.1 200 OK".to_owned(),
        _ => format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{}/{}",
            file.len() - 1,
            file.len()
        ),
    };
    write!(
        stream,
        "{first}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if *cuts > 0 {
        *cuts -= 1;
        return stream.write_all(&body[..body.len() / 2]);
    }
    stream.write_all(body)
}
