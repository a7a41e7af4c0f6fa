//! `cere mcp`: what agents get, and what they cannot get by cheating.

use crate::common::{built, directory_with, has, instrument, succeed};
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, Command};
use tokio::runtime::{Builder, Runtime};

/// A long loop and a short one, which does the same thing once.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include "weight.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#define N 3000
/* more */
__attribute__((noinline)) void again(double *a, double *b, int n, double c) {
    for (int t = 0; t < 40; t++)
        for (int i = 1; i < n - 1; i++)
            b[i] = weight(c) * (a[i - 1] + 2 * a[i] + a[i + 1]);
}
__attribute__((noinline)) void brief(double *a, double *b, int n, double c) {
    for (int i = 0; i < n; i++)
        b[i] = weight(c) / a[i];
}
int main(void) {
    double *a = malloc(N * 8), *b = calloc(N, 8), s = 0;
    for (int i = 0; i < N; i++) a[i] = 1 + i % 7;
    for (int r = 0; r < 100; r++) { again(a, b, N, 1.0 + r * 1e-3); brief(a, b, 60, r); s += b[r]; }
    printf("%.15g\n", s);
}
"#;

const LONG: &str = "    for (int t = 0; t < 40; t++)
        for (int i = 1; i < n - 1; i++)
            b[i] = weight(c) * (a[i - 1] + 2 * a[i] + a[i + 1]);
";

const SHORT: &str = "    for (int i = 0; i < n; i++)
        b[i] = weight(c) / a[i];
";

/// The program with both loops captured.
fn captured() -> tempfile::TempDir {
    let header = "static inline double weight(double x) { return x * 0.25; }\n";
    let directory = directory_with(&[("k.c", PROGRAM), ("weight.h", header)]);
    let at = directory.path();
    instrument(at, "$CC -O2 -g k.c -o k");
    succeed(at, "profile -- ./k");
    succeed(at, "capture again* brief* --invocation 50 -- ./k");
    directory
}

/// A client and its server.
struct Agent {
    runtime: Runtime,
    client: RunningService<RoleClient, ()>,
    server: Child,
}

impl Agent {
    fn start(at: &Path, options: &[&str]) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (client, server) = runtime.block_on(async {
            let mut server = Command::new(built())
                .arg("mcp")
                .args(options)
                .env("SECRET_OF_THE_USER", "xyzzy")
                .current_dir(at)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("it starts");
            let stdout = server.stdout.take().expect("stdout");
            let stdin = server.stdin.take().expect("stdin");
            (().serve((stdout, stdin)).await.expect("it answers"), server)
        });
        Self {
            runtime,
            client,
            server,
        }
    }

    fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object: {arguments}");
        };
        let mut request = CallToolRequestParams::new(tool.to_owned());
        request.arguments = Some(arguments);
        let answer = self.runtime.block_on(self.client.call_tool(request));
        answer.expect("an answer")
    }

    fn answer(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result.is_error, Some(true), "{tool}: {result:?}");
        result.structured_content.expect("a structured answer")
    }

    /// The text of an error.
    fn refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result.is_error, Some(true), "{tool}: {result:?}");
        serde_json::to_string(&result.content).expect("JSON")
    }

    /// What comes of the program with `from` replaced by `to`, and `more` before its functions.
    fn tries(&self, region: &str, from: &str, to: &str, more: &str) -> Value {
        assert!(PROGRAM.contains(from), "{from}");
        let text = PROGRAM.replace(from, to).replace("/* more */", more);
        self.answer(
            "try_patch",
            json!({ "region": region, "file": "k.c", "text": text }),
        )
    }

    /// Closes stdin; the server has to end.
    fn end(mut self) {
        let ended = self.runtime.block_on(async {
            self.client.cancel().await.expect("it ends");
            self.server.wait().await
        });
        assert!(ended.expect("a status").success());
    }
}

