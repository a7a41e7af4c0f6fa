//! The sentence, for someone who does not know the terms; what to do; and the figures.

use crate::causes::Cost;
use crate::facts::{Facts, Kind};
use cere_format::explain::{Cause, Evidence};
use cere_system::console::print;

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The level of memory, as it is said.
fn level(cost: &Cost) -> String {
    match &cost.level {
        Some(level) if level.name == "memory" => "main memory".to_owned(),
        Some(level) => format!("the {} cache", level.name),
        None => "memory".to_owned(),
    }
}

/// Bytes over time, and the share of what the machine can do.
fn rate(facts: &Facts, cost: &Cost) -> String {
    let Some(level) = &cost.level else {
        return String::new();
    };
    let rate = level.bytes as f64 / facts.base.seconds / 1e9;
    match level.share_of_roof {
        Some(share) => format!(
            "{rate:.1} GB/s, {} of what was measured here",
            percent(share.min(1.0))
        ),
        None => format!("{rate:.1} GB/s"),
    }
}

/// Why the region takes its time.
#[must_use]
pub fn sentence(facts: &Facts, cost: &Cost) -> String {
    let takes = |kind: Kind| match facts.variant(kind) {
        Some(t) => format!(
            "takes {} of the time",
            percent(t.seconds / facts.base.seconds)
        ),
        None => format!(
            "would take about {} of the time",
            percent(1.0 - cost.share.unwrap_or(0.0))
        ),
    };
    let share = percent(cost.share.unwrap_or(0.0));
    match cost.cause {
        Cause::Bandwidth => format!(
            "It waits for {}, which moves as many bytes as it can ({}): with all data in the first cache the code {}.",
            level(cost),
            rate(facts, cost),
            takes(Kind::Compact)
        ),
        Cause::Latency if is_chained(facts) => format!(
            "It waits for {}: each address comes from the load before, so that one load is under way at a time; with all data in the first cache the code {}.",
            level(cost),
            takes(Kind::Compact)
        ),
        Cause::Latency => format!(
            "It waits for single loads from {} ({}): with all data in the first cache the code {}.",
            level(cost),
            rate(facts, cost),
            takes(Kind::Compact)
        ),
        Cause::Translations => format!(
            "Its memory is spread over so many pages that the processor looks up where they are again and again: in huge pages the code {}.",
            takes(Kind::Huge)
        ),
        Cause::Chain => format!(
            "Each iteration waits for the result of the one before: without that wait the same instructions {}.",
            takes(Kind::Chains).replace("takes", "take")
        ),
        Cause::Divisions => format!(
            "It divides or takes roots, for which the processor has one slow unit: with multiplications in their place the code {}.",
            takes(Kind::Divisions)
        ),
        Cause::Branches => format!(
            "The processor guesses wrongly which way its branches go, {} times for each 1000 instructions: that takes about {share} of the time.",
            print::number(
                (1000.0 * facts.mispredicted / facts.vector.counts.instructions.max(1) as f64)
                    .round() as u64
            )
        ),
        Cause::Scalar => format!(
            "It computes {}: on full vectors the same loops {}{}.",
            match facts.share("vector_ratio_float") > 0.5 {
                true => "on vectors narrower than the processor's",
                false => "one value at a time",
            },
            takes(Kind::Vectors).replace("takes", "take"),
            facts
                .remark
                .as_ref()
                .map_or(String::new(), |r| format!(" (the compiler: {r})"))
        ),
        Cause::Stores => format!(
            "It is busy storing its results: without the stores the same code {}.",
            takes(Kind::Stores)
        ),
        Cause::Forwarding => format!(
            "It reads again and again what it has just stored, and waits for the store each time{}.",
            facts.modelled_seconds().map_or(String::new(), |t| format!(
                ": without that wait it would take about {} of the time",
                percent((t / facts.base.seconds).min(1.0))
            ))
        ),
        Cause::PageFaults => format!(
            "It is the first to touch {} pages of memory, for each of which the system has to step in: with the pages there the code {}.",
            print::number(facts.absent),
            takes(Kind::Present)
        ),
        Cause::Imbalance => format!(
            "One thread has more to do than the others, which wait for it: perfectly balanced it would take about {} of the time.",
            percent(1.0 - cost.share.unwrap_or(0.0))
        ),
        Cause::Waiting => format!(
            "Its {} threads wait for one another, for locks or for lines that they share, in about {share} of their time: one thread alone needs {}.",
            facts.threads(),
            facts
                .variant(Kind::Alone)
                .map_or("less".to_owned(), |t| print::time(t.seconds))
        ),
        Cause::FrontEnd => format!(
            "Its code is so long ({} instructions are hot) that the processor cannot fetch and decode it as fast as it could execute it.",
            print::number(facts.share("hot_instructions") as u64)
        ),
        Cause::Units => format!(
            "One unit of the processor is busy in {} of the cycles (model): the same work in fewer instructions is what helps.",
            percent(facts.share("model_port_most"))
        ),
        Cause::Instructions => format!(
            "Nothing holds it up: the processor executes {:.1} instructions a cycle (model); fewer instructions are what helps.",
            facts.share("model_ipc")
        ),
        Cause::Unknown => "Nothing that was looked at explains its time.".to_owned(),
    }
}

