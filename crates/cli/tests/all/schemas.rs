//! `docs/schemas/`: what every command prints with `--json` is what its schema describes, no field more and none less.

use crate::common::{built, cere, machine, parsed, run, succeed, text, write};
use cere_format::build::RegionKind;
use cere_format::machine::{
    Cache, Cores, Found, Identity, MACHINE_VERSION, Machine, Operation, Peak,
};
use cere_format::replay::{CacheLevel, Verdict, Warmup};
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schemas by the name of their command.
fn schemas() -> BTreeMap<String, Value> {
    let directory = repository().join("docs/schemas");
    let files = std::fs::read_dir(&directory).expect("docs/schemas");
    files
        .map(|file| {
            let file = file.expect("a file").path();
            let name = file.file_stem().expect("a name").to_string_lossy();
            let content = std::fs::read(&file).expect("a schema");
            let schema = serde_json::from_slice(&content)
                .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            (name.into_owned(), schema)
        })
        .collect()
}

/// Calls `visit` with every object in `value`.
fn visit_objects(value: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            object.values().for_each(|v| visit_objects(v, visit));
        }
        Value::Array(items) => items.iter().for_each(|v| visit_objects(v, visit)),
        _ => {}
    }
}

/// Documents of an option that makes a command print something else.
const OF_OPTIONS: [&str; 2] = ["blocking", "watch"];

/// Commands whose own tests check what they print by [`conforms`].
const ELSEWHERE: [&str; 3] = ["clean", "explain", "reduce"];

/// Fails unless `value` is what the schema of `command` describes.
pub fn conforms(command: &str, value: &Value) {
    let schema = &schemas()[command];
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}: {value}");
}

#[test]
fn every_command_with_json_has_a_strict_schema() {
    let directory = tempfile::tempdir().expect("a directory");
    let help = text(&run(directory.path(), "--help").stdout);
    let commands = help.lines().skip_while(|l| *l != "Commands:").skip(1);
    let commands = commands.map_while(|l| l.split_whitespace().next());
    let with_json: BTreeSet<String> = commands
        .filter(|c| *c != "help")
        .filter(|c| text(&run(directory.path(), &[c, "--help"]).stdout).contains("--json"))
        .chain(OF_OPTIONS)
        .map(str::to_owned)
        .collect();
    let schemas = schemas();
    assert_eq!(with_json, schemas.keys().cloned().collect());

    let mut shared: BTreeMap<&str, &Value> = BTreeMap::new();
    for (command, schema) in &schemas {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{command}");
        visit_objects(schema, &mut |object| {
            let Some(properties) = object.get("properties").and_then(Value::as_object) else {
                return;
            };
            let named: Vec<&str> = properties.keys().map(String::as_str).collect();
            assert_eq!(
                object["additionalProperties"], false,
                "{command}: {named:?}"
            );
            let required = object["required"].as_array().expect("an array");
            let mut required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
            required.sort_unstable();
            assert_eq!(required, named, "{command}");
        });
        for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
            let known = shared.entry(name).or_insert(definition);
            assert_eq!(*known, definition, "{command}: {name} of another schema");
        }
    }
    assert_eq!(
        schemas["study"]["properties"],
        schemas["check"]["oneOf"][0]["properties"]
    );
    assert_eq!(
        schemas["watch"]["properties"]["tried"]["items"],
        schemas["try"]["items"]
    );
}

#[test]
fn schemas_list_every_variant() {
    let schemas = schemas();
    let known = &schemas["results"]["$defs"]["verdict"]["enum"];
    let known = known.as_array().expect("an array").iter();
    let known: BTreeSet<&str> = known.filter_map(Value::as_str).collect();
    assert_eq!(known, Verdict::ALL.map(Verdict::name).into());
    let warmup = &schemas["results"]["$defs"]["warmup"];
    let validator = jsonschema::draft202012::new(warmup).expect("a schema");
    for state in [
        Warmup::Cold,
        Warmup::Partial(CacheLevel::L2),
        Warmup::Partial(CacheLevel::Llc),
        Warmup::WorkingSet,
        Warmup::PageTrace,
    ] {
        assert!(validator.is_valid(&json!(state)), "{state:?}");
    }
    let kinds = &schemas["regions"]["items"]["properties"]["kind"]["enum"];
    assert_eq!(
        kinds,
        &json!([RegionKind::Loop, RegionKind::Parallel, RegionKind::Function])
    );
}

