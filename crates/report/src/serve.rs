//! A server of the page for this machine alone. It shows the store as it is; the page asks for the store's state and renews itself
//! when that changes.

use super::data::Data;
use anyhow::{Context, Result, bail};
use askama::Template;
use cere_format::store::Store;
use cere_format::untrusted::visible;
use cere_store::state;
use cere_system::console::print;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a request's head, at most.
const HEAD: usize = 8192;
/// Connections at a time, at most.
const CONNECTIONS: usize = 32;
/// How long a client may take to ask or to read.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is served.
pub struct Site<'a> {
    /// The store.
    pub store: &'a Store,
    /// Largest error of a region that predictions may use.
    pub max_error: f64,
    /// Another store to compare with, and its name.
    pub other: Option<(&'a Data, &'a str)>,
}

/// A server that listens, on the loopback interface only.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// The page while there is nothing to show.
#[derive(Template)]
#[template(path = "waiting.html")]
struct Waiting<'a> {
    css: &'static str,
    script: &'static str,
    version: &'static str,
    live: &'a str,
    store: String,
    reason: String,
}

/// A page and the state of the store that it shows.
type Shown = Mutex<(String, String)>;

/// An answer: status line, type, content.
type Answer = (&'static str, &'static str, String);

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

impl Server {
    /// Listens on `port`; 0 takes any that is free.
    ///
    /// # Errors
    /// The port is in use, or this user may not have it.
    pub fn open(port: u16) -> Result<Self> {
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => listener,
            Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(
                "port {port} is in use by another program: name another one with --serve PORT, or 0 for any that is free"
            ),
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("cannot listen on port {port}: name another one with --serve PORT")
                });
            }
        };
        let address = listener.local_addr().context("the port has no address")?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// No connection can be taken any more.
    pub fn run(&self, site: &Site) -> Result<()> {
        let shown = Shown::default();
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            loop {
                let (stream, _) = match self.listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                    Err(error) => return Err(error).context("cannot take connections"),
                };
                if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS {
                    open.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let (shown, open) = (&shown, &open);
                scope.spawn(move || {
                    // A client that goes away is no error.
                    drop(self.answer(stream, site, shown));
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        })
    }

    fn answer(&self, mut stream: TcpStream, site: &Site, shown: &Shown) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = head(&mut stream)?;
        let (status, kind, body) = self.answer_to(&head, site, shown);
        let length = body.len();
        let rules = "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\nConnection: close";
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{rules}\r\n\r\n"
        )?;
        if !head.starts_with("HEAD ") {
            stream.write_all(body.as_bytes())?;
        }
        stream.flush()
    }

    fn answer_to(&self, head: &str, site: &Site, shown: &Shown) -> Answer {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next());
        let hosts = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        // A page of another site may make its name lead here, but cannot change what the browser says it asks for.
        let hosts: Vec<&str> = hosts.collect();
        let port = self.address.port();
        let own = ["localhost", "127.0.0.1"].map(|name| format!("{name}:{port}"));
        let meant = matches!(hosts[..], [host] if own.iter().any(|o| host.eq_ignore_ascii_case(o)));
        if !meant {
            let text = format!("This page is at http://{} only.\n", own[1]);
            return ("421 Misdirected Request", PLAIN, text);
        }
        if !["GET", "HEAD"].contains(&method) {
            return (
                "405 Method Not Allowed\r\nAllow: GET, HEAD",
                PLAIN,
                "Only GET.\n".to_owned(),
            );
        }
        match target {
            Some("/") => ("200 OK", HTML, page(site, shown)),
            Some("/state") => ("200 OK", "application/json", now(site)),
            _ => (
                "404 Not Found",
                PLAIN,
                "There is only one page: /\n".to_owned(),
            ),
        }
    }
}

/// The head of a request, cut where it is too long.
fn head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut block = [0; 1024];
    while head.len() < HEAD && !head.windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut block)? {
            0 => break,
            read => head.extend(&block[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The page of the store as it is now.
fn page(site: &Site, shown: &Shown) -> String {
    let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    // Before the store is read: what is written meanwhile renews the page.
    let now = stamp(site.store);
    if shown.0 != now {
        let page = Data::read(site.store, site.max_error)
            .and_then(|data| crate::live_html(&data, site.other, &now));
        let page = page.unwrap_or_else(|error| waiting(site.store, &error, &now));
        *shown = (now, page);
    }
    shown.1.clone()
}

fn waiting(store: &Store, error: &anyhow::Error, live: &str) -> String {
    let page = Waiting {
        css: include_str!("../templates/report.css"),
        script: include_str!("../templates/report.js"),
        version: env!("CARGO_PKG_VERSION"),
        live,
        store: visible(&store.root().display().to_string()),
        reason: visible(&print::error(error)),
    };
    page.render().unwrap_or_else(|error| error.to_string())
}

/// The store's state and what works on it, as JSON.
fn now(site: &Site) -> String {
    let busy = busy(site.store).unwrap_or_default();
    serde_json::json!({"state": stamp(site.store), "busy": visible(&busy)}).to_string()
}

/// A text that changes when something is written that the page shows.
fn stamp(store: &Store) -> String {
    let of = |path: &Path| {
        let found = std::fs::symlink_metadata(path);
        found.map_or(String::new(), |m| {
            format!(
                "{} {} {};",
                m.ino(),
                m.size(),
                i128::from(m.mtime()) * 1_000_000_000 + i128::from(m.mtime_nsec())
            )
        })
    };
    let wal = store.results().with_extension("db-wal");
    let files = [
        store.profile(),
        store.results(),
        wal,
        store.tuned(),
        store.captures(),
    ];
    let mut text: String = files.iter().map(|file| of(file)).collect();
    let asm = store.cache().join("asm");
    for folder in [
        store.explanations(),
        store.codelets(),
        store.best(),
        store.current(),
        asm,
    ] {
        text += &of(&folder);
        let mut inside: Vec<_> = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        inside.sort();
        text.extend(inside.iter().map(|path| of(path)));
    }
    state::hash(&text)
}

/// The command that holds the store's lock: `cere capture`.
fn busy(store: &Store) -> Option<String> {
    let number = std::fs::read_to_string(store.lock()).ok()?;
    let number: u32 = number.trim().parse().ok()?;
    let line = std::fs::read(format!("/proc/{number}/cmdline")).ok()?;
    let mut words = line.split(|b| *b == 0).map(String::from_utf8_lossy);
    let program = words.next()?;
    let name = Path::new(&*program).file_name()?.to_str()?.to_owned();
    let subcommand = words.next()?;
    (name == "cere").then(|| format!("cere {subcommand}"))
}
