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

/// Number of processes that a launcher started together with this one, and this one's rank; none if it started this one alone.
pub fn among_several() -> Option<(u32, String)> {
    let sizes = SIZES.iter().filter_map(|name| variable(name)?.parse().ok());
    let several = sizes.max().filter(|size: &u32| *size > 1)?;
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
}
