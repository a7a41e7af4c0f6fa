//! One test: the sources as they are against the baseline, on what was captured.

use crate::counts::{BUDGET, Counted, Growth};
use crate::fixture::{Baseline, Fixture, Guarded, Limits};
use crate::rule;
use crate::units::{self, Compiled};
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, codes, ensure};
use cere_format::build::{Language, Unit};
use cere_format::replay::Verdict;
use cere_measure::sides::{Judged, Race, Side};
use cere_measure::{Member, Replays, Settings};
use cere_memory::Geometry;
use cere_replay::{EditedUnit, Options, ReplayError};
use cere_store::build::wrapper::edited::Edit;
use cere_system::console::print;
use cere_timing::stats::Gain;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What came of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The sources are those of the baseline.
    Unchanged,
    /// The machine code is that of the baseline.
    Identical,
    /// Neither time nor counts grew by more than the limits.
    Passed,
    /// It takes less time, by more than the limit.
    Faster,
    /// Time or counts grew by more than the limits.
    Slower,
    /// The result is not the captured one.
    Wrong,
    /// It cannot be compiled, or not run on what was captured.
    Failed,
}

impl State {
    /// In one word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Identical => "identical",
            Self::Passed => "passed",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Wrong => "wrong",
            Self::Failed => "failed",
        }
    }

    /// Whether nobody has to do anything.
    pub fn is_good(self) -> bool {
        !matches!(self, Self::Slower | Self::Wrong | Self::Failed)
    }
}

/// A test that was run.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Name of the region.
    pub name: String,
    /// Its source, from the root of the repository.
    pub file: PathBuf,
    /// Its line now.
    pub line: u32,
    /// Names of its codelets.
    pub codelets: Vec<String>,
    /// What came of it.
    pub state: State,
    /// Why.
    pub reason: String,
    /// Verdict on the result; none if it was not run.
    pub verdict: Option<Verdict>,
    /// By how much it may grow.
    pub limits: Limits,
    /// Counts of the baseline and now.
    pub counts: [Option<Counted>; 2],
    /// Counts that grew by more than the limit.
    pub grown: Vec<Growth>,
    /// Time now over that of the baseline.
    pub gain: Option<Gain>,
    /// Seconds of the baseline and now.
    pub seconds: [Option<f64>; 2],
    /// What people should know.
    pub notes: Vec<String>,
}

/// What tests are run with.
pub struct Work<'a> {
    replays: &'a Replays<'a>,
    settings: Settings,
    counting: cere_count::Settings,
    /// Whether times are compared too.
    times: bool,
    scratch: tempfile::TempDir,
}

/// Both codes of a test, built.
struct Both<'m> {
    base: Side<'m>,
    now: Side<'m>,
    compiled: Compiled,
    /// What differs and is not run.
    others: String,
}

impl<'a> Work<'a> {
    /// Tests that are replayed as `settings` say, with traffic of the caches `geometry`.
    pub fn new(
        replays: &'a Replays<'a>,
        settings: Settings,
        geometry: Option<Geometry>,
        times: bool,
    ) -> Result<Self> {
        let counting = cere_count::Settings {
            geometry,
            random: false,
            budget: BUDGET,
            ..cere_count::Settings::default()
        };
        Ok(Self {
            replays,
            settings,
            counting,
            times,
            scratch: tempfile::tempdir().context("cannot write temporary files")?,
        })
    }

    fn options(&self) -> Result<Options> {
        self.replays.options_to_repeat(&self.settings)
    }

    /// The codelets in `files`, which have to be of the region `name`.
    pub fn members(&self, name: &str, files: &[PathBuf]) -> Result<Vec<Member>> {
        let members = units::members(self.replays, files)?;
        for member in &members {
            let own = &member.manifest.region_name;
            ensure!(
                own == name,
                E6110,
                "{} holds a codelet of {own}: add both regions again with `cere guard add`",
                member.file.display()
            );
        }
        Ok(members)
    }

