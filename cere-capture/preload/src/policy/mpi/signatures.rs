//! The functions of MPI: which a replay answers, and what their arguments are.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Functions that a replay answers. One letter an argument, with the numbers of others (hexadecimal, from 0) that it depends on:
///
/// | letter | argument |
/// |---|---|
/// | `S12` | buffer that is sent: argument 1 elements of the datatype in argument 2 |
/// | `R12`, `L12`, `B12` | buffer that receives, now or once the request is complete; that is sent and receives |
/// | `M12@3` | buffer that is sent at the root in argument 3, and receives elsewhere |
/// | `A` | buffer of later calls |
/// | `n`, `i`, `h`, `t`, `c` | count, number, handle, datatype, communicator |
/// | `a`, `N1`, `T` | numbers, one a process, or as many as argument 1 says; datatypes |
/// | `q`, `g`, `m`, `Q`, `Q0` | handle of a request, another one, that is set; that is read and set; requests |
/// | `x`, `x0`, `f`, `F0` | status, statuses, number, numbers that are set |
///
/// After a buffer: `*` as many for each process, `<` and `>` for each neighbour that sends or receives, `v` (before) counts and
/// displacements in arguments, `w` those with datatypes, `+` the sum of counts, `=` the own count, `!` the next buffer stands for it
/// where it is `MPI_IN_PLACE`, `@6` at the root in argument 6 alone.
const ANSWERED: &str = "
MPI_Send S12 n t i i c
MPI_Bsend S12 n t i i c
MPI_Ssend S12 n t i i c
MPI_Rsend S12 n t i i c
MPI_Recv R12 n t i i c x
MPI_Mrecv R12 n t m x
MPI_Sendrecv S12 n t i i R67 n t i i c x
MPI_Sendrecv_replace B12 n t i i i i c x
MPI_Isend S12 n t i i c q
MPI_Ibsend S12 n t i i c q
MPI_Issend S12 n t i i c q
MPI_Irsend S12 n t i i c q
MPI_Irecv L12 n t i i c q
MPI_Imrecv L12 n t m q
MPI_Isendrecv S12 n t i i L67 n t i i c q
MPI_Probe i i c x
MPI_Iprobe i i c f x
MPI_Mprobe i i c g x
MPI_Improbe i i c f g x
MPI_Wait Q x
MPI_Waitall n Q0 x0
MPI_Waitany n Q0 f x
MPI_Waitsome n Q0 f F0 x0
MPI_Test Q f x
MPI_Testall n Q0 f x0
MPI_Testany n Q0 f f x
MPI_Testsome n Q0 f F0 x0
MPI_Request_get_status h f x
MPI_Request_free Q
MPI_Start Q
MPI_Startall n Q0
MPI_Send_init A n t i i c q
MPI_Bsend_init A n t i i c q
MPI_Ssend_init A n t i i c q
MPI_Rsend_init A n t i i c q
MPI_Recv_init A n t i i c q
MPI_Barrier c
MPI_Ibarrier c q
MPI_Bcast M12@3 n t i c
MPI_Ibcast M12@3 n t i c q
MPI_Gather S12 n t R45*@6 n@6 t@6 i c
MPI_Gatherv S12 n t R456v@7 a@7 a@7 t@7 i c
MPI_Scatter S12*@6 n@6 t@6 R45 n t i c
MPI_Scatterv S123v@7 a@7 a@7 t@7 R56 n t i c
MPI_Allgather S12 n t R45* n t c
MPI_Allgatherv S12 n t R456v a a t c
MPI_Alltoall S12* n t R45* n t c
MPI_Alltoallv S123v a a t R567v a a t c
MPI_Alltoallw S123w a a T R567w a a T c
MPI_Reduce S23! R23@5 n t h i c
MPI_Allreduce S23! R23 n t h c
MPI_Reduce_scatter S23+! R23= a t h c
MPI_Reduce_scatter_block S23*! R23 n t h c
MPI_Scan S23! R23 n t h c
MPI_Exscan S23! R23 n t h c
MPI_Igather S12 n t R45*@6 n@6 t@6 i c q
MPI_Igatherv S12 n t R456v@7 a@7 a@7 t@7 i c q
MPI_Iscatter S12*@6 n@6 t@6 R45 n t i c q
MPI_Iscatterv S123v@7 a@7 a@7 t@7 R56 n t i c q
MPI_Iallgather S12 n t R45* n t c q
MPI_Iallgatherv S12 n t R456v a a t c q
MPI_Ialltoall S12* n t R45* n t c q
MPI_Ialltoallv S123v a a t R567v a a t c q
MPI_Ialltoallw S123w a a T R567w a a T c q
MPI_Ireduce S23! R23@5 n t h i c q
MPI_Iallreduce S23! R23 n t h c q
MPI_Ireduce_scatter S23+! R23= a t h c q
MPI_Ireduce_scatter_block S23*! R23 n t h c q
MPI_Iscan S23! R23 n t h c q
MPI_Iexscan S23! R23 n t h c q
MPI_Neighbor_allgather S12 n t R45< n t c
MPI_Neighbor_allgatherv S12 n t R456v< a< a< t c
MPI_Neighbor_alltoall S12> n t R45< n t c
MPI_Neighbor_alltoallv S123v> a> a> t R567v< a< a< t c
MPI_Ineighbor_allgather S12 n t R45< n t c q
MPI_Ineighbor_allgatherv S12 n t R456v< a< a< t c q
MPI_Ineighbor_alltoall S12> n t R45< n t c q
MPI_Ineighbor_alltoallv S123v> a> a> t R567v< a< a< t c q
MPI_Comm_dup c g
MPI_Comm_split c i i g
MPI_Comm_split_type c i i h g
MPI_Comm_create c h g
MPI_Comm_free m
MPI_Cart_create c n N1 N1 i g
";

