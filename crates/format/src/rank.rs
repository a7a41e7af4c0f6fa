//! Which process of a parallel program a process is: launchers tell it by environment variables.

/// Names the variable that tells a process of a run what it is, where the launcher's own do not.
pub const ENV_PROCESS_KEY: &str = "CERE_PROCESS_KEY";

/// Variables with a process's rank. The first that is set counts: an outer launcher's may be inherited.
/// PMIx (Open MPI 5, srun --mpi=pmix), Open MPI, MPICH's Hydra, PMI 1, Slurm, MVAPICH2.
const RANKS: [&str; 6] = [
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMI_ID",
    "SLURM_PROCID",
    "MV2_COMM_WORLD_RANK",
];

/// Variables that a launcher of several processes sets to their number in each of them.
const SIZES: [&str; 4] = [
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "SLURM_STEP_NUM_TASKS",
    "MV2_COMM_WORLD_SIZE",
];

/// Ending of a rank's file in a run of another build: it gets a line for each process in which that runs, with the process's id and
/// [`size`], or 0.
pub const RAN: &str = "ran";
/// The same for processes of the rank that are not replaced.
pub const OTHER: &str = "other";
/// Ending of the rank's file that gets the status of each process in which the build ended by `exit`, a line each.
pub const ENDED: &str = "ended";
/// Ending of the file that the rank prints into instead of its standard output, if there is a file [`APART`].
pub const PRINTED: &str = "out";
/// See [`PRINTED`].
pub const APART: &str = "apart";

/// Name of the file of `rank` with one of these endings; a process without a rank has the empty one.
pub fn file(rank: &str, ending: &str) -> String {
    format!("rank{}.{ending}", rank.replace('/', "_"))
}

/// Rank and ending in the name of such a file.
pub fn of_file(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("rank")?.rsplit_once('.')
}

fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    (!value.is_empty()).then(|| value.to_string_lossy().into_owned())
}

/// What tells this process from the others of its run: the value of the user's variable, else its rank; none if no launcher set one.
pub fn own() -> Option<String> {
    match variable(ENV_PROCESS_KEY) {
        Some(name) => variable(&name),
        None => RANKS.iter().find_map(|name| variable(name)),
    }
}

/// Number of processes that a launcher started together with this one, this one included, if it told.
pub fn size() -> Option<u32> {
    let sizes = SIZES.iter().filter_map(|name| variable(name)?.parse().ok());
    sizes.max()
}

/// Number of processes that a launcher started together with this one, and this one's rank; none if it started this one alone.
pub fn among_several() -> Option<(u32, String)> {
    let several = size().filter(|size| *size > 1)?;
    Some((several, own().unwrap_or_else(|| "?".to_owned())))
}

/// Order of ranks: numbers by value, then other keys by their text.
pub fn order(a: &str, b: &str) -> std::cmp::Ordering {
    let number = |key: &str| key.parse::<u64>().ok();
    let place = |key: &str| (number(key).is_none(), number(key));
    place(a).cmp(&place(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_before_texts() {
        let mut keys = ["10", "b", "9", "a", "0"];
        keys.sort_by(|a, b| order(a, b));
        assert_eq!(keys, ["0", "9", "10", "a", "b"]);
    }

    #[test]
    fn files_of_ranks() {
        for rank in ["", "3", "a.b"] {
            assert_eq!(of_file(&file(rank, RAN)), Some((rank, RAN)));
        }
        assert_eq!(file("a/b", OTHER), "ranka_b.other");
        assert_eq!(of_file(APART), None);
    }
}
