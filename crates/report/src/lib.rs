//! The store as one page of HTML, and its plots.

pub mod compared;
mod curve;
mod data;
pub mod exchange;
mod format;
mod ids;
pub mod listing;
pub mod machine;
mod page;
mod plot;
mod ranks;
pub mod roofline;
mod section;
mod source;
pub mod subset;
pub mod threads;
mod trace;
mod tree;

use anyhow::{Context, Result};
use askama::Template;

pub use data::Data;

/// The page that shows `data`, which needs no network.
pub fn html(data: &Data) -> Result<String> {
    page::Page::new(data).render().context("the page")
}