/// The other functions that communicate, wait or read and write files.
const REFUSED: &str = "
MPI_Neighbor_alltoallw MPI_Ineighbor_alltoallw MPI_Init MPI_Init_thread MPI_Finalize MPI_Abort MPI_Session_init MPI_Session_finalize MPI_Buffer_detach MPI_Cancel MPI_Psend_init
MPI_Precv_init MPI_Pready MPI_Pready_list MPI_Pready_range MPI_Parrived MPI_Isendrecv_replace
MPI_Barrier_init MPI_Bcast_init MPI_Gather_init MPI_Gatherv_init MPI_Scatter_init MPI_Scatterv_init MPI_Allgather_init
MPI_Allgatherv_init MPI_Alltoall_init MPI_Alltoallv_init MPI_Alltoallw_init MPI_Reduce_init MPI_Allreduce_init
MPI_Reduce_scatter_init MPI_Reduce_scatter_block_init MPI_Scan_init MPI_Exscan_init MPI_Neighbor_allgather_init
MPI_Neighbor_allgatherv_init MPI_Neighbor_alltoall_init MPI_Neighbor_alltoallv_init
MPI_Neighbor_alltoallw_init MPI_Comm_dup_with_info MPI_Comm_idup MPI_Comm_idup_with_info
MPI_Comm_create_group MPI_Comm_create_from_group MPI_Comm_spawn
MPI_Comm_spawn_multiple MPI_Comm_accept MPI_Comm_connect MPI_Comm_disconnect MPI_Comm_join MPI_Intercomm_create
MPI_Intercomm_create_from_groups MPI_Intercomm_merge MPI_Cart_sub MPI_Graph_create
MPI_Dist_graph_create MPI_Dist_graph_create_adjacent MPI_Publish_name MPI_Unpublish_name MPI_Lookup_name MPI_Put
MPI_Get MPI_Accumulate MPI_Get_accumulate MPI_Fetch_and_op MPI_Compare_and_swap MPI_Rput MPI_Rget MPI_Raccumulate
MPI_Rget_accumulate MPI_Win_create MPI_Win_allocate MPI_Win_allocate_shared MPI_Win_create_dynamic MPI_Win_free
MPI_Win_fence MPI_Win_start MPI_Win_complete MPI_Win_post MPI_Win_wait MPI_Win_test MPI_Win_lock MPI_Win_lock_all
MPI_Win_unlock MPI_Win_unlock_all MPI_Win_flush MPI_Win_flush_all MPI_Win_flush_local MPI_Win_flush_local_all
MPI_Win_sync MPI_File_open MPI_File_close MPI_File_delete MPI_File_sync MPI_File_set_size MPI_File_preallocate
MPI_File_set_view MPI_File_read MPI_File_read_all MPI_File_read_at MPI_File_read_at_all MPI_File_read_shared
MPI_File_read_ordered MPI_File_write MPI_File_write_all MPI_File_write_at MPI_File_write_at_all MPI_File_write_shared
MPI_File_write_ordered MPI_File_iread MPI_File_iread_all MPI_File_iread_at MPI_File_iread_at_all MPI_File_iread_shared
MPI_File_iwrite MPI_File_iwrite_all MPI_File_iwrite_at MPI_File_iwrite_at_all MPI_File_iwrite_shared
MPI_File_read_all_begin MPI_File_read_all_end MPI_File_read_at_all_begin MPI_File_read_at_all_end
MPI_File_read_ordered_begin MPI_File_read_ordered_end MPI_File_write_all_begin MPI_File_write_all_end
MPI_File_write_at_all_begin MPI_File_write_at_all_end MPI_File_write_ordered_begin MPI_File_write_ordered_end
MPI_File_seek_shared MPI_File_get_position_shared
";

