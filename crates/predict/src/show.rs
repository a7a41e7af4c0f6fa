//! A prediction as tables.

use super::model::{Prediction, RunTime};
use super::outcome::{self, HEADING, error_within};
use cere_system::console::print;

impl Prediction {
    /// The tables.
    pub fn text(&self) -> String {
        let percent = |e: Option<f64>| e.map_or("-".to_owned(), |e| format!("{:+.1} %", e * 100.0));
        let time = |s: Option<f64>| s.map_or("-".to_owned(), print::time);
        let row = |r: &RunTime| {
            let outcome = r.outcome();
            let [predicted, measured, error] = outcome.cells();
            let within = outcome.error().zip(r.error_range);
            vec![
                r.threads.to_string(),
                predicted,
                measured,
                within.map_or(error, |(error, range)| error_within(error, range)),
            ]
        };
        let [predicted, measured, error] = HEADING;
        let heading = ["threads", predicted, measured, error];
        let mut text = print::table(&heading, &self.runs.iter().map(row).collect::<Vec<_>>());
        let rows = self.runs.iter().flat_map(|run| {
            run.regions.iter().map(|r| {
                vec![
                    r.name.clone(),
                    run.threads.to_string(),
                    print::time(r.predicted_seconds),
                    time(r.measured_seconds),
                    percent(outcome::error(r.predicted_seconds, r.measured_seconds)),
                ]
            })
        });
        let heading = ["region", "threads", "predicted", "measured", "error"];
        text.push('\n');
        text.push_str(&print::table_of_names(&heading, rows.collect()));
        text.push('\n');
        text.push_str(&self.over_ranks());
        text.push_str(&format!(
            "sequential part{}: {} of {} in {}\n",
            match &self.rank {
                Some(rank) => format!(" of rank {rank}, with its time in MPI"),
                None => String::new(),
            },
            print::time(self.sequential_seconds),
            print::time(self.profiled_seconds),
            self.sequential_of()
        ));
        if let Some(best) = self.best() {
            let seconds = best.measured_seconds.unwrap_or(best.predicted_seconds);
            text.push_str(&format!(
                "best: {} threads, {}\n",
                best.threads,
                print::time(seconds)
            ));
        }
        if let Some(reduction) = self.reduction() {
            text.push_str(&format!(
                "one run of each codelet takes {reduction:.1} times less than the runs\n"
            ));
        }
        text
    }
    /// How the predicted times are composed; empty if the program has no ranks.
    fn over_ranks(&self) -> String {
        let time = |s: Option<f64>| s.map_or("-".to_owned(), print::time);
        let row = |run: &RunTime| {
            let ranks = run.ranks.as_ref()?;
            Some(vec![
                format!("{} x {}", ranks.ranks.len(), run.threads),
                ranks.slowest.clone(),
                print::time(ranks.work_seconds),
                print::time(ranks.mpi_seconds),
                time(ranks.measured_work_seconds),
                time(ranks.measured_mpi_seconds),
            ])
        };
        let rows: Vec<Vec<String>> = self.runs.iter().filter_map(row).collect();
        if rows.is_empty() {
            return String::new();
        }
        let heading = [
            "ranks x threads",
            "slowest rank",
            "its work",
            "its MPI, as at capture",
            "work measured",
            "MPI measured",
        ];
        format!(
            "{}a run takes the work of its slowest rank, by the codelets of rank {}, and that rank's time in MPI as measured, waiting included\n\n",
            print::table(&heading, &rows),
            self.rank.as_deref().unwrap_or("?")
        )
    }
}
