//! The memory behind the arguments of a call: what it reads, and what it writes.

use super::library::{Layout, Library, Sign};
use super::signatures::{Argument, Buffer, Extent, Form, Function, Kind, Times, Use};
use crate::engine::calls::Area;
use cere_format::mpi::{self, ABSOLUTE, ARGUMENTS_MOST, Element, Reading};

/// Why the areas of a call are not known.
pub const UNKNOWN: &str = "the library does not say what one of its datatypes or communicators is";
const BETWEEN: &str = "its communicator joins two groups";

/// A call that is about to be made.
pub struct Given<'a> {
    /// What it calls.
    pub function: &'static Function,
    /// As which language does.
    pub form: Form,
    /// Its arguments, as the processor has them.
    pub words: [usize; ARGUMENTS_MOST],
    /// The library.
    pub library: &'a Library,
    /// Its number among the calls of the invocation.
    pub number: u32,
}

/// The memory that a call reads and writes.
#[derive(Debug, Default)]
pub struct Areas {
    /// It reads this.
    pub sent: Vec<Area>,
    /// These variables may have changed when it returns.
    pub left: Vec<Area>,
    /// It may have received into these buffers when it returns.
    pub received: Vec<Area>,
    /// Into these, once the request that it begins is complete.
    pub later: Vec<Area>,
    /// Where the handle of that request is.
    pub begins: Option<usize>,
    /// Where the handles of requests are that may be complete afterwards.
    pub requests: Vec<usize>,
}

/// Who takes part: what the communicator says.
struct Group {
    communicator: usize,
    rank: i64,
}

