//! Searches whose evaluations are done in chunks, in any order, on machines that get lost.

use super::*;
use batches::Reply;
use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use task::Done;

/// What came of a task, as a worker writes it.
type Sent = (Result<Done, String>, Spent);

/// A job: its tasks, its chunks' size, and what was done.
#[derive(Default)]
struct Kept {
    tasks: Vec<Task>,
    per_chunk: usize,
    done: BTreeMap<usize, Vec<Sent>>,
    tries: usize,
}

/// Machines in this process. Their jobs outlast a call that fails.
struct Hall<'m> {
    model: &'m Model,
    shares: Vec<f64>,
    per_chunk: usize,
    rng: Xoshiro256PlusPlus,
    jobs: BTreeMap<Step, Kept>,
    /// Whether a chunk is lost, by its number and the number of tries of the job before.
    lost: fn(usize, usize) -> bool,
    /// Calls of `finish` that still work.
    finishes: usize,
    /// The evaluations that were made, by region and number.
    made: Vec<(usize, u64)>,
}

/// What is read of what was written.
fn sent<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

impl<'m> Hall<'m> {
    fn new(model: &'m Model, shares: &[f64], per_chunk: usize, seed: u64) -> Self {
        Self {
            model,
            shares: shares.to_vec(),
            per_chunk,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            jobs: BTreeMap::new(),
            lost: |_, _| false,
            finishes: usize::MAX,
            made: Vec::new(),
        }
    }

    fn chunk(&mut self, tasks: &[Task], codes: &Codes) -> Result<Vec<Sent>> {
        let region = |region: usize| {
            let target = target("there", self.shares[region]);
            for (code, ratio) in codes.get(&region).into_iter().flatten() {
                target.learn(code.clone(), *ratio);
            }
            (region, target)
        };
        let targets = tasks.iter().map(|task| region(task.region)).collect();
        for task in tasks {
            if let Work::Evaluate { number, .. } = task.work {
                self.made.push((task.region, number));
            }
        }
        task::perform(self.model, &targets, &sent(&tasks.to_vec()), 1, |each| {
            let reply = |task: &Task| match each(&sent(task)) {
                Ok((done, spent)) => (Ok(sent(&done)), sent(&spent)),
                Err(why) => (Err(format!("{why:#}")), Spent::default()),
            };
            Ok(tasks.iter().map(reply).collect())
        })
    }
}

impl Crew for Hall<'_> {
    fn begun(&mut self, step: Step) -> Result<Vec<Task>> {
        let kept = self.jobs.get(&step);
        Ok(kept.map_or(Vec::new(), |kept| kept.tasks.clone()))
    }

    fn run(&mut self, step: Step, tasks: &[Task], codes: &Codes) -> Result<Vec<(Reply, Spent)>> {
        let mut kept = self.jobs.remove(&step).unwrap_or_default();
        if kept.tasks != tasks {
            kept = Kept {
                tasks: tasks.to_vec(),
                per_chunk: self.per_chunk,
                ..Kept::default()
            };
        }
        let chunks: Vec<&[Task]> = tasks.chunks(kept.per_chunk).collect();
        let mut order: Vec<usize> = (0..chunks.len()).collect();
        order.retain(|chunk| !kept.done.contains_key(chunk));
        order.shuffle(&mut self.rng);
        for chunk in order {
            if !(self.lost)(chunk, kept.tries) {
                kept.done.insert(chunk, self.chunk(chunks[chunk], codes)?);
            }
        }
        kept.tries += 1;
        let got = |(reply, spent): &Sent| (reply.clone().map_err(Error::msg), *spent);
        let replies = kept.done.values().flatten().map(got).collect();
        let missing = chunks.len() - kept.done.len();
        self.jobs.insert(step, kept);
        match missing {
            0 => Ok(replies),
            missing => bail!("{missing} chunks have no result"),
        }
    }

    fn finish(&mut self, step: Step) -> Result<()> {
        if self.finishes == 0 {
            bail!("killed");
        }
        self.finishes -= 1;
        self.jobs.remove(&step);
        Ok(())
    }
}

