//! `cere report`, read by a browser; served; beside another store.

use crate::common::{cere, has, parsed, refused, succeed, text};
use crate::schemas::conforms;
use cere_format::build::{BUILD_VERSION, CompileCommand, Language, Region, Unit};
use cere_format::profile::{PROFILE_VERSION, Profile, RegionKey, RegionProfile, Trace, TreeNode};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const BEFORE: &str =
    "<script>const errors=[];addEventListener('error',e=>errors.push(e.message));</script></head>";
const PROBE: &str = include_str!("../report_probe.js");

/// A browser; where there is none, the test is skipped, but not in CI.
fn browser() -> Option<&'static str> {
    let found = BROWSERS.into_iter().find(|name| {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|o| o.status.success())
    });
    assert!(
        found.is_some() || std::env::var_os("CI").is_none(),
        "chromium is missing: scripts/setup installs it"
    );
    if found.is_none() {
        eprintln!("skipped: chromium is not installed");
    }
    found
}

/// axe-core, which finds what keeps people out.
static AXE: LazyLock<String> = LazyLock::new(|| {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/axe");
    let output = Command::new(script).output().expect("scripts/axe runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    std::fs::read_to_string(text(&output.stdout).trim()).expect("axe-core")
});

fn browse(browser: &str, url: &str, width: u32, options: &[&str]) -> Vec<u8> {
    let user = tempfile::tempdir().expect("a directory");
    let output = Command::new("timeout")
        .args([
            "120",
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--hide-scrollbars",
        ])
        .arg(format!("--user-data-dir={}", user.path().display()))
        .arg(format!("--window-size={width},1600"))
        // Timers run at once, and what they start is waited for.
        .arg("--virtual-time-budget=30000")
        .args(options)
        .arg(url)
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output.stdout
}

/// What the probe found in `page`, which gets scripts that try it.
fn probe(browser: &str, page: &Path, width: u32) -> Value {
    let html = std::fs::read_to_string(page).expect("a page");
    assert_eq!(html.matches("</head>").count(), 1);
    let tried = html.replace("</head>", BEFORE).replace(
        "</body>",
        &format!("<script>{}</script><script>{PROBE}</script></body>", *AXE),
    );
    let copy = page.with_extension("tried.html");
    std::fs::write(&copy, tried).expect("a page");
    // A window has a least width, a frame has not.
    let around = page.with_extension("around.html");
    let frame = format!(
        "<!doctype html><pre id=probe></pre><iframe width={width} height=900 style=border:0 src=\"{}\"></iframe>
        <script>addEventListener('message', e => document.getElementById('probe').textContent = JSON.stringify(e.data))</script>",
        copy.file_name().and_then(|n| n.to_str()).expect("a name")
    );
    std::fs::write(&around, frame).expect("a page");
    let url = format!("file://{}", around.display());
    let dom = text(&browse(browser, &url, width.max(1280), &["--dump-dom"]));
    let start = dom.find("<pre id=\"probe\">").expect("the probe ran") + 16;
    let end = start + dom[start..].find("</pre>").expect("its end");
    let json = dom[start..end]
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"))
}

/// What holds for every report at every width.
fn sound(page: &Path) {
    let html = std::fs::read_to_string(page).expect("a page");
    for outside in ["src=\"http", "href=\"http", "url(", "@import", "<link"] {
        assert!(
            !html.contains(outside),
            "the page loads something: {outside}"
        );
    }
    let Some(browser) = browser() else { return };
    for width in [360, 768, 1400, 2560] {
        let found = probe(browser, page, width);
        let none = serde_json::json!([]);
        for list in [
            "errors",
            "dangling",
            "twice",
            "loaded",
            "foreign",
            "unsorted",
            "wide",
            "unfolded",
            "unopened",
            "unlabelled",
            "hidden",
            "axe",
            "stuck",
            "unprinted",
        ] {
            assert_eq!(found[list], none, "{list} at {width}: {found}");
        }
        assert_eq!(found["width"], width, "{found}");
        assert_ne!(
            found["paper"][0], found["paper"][1],
            "both themes look alike: {found}"
        );
        assert!(found["sorted"].as_u64() > Some(5), "{found}");
        assert_eq!(found["axed"], 4, "{found}");
        // A window has a least width of 500.
        if width < 500 {
            continue;
        }
        let shot = page.with_extension(format!("{width}.png"));
        let url = format!("file://{}", page.display());
        browse(
            browser,
            &url,
            width,
            &[&format!("--screenshot={}", shot.display())],
        );
        let png = std::fs::read(&shot).expect("a screenshot");
        assert_eq!(png.get(16..20), Some(&width.to_be_bytes()[..]));
        // One colour all over would take less.
        assert!(
            png.len() > 15_000,
            "the screenshot at {width} is empty: {} bytes",
            png.len()
        );
    }
}

/// Explains the first region that was replayed, as `cere explain` would.
fn explain(at: &Path) {
    let records = parsed(&succeed(at, "results --json"));
    let record = &records[0];
    let (unit, index) = (record["unit"].as_str().expect("a unit"), &record["index"]);
    let explanation = json!({
        "version": 1, "region": record["region"], "unit": unit, "index": index, "codelet": record["codelet"],
        "sha256": record["sha256"], "flags": "", "cpu": "a processor", "seconds": 3e-3, "cause": "chain", "share": 0.5,
        "sentence": "It waits for `numbers`.", "advice": "Fewer of them.", "file": null, "line": null,
        "evidence": [{"what": "chains", "value": "12", "source": "llvm-mca"}],
        "what_if": [
            {"change": "half of <them>", "seconds": 2e-3, "interval": null, "found": "modelled", "how": "thought"},
            {"change": "none", "seconds": null, "interval": null, "found": "replayed", "how": "nothing to replay"},
        ],
        "notes": ["Counters are not there."],
    });
    let folder = at.join(".cere/explanations");
    std::fs::create_dir_all(&folder).expect("a directory");
    let name = cere_store::state::hash(&format!("{unit}\0{index}"));
    std::fs::write(folder.join(format!("{name}.json")), explanation.to_string()).expect("a file");
}

#[test]
fn a_program_from_build_to_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/particles");
    for file in ["Makefile", "main.cpp", "shape.h", "system.cpp"] {
        std::fs::copy(example.join(file), at.join(file)).expect("a copy");
    }
    refused(at, "report", "no profile");
    succeed(at, "instrument -- make");
    refused(at, "report", "cere profile");
    succeed(at, "profile -- ./particles");
    let output = succeed(at, "report -o early.html");
    assert!(text(&output.stderr).contains("`cere check` makes some"));
    succeed(at, "capture System::interact* -- ./particles");
    for warmup in ["page-trace", "cold"] {
        let line = [
            "replay",
            "System::interact*",
            "--reps",
            "3",
            "--warmup",
            warmup,
        ];
        succeed(at, &line);
    }
    explain(at);
    let line = ["report", "--json", "-o", "report.html"];
    let told = parsed(&succeed(at, &line));
    conforms("report", &told);
    let first = &told["top"][0];
    assert_eq!(first["sentence"], "It waits for `numbers`.", "{told}");
    assert_eq!(first["verdict"], "exact", "{told}");
    assert!(
        told["records"].as_u64() == told["codelets"].as_u64().map(|n| 2 * n),
        "{told}"
    );
    let page = at.join("report.html");
    let html = std::fs::read_to_string(&page).expect("a page");
    for part in [
        "System::interact@system.cpp:43",
        "class=\"curve w1\"",
        "class=\"curve w3\"",
        "same result, bit for bit",
        "<li class=\"here\"",
        "Colours are classes of alike invocations",
        "What if",
        "It waits for <code>numbers</code>.",
        "half of &#60;them&#62;",
        "33.3 % less",
        "Not looked at yet",
    ] {
        assert!(html.contains(part), "no {part}");
    }
    sound(&page);
    // An explanation of other code is not shown.
    let explanations = at.join(".cere/explanations");
    let kept = std::fs::read_dir(&explanations)
        .expect("a directory")
        .next();
    let kept = kept.expect("an explanation").expect("an entry").path();
    let explanation = std::fs::read_to_string(&kept).expect("a file");
    let older = explanation.replace("\"sha256\":\"", "\"sha256\":\"0");
    assert_ne!(older, explanation);
    std::fs::write(&kept, older).expect("a file");
    succeed(at, &line);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("is of older code") && !html.contains("<code>numbers</code>"));
    // A source that is gone is said to be.
    std::fs::rename(at.join("shape.h"), at.join("shape.gone")).expect("a move");
    std::fs::write(at.join("system.cpp"), "// short now\n").expect("a source");
    succeed(at, &line);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("The source changed since the build"));
}

