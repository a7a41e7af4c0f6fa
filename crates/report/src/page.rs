//! The whole page: the first screen, tables, the tree of regions, a page a region, accuracy at the end.

use super::accuracy::{self, Accuracy};
use super::beside::Beside;
use super::data::Data;
use super::first::{self, Card, Lane};
use super::format::marked;
use super::ids::Ids;
use super::lanes::{self, Threads};
use super::ranks::{Ranks, ranks};
use super::roof::{self, Roof};
use super::rows::{Rows, rows};
use super::section::{Section, section};
use super::tree;
use askama::Template;
use cere_format::profile::RegionProfile;
use cere_format::untrusted::visible;
use cere_measure::matching::Row as Matched;
use std::collections::HashMap;

/// The template's data.
#[derive(Template)]
#[template(path = "report.html")]
pub struct Page {
    css: &'static str,
    script: &'static str,
    version: &'static str,
    /// What the served page asks for; empty: it is a file.
    live: String,
    program: String,
    command: String,
    facts: Vec<(&'static str, String)>,
    lanes: Vec<Lane>,
    cards: Vec<Card>,
    /// How far replays can be trusted, in a sentence.
    trust: String,
    /// HTML.
    notes: Vec<String>,
    rows: Rows,
    pageless: usize,
    tree: Vec<tree::Row>,
    tree_hidden: usize,
    threads: Option<Threads>,
    ranks: Option<Ranks>,
    roofline: Option<Roof>,
    beside: Option<Beside>,
    sections: Vec<Section>,
    machine: String,
    accuracy: Accuracy,
}

impl Page {
    /// The page of `data`; `live` is the state of the store that a served page shows.
    pub fn new(data: &Data, beside: Option<Beside>, live: &str) -> Self {
        let profile = &data.profile;
        let ids = Ids::of_report(data);
        let by_name = data.matched();
        let matched = |region: &RegionProfile| by_name.get(region.name.as_str()).copied();
        let sections = sections(data, &ids, matched);
        let classes: HashMap<&str, usize> = sections
            .iter()
            .filter(|s| !s.classes.is_empty())
            .map(|s| (s.id.as_str(), s.classes.len()))
            .collect();
        let rows = rows(data, &ids, |id| classes.get(id).copied(), matched);
        let (tree, tree_hidden) = tree::rows(profile, &ids);
        let last = data.records.iter().map(|r| r.when.as_str()).max();
        let last = last.map_or(String::new(), |t| t.replace('T', " ").replace('Z', " UTC"));
        Self {
            css: include_str!("../templates/report.css"),
            script: include_str!("../templates/report.js"),
            version: env!("CARGO_PKG_VERSION"),
            live: live.to_owned(),
            program: first::program(profile),
            command: visible(&shell_words::join(&profile.command)),
            facts: first::facts(data),
            lanes: first::lanes(profile, &ids),
            cards: first::cards(data, &ids, matched),
            trust: accuracy::sentence(data).unwrap_or_default(),
            notes: data.notes.iter().map(|note| marked(note)).collect(),
            pageless: rows.rows.iter().filter(|r| r.id.is_none()).count(),
            rows,
            tree,
            tree_hidden,
            threads: lanes::threads(profile),
            ranks: ranks(profile),
            roofline: data.roofline.as_ref().map(roof::roof),
            beside,
            machine: data.machine.as_ref().map_or(String::new(), |m| {
                format!(
                    "{}, Linux {}, machine {}; last {last}",
                    m.cpu, m.kernel, m.id
                )
            }),
            accuracy: accuracy::accuracy(data, &ids),
            sections,
        }
    }
}

/// The pages of the regions.
fn sections<'a>(
    data: &'a Data,
    ids: &Ids,
    matched: impl Fn(&RegionProfile) -> Option<&'a Matched>,
) -> Vec<Section> {
    let regions = data.profile.regions.iter().enumerate();
    let page = |(place, region): (usize, &RegionProfile)| {
        Some(section(data, place, ids.of(place)?, matched(region)))
    };
    regions.filter_map(page).collect()
}
