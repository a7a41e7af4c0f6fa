//! `results.db` in the store: measurement records in SQLite.
//!
//! Writers of several processes wait for each other, at most [`PATIENCE`]. The journal is a rollback journal and not a
//! write-ahead log: the records are one file at rest, and can be read where nothing can be written.

use super::record::{COLUMNS, Record, Setting, tool, warmup_name};

use anyhow::{Context, Error, Result, anyhow};
use cere_catalogue::bail;
use cere_format::store::Store;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params, params_from_iter};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What brings a file from each version to the next; the version is SQLite's `user_version`.
const STEPS: [&str; 5] = [
    include_str!("version1.sql"),
    include_str!("version2.sql"),
    include_str!("version3.sql"),
    include_str!("version4.sql"),
    include_str!("version5.sql"),
];

/// The records of a store.
pub struct Database {
    connection: Connection,
    path: PathBuf,
}

/// The error that a user reads for SQLite's.
fn explain(path: &Path, doing: &str, error: rusqlite::Error) -> Error {
    let file = path.display();
    let remedy = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => format!(
            "{file} is damaged: move it away, the next replay begins a new one (`sqlite3 {file} .recover` may save records)"
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
            "{file} was in use by another process for {} s: try again when that has ended",
            PATIENCE.as_secs()
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            format!("cannot {doing} {file}: give a writable store with --store")
        }
        Some(ErrorCode::DiskFull) => format!("cannot {doing} {file}: make room on its disk"),
        _ => format!("cannot {doing} {file}"),
    };
    anyhow!(error).context(remedy)
}

/// Brings a file up to date in one transaction.
pub(super) fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<()> {
    let failed = |error| explain(path, "bring up to date", error);
    let version_of = |connection: &Connection| {
        let version = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        version.map_err(|error| explain(path, "read", error))
    };
    let newest = steps.len() as i64;
    if version_of(connection)? == newest {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    // Again: another process may have done it meanwhile.
    let version = version_of(&transaction)?;
    if !(0..=newest).contains(&version) {
        bail!(
            E4006,
            "{} has version {version}, this cere reads up to {newest}: install a newer cere",
            path.display()
        );
    }
    for step in &steps[version as usize..] {
        transaction.execute_batch(step).map_err(failed)?;
    }
    transaction
        .pragma_update(None, "user_version", newest)
        .and_then(|()| transaction.commit())
        .map_err(failed)
}

/// Adds `record` with the present time.
fn insert(connection: &Connection, record: &Record) -> rusqlite::Result<()> {
    let marks: Vec<String> = (1..=COLUMNS.len()).map(|i| format!("?{i}")).collect();
    let line = format!(
        "INSERT INTO replays ({}) VALUES (coalesce(nullif(?1, ''), strftime('%Y-%m-%dT%H:%M:%SZ', 'now')), {})",
        COLUMNS.join(", "),
        marks[1..].join(", ")
    );
    let values = params_from_iter(record.values());
    connection.execute(&line, values).map(drop)
}

impl Database {
    /// The records of `store`, to add to; the file is created if need be.
    pub fn writable(store: &Store) -> Result<Self> {
        Self::open(&store.results(), OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// The records of `store`; none if no replay left any yet.
    pub fn existing(store: &Store) -> Result<Option<Self>> {
        let path = store.results();
        let open = || Self::open(&path, OpenFlags::empty());
        path.exists().then(open).transpose()
    }

    fn open(path: &Path, flags: OpenFlags) -> Result<Self> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| explain(path, "open", error);
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        migrate(&mut connection, path, &STEPS)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    /// Adds `records`, all or none.
    pub fn add_all(&mut self, records: &[Record]) -> Result<()> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate);
        let added = transaction.and_then(|transaction| {
            records
                .iter()
                .try_for_each(|record| insert(&transaction, record))?;
            transaction.commit()
        });
        added.map_err(|error| explain(&self.path, "write to", error))
    }

    fn query(&self, condition: &str, parameters: impl rusqlite::Params) -> Result<Vec<Record>> {
        let failed = |error| explain(&self.path, "read", error);
        let line = format!("SELECT {} FROM replays {condition}", COLUMNS.join(", "));
        let mut statement = self.connection.prepare(&line).map_err(failed)?;
        let mut rows = statement.query(parameters).map_err(failed)?;
        let mut records = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let record = Record::of_row(row);
            records.push(record.with_context(|| {
                format!(
                    "{} holds a record that this cere cannot read",
                    self.path.display()
                )
            })?);
        }
        Ok(records)
    }

    /// All records, the oldest first.
    pub fn all(&self) -> Result<Vec<Record>> {
        self.query("ORDER BY id", [])
    }

    /// The replays of the package with this checksum under this setting on this machine ([`super::Machine::id`]), as
    /// this cere measures, the oldest first. Those that failed have no times.
    pub fn of(&self, sha256: &str, setting: &Setting, machine: &str) -> Result<Vec<Record>> {
        let condition = "WHERE sha256 = ?1 AND flags = ?2 AND passes IS ?3 AND warmup = ?4 AND machine = ?5 \
                         AND threads IS ?6 AND coalesce(placement, '') = ?7 AND coalesce(operands, '') = ?8 AND tool = ?9 ORDER BY id";
        let flags = shell_words::join(&setting.flags);
        let warmup = warmup_name(setting.warmup);
        self.query(
            condition,
            params![
                sha256,
                flags,
                setting.passes,
                warmup,
                machine,
                setting.threads,
                setting.placement,
                setting.operands,
                tool()
            ],
        )
    }
}