/// Names that are not HTML, or look as if they were.
fn nasty(place: usize) -> String {
    let template =
        "std::__detail::_Map_base<std::string, std::pair<const std::string, int>, &operator<<>"
            .repeat(4);
    match place {
        0 => "<script>alert(1)</script>@a&b.c:1".to_owned(),
        1 => "\"quoted\" 'twice' & <img src=x onerror=alert(1)>@x.c:2".to_owned(),
        2 => "{{ curly }}{% raw %}{# braces #}@y.c:3".to_owned(),
        3 => format!("{template}@map.h:4"),
        4 => "größe_è_日本語@ü.c:5".to_owned(),
        5 => String::new(),
        6 => format!("{}@long.c:6", "x".repeat(10_000)),
        7 => "\u{202e}right\u{2066}to\u{1b}[31mleft@z.c:7".to_owned(),
        _ => format!("step<{}, Grid<double> >@grid.cpp:{}", place, place / 2),
    }
}

/// A store with a profile of so many regions whose traces are full; the first takes so many seconds more.
fn synthetic(at: &Path, number: usize, more: f64) -> PathBuf {
    let kept = if number > 1000 { 8 } else { 4096 };
    let store = at.join(".cere");
    let id = "0123456789abcdef".repeat(2);
    for directory in ["units", "current"] {
        std::fs::create_dir_all(store.join(directory)).expect("a directory");
    }
    let source = at.join("a.c");
    std::fs::write(
        &source,
        "\tif (a < b && c > d) puts(\"</pre><script>alert(2)</script>\");\n".repeat(60),
    )
    .expect("a source");
    let region = |index: usize| Region {
        kind: Default::default(),
        index: index as u32,
        function: nasty(index),
        symbol: format!("f{index}"),
        file: match index {
            8 => at.join("missing.c"),
            _ => source.clone(),
        },
        line: index as u32,
        ordinal: 1,
        outlined: true,
        reason: None,
        live_ins: Vec::new(),
        exits: 1,
        inside: None,
    };
    let unit = Unit {
        version: BUILD_VERSION,
        id: id.clone(),
        source: source.clone(),
        language: Language::C,
        command: CompileCommand {
            version: BUILD_VERSION,
            store: store.clone(),
            directory: at.to_owned(),
            compiler: "clang-22".to_owned(),
            arguments: Vec::new(),
            codegen: Vec::new(),
            output: Some(at.join("a.o")),
            debug: false,
            skip: Vec::new(),
            short: None,
            split: Vec::new(),
            functions: Vec::new(),
            front: None,
            variables: Default::default(),
        },
        regions: (0..number).map(region).collect(),
        defines: Vec::new(),
        needs: Vec::new(),
        optional: Vec::new(),
        executable_stack: false,
        weak: Vec::new(),
        functions: Vec::new(),
        runtime_words: Vec::new(),
        sources: Vec::new(),
    };
    // A few speeds and some noise, from a linear congruential generator.
    let mut state = 1u64;
    let mut cycles = |region: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let noise = (state >> 33) as f64 / f64::from(1u32 << 31);
        let speed = [1e4, 1.7e4, 2.6e5, 3e6][(state >> 20) as usize % (1 + region % 4)];
        (speed * (1.0 + 0.04 * noise)) as u64
    };
    let profiled = |index: usize| {
        let first: Vec<u64> = (0..kept).map(|_| cycles(index)).collect();
        let sampled: Vec<(u64, u64)> = (kept + 1..kept + 1 + 16 * kept)
            .filter(|i| cere_format::profile::is_sampled(*i, 16))
            .map(|i| (i, cycles(index)))
            .collect();
        let starts = |invocations: &mut dyn Iterator<Item = u64>| match index % 2 {
            0 => invocations.map(|i| i * 3_000_000).collect(),
            _ => Vec::new(),
        };
        let share = 0.19 / (index + 1) as f64;
        RegionProfile {
            key: RegionKey {
                unit: id.clone(),
                index: index as u32,
            },
            name: nasty(index),
            invocations: 17 * kept,
            inclusive_seconds: share * 60.0,
            self_seconds: share * 60.0,
            share,
            parallel: false,
            waiting_seconds: 0.0,
            mpi_seconds: 0.0,
            cycles_min: *first.iter().min().expect("some"),
            cycles_mean: 1e5,
            cycles_max: *first.iter().max().expect("some"),
            noise: 0.0,
            trace: Trace {
                first_starts: starts(&mut (1..kept + 1)),
                sampled_starts: starts(&mut sampled.iter().map(|s| s.0)),
                first,
                stride: 16,
                sampled,
            },
        }
    };
    let mut regions: Vec<RegionProfile> = (0..number).map(profiled).collect();
    regions[0].self_seconds += more;
    let node = |(place, region): (usize, &RegionProfile)| TreeNode {
        region: Some(place),
        parent: Some(if place % 5 == 0 { 0 } else { place }),
        invocations: region.invocations,
        inclusive_seconds: regions[place..]
            .iter()
            .take(5 - place % 5)
            .map(|r| r.self_seconds)
            .sum(),
        self_seconds: region.self_seconds,
    };
    let root = TreeNode {
        region: None,
        parent: None,
        invocations: 1,
        inclusive_seconds: 60.0,
        self_seconds: 0.1,
    };
    let profile = Profile {
        version: PROFILE_VERSION,
        runs: 1,
        ended: None,
        process: Default::default(),
        input: Default::default(),
        over_threads: Vec::new(),
        threads: Vec::new(),
        threads_lost: 0,
        mpi_seconds: 0.0,
        processor: None,
        ranks: Vec::new(),
        alone: None,
        launched: None,
        by_rank: false,
        process_key: None,
        command: ["./app", "--title", "<b>\"bold\"</b> & co"]
            .map(String::from)
            .to_vec(),
        directory: at.to_owned(),
        program: String::new(),
        seconds: 60.0,
        coverage: 0.99,
        tsc_hz: 2.6e9,
        probe_inside: 0.0,
        probe_outside: 0.0,
        tree: std::iter::once(root)
            .chain(regions.iter().enumerate().map(node))
            .collect(),
        regions,
        timeline: Vec::new(),
    };
    std::fs::write(store.join("current/0"), &id).expect("an index");
    let json = |value: Value| value.to_string();
    std::fs::write(
        store.join(format!("units/{id}.json")),
        json(serde_json::to_value(unit).expect("JSON")),
    )
    .expect("a unit");
    std::fs::write(
        store.join("profile.json"),
        json(serde_json::to_value(profile).expect("JSON")),
    )
    .expect("a profile");
    at.join("report.html")
}