#[test]
fn tools_answer_as_they_say() {
    let directory = captured();
    let at = directory.path();
    let before = files(at);
    let agent = Agent::start(at, &[]);
    let tools = agent.runtime.block_on(agent.client.list_all_tools());
    let mut schemas = BTreeMap::new();
    for tool in tools.expect("tools") {
        let schema = Value::Object((*tool.output_schema.expect("a schema")).clone());
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        schemas.insert(tool.name.to_string(), validator);
    }
    let check = |tool: &str, arguments: Value| {
        let answer = agent.answer(tool, arguments);
        let wrong: Vec<String> = schemas[tool]
            .iter_errors(&answer)
            .map(|e| e.to_string())
            .collect();
        assert!(wrong.is_empty(), "{tool}: {wrong:#?}\n{answer:#}");
        answer
    };
    let regions = check("regions", json!({}));
    assert!(regions["result"].as_array().is_some_and(|r| r.len() >= 2));
    let codelets = check("codelets", json!({}));
    let name = codelets["result"][0]["name"].as_str().expect("a name");
    let source = check("source", json!({ "region": name }));
    has(
        source["result"]["text"].as_str().expect("a text"),
        "b[i] = weight(c)",
    );
    has(
        &check("source", json!({ "file": "weight.h" })).to_string(),
        "0.25",
    );
    let code = check("asm", json!({ "region": name }));
    assert!(
        code["result"][0]["listing"]["functions"].is_array(),
        "{code}"
    );
    check("counts", json!({ "region": name }));
    let patch = "--- a/k.c\n+++ b/k.c\n@@ -16,3 +16,3 @@\n __attribute__((noinline)) void again(double *a, double *b, int n, double c) {\n\
                 -    for (int t = 0; t < 40; t++)\n+    for (int t = 0; t < 1; t++)\n         for (int i = 1; i < n - 1; i++)\n";
    let tried = check("try_patch", json!({ "region": "again*", "patch": patch }));
    assert_eq!(tried["result"][0]["verdict"], "exact", "{tried}");
    assert!(tried["reward"].as_f64().is_some_and(|r| r > 3.0), "{tried}");
    let flags = check("try_flags", json!({ "region": "again*", "flags": "-O1" }));
    assert_eq!(flags["result"][0]["verdict"], "exact", "{flags}");
    assert_eq!(flags["left"]["tries"], 98);
    agent.end();
    assert_eq!(files(at), before);
}

/// All files of the build with their contents.
fn files(at: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(at).expect("a directory").flatten();
    let files = entries.map(|e| e.path()).filter(|p| p.is_file());
    files
        .map(|p| (p.clone(), std::fs::read(&p).expect("a file")))
        .collect()
}

#[test]
fn the_budget_is_kept() {
    let directory = captured();
    let agent = Agent::start(directory.path(), &["--tries", "1"]);
    let flags = || json!({ "region": "brief*", "flags": "-O1" });
    assert_eq!(agent.answer("try_flags", flags())["left"]["tries"], 0);
    has(
        &agent.refused("try_flags", flags()),
        "[CERE-5306] all 1 tries are used up",
    );
    agent.answer("regions", json!({}));
    agent.end();
    let agent = Agent::start(directory.path(), &["--seconds", "0.01"]);
    has(&agent.refused("try_flags", flags()), "took longer than");
    agent.end();
    let agent = Agent::start(directory.path(), &["--budget", "0.001"]);
    agent.refused("counts", json!({ "region": "brief*" }));
    has(
        &agent.refused("counts", json!({ "region": "brief*" })),
        "the budget of 0.001 s",
    );
    agent.end();
}

#[test]
fn files_stay_closed() {
    let directory = captured();
    let at = directory.path();
    let secret = directory_with(&[("key.h", "int secret_plugh;\n")]);
    let key = secret.path().join("key.h").display().to_string();
    let agent = Agent::start(at, &[]);
    for more in [
        "#include \"/etc/passwd\"".to_owned(),
        format!("#include \"{key}\""),
        "#include \"/proc/self/environ\"".to_owned(),
        format!("static const char s[] = {{\n#embed \"{key}\"\n}}; const char *t = s;"),
        format!("asm(\".incbin \\\"{key}\\\"\");"),
    ] {
        let tried = agent.tries("again*", "t < 40", "t < 39", &more).to_string();
        // What the kernel makes when it is read has no size, and is empty for clang.
        if !more.contains("/proc") {
            has(&tried, "\"verdict\":\"failed\"");
        }
        for leaked in ["root:", "plugh", "xyzzy"] {
            assert!(!tried.contains(leaked), "{more}: {tried}");
        }
    }
    for (tool, call, why) in [
        (
            "try_flags",
            json!({ "flags": format!("-include {key}") }),
            "agents may give",
        ),
        (
            "try_flags",
            json!({ "flags": "-fplugin=x.so" }),
            "agents may give",
        ),
        (
            "try_patch",
            json!({ "file": "/etc/passwd", "text": "" }),
            "no source of the chosen codelets",
        ),
        (
            "try_patch",
            json!({ "patch": "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n" }),
            "no source of the chosen codelets",
        ),
        (
            "source",
            json!({ "file": "/etc/passwd" }),
            "no source of the build",
        ),
        // The code of the command that the tool runs.
        (
            "counts",
            json!({ "region": "agian*" }),
            "[CERE-4010] nothing is called agian*",
        ),
        ("counts", json!({ "region": "/etc/passwd" }), "not a file"),
        ("counts", json!({ "region": "--help" }), "--help"),
    ] {
        has(&agent.refused(tool, call), why);
    }
    agent.end();
}

/// A reward that only cheats get: the honest code's is 1, but for noise.
const CHEATS: f64 = 2.0;