impl Searched<'_> {
    /// The same with machines: what is found for the regions with these names and the hall's shares.
    fn find_by(&self, hall: &mut Hall, names: &[&str], size: usize) -> Result<Vec<Found>> {
        let shares = hall.shares.clone().into_iter();
        let targets: Vec<Target> = names
            .iter()
            .zip(shares)
            .map(|(n, s)| target(n, s))
            .collect();
        assert!(batches::begin(hall, &targets)?.is_empty());
        let courses: Result<Vec<Course>> =
            targets.iter().enumerate().map(|t| self.course(t)).collect();
        let mut courses = courses?;
        let mut left = Left::new(
            self.budget,
            Instant::now(),
            courses.iter().map(Course::proposed).sum(),
        );
        batches::go_on(
            &Events::ignored(),
            hall,
            &mut courses,
            &mut left,
            self.wanted,
            size,
        )?;
        let suspects = find_suspects(&Events::ignored(), &self.space, courses.iter());
        let found = confirm_elsewhere(&Events::ignored(), hall, courses, &suspects, &[], &left)?;
        assert!(found.iter().all(|found| found.spent.confirming > 0.0));
        Ok(found)
    }

    fn journals(&self, names: &[&str]) -> Vec<String> {
        let read = |name: &&str| std::fs::read_to_string(self.directory.join(name)).unwrap();
        names.iter().map(read).collect()
    }
}

const NAMES: [&str; 2] = ["a", "b"];
const SHARES: [f64; 2] = [0.6, 0.2];

/// The proposals and outcomes of each region, what was found, and how many evaluations were made.
fn searched(per_chunk: usize, seed: u64, size: usize) -> (Vec<String>, Vec<String>, usize) {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let search = Searched::new(3, 60, directory.path());
    let mut hall = Hall::new(&model, &SHARES, per_chunk, seed);
    let found = search.find_by(&mut hall, &NAMES, size).unwrap();
    let found = found.iter().map(counted).collect();
    (search.journals(&NAMES), found, hall.made.len())
}

#[test]
fn neither_order_nor_size_of_chunks_matters() {
    let expected = searched(usize::MAX, 0, 16);
    let [a, b] = &expected.0[..] else { panic!() };
    assert_eq!(a.matches("told").count() + b.matches("told").count(), 60);
    // The one with three times the share gets three times the evaluations.
    assert_eq!(b.matches("told").count(), 15);
    assert!(expected.1[0].contains("-g1=2"), "{}", expected.1[0]);
    for (per_chunk, seed) in [(1, 1), (3, 2), (3, 3), (7, 4), (16, 5)] {
        assert_eq!(
            searched(per_chunk, seed, 16),
            expected,
            "{per_chunk} {seed}"
        );
    }
    // The size of batches does: less is known when a variant is proposed.
    assert_ne!(searched(3, 1, 4).0, expected.0);
}

/// Machine code of an earlier proposal counts, also of one in another chunk or batch.
#[test]
fn the_same_code_has_one_outcome() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let search = Searched::new(3, 63, directory.path());
    let mut hall = Hall::new(&model, &[0.5], 4, 1);
    let found = search.find_by(&mut hall, &["a"], 20).unwrap().remove(0);
    let whole = tempfile::tempdir().unwrap();
    let alone = Searched::new(3, 63, whole.path()).find(&varied(exact(), 1), Duration::MAX);
    // All that there is was tried: the order differs, and not what counts.
    let sorted = |found: &Found| {
        let mut codes: Vec<_> = found
            .ranked
            .iter()
            .map(|(r, v)| ((model.code)(v), *r))
            .collect();
        codes.sort_by(|a, b| a.0.cmp(&b.0));
        codes
    };
    assert_eq!(sorted(&found), sorted(&alone));
    assert_eq!(found.same_code, alone.same_code);
    assert!(model.timings(&of("-g3=3")).is_empty());
}

#[test]
fn a_chunk_that_is_lost_is_done_by_the_next_call() {
    let expected = searched(3, 0, 16);
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let search = Searched::new(3, 60, directory.path());
    let mut hall = Hall::new(&model, &SHARES, 3, 9);
    hall.lost = |chunk, tries| chunk == 1 && tries < 2;
    let mut calls = 1;
    let found = loop {
        match search.find_by(&mut hall, &NAMES, 16) {
            Ok(found) => break found,
            Err(error) => assert_eq!(error.to_string(), "1 chunks have no result"),
        }
        calls += 1;
    };
    // Each of the four batches needs three.
    assert_eq!(calls, 9);
    assert_eq!(search.journals(&NAMES), expected.0);
    let winner = |found: &Found| format!("{:?} {:?}", found.ranked, found.winner);
    assert!(
        found.iter().zip(&expected.1).all(|(f, e)| {
            e.contains(&format!("{:?}", f.winner)) && winner(f).contains("-g1=2")
        })
    );
    assert_eq!(hall.made.len(), 60);
}

