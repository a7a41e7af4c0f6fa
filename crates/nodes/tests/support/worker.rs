//! A worker for tests: `cere-nodes-worker work DIRECTORY CHUNK`; with `run DIRECTORY` it runs a job on this machine. What it computes depends on the task and the inputs alone. The
//! fields of a task: `number`; `log`, a file that gets a line with the number; `ms`, how long it takes; `fail`, why it cannot
//! be done; `once`, a file that is made, and if it was not there the worker dies; `hang`, the same, and it hangs.

use cere_nodes::{Job, Place, Worker};
use cere_system::events::Events;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

fn each(factor: f64, task: &Value) -> Result<Value, String> {
    let number = task["number"].as_f64().ok_or("a task without a number")?;
    if let Some(log) = task["log"].as_str() {
        let file = File::options().append(true).create(true).open(log);
        file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()))
            .map_err(|error| format!("{log}: {error}"))?;
    }
    std::thread::sleep(Duration::from_millis(task["ms"].as_u64().unwrap_or(0)));
    if let Some(hang) = task["hang"].as_str()
        && File::create_new(hang).is_ok()
    {
        std::thread::sleep(Duration::from_secs(600));
    }
    if let Some(once) = task["once"].as_str()
        && File::create_new(once).is_ok()
    {
        eprintln!("task {number} ends the worker");
        std::process::exit(3);
    }
    if let Some(why) = task["fail"].as_str() {
        return Err(why.to_owned());
    }
    Ok(json!({ "root": (factor * number).sqrt(), "number": number }))
}

fn run(directory: &Path) {
    let job = Job::open(directory).expect("a job");
    let worker = Worker {
        program: std::env::current_exe().expect("this program"),
        arguments: vec!["work".to_owned()],
        exclusive: true,
    };
    match cere_nodes::run(&job, &Place::Local, &worker, &mut |_| ()) {
        Ok(rest) => println!("{rest:?}"),
        Err(error) => println!("{error}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (directory, chunk) = match arguments[..] {
        ["work", directory, chunk] => (directory, chunk),
        ["run", directory] => return run(Path::new(directory)),
        _ => panic!("{arguments:?}"),
    };
    let directory = Path::new(directory);
    let factor = std::fs::read_to_string(directory.join("inputs/factor")).expect("the input");
    let factor: f64 = factor.trim().parse().expect("a factor");
    let host = cere_nodes::host_name();
    let chunk = chunk.parse().expect("a number");
    let done = cere_nodes::work(
        directory,
        chunk,
        &host,
        &mut |task| each(factor, task),
        &Events::ignored(),
    );
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