#[test]
fn names_that_look_like_markup_and_full_traces() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let page = synthetic(at, 100, 0.0);
    succeed(at, "report");
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(!html.contains(['\u{202e}', '\u{2066}', '\u{1b}']));
    assert!(html.matches(&"x".repeat(2500)).next().is_none());
    assert!(html.contains("{{ curly }}{% raw %}"));
    assert!(html.contains("The source is gone since the build"));
    assert!(html.contains("points are drawn"));
    assert!(html.contains("time since the program") && html.contains(">invocation</text>"));
    sound(&page);
}

#[test]
fn pages_of_many_regions_stay_small() {
    for (regions, most) in [(500, 2_000_000), (20_000, 2_000_000)] {
        let directory = tempfile::tempdir().expect("a directory");
        let page = synthetic(directory.path(), regions, 0.0);
        succeed(directory.path(), "report");
        let html = std::fs::read_to_string(&page).expect("a page");
        assert!(html.len() < most, "{regions} regions: {} bytes", html.len());
        let shown = html.matches("<article").count();
        assert!((100..=500).contains(&shown), "{shown}");
        assert_eq!(html.contains("more regions, each of"), regions > 500);
    }
}

#[test]
fn shares_above_all_are_explained() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let page = synthetic(at, 5, 0.0);
    let file = at.join(".cere/profile.json");
    let mut profile: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("a profile")).expect("JSON");
    profile["regions"][0]["share"] = json!(1.013);
    std::fs::write(&file, profile.to_string()).expect("a profile");
    let output = succeed(at, "report");
    has(&text(&output.stderr), "add up to");
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(!html.contains("101.3 %<") && html.contains(">all<"));
    has(&html, "the cost of the probes");
}

