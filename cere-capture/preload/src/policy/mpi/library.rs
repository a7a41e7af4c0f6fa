//! The MPI library that the program uses, asked about datatypes and communicators while a call of the program's is answered. Ordinary
//! code, with everything open.

use super::signatures::Times;
use cere_format::mpi::Element;
use std::ffi::CStr;
use std::sync::OnceLock;

/// What it is asked.
#[derive(Clone, Copy)]
enum Ask {
    TypeSize,
    TypeExtent,
    TypeTrueExtent,
    TypeName,
    TypeEnvelope,
    TypeContents,
    TypeFree,
    PackSize,
    Pack,
    Unpack,
    Size,
    Rank,
    Between,
    Threads,
    Topology,
    Dimensions,
    GraphNeighbours,
    Neighbours,
    TypeOfFortran,
    CommunicatorOfFortran,
}

/// The functions that are called for that, in the order of [`Ask`].
const FUNCTIONS: [&CStr; 20] = [
    c"PMPI_Type_size",
    c"PMPI_Type_get_extent",
    c"PMPI_Type_get_true_extent",
    c"PMPI_Type_get_name",
    c"PMPI_Type_get_envelope",
    c"PMPI_Type_get_contents",
    c"PMPI_Type_free",
    c"PMPI_Pack_size",
    c"PMPI_Pack",
    c"PMPI_Unpack",
    c"PMPI_Comm_size",
    c"PMPI_Comm_rank",
    c"PMPI_Comm_test_inter",
    c"PMPI_Query_thread",
    c"PMPI_Topo_test",
    c"PMPI_Cartdim_get",
    c"PMPI_Graph_neighbors_count",
    c"PMPI_Dist_graph_neighbors_count",
    c"PMPI_Type_f2c",
    c"PMPI_Comm_f2c",
];

/// An address that means something else to Fortran than what lies there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// No status is wanted.
    Ignore,
    /// Another buffer stands for this one.
    InPlace,
    /// Datatypes hold addresses.
    Bottom,
}

/// Symbols that are such addresses, or variables that hold them once MPI is in use (MPICH).
const SIGNS: [(&CStr, Sign, bool); 8] = [
    (c"MPI_F_STATUS_IGNORE", Sign::Ignore, true),
    (c"MPI_F_STATUSES_IGNORE", Sign::Ignore, true),
    (c"MPIR_F_MPI_IN_PLACE", Sign::InPlace, true),
    (c"MPIR_F_MPI_BOTTOM", Sign::Bottom, true),
    (c"mpi_fortran_status_ignore_", Sign::Ignore, false),
    (c"mpi_fortran_statuses_ignore_", Sign::Ignore, false),
    (c"mpi_fortran_in_place_", Sign::InPlace, false),
    (c"mpi_fortran_bottom_", Sign::Bottom, false),
];

/// `MPI_THREAD_MULTIPLE`, in all libraries.
const MULTIPLE: i32 = 3;
/// Bytes of a datatype, at most, that is looked at element by element.
const LARGEST: i64 = 1 << 30;

/// A library.
pub struct Library {
    functions: [usize; FUNCTIONS.len()],
    /// The communicator of all processes.
    world: usize,
    /// Whether handles are addresses (Open MPI), not numbers of 32 bits (MPICH and its kin).
    pub wide: bool,
    /// Addresses of [`SIGNS`]; 0 for those that it does not have.
    signs: [usize; SIGNS.len()],
}

static LIBRARY: OnceLock<Result<Library, &'static str>> = OnceLock::new();

const LACKS: &str = "the MPI library lacks functions that tell what its datatypes are";
const STANDARD_ABI: &str = "the program uses MPI's standard binary interface (libmpi_abi), whose handles are not known here";

/// The library, once [`find`] has found it; or why it cannot be asked.
pub fn library() -> Result<&'static Library, &'static str> {
    LIBRARY
        .get()
        .map_or(Err(LACKS), |found| found.as_ref().map_err(|why| *why))
}

