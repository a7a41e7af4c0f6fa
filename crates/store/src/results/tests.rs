use super::database::{Database, migrate};
use super::*;
use cere_format::replay::{CacheLevel, SetAside, Verdict, Warmup};
use rusqlite::Connection;
use std::path::Path;

fn record(codelet: &str, flags: &[&str], warmup: Warmup) -> Record {
    Record {
        when: String::new(),
        codelet: codelet.to_owned(),
        region: codelet.trim_end_matches(":1").to_owned(),
        unit: "0123".to_owned(),
        index: 7,
        invocation: 1,
        sha256: "abcd".to_owned(),
        setting: Setting {
            flags: flags.iter().map(|f| (*f).to_owned()).collect(),
            passes: None,
            warmup,
            threads: None,
            placement: String::new(),
            operands: String::new(),
        },
        machine: this_machine(),
        tool: tool(),
        times: Some(Times {
            cycles_min: 90,
            cycles_median: 100,
            seconds_min: 9e-8,
            seconds_median: 1e-7,
            quantiles: vec![9e-8, 1e-7, 1.25e-7],
            interval: Some((0.99e-7, 1.01e-7)),
            samples: 12,
            set_aside: SetAside {
                faults: 1,
                switches: 2,
                migrations: 3,
                stolen: 4,
            },
            disturbed: true,
            batch: 8,
        }),
        energy: Some(Energy {
            joules: 5e-6,
            interval: Some((4e-6, 6e-6)),
            seconds: 1.2e-7,
        }),
        in_vivo_seconds: Some(1.1e-7),
        verdict: Verdict::Tolerance,
        reason: "2 words, \"near\"\nenough".to_owned(),
        same_code: Some(false),
        session: None,
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path());
    (directory, store)
}

#[test]
fn a_record_comes_back_as_it_was() {
    let (_directory, store) = store();
    assert!(Database::existing(&store).unwrap().is_none());
    let mut whole = record("f<a, b>@a.c:1:1", &["-O3", "-D=a \"b\""], Warmup::PageTrace);
    whole.setting.passes = Some("default<O2>".to_owned());
    whole.setting.threads = Some(4);
    whole.setting.placement = "OMP_PLACES=cores".to_owned();
    whole.setting.operands = "a=cold,b=l2".to_owned();
    whole.session = Some("a".to_owned());
    let mut failed = record("g@a.c:2:1", &[], Warmup::Partial(CacheLevel::Llc));
    (failed.times, failed.in_vivo_seconds, failed.same_code) = (None, None, None);
    failed.energy = None;
    keep(&store, &[whole.clone(), failed.clone()]).unwrap();
    let mut read = Database::existing(&store).unwrap().unwrap().all().unwrap();
    for (read, written) in read.iter_mut().zip([whole, failed]) {
        let when = std::mem::take(&mut read.when);
        assert!(
            when.starts_with("20") && when.ends_with('Z') && when.len() == 20,
            "{when}"
        );
        assert_eq!(*read, written);
    }
}

#[test]
fn the_latest_under_the_same_setting() {
    let (_directory, store) = store();
    let database = Database::writable(&store).unwrap();
    let cold = record("f@a.c:1:1", &["-O3"], Warmup::Cold);
    let mut later = cold.clone();
    later.reason = "later".to_owned();
    let other = record("f@a.c:1:1", &["-O2"], Warmup::Cold);
    keep(&store, &[cold.clone(), later, other]).unwrap();
    let latest = |sha256: &str, setting: &Setting, machine: &str| {
        let found = database.of(sha256, setting, machine).unwrap();
        let counting = counting(&found.iter().collect::<Vec<_>>());
        counting.last().map(|r| r.reason.clone())
    };
    let machine = this_machine().id;
    assert_eq!(
        latest("abcd", &cold.setting, &machine).as_deref(),
        Some("later")
    );
    assert_eq!(latest("abce", &cold.setting, &machine), None);
    assert_eq!(latest("abcd", &cold.setting, "elsewhere"), None);
    let mut setting = cold.setting.clone();
    setting.passes = Some("default<O2>".to_owned());
    assert_eq!(latest("abcd", &setting, &machine), None);
    setting = Setting {
        passes: None,
        warmup: Warmup::PageTrace,
        ..setting
    };
    assert_eq!(latest("abcd", &setting, &machine), None);
    setting = cold.setting.clone();
    setting.threads = Some(2);
    assert_eq!(latest("abcd", &setting, &machine), None);
    setting = cold.setting.clone();
    setting.operands = "a=cold".to_owned();
    assert_eq!(latest("abcd", &setting, &machine), None);
    // What another cere measured does not count.
    let mut other = cold.clone();
    other.tool = "0.1.0".to_owned();
    other.sha256 = "other".to_owned();
    keep(&store, std::slice::from_ref(&other)).unwrap();
    assert_eq!(latest("other", &cold.setting, &machine), None);
    other.tool = tool();
    keep(&store, std::slice::from_ref(&other)).unwrap();
    assert!(latest("other", &cold.setting, &machine).is_some());
}