    /// The baseline of a test.
    pub fn base<'m>(
        &self,
        members: &'m [Member],
        accepted: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> Result<Side<'m>> {
        let (_, side) = self.side(members, accepted, &[])?.or_coded(
            codes::E6111,
            || "the baseline cannot be replayed, which is no fault of the sources",
        )?;
        Ok(side)
    }

    fn side<'m>(
        &self,
        members: &'m [Member],
        ir: &dyn Fn(&str) -> Option<PathBuf>,
        flags: &[&str],
    ) -> Result<Result<(String, Side<'m>), ReplayError>> {
        let mut options = self.options()?;
        options.settings.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let build = |(edited, others): (Vec<Vec<EditedUnit>>, String)| {
            Ok((others, Side::build(members, edited, &options)?))
        };
        Ok(units::bridged(members, ir, &options).and_then(build))
    }

    /// The sources of `units` as they are: compiled, and as code for the codelets. The inner error says why there is none.
    pub fn now<'m>(
        &self,
        name: &str,
        members: &'m [Member],
        units: &BTreeMap<String, Unit>,
    ) -> Result<Result<(Compiled, String, Side<'m>), String>> {
        let scratch = self.scratch.path().join(units::short_hash(name));
        let compiled =
            match units::compile(units.values(), &Edit::default(), &scratch, &self.settings)? {
                Ok(compiled) => compiled,
                Err(said) => return Ok(Err(said)),
            };
        let ir = |id: &str| compiled.ir.get(id).cloned();
        Ok(match self.side(members, &ir, &[])? {
            Ok((others, side)) => Ok((compiled, others, side)),
            Err(error) => Err(explained(error)),
        })
    }

    /// Counts of a side.
    pub fn count(&self, side: &Side) -> Result<Counted, String> {
        Counted::of(side, &self.counting)
    }

    /// What a baseline does here.
    pub fn baseline(&self, counts: Option<Counted>) -> Baseline {
        Baseline {
            cpu: cere_package::machine().cpu,
            compiler: compiler(),
            cere: env!("CARGO_PKG_VERSION").to_owned(),
            counts,
        }
    }

    /// Runs a test. What ends it is its result.
    pub fn check(&self, fixture: &Fixture, test: &Guarded) -> Checked {
        let mut checked = Checked::open(fixture, test);
        if let Err(error) = self.run(fixture, test, &mut checked) {
            checked.fail(print::error(&error));
        }
        checked
    }

    fn run(&self, fixture: &Fixture, test: &Guarded, checked: &mut Checked) -> Result<()> {
        let members = self.members(&test.record.name, &test.codelets())?;
        let units = test.units(fixture.root())?;
        let base = self.base(&members, &|id| test.accepted(id))?;
        self.count_base(&base, test, checked);
        if units::are_unchanged(units.values()) {
            checked.counts[1] = checked.counts[0].clone();
            checked.state = State::Unchanged;
            return Ok(());
        }
        let (compiled, others, now) = match self.now(&test.record.name, &members, &units)? {
            Ok(found) => found,
            Err(why) => {
                checked.fail(why);
                return Ok(());
            }
        };
        let both = Both {
            base,
            now,
            compiled,
            others,
        };
        both.describe(&members, fixture, checked);
        if !self.is_right(&both, checked) {
            return Ok(());
        }
        if both.now.is_same_code(&both.base) {
            checked.counts[1] = checked.counts[0].clone();
            checked.state = State::Identical;
            return Ok(());
        }
        self.compare_counts(&both.now, checked);
        if self.times {
            self.compare_times(&both, (test, &members), checked)?;
        }
        checked.decide();
        Ok(())
    }

    /// Counts the baseline, and names what differs from when it was taken: another compiler or processor is no alarm.
    fn count_base(&self, base: &Side, test: &Guarded, checked: &mut Checked) {
        let then = &test.record.baseline;
        let here = self.baseline(None);
        match self.count(base) {
            Ok(counted) => {
                if let Some(of_then) = &then.counts {
                    let other = of_then.differing(&counted);
                    if !other.is_empty() {
                        checked.notes.push(format!(
                            "the baseline itself has other {} than when it was taken{}, which is no alarm: `cere guard accept` keeps those of now",
                            other.join(", "),
                            match then.compiler == here.compiler {
                                true => String::new(),
                                false => format!(" (by {}, now by {})", then.compiler, here.compiler),
                            }
                        ));
                    }
                }
                checked.counts[0] = Some(counted);
            }
            Err(why) => checked
                .notes
                .push(format!("the baseline cannot be counted: {why}")),
        }
        if then.cpu != here.cpu {
            checked.notes.push(format!(
                "the baseline was taken on another processor ({}): both codes are compared on this one ({})",
                then.cpu, here.cpu
            ));
        }
    }

    /// Whether the result is right, or as right as that of the baseline.
    fn is_right(&self, both: &Both, checked: &mut Checked) -> bool {
        let found = match both.now.judge() {
            Ok(found) => found,
            Err(error) => {
                checked.fail(explained(error));
                return false;
            }
        };
        let Judged {
            verdict,
            reason,
            notes,
        } = found;
        checked.verdict = Some(verdict);
        checked.notes.extend(notes);
        let right = is_right(verdict, || both.base.judge().ok().map(|b| b.verdict));
        if !right {
            checked.state = State::Wrong;
            checked.reason = reason;
        }
        right
    }

    fn compare_counts(&self, now: &Side, checked: &mut Checked) {
        match self.count(now) {
            Ok(counted) => {
                if let Some(base) = &checked.counts[0] {
                    checked.grown = base.grown(&counted, checked.limits.counts);
                }
                checked.counts[1] = Some(counted);
            }
            Err(why) => checked.notes.push(format!("it cannot be counted: {why}")),
        }
    }

    /// Times both in turns. What seems slower is measured again, with loops aligned: a shift of the code changes the time of some loops
    /// by much, whatever the change of the source.
    fn compare_times(
        &self,
        both: &Both,
        (test, members): (&Guarded, &[Member]),
        checked: &mut Checked,
    ) -> Result<()> {
        let rule = rule::slower(checked.limits.time);
        let mut race = Race::new(&both.base, &both.now);
        let seems = race.is_slower(&rule)?;
        (checked.gain, checked.seconds) = (race.gain(), race.seconds());
        let Some(gain) = checked.gain else {
            checked.notes.push(
                "its invocations are too short to be timed one by one: counts alone are compared"
                    .into(),
            );
            return Ok(());
        };
        if !seems {
            return Ok(());
        }
        let now = |id: &str| both.compiled.ir.get(id).cloned();
        let base = self.side(members, &|id| test.accepted(id), &ALIGNED)?;
        let aligned = [base, self.side(members, &now, &ALIGNED)?];
        let mut again = match &aligned {
            [Ok((_, base)), Ok((_, now))] => Race::new(base, now),
            // Not every compiler has the flag.
            _ => Race::new(&both.base, &both.now),
        };
        if again.is_slower(&rule)? {
            checked.state = State::Slower;
            checked.reason = format!(
                "time {}, the limit is {} %",
                percent(gain),
                checked.limits.time
            );
        } else if let Some(second) = again.gain() {
            checked.notes.push(format!(
                "time {} at first, and {} when it was measured again with aligned loops: chance, or where the code lies, which is no alarm",
                percent(gain),
                percent(second)
            ));
        }
        Ok(())
    }
}

