use cere_machine::{operations, session::Session};
fn main() {
    let quick = std::env::args().nth(1).is_some();
    let session = Session::new(quick, 60.0, &|s| eprintln!("{s}"));
    let m = operations::measure(&session).unwrap();
    println!("add {:.4} ns; {:.2} s", m.add_ns, session.elapsed());
    for (o, f) in m.operations.iter().zip(&m.found) {
        println!(
            "{:16} {} {:4} lat {:7.3} ns {:7.3} per_add {:6.3} fl {:?} c {:.2} {}",
            o.name,
            o.element,
            o.bits,
            o.latency_adds,
            o.latency_ns,
            o.per_add,
            o.in_flight,
            o.confidence,
            f.how
        );
    }
}