/// How many elements a buffer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As an argument says.
    Count,
    /// Counts and displacements (in elements) are in arguments, one a process.
    Vector,
    /// Displacements are in bytes, and each part has a datatype.
    Typed,
    /// The sum of counts.
    Sum,
    /// The count of the own rank.
    Own,
}

/// How many there are of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// One.
    Once,
    /// One for each process of the communicator.
    Processes,
    /// One for each neighbour that sends to this one.
    Sources,
    /// One for each neighbour that this one sends to.
    Targets,
}

/// What becomes of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is sent.
    Sent,
    /// It receives.
    Received,
    /// It receives once the request is complete.
    Later,
    /// Both are at once.
    Both,
    /// It is sent at the root, and receives elsewhere.
    Broadcast,
}

/// A buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// What for.
    pub used: Use,
    /// How it is described.
    pub extent: Extent,
    /// The arguments that do: counts, displacements if there are any, datatypes.
    pub by: [u8; 3],
    /// How many.
    pub times: Times,
    /// The next buffer stands for it where it is `MPI_IN_PLACE`.
    pub in_place: bool,
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A buffer.
    Buffer(Buffer),
    /// A buffer of later calls.
    Address,
    /// A count, which has 64 bits in functions for large counts.
    Count,
    /// A number.
    Number,
    /// A handle.
    Handle,
    /// A datatype.
    Datatype,
    /// A communicator.
    Communicator,
    /// Numbers: so many, or as many as another argument says.
    Numbers(Times, Option<u8>),
    /// Datatypes.
    Datatypes(Times),
    /// A request that is begun.
    Begins,
    /// Another handle that is set.
    Sets,
    /// A handle that is read and set.
    Changes,
    /// Requests: one, or as many as an argument says.
    Requests(Option<u8>),
    /// Statuses.
    Statuses(Option<u8>),
    /// Numbers that are set.
    Results(Option<u8>),
}

/// An argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// What it is.
    pub kind: Kind,
    /// It means something at the rank in this argument alone.
    pub root: Option<u8>,
}

