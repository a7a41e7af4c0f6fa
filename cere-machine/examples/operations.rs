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
    for (p, f) in m
        .peaks
        .iter()
        .zip(m.found.iter().filter(|f| f.what.starts_with("peaks")))
    {
        println!(
            "{:8} {} {:4} cores {} {:8.2} Gflop/s streams {} c {:.2}",
            p.name,
            p.element,
            p.bits,
            p.cores,
            p.flops_per_second / 1e9,
            p.streams,
            f.confidence
        );
    }
    for f in m
        .found
        .iter()
        .filter(|f| !f.what.starts_with("peaks") && !f.what.starts_with("oper"))
    {
        println!("{f:?}");
    }
    for c in m.curves.iter().filter(|c| !c.name.contains("independent")) {
        println!("{c:.2?}");
    }
    println!(
        "{:?}",
        (
            m.float_contexts,
            m.integer_contexts,
            m.memory_contexts,
            m.integer_registers,
            m.float_registers,
            m.vector_registers,
            m.time_slot_seconds
        )
    );
    println!("{:.2}", session.elapsed());
}
