//! Records of replays.

pub mod csv;
mod database;
mod machine;
mod record;
#[cfg(test)]
mod tests;

pub use database::Database;
pub use machine::{Machine, this as this_machine};
pub use record::{
    Energy, Measured, QUANTILES, Record, Setting, Times, counting, tool, warmup_name,
};

use anyhow::Result;
use cere_format::store::Store;
use cere_system::events::Events;

/// Keeps `record` in `store`, if there is one: see [`keep_all_or_warn`].
pub fn keep_or_warn(store: &Store, record: &Record, events: &Events) {
    keep_all_or_warn(store, std::slice::from_ref(record), events);
}

/// Keeps `records` in `store`, if there is one. What a replay measured is worth more than its record: an error is a
/// warning.
pub fn keep_all_or_warn(store: &Store, records: &[Record], events: &Events) {
    let Some(first) = records.first() else { return };
    if let Err(error) = keep(store, records) {
        let others = match records.len() {
            1 => String::new(),
            all => format!(" and of {} others", all - 1),
        };
        events.warning(format!(
            "no record is kept of the replay of {}{others}: {error:#}",
            first.codelet
        ));
    }
}

fn keep(store: &Store, records: &[Record]) -> Result<()> {
    if !store.root().is_dir() {
        return Ok(());
    }
    Database::writable(store)?.add_all(records)
}