impl Argument {
    fn parse(word: &str) -> Option<Argument> {
        let (word, root) = match word.split_once('@') {
            Some((word, root)) => (word, Some(digit(root.chars().next()?)?)),
            None => (word, None),
        };
        let (letter, rest) = word.split_at_checked(1)?;
        let digits: Vec<u8> = rest.chars().filter_map(digit).collect();
        let has = |mark: char| rest.contains(mark);
        let (times, other) = match () {
            () if has('*') => (Times::Processes, Times::Processes),
            () if has('<') => (Times::Sources, Times::Sources),
            () if has('>') => (Times::Targets, Times::Targets),
            () => (Times::Once, Times::Processes),
        };
        let first = digits.first().copied();
        let buffer = |used| {
            let (extent, times) = match () {
                () if has('v') => (Extent::Vector, other),
                () if has('w') => (Extent::Typed, other),
                () if has('+') => (Extent::Sum, other),
                () if has('=') => (Extent::Own, other),
                () => (Extent::Count, times),
            };
            let at = |place: usize| digits.get(place).copied().unwrap_or_default();
            Kind::Buffer(Buffer {
                used,
                extent,
                by: match digits.len() {
                    3 => [at(0), at(1), at(2)],
                    _ => [at(0), 0, at(1)],
                },
                times,
                in_place: has('!'),
            })
        };
        let kind = match letter {
            "S" => buffer(Use::Sent),
            "R" => buffer(Use::Received),
            "L" => buffer(Use::Later),
            "B" => buffer(Use::Both),
            "M" => buffer(Use::Broadcast),
            "A" => Kind::Address,
            "n" => Kind::Count,
            "i" => Kind::Number,
            "h" => Kind::Handle,
            "t" => Kind::Datatype,
            "c" => Kind::Communicator,
            "a" => Kind::Numbers(other, None),
            "N" => Kind::Numbers(Times::Once, first),
            "T" => Kind::Datatypes(other),
            "q" => Kind::Begins,
            "g" => Kind::Sets,
            "m" => Kind::Changes,
            "Q" => Kind::Requests(first),
            "x" => Kind::Statuses(first),
            "f" | "F" => Kind::Results(first),
            _ => return None,
        };
        Some(Argument { kind, root })
    }
}

fn digit(letter: char) -> Option<u8> {
    letter.to_digit(16).map(|digit| digit as u8)
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name in C.
    pub name: &'static str,
    /// Its arguments, if a replay answers it.
    pub arguments: Option<Vec<Argument>>,
}

impl Function {
    /// Place of the communicator among the arguments.
    pub fn communicator(&self) -> Option<usize> {
        let mut all = self.arguments.iter().flatten();
        all.position(|a| a.kind == Kind::Communicator)
    }
}

/// All of them, by their names in lower case.
fn all() -> &'static HashMap<String, Function> {
    static ALL: OnceLock<HashMap<String, Function>> = OnceLock::new();
    ALL.get_or_init(|| {
        let answered = ANSWERED.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let name = words.next()?;
            let arguments = words.map(Argument::parse).collect();
            Some(Function { name, arguments })
        });
        let refused = REFUSED.split_ascii_whitespace().map(|name| Function {
            name,
            arguments: None,
        });
        let each = answered.chain(refused);
        each.map(|f| (f.name.to_ascii_lowercase(), f)).collect()
    })
}

/// How a program calls a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As C does.
    C,
    /// As C does, with counts of 64 bits.
    Large,
    /// As Fortran does, with the addresses of all arguments, and one more for the result.
    Fortran,
    /// As Fortran's module `mpi_f08` does.
    Module,
}