#[test]
fn a_page_that_cannot_be_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    synthetic(at, 5, 0.0);
    refused(
        at,
        "report -o /proc/none/r.html",
        "no file can be written in /proc/none",
    );
    refused(at, "report -o .", "is a directory: name a file");
    refused(at, "report --compare nowhere", "nowhere cannot be opened");
    refused(
        at,
        "report --compare /proc",
        "/proc cannot be compared with",
    );
}

#[test]
fn two_stores_side_by_side() {
    let (here, there) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let page = synthetic(here.path(), 12, 0.0);
    synthetic(there.path(), 11, 5.7);
    let file = there.path().join(".cere/profile.json");
    let profile = std::fs::read_to_string(&file).expect("a profile");
    // A line that moved, and a run that takes longer.
    let moved = profile.replace("Grid<double> >@grid.cpp:4", "Grid<double> >@grid.cpp:444");
    assert_ne!(moved, profile);
    let moved = moved.replace("\"seconds\":60.0", "\"seconds\":66.0");
    std::fs::write(&file, moved).expect("a profile");
    let line = format!("report --json --compare {}", there.path().display());
    let told = parsed(&succeed(here.path(), line.as_str()));
    conforms("report", &told);
    let pairs = told["compared"].as_array().expect("pairs");
    assert_eq!(pairs.len(), 12, "{told}");
    assert_eq!(pairs[0]["region"], nasty(0), "the largest difference first");
    let seconds = |side: usize| pairs[0]["seconds"][side].as_f64().expect("seconds");
    assert!((seconds(1) - seconds(0) - 5.7).abs() < 1e-9);
    let alone = pairs.iter().filter(|p| p["other"].is_null()).count();
    assert_eq!(alone, 1, "{told}");
    let moved = |p: &&Value| p["other"].as_str().is_some_and(|o| o.ends_with(":444"));
    let moved = pairs.iter().find(moved).expect("the moved region");
    assert!(moved["region"].as_str().is_some_and(|r| r.ends_with(":4")));
    let html = std::fs::read_to_string(&page).expect("a page");
    for part in [
        "60.0 s here and 66.0 s there: <b>+10.0 %</b>",
        "only here",
        "+50.0 %",
    ] {
        assert!(html.contains(part), "no {part}");
    }
    sound(&page);
}

