//! Counts invocations inside the program, whose code is all counted and whose accesses all go to the simulated memory.

use crate::accesses::{Accesses, Dynamic};
use crate::error::CountError;
use crate::image;
use crate::stream::{self, Ran, Sink};
use crate::tally::Tally;
use cere_format::abi::OUTLINED_SYMBOL_PREFIX;
use cere_format::count::{CALL, Code, ENTRY, MARK_END, RETURN};
use cere_memory::{Counters, Hierarchy};
use std::io::Read;
use std::path::Path;

/// An invocation to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Id of the region's unit.
    pub unit: String,
    /// The region's number in it.
    pub index: u32,
    /// Whether it is a function: a call of it within another one is part of that.
    pub function: bool,
    /// The invocation, from 1.
    pub invocation: u64,
}

/// An invocation that was counted.
#[derive(Debug, Clone)]
pub struct Found {
    /// What ran.
    pub tally: Tally,
    /// Accesses that only the run shows.
    pub dynamic: Dynamic,
    /// What the memory had counted when it began.
    pub before: Option<Counters>,
    /// And when it ended; none if it did not end by a return.
    pub after: Option<Counters>,
    /// Whether it ended by a return.
    pub ended: bool,
}

/// What a run of the program showed.
#[derive(Debug)]
pub struct Observed {
    /// The program's code.
    pub code: Code,
    /// For each invocation that was wanted what was found; none if the region was not entered so often.
    pub found: Vec<Option<Found>>,
    /// Whether the program ran to its end.
    pub ended: bool,
    /// Accesses that went to the memory.
    pub accesses: u64,
}

/// A region of which invocations are wanted.
#[derive(Debug)]
struct Region {
    unit: String,
    name: String,
    function: bool,
    entered: u64,
    /// Entries that have not returned.
    depth: u32,
    /// The segment that follows the call in the caller; none if it was not called but jumped to: its return ends it then.
    end: Option<u32>,
}

struct Observer<'a> {
    program: &'a Path,
    wanted: &'a [Wanted],
    regions: Vec<Region>,
    /// The region of each wanted invocation.
    of: Vec<usize>,
    /// The region that each function is, plus 1.
    functions: Vec<u32>,
    accesses: Accesses,
    memory: Option<Hierarchy>,
    found: Vec<Option<Found>>,
    /// Wanted invocations that are under way.
    open: Vec<usize>,
    /// Wanted invocations that have not begun or not ended.
    left: usize,
    /// The segment that forked the team that runs, of the main thread.
    fork: Option<u32>,
    last: Option<u32>,
    ended: bool,
    total: u64,
}

impl Sink for Observer<'_> {
    fn segment(&mut self, code: &Code, index: u32, ran: Ran) {
        let main = ran.thread == 0;
        let region = self.functions[ran.segment.function as usize].checked_sub(1);
        if main {
            let before = self.last;
            self.notice_team(code, index);
            for region in 0..self.regions.len() {
                let known = &self.regions[region];
                if known.depth > 0 && known.end == Some(index) {
                    self.leave(region);
                }
            }
            if let Some(region) = region
                && ran.segment.is(ENTRY)
                && self.fork.is_none()
            {
                let caller = before.filter(|last| {
                    let last = &code.segments[*last as usize];
                    last.is(CALL) && !last.is(RETURN)
                });
                self.enter(region as usize, caller.map(|last| last + 1), code);
            }
        }
        if self.left == 0 {
            return;
        }
        if let Some(memory) = &mut self.memory {
            // Threads beyond those of the codelets' teams share the last core.
            let core = (ran.thread as usize).min(memory.cores() - 1);
            self.total += ran.segment.accesses.len() as u64;
            self.accesses
                .each(index, ran.control, ran.words, |_, access| {
                    memory.access(core, access)
                });
        }
        for &at in &self.open {
            if let Some(found) = &mut self.found[at] {
                found.tally.add(code, ran.thread, index, ran.segment);
                self.accesses
                    .add_dynamic(index, ran.words, &mut found.dynamic);
            }
        }
        if main
            && let Some(region) = region
            && ran.segment.is(RETURN)
            && self.fork.is_none()
            && self.regions[region as usize].end.is_none()
        {
            self.leave(region as usize);
        }
    }

    fn mark(&mut self, code: u64) {
        self.ended |= code == MARK_END;
    }

    fn images(&mut self, text: &[u8], code: &mut Code) -> Result<(), CountError> {
        // The library tells it once; tallies have the size of the code.
        if !self.functions.is_empty() {
            return Err(CountError::Stream {
                position: 0,
                what: "it names the images of the process twice",
            });
        }
        for entry in text.split(|byte| *byte == 0) {
            let entry = String::from_utf8_lossy(entry);
            let Some((offset, path)) = entry.split_once(' ') else {
                continue;
            };
            let offset = u64::from_str_radix(offset, 16).unwrap_or(0);
            // The program itself has no name there, the vDSO no file.
            let path = match path {
                "" => self.program,
                path => Path::new(path),
            };
            if path.is_file() {
                image::add(path, offset, code)?;
            }
        }
        self.learn(code);
        Ok(())
    }
}