/// The function that a symbol names, and its form: `MPI_Send`, `MPI_Send_c`, `PMPI_Send`, `mpi_send_`, `mpi_send__`, `mpi_send_f08_`.
pub fn of_symbol(symbol: &str) -> Option<(&'static Function, Form)> {
    let symbol = symbol.strip_prefix(['P', 'p']).unwrap_or(symbol);
    let (name, form) = match symbol.as_bytes().get(..4)? {
        b"MPI_" => match symbol.strip_suffix("_c") {
            Some(name) => (name, Form::Large),
            None => (symbol, Form::C),
        },
        b"mpi_" => {
            let name = symbol.trim_end_matches('_');
            let strip = |name, end: &&str| str::strip_suffix(name, *end).unwrap_or(name);
            let plain = ["_large", "_f08ts", "_f08"].iter().fold(name, strip);
            let form = match plain == name {
                true => Form::Fortran,
                false => Form::Module,
            };
            (plain, form)
        }
        _ => return None,
    };
    let found = all().get(&name.to_ascii_lowercase())?;
    let c = matches!(form, Form::C | Form::Large);
    (!c || found.name == name).then_some((found, form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_forms() {
        let forms = [
            ("MPI_Sendrecv", Form::C),
            ("PMPI_Sendrecv", Form::C),
            ("MPI_Sendrecv_c", Form::Large),
            ("mpi_sendrecv_", Form::Fortran),
            ("mpi_sendrecv__", Form::Fortran),
            ("mpi_sendrecv", Form::Fortran),
            ("pmpi_sendrecv_", Form::Fortran),
            ("mpi_sendrecv_f08_", Form::Module),
            ("mpi_sendrecv_f08ts_", Form::Module),
            ("mpi_sendrecv_f08ts_large_", Form::Module),
        ];
        for (symbol, form) in forms {
            let (function, found) = of_symbol(symbol).expect(symbol);
            assert_eq!((function.name, found), ("MPI_Sendrecv", form), "{symbol}");
        }
        let others = [
            "MPI_Comm_rank",
            "MPI_Wtime",
            "mpi_wtime_",
            "MPI_Pcontrol",
            "MPI_sendrecv",
            "Sendrecv",
            "MPI_",
        ];
        for other in others {
            assert!(of_symbol(other).is_none(), "{other}");
        }
        let put = of_symbol("MPI_Put").expect("a name");
        assert!(put.0.arguments.is_none());
    }

    /// Counts, datatypes, roots and communicators stand where buffers and arrays look for them.
    #[test]
    fn arguments_are_where_others_say() {
        let lines = ANSWERED.lines().filter(|line| !line.is_empty());
        let mut count = 0;
        for line in lines {
            let name = line.split(' ').next().unwrap_or_default();
            let function = &all()[&name.to_ascii_lowercase()];
            let arguments = function.arguments.as_ref().expect(name);
            assert_eq!(arguments.len(), line.split(' ').count() - 1, "{name}");
            let kind = |place: u8| arguments[usize::from(place)].kind;
            for argument in arguments {
                if let Some(root) = argument.root {
                    assert_eq!(kind(root), Kind::Number, "{name}");
                }
                if let Kind::Buffer(buffer) = argument.kind {
                    let [counts, displacements, types] = buffer.by.map(kind);
                    let numbers = |kind| matches!(kind, Kind::Numbers(..));
                    let fits = match buffer.extent {
                        Extent::Count => counts == Kind::Count && types == Kind::Datatype,
                        Extent::Vector => {
                            numbers(counts) && numbers(displacements) && types == Kind::Datatype
                        }
                        Extent::Typed => {
                            let types = matches!(types, Kind::Datatypes(_));
                            numbers(counts) && numbers(displacements) && types
                        }
                        Extent::Sum | Extent::Own => numbers(counts) && types == Kind::Datatype,
                    };
                    assert!(fits, "{name}: {buffer:?}");
                    let group = buffer.times != Times::Once || argument.root.is_some();
                    assert!(!group || function.communicator().is_some(), "{name}");
                }
                if let Kind::Requests(Some(of))
                | Kind::Statuses(Some(of))
                | Kind::Results(Some(of))
                | Kind::Numbers(_, Some(of)) = argument.kind
                {
                    assert_eq!(kind(of), Kind::Count, "{name}");
                }
            }
            count += 1;
        }
        let refused = REFUSED.split_ascii_whitespace().count();
        assert_eq!(all().len(), count + refused, "a name is there twice");
    }
}