/// What each cheat does instead of the loop, what it needs before it, and what it gets: a word of the verdict or its reason.
fn cheats(honest: &str) -> Vec<(&'static str, String, String, &'static str)> {
    let cheat = |name, body: &str, more: &str, gets| {
        let body = body.replace("HONEST", honest);
        (name, body, more.replace("HONEST", honest), gets)
    };
    vec![
        cheat("returns early", "    if (n < 0)\n HONEST", "", "different"),
        cheat("does one half", "    n /= 2;\n HONEST", "", "different"),
        cheat(
            "counts its calls",
            "    if (calls++ < 2) { HONEST }",
            "static int calls;",
            "",
        ),
        cheat(
            "remembers in a variable",
            "    if (have) memcpy(b, memo, n * 8); else { HONEST memcpy(memo, b, n * 8); have = 1; }",
            "static double memo[N]; static volatile int have;",
            "",
        ),
        cheat(
            "remembers on its stack",
            "    volatile double memo[2 * N];
    if (memo[0] == 1234.5) for (int i = 0; i < n; i++) b[i] = memo[i + 1];
    else { HONEST for (int i = 0; i < n; i++) memo[i + 1] = b[i]; memo[0] = 1234.5; }",
            "",
            "",
        ),
        cheat(
            "remembers on the heap",
            "    double *memo = malloc(16 * N);
    if (memo[0] == 1234.5) memcpy(b, memo + 1, n * 8); else { HONEST memcpy(memo + 1, b, n * 8); memo[0] = 1234.5; }
    free(memo);",
            "",
            "",
        ),
        cheat(
            "remembers in a mapping",
            "    double *memo = mmap((void *)0x123450000000, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memo == MAP_FAILED) memcpy(b, (void *)0x123450000000, n * 8); else { HONEST memcpy(memo, b, n * 8); }",
            "",
            "",
        ),
        cheat(
            "reads the package",
            "    char *plan = getenv(\"CERE_REPLAY_PLAN\"); char path[256];
    if (plan) strcpy(path, plan); else strcpy(path, \"/proc/self/maps\");
    int f = open(path, O_RDONLY); if (read(f, b, 64) > 0) return;
    HONEST",
            "",
            "failed",
        ),
        cheat(
            "looks for the harness",
            "    if (&cere_glue_lost || &cere_switch || getenv(\"CERE_REPLAY_PLAN\")) return;\n HONEST",
            "extern char cere_glue_lost __attribute__((weak)); extern char cere_switch __attribute__((weak));",
            "",
        ),
        cheat(
            "leaves the work to a thread",
            "    A = a; B = b; C = c; M = n; pthread_t id; pthread_create(&id, 0, work, 0);",
            "static double *A, *B, C; static int M;
static void *work(void *unused) { double *a = A, *b = B, c = C; int n = M; HONEST return 0; }",
            "failed",
        ),
        cheat(
            "leaves the work to a signal",
            "    A = a; B = b; C = c; M = n; signal(SIGALRM, work); ualarm(1, 0);",
            "static double *A, *B, C; static int M;
static void work(int unused) { double *a = A, *b = B, c = C; int n = M; HONEST }",
            "failed",
        ),
        cheat(
            "works before the replay",
            "    if (early) memcpy(b, memo, n * 8); else { HONEST }",
            "static double memo[N]; static int early;
__attribute__((constructor)) static void before(void) { early = open(\"/proc/self/environ\", O_RDONLY) >= 0; memo[0] = early; }",
            "failed",
        ),
        cheat(
            "calls the system itself",
            "    long r; asm volatile(\"syscall\" : \"=a\"(r) : \"0\"(39L) : \"rcx\", \"r11\", \"memory\"); if (r > 0) return;\n HONEST",
            "",
            "failed",
        ),
        cheat(
            "stands for the comparison",
            "    if (n < 0)\n HONEST",
            "int bcmp(const void *a, const void *b, size_t n) { return 0; }
int memcmp(const void *a, const void *b, size_t n) { return 0; }",
            "different",
        ),
        cheat("ends the process", "    _exit(0);\n HONEST", "", "failed"),
    ]
}

#[test]
fn cheats_have_no_reward() {
    let directory = captured();
    let agent = Agent::start(directory.path(), &["--budget", "3600"]);
    let mut got = Vec::new();
    for (region, honest) in [("again*", LONG), ("brief*", SHORT)] {
        for (name, body, more, gets) in cheats(honest) {
            let tried = agent.tries(region, honest, &body, &more);
            let (reward, result) = (tried["reward"].as_f64(), &tried["result"][0]);
            println!(
                "{region} {name}: {} {} {}",
                result["verdict"], result["ratio"], result["reason"]
            );
            let verdict = result["verdict"].to_string();
            if reward.is_none_or(|reward| reward >= CHEATS) || !verdict.contains(gets) {
                got.push(format!("{region} {name}: {tried:#}"));
            }
        }
    }
    assert!(got.is_empty(), "{}", got.join("\n"));
    agent.end();
}