/// Finds the library's functions by `look_up`, unless it has MPI's standard binary interface.
pub fn find(standard_abi: bool, look_up: impl Fn(&CStr) -> usize) {
    LIBRARY.get_or_init(|| {
        if standard_abi {
            return Err(STANDARD_ABI);
        }
        let open = look_up(c"ompi_mpi_comm_world");
        let functions = FUNCTIONS.map(&look_up);
        // Where handles are the same in both languages there is nothing to convert.
        let needed = functions.len() - 2;
        functions[..needed]
            .iter()
            .all(|at| *at != 0)
            .then(|| Library {
                functions,
                world: if open == 0 { 0x4400_0000 } else { open },
                wide: open != 0,
                signs: SIGNS.map(|(name, ..)| look_up(name)),
            })
            .ok_or(LACKS)
    });
}

/// Which bytes an element of a datatype has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Bytes from one element to the next.
    extent: i64,
    /// Its parts, rising: offset and length.
    parts: Vec<(i64, usize)>,
    /// What it consists of.
    pub element: Element,
}

impl Layout {
    /// Bytes from one element to the next.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// The bytes of so many elements: offset and length of each part, neighbours together.
    pub fn of_elements(&self, count: usize) -> Vec<(i64, usize)> {
        let mut found: Vec<(i64, usize)> = Vec::new();
        if let [(offset, length)] = self.parts[..]
            && i64::try_from(length) == Ok(self.extent)
        {
            return vec![(offset, length * count)];
        }
        for number in 0..count as i64 {
            for (offset, length) in &self.parts {
                let at = offset + number * self.extent;
                match found.last_mut() {
                    Some(last) if last.0 + last.1 as i64 == at => last.1 += length,
                    _ => found.push((at, *length)),
                }
            }
        }
        found
    }
}

impl Library {
    /// Calls a function of the library, whose result says whether it worked.
    ///
    /// # Safety
    /// The arguments are the function's.
    unsafe fn ask<const N: usize>(&self, what: Ask, arguments: [usize; N]) -> Option<()> {
        type Function =
            unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> i32;
        let mut a = [0; 7];
        a[..N].copy_from_slice(&arguments);
        // SAFETY: a function of C, which leaves arguments alone that it does not have.
        let result = unsafe {
            let function: Function = std::mem::transmute(self.functions[what as usize]);
            function(a[0], a[1], a[2], a[3], a[4], a[5], a[6])
        };
        (result == 0).then_some(())
    }

    /// A question whose answers are words of this size or smaller ones.
    fn numbers<const N: usize>(&self, what: Ask, of: usize) -> Option<[i64; N]> {
        let mut words = [0i64; N];
        let mut arguments = [of, 0, 0, 0, 0, 0, 0];
        for (argument, word) in arguments[1..].iter_mut().zip(&mut words) {
            *argument = std::ptr::from_mut(word) as usize;
        }
        // SAFETY: a handle of the program's, and words of our own for the answers.
        unsafe { self.ask(what, arguments)? };
        Some(std::hint::black_box(words))
    }

    fn number(&self, what: Ask, of: usize) -> Option<i64> {
        self.numbers::<1>(what, of)
            .map(|words| i64::from(words[0] as i32))
    }

    /// Whether several threads may call it at once; none if it does not say.
    pub fn serves_threads(&self) -> Option<bool> {
        let mut provided = 0i32;
        // SAFETY: a number of our own.
        unsafe { self.ask(Ask::Threads, [&raw mut provided as usize])? };
        Some(std::hint::black_box(provided) == MULTIPLE)
    }

    /// What an address that Fortran passes is a sign for, if it is one.
    pub fn sign(&self, address: usize) -> Option<Sign> {
        let mut all = SIGNS.iter().zip(self.signs).filter(|(_, at)| *at != 0);
        let found = all.find(|((.., holds), at)| match holds {
            // SAFETY: the library's variable of that name, which holds an address.
            true => unsafe { *(*at as *const usize) == address },
            false => *at == address,
        });
        found.map(|((_, sign, _), _)| *sign)
    }

    /// Bytes of a handle, as Fortran or C has it.
    pub fn handle_size(&self, fortran: bool) -> usize {
        if self.wide && !fortran { 8 } else { 4 }
    }

    /// Bytes of a status.
    pub fn status_size(&self) -> usize {
        if self.wide { 24 } else { 20 }
    }

    /// The datatype that Fortran has this handle of.
    pub fn datatype(&self, handle: usize, fortran: bool) -> usize {
        self.convert(Ask::TypeOfFortran, handle, fortran)
    }