#[test]
fn what_counts_is_the_last_check_that_ran_the_program() {
    let of = |session: Option<&str>, reason: &str| {
        let mut record = record("f@a.c:1:1", &[], Warmup::Cold);
        record.session = session.map(str::to_owned);
        record.reason = reason.to_owned();
        record
    };
    let all = [
        of(None, "0"),
        of(Some("a"), "1"),
        of(Some("b"), "2"),
        of(Some("b"), "3"),
        of(None, "4"),
    ];
    let found = |part: &[Record]| {
        let records = counting(&part.iter().collect::<Vec<_>>());
        records.iter().map(|r| r.reason.clone()).collect::<String>()
    };
    assert_eq!(found(&all), "23");
    assert_eq!(
        (found(&all[..2]), found(&all[..1])),
        ("1".into(), "0".into())
    );
    assert_eq!(found(&[]), "");
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let (_directory, store) = store();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let record = record("f@a.c:1:1", &[], Warmup::Cold);
                    keep(&store, std::slice::from_ref(&record)).unwrap();
                }
            });
        }
    });
    let database = Database::existing(&store).unwrap().unwrap();
    assert_eq!(database.all().unwrap().len(), 80);
}

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap()
}

#[test]
fn older_files_are_brought_up_to_date_and_newer_ones_refused() {
    let (_directory, store) = store();
    let path = store.results();
    let mut connection = Connection::open(&path).unwrap();
    let steps = ["CREATE TABLE t (a)", "ALTER TABLE t ADD COLUMN b"];
    migrate(&mut connection, &path, &steps[..1]).unwrap();
    connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
    migrate(&mut connection, &path, &steps).unwrap();
    assert_eq!(version(&path), 2);
    connection.execute("UPDATE t SET b = a + 1", []).unwrap();
    let error = migrate(&mut connection, &path, &steps[..1])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("version 2") && error.contains("install a newer cere"),
        "{error}"
    );
    // A step that fails leaves the file as it was.
    let bad = [steps[0], steps[1], "CREATE TABLE u (a); nonsense"];
    assert!(migrate(&mut connection, &path, &bad).is_err());
    assert_eq!(version(&path), 2);
    assert!(connection.execute("INSERT INTO u VALUES (1)", []).is_err());
}

#[test]
fn a_damaged_file_is_named_with_a_remedy() {
    let (_directory, store) = store();
    std::fs::write(store.results(), vec![b'x'; 5000]).unwrap();
    for error in [
        Database::existing(&store).err().unwrap(),
        keep(&store, &[record("f@a.c:1:1", &[], Warmup::Cold)]).unwrap_err(),
    ] {
        let error = format!("{error:#}");
        let path = store.results().display().to_string();
        assert!(
            error.contains(&path) && error.contains("damaged: move it away"),
            "{error}"
        );
    }
}

#[test]
fn no_store_no_record() {
    let (directory, store) = store();
    drop(directory);
    keep(&store, &[record("f@a.c:1:1", &[], Warmup::Cold)]).unwrap();
    assert!(!store.root().exists());
}

#[test]
fn csv_after_rfc_4180() {
    let text = csv::text(&[record("f<a, b>@a.c:1:1", &["-D=\"x\""], Warmup::Cold)]);
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert!(lines[0].starts_with("at,codelet,region,"));
    assert_eq!(
        lines.len(),
        3,
        "a heading, a record, and nothing after the last line's end"
    );
    assert!(lines[1].contains(",\"f<a, b>@a.c:1:1\","));
    assert!(lines[1].contains(",\"'-D=\"\"x\"\"'\","), "{}", lines[1]);
    assert!(lines[1].contains(",\"2 words, \"\"near\"\"\nenough\",0"));
}