/// A `cere report --serve` that ends with the test.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start(at: &Path) -> Self {
        let mut child = cere(at, "report --serve 0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("cere runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let port = line.trim().strip_prefix("http://127.0.0.1:");
        let port = port.and_then(|p| p.parse().ok());
        Self {
            port: port.unwrap_or_else(|| panic!("no address: {line}")),
            child,
        }
    }

    /// What is answered to these lines, and a host.
    fn answer(&self, request: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        write!(stream, "{request} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn get(&self, path: &str) -> String {
        self.answer(&format!("GET {path}"), &format!("localhost:{}", self.port))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_served_page_follows_the_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    refused(at, "report --serve 0", "there is no store");
    std::fs::create_dir(at.join(".cere")).expect("a directory");
    let mut served = Served::start(at);
    let waiting = served.get("/");
    assert!(waiting.starts_with("HTTP/1.1 200 OK\r\n"), "{waiting}");
    has(&waiting, "It waits for a profile");
    has(&waiting, "there is no profile in");
    let before = served.get("/state");
    synthetic(at, 5, 0.0);
    let after = served.get("/state");
    assert_ne!(before, after);
    let page = served.get("/");
    has(&page, "Where the time goes");
    let body: Value =
        serde_json::from_str(after.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    let state = body["state"].as_str().expect("a state");
    has(&page, &format!("data-live=\"{state}\""));
    assert_eq!(served.get("/state"), after, "reading changes nothing");

    let own = format!("127.0.0.1:{}", served.port);
    for host in [
        "evil.example",
        "",
        &format!("evil.example:{}", served.port),
        "127.0.0.1:1",
    ] {
        let answer = served.answer("GET /", host);
        assert!(answer.starts_with("HTTP/1.1 421 "), "{host}: {answer}");
        assert!(!answer.contains("Where the time goes"));
    }
    assert!(served.answer("POST /", &own).starts_with("HTTP/1.1 405 "));
    assert!(
        served
            .answer("GET /.cere/profile.json", &own)
            .starts_with("HTTP/1.1 404 ")
    );
    let head = served.answer("HEAD /", &own);
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"));
    let line = format!("report --serve {}", served.port);
    refused(at, line.as_str(), "is in use by another program");

    // A client that says nothing does not keep others from the page.
    let _silent = TcpStream::connect(("127.0.0.1", served.port)).expect("a connection");
    has(&served.get("/"), "Where the time goes");
    let id = rustix::process::Pid::from_child(&served.child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("a signal");
    let begun = Instant::now();
    while served.child.try_wait().expect("a status").is_none() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "ctrl-C does not end it"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_open_page_renews_itself() {
    let Some(browser) = browser() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    std::fs::create_dir(at.join(".cere")).expect("a directory");
    let served = Served::start(at);
    let url = &format!("http://127.0.0.1:{}/", served.port);
    let shown = std::thread::scope(|scope| {
        // Some 2,000 questions for the state of the store, one after the other.
        let options = ["--virtual-time-budget=4000000", "--dump-dom"];
        let opened = scope.spawn(move || text(&browse(browser, url, 1400, &options)));
        std::thread::sleep(Duration::from_millis(1500));
        synthetic(at, 5, 0.0);
        opened.join().expect("a page")
    });
    assert!(shown.contains("Where the time goes"), "{shown}");
    assert!(shown.contains("role=\"status\">live</span>"), "{shown}");
}