/// A measurement of this machine that knows what block sizes need.
fn measurement() -> Machine {
    let cache = |level, size_bytes, confidence| Cache {
        level,
        size_bytes,
        confidence,
        ..Cache::default()
    };
    let found = |what: &str| Found {
        what: what.to_owned(),
        confidence: 1.0,
        how: String::new(),
    };
    Machine {
        version: MACHINE_VERSION,
        identity: Identity::here(),
        line_bytes: Some(64),
        caches: vec![
            cache(1, 32 << 10, 1.0),
            cache(2, 1 << 20, 1.0),
            cache(3, 8 << 20, 0.1),
        ],
        cores: Cores {
            float_registers: Some(16),
            ..Cores::default()
        },
        operations: vec![Operation {
            name: "fma".to_owned(),
            element: "f64".to_owned(),
            bits: 256,
            latency_adds: 4.0,
            per_add: 2.0,
            confidence: 1.0,
            ..Operation::default()
        }],
        peaks: vec![Peak {
            name: "fma".to_owned(),
            element: "f64".to_owned(),
            bits: 256,
            cores: 1,
            flops_per_second: 4e10,
            streams: 8,
        }],
        found: ["line_bytes", "cores.float_registers", "peaks[0]"]
            .map(found)
            .into(),
        ..Machine::default()
    }
}

#[test]
fn block_sizes_are_what_their_schema_describes() {
    let directory = tempfile::tempdir().expect("a directory");
    let sizes = |kernel: &str| {
        let words = ["machine", "--blocking", kernel, "--json"];
        let mut command = cere(directory.path(), &words);
        let cache = command.env("XDG_CACHE_HOME", directory.path());
        cache.output().expect("cere runs")
    };
    let missing = sizes("dgemm");
    assert!(!missing.status.success() && text(&missing.stderr).contains("run `cere machine`"));
    let machine = measurement();
    let file = format!("cere/machines/{}.json", machine.identity.id);
    let content = serde_json::to_string(&machine).expect("JSON");
    write(directory.path(), &[(&file, &content)]);
    let schema = jsonschema::draft202012::new(&schemas()["blocking"]).expect("a schema");
    for (kernel, bounded) in [("dgemm", 7), ("stencil", 6)] {
        let printed = parsed(&sizes(kernel));
        assert!(schema.is_valid(&printed), "{printed:#}");
        let flags = printed["flags"].as_array().map(Vec::len);
        assert_eq!(flags, Some(bounded), "{printed:#}");
    }
}

/// A program and the store of its build, with the schemas that the output is held against.
struct Session {
    directory: tempfile::TempDir,
    validators: BTreeMap<String, Validator>,
    met: BTreeSet<String>,
}

impl Session {
    /// A copy of `examples/plate`, whose regions are parallel.
    fn start() -> Self {
        built();
        let directory = tempfile::tempdir().expect("a directory");
        for file in ["plate.c", "Makefile"] {
            let from = repository().join("examples/plate").join(file);
            let text = std::fs::read_to_string(&from).expect("the example");
            // So often that two regions matter, on a busy machine as well.
            let text = text.replace("s % 50 == 0", "s % 5 == 0");
            std::fs::write(directory.path().join(file), text).expect("a copy");
        }
        let compiled = |(name, schema): (String, Value)| {
            let validator = jsonschema::draft202012::new(&schema);
            (name, validator.expect("a schema"))
        };
        Self {
            directory,
            validators: schemas().into_iter().map(compiled).collect(),
            met: BTreeSet::new(),
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs the command with `--json` and holds its output against the schema, whatever its status.
    fn check(&mut self, command: &str, arguments: &[&str]) -> Value {
        let words = [&[command, "--json"], arguments].concat();
        let output = run(self.path(), &words);
        let errors = text(&output.stderr);
        let value: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("cere {words:?}: {e}\n{errors}"));
        let wrong: Vec<String> = self.validators[command]
            .iter_errors(&value)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "cere {words:?}: {wrong:#?}\n{value:#}");
        self.met.insert(command.to_owned());
        value
    }
}

impl Session {
    /// Where no hardware counter works, `--hardware` prints nothing; the schema of what it prints elsewhere is checked in
    /// `crates/cli/src/show/count.rs`.
    fn check_hardware(&mut self) {
        let hardware = ["step@*:2", "--geometry", "none", "--hardware"];
        let run = run(self.path(), &[&["count", "--json"][..], &hardware].concat());
        if text(&run.stderr).contains("no hardware counter works") {
            assert_eq!(run.status.code(), Some(1));
            assert!(run.stdout.is_empty(), "{}", text(&run.stdout));
            return;
        }
        let counts = self.check("count", &hardware);
        assert!(some(&counts[0]["hardware"], "events"), "{counts}");
    }
}