    /// The communicator that Fortran has this handle of.
    pub fn communicator(&self, handle: usize, fortran: bool) -> usize {
        self.convert(Ask::CommunicatorOfFortran, handle, fortran)
    }

    fn convert(&self, by: Ask, handle: usize, fortran: bool) -> usize {
        let function = self.functions[by as usize];
        if !fortran || !self.wide || function == 0 {
            return handle;
        }
        // SAFETY: takes a number, and gives a handle.
        unsafe {
            std::mem::transmute::<usize, extern "C" fn(i32) -> usize>(function)(handle as i32)
        }
    }

    /// Rank in a communicator.
    pub fn rank(&self, communicator: usize) -> Option<i64> {
        self.number(Ask::Rank, communicator)
    }

    /// Whether a communicator joins two groups.
    pub fn is_between(&self, communicator: usize) -> Option<bool> {
        Some(self.number(Ask::Between, communicator)? != 0)
    }

    /// How many processes or neighbours a communicator has.
    pub fn count(&self, communicator: usize, times: Times) -> Option<usize> {
        let found = match times {
            Times::Once => 1,
            Times::Processes => self.number(Ask::Size, communicator)?,
            Times::Sources => self.neighbours(communicator)?[0],
            Times::Targets => self.neighbours(communicator)?[1],
        };
        usize::try_from(found).ok()
    }

    /// Neighbours that send to this process, and that it sends to.
    fn neighbours(&self, communicator: usize) -> Option<[i64; 2]> {
        const CARTESIAN: [i64; 2] = [2, 1];
        const DISTRIBUTED: i64 = 3;
        let kind = self.number(Ask::Topology, communicator)?;
        if kind == CARTESIAN[usize::from(self.wide)] {
            return Some([2 * self.number(Ask::Dimensions, communicator)?; 2]);
        }
        if kind == DISTRIBUTED {
            let found = self.numbers::<3>(Ask::Neighbours, communicator)?;
            return Some([found[0] as i32, found[1] as i32].map(i64::from));
        }
        let (rank, mut count) = (self.rank(communicator)?, 0i32);
        let arguments = [communicator, rank as usize, &raw mut count as usize];
        // SAFETY: a communicator with a graph, and a number of our own.
        unsafe { self.ask(Ask::GraphNeighbours, arguments)? };
        Some([i64::from(count); 2])
    }

    /// Where the bytes of a datatype are; none if that cannot be told.
    pub fn layout(&self, datatype: usize) -> Option<Layout> {
        let size = usize::try_from(self.number(Ask::TypeSize, datatype)?).ok()?;
        let [_, extent] = self.numbers::<2>(Ask::TypeExtent, datatype)?;
        let [lower, span] = self.numbers::<2>(Ask::TypeTrueExtent, datatype)?;
        let parts = match usize::try_from(span) {
            Ok(_) if size == 0 => Vec::new(),
            Ok(span) if span == size => vec![(lower, size)],
            Ok(span) if (span as i64) < LARGEST => self.parts(datatype, lower, span)?,
            _ => return None,
        };
        Some(Layout {
            extent,
            parts,
            element: self.element(datatype, 0),
        })
    }