/// Whether loads need one another.
fn is_chained(facts: &Facts) -> bool {
    let lines = facts.share("l1_misses") * facts.vector.counts.instructions as f64 / 1000.0;
    facts.load_chain as f64 > 0.3 * lines && facts.load_chain > 100
}

/// What one can do about it.
#[must_use]
pub fn advice(facts: &Facts, cost: &Cost) -> String {
    let text = match cost.cause {
        Cause::Bandwidth => {
            "Move fewer bytes: work on a block while it is in a cache, join loops over the same data, use smaller types, pack what is used together."
        }
        Cause::Latency if is_chained(facts) => {
            "Follow several chains at once, or keep the data in an array that is walked in order: prefetching cannot know the next address."
        }
        Cause::Latency => {
            "Have more loads under way (independent iterations, __builtin_prefetch some iterations ahead), or keep what is used together close together."
        }
        Cause::Translations => {
            "Ask for huge pages (madvise with MADV_HUGEPAGE, transparent_hugepage=always), or walk memory in its order."
        }
        Cause::Chain => {
            "Use several partial results and join them at the end; -fassociative-math (in -ffast-math) lets the compiler do so, and results then round otherwise."
        }
        Cause::Divisions => {
            "Multiply by the reciprocal where it is the same for many, or let the compiler (-freciprocal-math); use single precision; move divisions out of the loop."
        }
        Cause::Branches => {
            "Compute both sides and choose (min, max, masks), sort the data first, or split the loop by the condition."
        }
        Cause::Scalar => {
            "See why the compiler makes no vectors (`cere asm`): restrict, #pragma omp simd, -fassociative-math, or another layout of the data; try -march=native."
        }
        Cause::Stores => {
            "Store less: keep values in registers over several iterations, and store smaller types."
        }
        Cause::Forwarding => {
            "Keep the running value in a variable, or use several copies of what is updated (several histograms)."
        }
        Cause::PageFaults => {
            "Allocate once and use the memory again, or touch it before (MAP_POPULATE), or use huge pages."
        }
        Cause::Imbalance => {
            "Share the iterations otherwise: schedule(dynamic) or schedule(guided), or chunks of equal work."
        }
        Cause::Waiting => {
            "Have each thread keep its own result and join them at the end; make critical sections shorter; keep what threads write in lines of their own."
        }
        Cause::FrontEnd => "Make the code smaller: -Os for this unit, less inlining and unrolling.",
        Cause::Units | Cause::Instructions => {
            "See which instructions there are (`cere asm`); wider vectors and other flags (`cere tune`) may need fewer."
        }
        Cause::Unknown => {
            "See `cere asm` and `cere count --hardware` where the machine has counters."
        }
    };
    text.to_owned()
}