/// Whether the array `field` has entries: an empty one shows nothing of its schema.
fn some(value: &Value, field: &str) -> bool {
    value[field].as_array().is_some_and(|a| !a.is_empty())
}

/// `cere subset`, `measure`, and `predict` and `report` of what they wrote.
fn check_subset(session: &mut Session) {
    let quick = ["--reps", "3", "--rounds", "2"];
    let subset = |more: &[&str]| {
        let common = ["--budget", "100000", "--clusters", "1", "--checks", "0"];
        [&[".cere"], &common[..], &quick, more]
            .concat()
            .iter()
            .map(|w| (*w).to_owned())
            .collect::<Vec<String>>()
    };
    let check = |session: &mut Session, more: &[&str]| {
        let words = subset(more);
        session.check(
            "subset",
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    };
    let found = check(session, &["--whole", "-o", "plate.cere"]);
    assert_eq!(found["k"], 1, "{found}");
    assert!(found["expected_error"].is_null() && some(&found, "dropped"));
    let program = "plate=./plate 200 2000";
    let measured = [
        &["plate.cere", "-o", "here.json", "--run", program],
        &quick[..],
    ]
    .concat();
    let measured = session.check("measure", &measured);
    assert!(some(&measured, "codelets") && measured["programs"]["plate"].is_number());
    let o1 = [
        &["plate.cere", "-o", "o1.json", "--flags", "-O1"],
        &quick[..],
    ]
    .concat();
    let o1 = session.check("measure", &o1);
    assert!(o1["codelets"][0]["rounds"][0]["built"].is_number(), "{o1}");
    let machines = ["--machines", "here.json", "o1.json"];
    let unified = check(session, &[&["--unified"][..], &machines].concat());
    assert!(unified["two_steps"]["k"].is_number(), "{unified}");
    assert!(some(&unified["expected_error"], "machines"), "{unified}");
    let train = ["--train", "--population", "8", "--generations", "3"];
    let trained = check(session, &[&train[..], &machines].concat());
    assert!(some(&trained["trained"], "metrics"), "{trained}");
    let left_out = &trained["expected_error"];
    assert!(some(left_out, "machine_left_out"), "{trained}");
    let one = session.check("predict", &["--machine", "here.json"]);
    assert!(one["programs"][0]["measured_seconds"].is_number(), "{one}");
    assert!(one["point_errors"].is_object(), "{one}");
    session.check("predict", &["--machine", "here.json", "o1.json"]);
    session.check("predict", &["--machine", "here.json", "o1.json", "--rank"]);
    session.check(
        "report",
        &["--subset", "plate.cere", "--machine", "o1.json"],
    );
}

const PLATE: [&str; 4] = ["--", "./plate", "200", "2000"];

#[test]
fn every_command_prints_what_its_schema_describes() {
    let mut session = Session::start();
    write(session.path(), &[("flags.txt", "-O2\n-O1\n")]);
    session.check("doctor", &[]);
    let quick = ["--quick", "--seconds", "4", "--no-keep"];
    assert!(some(&session.check("machine", &quick), "found"));
    session.check("instrument", &["--", "make"]);
    let regions = session.check("regions", &[]);
    let parallel = |r: &Value| r["kind"] == "parallel" && r["live_ins"] != Value::Array(vec![]);
    assert!(regions.as_array().expect("regions").iter().any(parallel));
    let profile = session.check("profile", &PLATE);
    assert!(some(&profile, "regions") && some(&profile, "tree"));
    assert_eq!(session.check("profile", &["--show"]), profile);
    assert!(some(
        &session.check("select", &["--coverage", "50"]),
        "regions"
    ));
    let capture = ["step@*", "largest@*", "--invocation", "2,5000"];
    let captured = session.check("capture", &[&capture[..], &PLATE].concat());
    assert!(
        some(&captured, "codelets") && some(&captured, "skipped"),
        "{captured}"
    );
    succeed(session.path(), &[&["capture"][..], &PLATE].concat());
    session.check("codelets", &[]);

    let quick = ["--reps", "3"];
    let one = session.check("replay", &[&["step@*:2"][..], &quick].concat());
    assert!(one["comparison"].is_object(), "{one}");
    let several = session.check(
        "replay",
        &[&["*:*", "--warmup", "cold"][..], &quick].concat(),
    );
    assert!(several.is_array());
    let partial = ["*:2", "--warmup", "cold", "--warm-to", "l2", "--no-check"];
    session.check("replay", &[&partial[..], &quick].concat());
    let placed = ["step@*:2", "--operand", "data=cold,code=warm"];
    session.check("replay", &[&placed[..], &quick].concat());
    session.check("replay", &["step@*:2", "--operand", "list"]);
    let failed = session.check("replay", &["step@*:2", "--passes", "no-such-pass"]);
    assert!(failed["error"].is_string(), "{failed}");
    assert!(
        session
            .check("results", &[])
            .as_array()
            .is_some_and(|r| r.len() > 3)
    );
    assert!(some(&session.check("check", &["--rounds", "1"]), "regions"));
    let counted = session.check("check", &["--counted", "--geometry", "zen3"]);
    assert!(some(&counted, "codelets"), "{counted}");
    let counts = session.check("count", &["step@*:2", "--geometry", "zen3"]);
    assert!(some(&counts[0], "levels"), "{counts}");
    session.check("count", &["step@*:2", "--geometry", "none"]);
    session.check_hardware();
    let code = session.check("asm", &["step@*:2", "--against", "-O1"]);
    assert!(
        some(&code[0]["listing"], "functions") && some(&code[0], "diff"),
        "{code}"
    );
    session.check("asm", &["step@*:2"]);
    let vectors = session.check("metrics", &["step@*:2", "--no-time"]);
    assert!(vectors[0]["metrics"]["ilp_32"].is_number(), "{vectors}");
    session.check("metrics", &["--list"]);
    let tried = session.check("try", &["step@*:2", "--flags", "-O1", "--reps", "3"]);
    assert!(tried[0]["ratio"].is_number(), "{tried}");
    let exported = session.check("export", &["step@*:2", "exported"]);
    assert_eq!(exported["verdict"], "exact", "{exported}");
    let sides = ["captured", "flags:-O1", "step@*:2", "--reps", "3"];
    let compared = session.check("compare", &sides);
    assert!(compared[0]["counts"][0].is_object(), "{compared}");
    succeed(session.path(), "guard add step@*:2 --max-size 100");
    let guarded = session.check("guard", &["--no-times"]);
    assert_eq!(guarded[0]["result"], "unchanged", "{guarded}");

    let fixture = serde_json::to_string(&machine()).expect("JSON");
    write(session.path(), &[("machine.json", &fixture)]);
    let roof = [
        "step@*:2",
        "--machine",
        "machine.json",
        "--geometry",
        "zen3",
    ];
    let roofline = session.check("roofline", &[&roof[..], &quick].concat());
    assert!(
        some(&roofline, "points") && some(&roofline, "equal"),
        "{roofline}"
    );
    let failed = [&roof[..], &quick, &["--flags", "--no-such-flag"]].concat();
    assert!(some(&session.check("roofline", &failed), "apart"));

    let threads = ["--threads", "1,2", "--measure", "--rounds", "1"];
    assert!(some(&session.check("predict", &threads), "runs"));
    let flags = ["--flags-file", "flags.txt", "--measure", "--rounds", "1"];
    assert!(some(&session.check("predict", &flags), "rows"));
    check_subset(&mut session);
    let tune = ["--space", "levels", "--budget", "6", "--threads", "1,2"];
    assert!(some(&session.check("tune", &tune), "regions"));
    let names = regions.as_array().expect("regions").iter();
    let step = names
        .filter_map(|r| r["name"].as_str())
        .find(|n| n.starts_with("step@"))
        .expect("step");
    let choices =
        format!("version = 1\n[[region]]\nname = \"{step}\"\nflags = \"-O1\"\nthreads = 1\n");
    write(session.path(), &[("app.flags", &choices)]);
    let hybrid = ["-o", "tuned", "--flags-file", "app.flags"];
    let linked = session.check("hybrid", &[&hybrid[..], &["--image", "plate"]].concat());
    assert!(some(&linked, "regions") && linked["plain_seconds"].is_null());
    let tried = [&hybrid[..], &["--rounds", "3", "--explain"], &PLATE].concat();
    assert!(session.check("hybrid", &tried)["plain_seconds"].is_number());
    session.check("report", &[]);
    let page = std::fs::read_to_string(session.path().join("report.html")).expect("the page");
    assert!(page.contains("memory load, 1 core") && page.contains("h-roof"));
    let study = [&["--build", "make"][..], &PLATE].concat();
    assert!(some(&session.check("study", &study), "regions"));
    let met = session.met.into_iter();
    let elsewhere = OF_OPTIONS.iter().chain(&ELSEWHERE).map(|s| (*s).to_owned());
    let met: BTreeSet<String> = met.chain(elsewhere).collect();
    assert_eq!(met, session.validators.keys().cloned().collect());
}
