//! The store as one page of HTML, and its plots.

mod accuracy;
pub mod beside;
mod codelet;
pub mod compared;
mod curve;
mod data;
pub mod exchange;
mod first;
mod flags;
mod format;
mod ids;
mod lanes;
pub mod listing;
pub mod machine;
mod page;
mod plot;
mod ranks;
mod roof;
pub mod roofline;
mod rows;
mod section;
pub mod serve;
mod source;
pub mod subset;
pub mod summary;
pub mod threads;
mod trace;
mod tree;
mod verdict;
mod why;

use anyhow::{Context, Result};
use askama::Template;

pub use data::Data;

/// The page that shows `data`, which needs no network; beside `other`, a store with a name for it.
///
/// # Errors
/// The template cannot be filled.
pub fn html(data: &Data, other: Option<(&Data, &str)>) -> Result<String> {
    live_html(data, other, "")
}

/// The same as a page of a server: it renews itself when the store's state is no longer `live`.
fn live_html(data: &Data, other: Option<(&Data, &str)>, live: &str) -> Result<String> {
    let beside = other.map(|(there, label)| beside::beside(data, there, label));
    let page = page::Page::new(data, beside, live);
    page.render().context("the page")
}