/// Flags under which the code around a loop does not decide how its instructions lie in the processor's windows.
const ALIGNED: [&str; 1] = ["-falign-loops=64"];

/// By how much a time is another one.
fn percent(gain: Gain) -> String {
    let [ratio, low, high] = [gain.ratio, gain.low, gain.high].map(|r| 100.0 * (r - 1.0));
    format!("{ratio:+.1} % ({low:+.1} to {high:+.1} %)")
}

impl Both<'_> {
    /// Where the region is now, and what else changed.
    fn describe(&self, members: &[Member], fixture: &Fixture, checked: &mut Checked) {
        let manifest = &members[0].manifest;
        if let Some(region) = self.compiled.region(&manifest.key.unit, &manifest.region) {
            checked.line = region.line;
            checked.file = fixture.from_root(&region.file);
        }
        let others = self
            .others
            .split(", ")
            .filter(|name| !fixture.tests_function(name));
        let others: Vec<&str> = others.filter(|name| !name.is_empty()).collect();
        if !others.is_empty() {
            checked.notes.push(format!(
                "not tested here, and changed as well: {}. If the program does something else there, the region meets other values",
                others.join(", ")
            ));
        }
    }
}

/// Whether a result with this verdict is accepted: a part of it is compared where no more is of the baseline's.
pub fn is_right(verdict: Verdict, base: impl FnOnce() -> Option<Verdict>) -> bool {
    match verdict {
        Verdict::Exact | Verdict::Tolerance => true,
        Verdict::Partly => base() == Some(Verdict::Partly),
        Verdict::Unchecked | Verdict::Different => false,
    }
}

impl Checked {
    fn open(fixture: &Fixture, test: &Guarded) -> Self {
        let record = &test.record;
        Self {
            name: record.name.clone(),
            file: record.file.clone(),
            line: record.line,
            codelets: record.codelets.clone(),
            state: State::Passed,
            reason: String::new(),
            verdict: None,
            limits: fixture.limits(&record.name),
            counts: [None, None],
            grown: Vec::new(),
            gain: None,
            seconds: [None, None],
            notes: Vec::new(),
        }
    }

    fn fail(&mut self, why: String) {
        self.state = State::Failed;
        self.reason = why;
    }

    /// The state by counts and time.
    fn decide(&mut self) {
        let compared = self.counts.iter().all(Option::is_some);
        if self.gain.is_none() && !compared {
            self.fail("neither its counts nor its time could be compared".into());
            return;
        }
        let each = self.grown.iter().map(|g| match g.before {
            0 => format!("{} from 0 to {}", g.what, print::number(g.now)),
            _ => format!("{} {:+.1} %", g.what, g.percent()),
        });
        let grown: Vec<String> = each.collect();
        if !grown.is_empty() {
            self.state = State::Slower;
            let counts = format!(
                "{}, the limit is {} %",
                grown.join(", "),
                self.limits.counts
            );
            self.reason = match self.reason.is_empty() {
                true => counts,
                false => format!("{}; {counts}", self.reason),
            };
        }
        let faster = |gain: Gain| gain.level >= 0.95 && gain.high < 1.0 - self.limits.time / 100.0;
        if self.state == State::Passed && self.gain.is_some_and(faster) {
            self.state = State::Faster;
        }
    }
}

fn explained(error: ReplayError) -> String {
    print::error(&error.into())
}

/// The compiler's version, as it says itself.
fn compiler() -> String {
    static KNOWN: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let said = std::process::Command::new(cere_toolchain::unit::compiler(Language::C, false))
            .arg("--version")
            .output();
        let text = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let line = text.unwrap_or_default();
        line.lines()
            .next()
            .unwrap_or("an unknown compiler")
            .to_owned()
    });
    KNOWN.clone()
}
