//! The values of one codelet.

use crate::metrics::table::METRICS;
use serde::Serialize;
use std::collections::BTreeMap;

/// Why a metric has no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// A value, or why there is none.
pub type Value = Result<f64, Missing>;

/// Values by the names of their metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    found: BTreeMap<&'static str, Value>,
}

impl Values {
    /// Sets the metric `name`.
    pub fn set(&mut self, name: &str, value: f64) {
        match value.is_finite() {
            true => self.put(name, Ok(value)),
            false => self.missing(name, "it is not finite"),
        }
    }

    /// Sets it to `of` over `all`, or to missing because of `why` if `all` is 0.
    pub fn ratio(&mut self, name: &str, of: f64, all: f64, why: &str) {
        match all == 0.0 {
            true => self.missing(name, why),
            false => self.set(name, of / all),
        }
    }

    /// The same of counts.
    pub fn share(&mut self, name: &str, of: u64, all: u64, why: &str) {
        self.ratio(name, of as f64, all as f64, why);
    }

    /// Sets the shares of `counts` in `all`; the names are `prefix` and the steps.
    pub fn histogram(&mut self, prefix: &str, steps: &[u64], counts: &[u64], all: u64, why: &str) {
        for (step, count) in steps.iter().zip(counts) {
            self.share(&format!("{prefix}_{step}"), *count, all, why);
        }
    }

    /// There is no value.
    pub fn missing(&mut self, name: &str, why: &str) {
        self.put(name, Err(Missing(why.to_owned())));
    }

    /// None of the group has a value.
    pub fn missing_group(&mut self, group: &str, why: &str) {
        for metric in METRICS.iter().filter(|m| m.group == group) {
            self.missing(metric.name, why);
        }
    }

    fn put(&mut self, name: &str, value: Value) {
        let metric = METRICS.iter().find(|m| m.name == name);
        debug_assert!(metric.is_some(), "{name} is no metric");
        if let Some(metric) = metric {
            self.found.insert(metric.name, value);
        }
    }

    /// The value of `name`; none if it was not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.found.get(name)
    }

    /// The value of `name`, if it has one.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_ref().ok().copied()
    }
}