    /// Has the library unpack ones into zeros: an element's bytes are those that change.
    fn parts(&self, datatype: usize, lower: i64, span: usize) -> Option<Vec<(i64, usize)>> {
        let (mut ones, mut zeros) = (vec![0xffu8; span], vec![0u8; span]);
        let first = |image: &mut [u8]| (image.as_mut_ptr() as usize).wrapping_sub(lower as usize);
        let (ones, image) = (first(&mut ones), first(&mut zeros));
        let mut size = 0i32;
        // SAFETY: images of an element, whose bytes begin at its lower bound, and room for it packed.
        unsafe {
            let arguments = [1, datatype, self.world, &raw mut size as usize];
            self.ask(Ask::PackSize, arguments)?;
            let room = usize::try_from(size).ok()?;
            let mut packed = vec![0u8; room];
            let (packed, mut places) = (packed.as_mut_ptr() as usize, [0i32; 2]);
            let [to, from] = [0, 1].map(|i| &raw mut places[i] as usize);
            let arguments = [ones, 1, datatype, packed, room, to, self.world];
            self.ask(Ask::Pack, arguments)?;
            let arguments = [packed, room, from, image, 1, datatype, self.world];
            self.ask(Ask::Unpack, arguments)?;
        }
        let image = std::hint::black_box(zeros);
        let mut found: Vec<(i64, usize)> = Vec::new();
        for (place, _) in image.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            let at = lower + place as i64;
            match found.last_mut() {
                Some(last) if last.0 + last.1 as i64 == at => last.1 += 1,
                _ => found.push((at, 1)),
            }
        }
        Some(found)
    }

    /// What a datatype consists of.
    fn element(&self, datatype: usize, depth: u32) -> Element {
        const DEEPEST: u32 = 8;
        let name = self.name(datatype).unwrap_or_default();
        match name.strip_prefix("MPI_").unwrap_or(&name) {
            "FLOAT" | "REAL" | "REAL4" | "COMPLEX" | "COMPLEX8" | "C_COMPLEX"
            | "C_FLOAT_COMPLEX" | "CXX_FLOAT_COMPLEX" | "2REAL" => Element::Single,
            "DOUBLE" | "DOUBLE_PRECISION" | "REAL8" | "DOUBLE_COMPLEX" | "COMPLEX16"
            | "C_DOUBLE_COMPLEX" | "CXX_DOUBLE_COMPLEX" | "2DOUBLE_PRECISION" => Element::Double,
            "" if depth < DEEPEST => self
                .common_element(datatype, depth)
                .unwrap_or(Element::Other),
            _ => Element::Other,
        }
    }

    fn name(&self, datatype: usize) -> Option<String> {
        let (mut text, mut length) = ([0u8; 512], 0i32);
        let arguments = [
            datatype,
            text.as_mut_ptr() as usize,
            &raw mut length as usize,
        ];
        // SAFETY: longer than any name that a library keeps.
        unsafe { self.ask(Ask::TypeName, arguments)? };
        let text = text.get(..usize::try_from(length).ok()?)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// What all the datatypes that a derived one is made from consist of.
    fn common_element(&self, datatype: usize, depth: u32) -> Option<Element> {
        let mut counts = [0i32; 4];
        let [numbers, addresses, types, combiner] =
            [0, 1, 2, 3].map(|i| &raw mut counts[i] as usize);
        let arguments = [datatype, numbers, addresses, types, combiner];
        // SAFETY: numbers of our own.
        unsafe { self.ask(Ask::TypeEnvelope, arguments)? };
        let [numbers, addresses, types, _] = std::hint::black_box(counts).map(|n| n as usize);
        if types == 0 {
            return None;
        }
        let rooms = [numbers, addresses, types].map(|count| vec![0u64; count.max(1)]);
        let [first, second, third] = [0, 1, 2].map(|i| rooms[i].as_ptr() as usize);
        let arguments = [datatype, numbers, addresses, types, first, second, third];
        // SAFETY: as much room as the envelope says, or more.
        unsafe { self.ask(Ask::TypeContents, arguments)? };
        let [_, _, handles] = std::hint::black_box(rooms);
        let handle = |i: usize| match self.wide {
            true => handles[i] as usize,
            false => (handles[i / 2] >> (32 * (i % 2))) as u32 as usize,
        };
        let mut common = None;
        for mut handle in (0..types).map(handle) {
            let element = self.element(handle, depth + 1);
            if self.name(handle).as_deref() == Some("") {
                // SAFETY: a derived datatype that this call has made a reference of.
                unsafe { self.ask(Ask::TypeFree, [&raw mut handle as usize]) };
            }
            if *common.get_or_insert(element) != element {
                return Some(Element::Other);
            }
        }
        common
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_several_elements() {
        let layout = |extent, parts: &[(i64, usize)]| Layout {
            extent,
            parts: parts.to_vec(),
            element: Element::Other,
        };
        assert_eq!(layout(8, &[(0, 8)]).of_elements(3), [(0, 24)]);
        assert_eq!(layout(16, &[(0, 12)]).of_elements(2), [(0, 12), (16, 12)]);
        let apart = layout(24, &[(-8, 4), (8, 8)]);
        assert_eq!(apart.of_elements(2), [(-8, 4), (8, 12), (32, 8)]);
        assert_eq!(layout(0, &[]).of_elements(5), []);
    }
}