impl Observer<'_> {
    /// Finds the regions among the functions.
    fn learn(&mut self, code: &Code) {
        let of = |f: &cere_format::count::Function| {
            let known = |r: &Region| r.unit == f.unit && r.name == f.name;
            self.regions
                .iter()
                .position(known)
                .map_or(0, |at| at as u32 + 1)
        };
        self.functions = code.functions.iter().map(of).collect();
        self.accesses = Accesses::of(code);
    }

    /// Notices where the main thread forks a team, and where it has joined: regions inside are part of the one that forks.
    fn notice_team(&mut self, code: &Code, index: u32) {
        if let Some(fork) = self.fork {
            if index == fork + 1 {
                self.fork = None;
            }
        } else if let Some(last) = self.last {
            let segment = &code.segments[last as usize];
            let forks = segment.is(CALL) && code.name(segment.callee).starts_with("__kmpc_fork_");
            if forks && index != last + 1 {
                self.fork = Some(last);
            }
        }
        self.last = Some(index);
    }

    /// An entry, which ends before segment `end`.
    fn enter(&mut self, region: usize, end: Option<u32>, code: &Code) {
        let known = &mut self.regions[region];
        known.entered += u64::from(!known.function || known.depth == 0);
        if known.depth > 0 {
            // Entries by other callers end inside the first. Where a return ends that, each call has one.
            known.depth += u32::from(match known.end {
                Some(_) => end == known.end,
                None => end.is_some(),
            });
            return;
        }
        if known.function {
            (known.depth, known.end) = (1, end);
        }
        for (at, wanted) in self.wanted.iter().enumerate() {
            if self.of[at] == region && wanted.invocation == known.entered {
                known.depth = 1;
                known.end = end;
                self.found[at] = Some(Found {
                    tally: Tally::new(code),
                    dynamic: Dynamic::default(),
                    before: self.memory.as_ref().map(Hierarchy::counters),
                    after: None,
                    ended: false,
                });
                self.open.push(at);
            }
        }
    }

    fn leave(&mut self, region: usize) {
        let known = &mut self.regions[region];
        match known.depth {
            0 => return,
            1 => known.depth = 0,
            _ => {
                known.depth -= 1;
                return;
            }
        }
        let (of, found) = (&self.of, &mut self.found);
        let memory = self.memory.as_ref();
        let left = &mut self.left;
        self.open.retain(|&at| {
            if of[at] != region {
                return true;
            }
            if let Some(found) = &mut found[at] {
                found.after = memory.map(Hierarchy::counters);
                found.ended = true;
            }
            *left -= 1;
            false
        });
    }
}

/// Reads the stream of the counted program at `program`: counts the `wanted` invocations, and sends all accesses before the end
/// of the last of them to `memory`.
///
/// # Errors
/// The stream is not one of the program's code, or its code cannot be read.
pub fn observe(
    from: impl Read,
    program: &Path,
    wanted: &[Wanted],
    memory: Option<Hierarchy>,
) -> Result<Observed, CountError> {
    let mut regions: Vec<Region> = Vec::new();
    let mut of = Vec::new();
    for one in wanted {
        let name = format!("{OUTLINED_SYMBOL_PREFIX}{}", one.index);
        let known = |r: &Region| r.unit == one.unit && r.name == name;
        of.push(regions.iter().position(known).unwrap_or_else(|| {
            regions.push(Region {
                unit: one.unit.clone(),
                name,
                function: one.function,
                entered: 0,
                depth: 0,
                end: None,
            });
            regions.len() - 1
        }));
    }
    let mut code = Code::default();
    let mut observer = Observer {
        program,
        wanted,
        regions,
        of,
        functions: Vec::new(),
        accesses: Accesses::of(&code),
        memory,
        found: vec![None; wanted.len()],
        open: Vec::new(),
        left: wanted.len(),
        fork: None,
        last: None,
        ended: false,
        total: 0,
    };
    stream::read(from, &mut code, &mut observer)?;
    Ok(Observed {
        found: observer.found,
        ended: observer.ended,
        accesses: observer.total,
        code,
    })
}