impl Given<'_> {
    fn arguments(&self) -> &'static [Argument] {
        self.function.arguments.as_deref().unwrap_or_default()
    }

    fn fortran(&self) -> bool {
        self.form == Form::Fortran
    }

    /// Bytes of a count, in an argument or in an array.
    fn count_size(&self) -> usize {
        if self.form == Form::Large { 8 } else { 4 }
    }

    /// The number of this size at an address of the program.
    fn read(&self, at: usize, size: usize) -> i64 {
        // SAFETY: the program hands the address over as that of a number of this size; memory is open.
        unsafe {
            match size {
                8 => (at as *const i64).read_unaligned(),
                _ => i64::from((at as *const i32).read_unaligned()),
            }
        }
    }

    /// The value of an argument that is a number of this size.
    fn value(&self, place: usize, size: usize) -> i64 {
        let word = self.words[place];
        match (self.fortran(), size) {
            (true, _) => self.read(word, size),
            (false, 8) => word as i64,
            (false, _) => i64::from(word as i32),
        }
    }

    fn number(&self, place: u8) -> i64 {
        self.value(usize::from(place), 4)
    }

    fn count(&self, place: u8) -> usize {
        usize::try_from(self.value(usize::from(place), self.count_size())).unwrap_or(0)
    }

    fn handle(&self, place: usize) -> usize {
        self.value(place, self.handle_size()) as usize
    }

    fn sign(&self, address: usize) -> Option<Sign> {
        self.fortran().then(|| self.library.sign(address))?
    }

    /// Bytes of a handle of a request.
    pub fn handle_size(&self) -> usize {
        self.library.handle_size(self.fortran())
    }

    fn group(&self) -> Result<Option<Group>, &'static str> {
        let Some(place) = self.function.communicator() else {
            return Ok(None);
        };
        let communicator = self
            .library
            .communicator(self.handle(place), self.fortran());
        if self.library.is_between(communicator).ok_or(UNKNOWN)? {
            return Err(BETWEEN);
        }
        let rank = self.library.rank(communicator).ok_or(UNKNOWN)?;
        Ok(Some(Group { communicator, rank }))
    }

    fn times(&self, group: Option<&Group>, times: Times) -> Result<usize, &'static str> {
        match (times, group) {
            (Times::Once, _) => Ok(1),
            (_, Some(group)) => self.library.count(group.communicator, times).ok_or(UNKNOWN),
            (_, None) => Err(UNKNOWN),
        }
    }

    /// Whether an argument means something here.
    fn counts(&self, argument: &Argument, group: Option<&Group>) -> bool {
        let Some(root) = argument.root else {
            return true;
        };
        let broadcast = matches!(
            argument.kind,
            Kind::Buffer(Buffer {
                used: Use::Broadcast,
                ..
            })
        );
        broadcast || group.is_some_and(|group| self.number(root) == group.rank)
    }

    /// `length` bytes, so far behind an argument; at that address behind `MPI_BOTTOM`.
    fn area(&self, place: usize, offset: i64, length: usize, element: Element) -> Area {
        let base = self.words[place];
        let (argument, base) = match base == 0 || self.sign(base) == Some(Sign::Bottom) {
            true => (ABSOLUTE, 0),
            false => (place as u32, base),
        };
        Area {
            call: self.number,
            argument,
            offset: offset as u64,
            start: base.wrapping_add(offset as usize),
            length,
            element,
        }
    }

    /// A variable or an array behind an argument, unless the address is none.
    fn variable(&self, place: usize, length: usize) -> Option<Area> {
        let at = self.words[place];
        let real = at > 4096 && self.sign(at).is_none() && length > 0;
        real.then(|| self.area(place, 0, length, Element::Other))
    }

    /// Whether a buffer's address is `MPI_IN_PLACE`.
    fn is_in_place(&self, place: usize) -> bool {
        // Open MPI has 1, MPICH -1.
        let at = self.words[place];
        at == 1 || at == usize::MAX || self.sign(at) == Some(Sign::InPlace)
    }

    fn layout(&self, handle: usize) -> Result<Layout, &'static str> {
        let datatype = self.library.datatype(handle, self.fortran());
        self.library.layout(datatype).ok_or(UNKNOWN)
    }

    /// The areas of a buffer described by `buffer`, behind the argument at `place`.
    fn buffer(
        &self,
        buffer: &Buffer,
        place: usize,
        group: Option<&Group>,
    ) -> Result<Vec<Area>, &'static str> {
        let [counts, displacements, types] = buffer.by;
        let times = self.times(group, buffer.times)?;
        let element_of = |array: u8, number: usize, size: usize| {
            self.read(self.words[usize::from(array)] + number * size, size)
        };
        let size = self.count_size();
        let mut parts: Vec<(i64, usize, usize)> = Vec::new();
        let own = group.map_or(0, |group| group.rank as usize);
        match buffer.extent {
            Extent::Count => parts.push((0, self.count(counts) * times, usize::from(types))),
            Extent::Sum => {
                let each = (0..times).map(|number| element_of(counts, number, size));
                parts.push((0, each.sum::<i64>().max(0) as usize, usize::from(types)));
            }
            Extent::Own => {
                let count = element_of(counts, own, size).max(0) as usize;
                parts.push((0, count, usize::from(types)));
            }
            Extent::Vector | Extent::Typed => {
                for number in 0..times {
                    let count = element_of(counts, number, size).max(0) as usize;
                    parts.push((element_of(displacements, number, size), count, number));
                }
            }
        }
        let mut areas = Vec::new();
        for (displacement, count, which) in parts.into_iter().filter(|part| part.1 > 0) {
            let handle = match buffer.extent {
                Extent::Typed => element_of(types, which, self.handle_size()) as usize,
                _ => self.handle(usize::from(types)),
            };
            let layout = self.layout(handle)?;
            let offset = match buffer.extent {
                Extent::Vector => displacement * layout.extent(),
                Extent::Typed => displacement,
                _ => 0,
            };
            let element = layout.element;
            let each = layout.of_elements(count).into_iter();
            areas.extend(each.map(|(at, length)| self.area(place, offset + at, length, element)));
        }
        Ok(areas)
    }

    /// All areas of the call.
    pub fn areas(&self) -> Result<Areas, &'static str> {
        let group = self.group()?;
        let group = group.as_ref();
        let mut areas = Areas::default();
        let arguments = self.arguments();
        for (place, argument) in arguments.iter().enumerate() {
            if self.counts(argument, group) {
                self.add(&mut areas, (place, argument), group)?;
            }
        }
        if self.fortran() {
            areas.left.extend(self.variable(arguments.len(), 4));
        }
        Ok(areas)
    }

    fn add(
        &self,
        areas: &mut Areas,
        (place, argument): (usize, &Argument),
        group: Option<&Group>,
    ) -> Result<(), &'static str> {
        let handle = self.handle_size();
        let many = |of: Option<u8>| of.map_or(1, |of| self.count(of));
        match argument.kind {
            Kind::Buffer(buffer) => self.add_buffer(areas, &buffer, (place, argument), group)?,
            Kind::Numbers(times, of) => {
                let (count, size) = match of {
                    Some(of) => (self.count(of), 4),
                    None => (self.times(group, times)?, self.count_size()),
                };
                areas.sent.extend(self.variable(place, count * size));
            }
            Kind::Datatypes(times) => {
                let count = self.times(group, times)?;
                areas.sent.extend(self.variable(place, count * handle));
            }
            Kind::Begins => {
                areas.left.extend(self.variable(place, handle));
                areas.begins = Some(self.words[place]);
            }
            Kind::Sets => areas.left.extend(self.variable(place, handle)),
            Kind::Changes => {
                areas.sent.extend(self.variable(place, handle));
                areas.left.extend(self.variable(place, handle));
            }
            Kind::Requests(of) => {
                let all = self.variable(place, many(of) * handle);
                areas.sent.extend(all);
                areas.left.extend(all);
                let each = all.iter().flat_map(|all| (0..all.length).step_by(handle));
                let start = self.words[place];
                areas.requests.extend(each.map(|offset| start + offset));
            }
            Kind::Statuses(of) => {
                let length = many(of) * self.library.status_size();
                areas.left.extend(self.variable(place, length));
            }
            Kind::Results(of) => areas.left.extend(self.variable(place, many(of) * 4)),
            Kind::Address
            | Kind::Count
            | Kind::Number
            | Kind::Handle
            | Kind::Datatype
            | Kind::Communicator => {}
        }
        Ok(())
    }

    fn add_buffer(
        &self,
        areas: &mut Areas,
        buffer: &Buffer,
        (place, argument): (usize, &Argument),
        group: Option<&Group>,
    ) -> Result<(), &'static str> {
        if self.is_in_place(place) {
            if buffer.in_place {
                areas.sent.extend(self.buffer(buffer, place + 1, group)?);
            }
            return Ok(());
        }
        let all = self.buffer(buffer, place, group)?;
        let root = argument.root.map(|root| self.number(root));
        let is_root = root == group.map(|group| group.rank);
        match buffer.used {
            Use::Sent => areas.sent.extend(all),
            Use::Broadcast if is_root => areas.sent.extend(all),
            Use::Received | Use::Broadcast if !self.begins_request() => areas.received.extend(all),
            Use::Received | Use::Broadcast | Use::Later => areas.later.extend(all),
            Use::Both => {
                areas.sent.extend(all.iter().copied());
                areas.received.extend(all);
            }
        }
        Ok(())
    }

    fn begins_request(&self) -> bool {
        self.arguments().iter().any(|a| a.kind == Kind::Begins)
    }

    /// The arguments as a replay compares them. `own` says whether an address is that of a variable of the invocation's frames.
    pub fn readings(&self, own: impl Fn(usize) -> bool) -> Vec<mpi::Argument> {
        let rank = self.group().ok().flatten();
        let each = self.arguments().iter().enumerate();
        let mut found: Vec<mpi::Argument> = each
            .map(
                |(place, argument)| match self.counts(argument, rank.as_ref()) {
                    true => self.reading(place, argument.kind, &own),
                    false => NOT_READ,
                },
            )
            .collect();
        found.extend(self.fortran().then_some(NOT_READ));
        found
    }

    fn reading(&self, place: usize, kind: Kind, own: impl Fn(usize) -> bool) -> mpi::Argument {
        let word = self.words[place];
        let size = match kind {
            Kind::Count => self.count_size(),
            Kind::Number => 4,
            Kind::Handle | Kind::Datatype | Kind::Communicator => self.handle_size(),
            _ if own(word) => return NOT_READ,
            _ => {
                return mpi::Argument {
                    reading: Reading::Word,
                    value: word as u64,
                };
            }
        };
        let reading = match (self.fortran(), size) {
            (true, 8) => Reading::WordAt,
            (true, _) => Reading::HalfAt,
            (false, 8) => Reading::Word,
            (false, _) => Reading::Half,
        };
        let value = self.value(place, size) as u64;
        let value = if size == 8 {
            value
        } else {
            u64::from(value as u32)
        };
        mpi::Argument { reading, value }
    }
}

const NOT_READ: mpi::Argument = mpi::Argument {
    reading: Reading::Not,
    value: 0,
};