/// Killed after its proposals, or while the outcomes of a batch are written down.
#[test]
fn a_call_that_is_killed_goes_on_with_its_batch() {
    let whole = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let search = Searched::new(3, 30, whole.path());
    let mut hall = Hall::new(&model, &[0.5], 3, 1);
    let expected = search
        .find_by(&mut hall, &["a"], 10)
        .map(|f| counted(&f[0]))
        .unwrap();
    let journal = search.journals(&["a"]).remove(0);
    let lines: Vec<&str> = journal.split_inclusive('\n').collect();
    // A batch is 10 proposals and 10 outcomes.
    assert_eq!(lines.len(), 60);
    for cut in 20..=40 {
        let directory = tempfile::tempdir().unwrap();
        let again = Searched::new(3, 30, directory.path());
        let model = varied(exact(), 1);
        let mut hall = Hall::new(&model, &[0.5], 3, 1);
        if cut > 30 {
            hall.finishes = 1;
            assert!(again.find_by(&mut hall, &["a"], 10).is_err());
            assert_eq!(again.journals(&["a"])[0], lines[..40].concat());
        }
        std::fs::write(directory.path().join("a"), lines[..cut].concat()).unwrap();
        hall.finishes = usize::MAX;
        let found = again.find_by(&mut hall, &["a"], 10).unwrap();
        assert_eq!(counted(&found[0]), expected, "after {cut} lines");
        assert_eq!(again.journals(&["a"])[0], journal, "after {cut} lines");
        let made = if cut > 30 { 30 } else { 20 };
        assert_eq!(hall.made.len(), made, "after {cut} lines");
    }
}

/// Two thousand evaluations, and half of the chunks are lost at first.
#[test]
fn nothing_is_lost_or_done_twice() {
    let mut journals = Vec::new();
    for lost in [|_, _| false, |chunk, tries| tries == 0 && chunk % 2 == 1] {
        let directory = tempfile::tempdir().unwrap();
        let model = varied(exact(), 1);
        let search = Searched {
            method: Method::Random,
            ..Searched::new(8, 2000, directory.path())
        };
        let mut hall = Hall::new(&model, &SHARES, 16, 5);
        hall.lost = lost;
        let mut calls = 0..;
        while search.find_by(&mut hall, &NAMES, 500).is_err() {
            calls.next();
        }
        hall.made.sort_unstable();
        let each = [(0, 1500), (1, 500)];
        let all = each.iter().flat_map(|(r, n)| (0..*n).map(|i| (*r, i)));
        assert_eq!(hall.made, all.collect::<Vec<(usize, u64)>>());
        journals.push((search.journals(&NAMES), calls.next().unwrap()));
    }
    let [whole, broken] = &journals[..] else {
        panic!()
    };
    assert_eq!((whole.1, broken.1), (0, 4));
    assert!(whole.0 == broken.0);
}

#[test]
fn a_region_that_reaches_the_target_ends() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let mut search = Searched::new(3, 60, directory.path());
    search.wanted = Some(1.2);
    let mut hall = Hall::new(&model, &[0.5], 4, 1);
    let found = search.find_by(&mut hall, &["a"], 8).unwrap().remove(0);
    assert_eq!(found.ended, Some("the target is reached"));
    assert!(
        found.evaluations < 30 && found.evaluations.is_multiple_of(8),
        "{}",
        found.evaluations
    );
    assert!(found.gain() >= 1.2);
    assert!(
        hall.jobs
            .keys()
            .all(|step| matches!(step, Step::Begin | Step::Confirm))
    );
}

#[test]
fn a_region_that_fails_as_built_is_named() {
    let mut model = varied(exact(), 1);
    model.wrong = |_, judged| judged.then(|| "another result".into());
    let mut hall = Hall::new(&model, &[0.5], 4, 1);
    let targets = [target("region", 0.5)];
    let why = "there cannot be replayed as built: another result".to_owned();
    let failed = batches::begin(&mut hall, &targets).unwrap();
    let failed: Vec<_> = failed.iter().map(|(n, e)| (*n, e.to_string())).collect();
    assert_eq!(failed, [(0, why)]);
}

#[test]
fn no_batch_begins_after_the_time() {
    let directory = tempfile::tempdir().unwrap();
    let model = varied(exact(), 1);
    let mut search = Searched::new(3, 60, directory.path());
    search.budget = Budget::Time(Duration::ZERO);
    let mut hall = Hall::new(&model, &[0.5], 4, 1);
    let found = search.find_by(&mut hall, &["a"], 8).unwrap().remove(0);
    assert_eq!((found.evaluations, hall.made.len()), (0, 0));
}