/// The figures, those of the cause first.
#[must_use]
pub fn evidence(facts: &Facts, cost: &Cost) -> Vec<Evidence> {
    let mut all: Vec<(bool, Evidence)> = Vec::new();
    let mut add = |cause: &[Cause], what: &str, value: String, source: &str| {
        let evidence = Evidence {
            what: what.to_owned(),
            value,
            source: source.to_owned(),
        };
        all.push((cause.contains(&cost.cause), evidence));
    };
    let counted = "exact counts";
    let simulated = "simulated caches";
    let model = format!("llvm-mca {}", facts.vector.model);
    let memory = [Cause::Bandwidth, Cause::Latency, Cause::Translations];
    if let Some(level) = facts.busiest() {
        let rate = level.bytes as f64 / facts.base.seconds / 1e9;
        add(
            &memory,
            &format!("bytes from and to {}", level.name),
            format!("{rate:.2} GB/s"),
            "simulated caches over the replay's time",
        );
        if let Some(share) = level.share_of_roof {
            add(
                &memory,
                &format!("share of the bandwidth of {}", level.name),
                percent(share),
                "measured machine",
            );
        }
    }
    let metric = |name: &str| facts.metric(name);
    for (cause, name, what, unit, source) in [
        (
            &memory[..],
            "l1_misses",
            "misses of L1",
            "for each 1000 instructions",
            simulated,
        ),
        (
            &memory,
            "l2_misses",
            "misses of L2",
            "for each 1000 instructions",
            simulated,
        ),
        (
            &[Cause::Translations],
            "page_walks",
            "walks of the page table",
            "for each 1000 instructions",
            simulated,
        ),
        (
            &[Cause::Forwarding],
            "memory_dependence",
            "loads of what was just stored",
            "of all loads",
            "counted run",
        ),
        (
            &[Cause::Chain],
            "float_chain",
            "longest chain of floating-point operations",
            "of all of them",
            "counted run",
        ),
        (
            &[Cause::Scalar],
            "vector_ratio_float",
            "floating-point instructions on vectors",
            "of all of them",
            counted,
        ),
        (
            &[Cause::Units, Cause::Instructions],
            "model_ipc",
            "instructions in a cycle",
            "",
            &model,
        ),
        (
            &[Cause::Units],
            "model_port_most",
            "the busiest unit",
            "of the cycles",
            &model,
        ),
        (
            &[Cause::Chain],
            "model_dependency_stall",
            "waiting for results",
            "of the cycles",
            &model,
        ),
        (
            &[Cause::FrontEnd],
            "hot_instructions",
            "instructions that make up 90 % of those executed",
            "",
            counted,
        ),
    ] {
        if let Some(value) = metric(name) {
            let share = unit.starts_with("of ");
            let value = match share {
                true => percent(value),
                false => format!("{value:.3}")
                    .trim_end_matches('0')
                    .trim_end_matches('.')
                    .to_owned(),
            };
            add(
                cause,
                what,
                format!("{value} {unit}").trim_end().to_owned(),
                source,
            );
        }
    }
    let divisions: f64 = ["mix_float_div", "mix_float_sqrt", "mix_integer_div"]
        .iter()
        .map(|n| facts.share(n))
        .sum();
    if divisions > 0.0 {
        add(
            &[Cause::Divisions],
            "divisions and roots",
            format!("{:.2} % of the instructions", 100.0 * divisions),
            counted,
        );
    }
    if facts.mispredicted > 0.0 {
        let each = 1000.0 * facts.mispredicted / facts.vector.counts.instructions.max(1) as f64;
        add(
            &[Cause::Branches],
            "branches predicted wrongly",
            format!("{each:.2} for each 1000 instructions"),
            "model of a predictor on the counted run",
        );
    }
    if facts.absent > 0 {
        add(
            &[Cause::PageFaults],
            "pages touched first",
            print::number(facts.absent),
            "capture",
        );
    }
    if facts.threads() > 1 {
        let shown = facts
            .work
            .iter()
            .map(|n| print::number(*n))
            .collect::<Vec<_>>()
            .join(", ");
        add(
            &[Cause::Imbalance],
            "instructions of the threads",
            shown,
            counted,
        );
    }
    if let Some(top) = &facts.topdown {
        let memory = [
            Cause::Bandwidth,
            Cause::Latency,
            Cause::Translations,
            Cause::Stores,
        ];
        for (causes, what, share) in [
            (&memory[..], "slots that wait for memory", top.memory),
            (
                &memory,
                "slots that the back end does not take",
                Some(top.back_end),
            ),
            (
                &[Cause::FrontEnd],
                "slots that the front end leaves empty",
                Some(top.front_end),
            ),
            (
                &[Cause::Branches],
                "slots lost to wrong predictions",
                Some(top.bad_speculation),
            ),
            (
                &[Cause::Instructions],
                "slots that retire",
                Some(top.retiring),
            ),
        ] {
            if let Some(share) = share {
                add(causes, what, percent(share), "hardware counters");
            }
        }
    }
    if let Some(remark) = &facts.remark {
        add(
            &[Cause::Scalar],
            "why no vectors",
            remark.clone(),
            "compiler",
        );
    }
    all.sort_by_key(|(own, _)| !own);
    all.into_iter().map(|(_, evidence)| evidence).collect()
}
