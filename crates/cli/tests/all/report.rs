//! `cere report`, read by a browser.

use crate::common::{parsed, refused, succeed, text};
use cere_format::build::{BUILD_VERSION, CompileCommand, Language, Region, Unit};
use cere_format::profile::{PROFILE_VERSION, Profile, RegionKey, RegionProfile, Trace, TreeNode};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

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

fn browse(browser: &str, url: &str, width: u32, option: &str) -> Vec<u8> {
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
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--hide-scrollbars",
        ])
        .arg(format!("--user-data-dir={}", user.path().display()))
        .arg(format!("--window-size={width},1600"))
        // Timers run at once, and what they start is waited for.
        .args(["--virtual-time-budget=30000", option, url])
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output.stdout
}

/// What the probe found in `page`, which gets scripts that try it.
fn probe(browser: &str, page: &Path, width: u32) -> Value {
    let html = std::fs::read_to_string(page).expect("a page");
    assert_eq!(html.matches("</head>").count(), 1);
    let tried = html
        .replace("</head>", BEFORE)
        .replace("</body>", &format!("<script>{PROBE}</script></body>"));
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
    let dom = text(&browse(browser, &url, 1280, "--dump-dom"));
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
    for width in [1280, 375] {
        let found = probe(browser, page, width);
        let none = serde_json::json!([]);
        for list in [
            "errors", "dangling", "twice", "loaded", "foreign", "unsorted", "wide", "unfolded",
            "unopened",
        ] {
            assert_eq!(found[list], none, "{list} at {width}: {found}");
        }
        assert_eq!(found["width"], width, "{found}");
        assert_ne!(
            found["paper"][0], found["paper"][1],
            "both themes look alike: {found}"
        );
        assert!(found["sorted"].as_u64() > Some(5), "{found}");
        let shot = page.with_extension(format!("{width}.png"));
        let url = format!("file://{}", page.display());
        browse(
            browser,
            &url,
            width,
            &format!("--screenshot={}", shot.display()),
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
    let line = ["report", "--json", "-o", "report.html"];
    let told = parsed(&succeed(at, &line));
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
        "exact",
        "class=\"line here\"",
        "performance classes",
    ] {
        assert!(html.contains(part), "no {part}");
    }
    sound(&page);
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
        _ => format!("step<{}, Grid<double> >@grid.cpp:{}", place, place / 2),
    }
}

/// A store with a profile of 100 regions whose traces are full.
fn synthetic(at: &Path) -> PathBuf {
    const REGIONS: usize = 100;
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
            7 => at.join("missing.c"),
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
        regions: (0..REGIONS).map(region).collect(),
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
        let first: Vec<u64> = (0..4096).map(|_| cycles(index)).collect();
        let sampled: Vec<(u64, u64)> = (4097..4097 + 65536)
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
            invocations: 4096 + 65536,
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
                first_starts: starts(&mut (1..4097)),
                sampled_starts: starts(&mut sampled.iter().map(|s| s.0)),
                first,
                stride: 16,
                sampled,
            },
        }
    };
    let regions: Vec<RegionProfile> = (0..REGIONS).map(profiled).collect();
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
    let page = synthetic(at);
    succeed(at, "report");
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.len() < 6_000_000, "{} bytes", html.len());
    assert!(html.contains("{{ curly }}{% raw %}"));
    assert!(html.contains("The source is gone since the build"));
    assert!(html.contains("points are drawn"));
    assert!(html.contains("time since the program") && html.contains(">invocation</text>"));
    sound(&page);
}
