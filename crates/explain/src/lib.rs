//! Why a region takes its time. Causes are taken out one by one, and the codelet is replayed without them: what is gained then is what they
//! cost (differential analysis: Koliai et al., ICS 2013). Counts, simulated caches and a model of the processor say the rest.
//!
//! | module | what |
//! |---|---|
//! | [`order`] | what the order of execution shows |
//! | [`pages`] | which pages can share frames |
//! | [`variants`] | replays of a changed codelet |
//! | [`facts`] | all that is known of a codelet |
//! | [`causes`] | what each cause costs |
//! | [`words`] | the sentence |
//! | [`kept`] | explanations in a store |

pub mod causes;
pub mod facts;
pub mod kept;
pub mod order;
pub mod pages;
pub mod variants;
pub mod words;

pub use facts::{Facts, Settings};

use cere_format::explain::{EXPLANATION_VERSION, Explanation};

/// The explanation that `facts` give.
#[must_use]
pub fn explanation(facts: &Facts) -> Explanation {
    let costs = causes::costs(facts);
    let cause = causes::largest(facts, &costs);
    let place = facts.hot_loop.as_ref();
    Explanation {
        version: EXPLANATION_VERSION,
        region: facts.manifest.region_name.clone(),
        unit: facts.manifest.key.unit.clone(),
        index: facts.manifest.key.index,
        codelet: facts.manifest.name.clone(),
        sha256: facts.sha256.clone(),
        flags: facts.flags.clone(),
        cpu: facts.cpu.clone(),
        seconds: facts.base.seconds,
        cause: cause.cause,
        share: cause.share,
        sentence: words::sentence(facts, &cause),
        advice: words::advice(facts, &cause),
        file: place.and_then(|l| l.file.clone()),
        line: place.and_then(|l| l.line),
        evidence: words::evidence(facts, &cause),
        what_if: causes::what_if(facts),
        notes: facts.notes.clone(),
    }
}
