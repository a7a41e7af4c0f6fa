use cere_machine::{
    operations::{probe::*, target::*},
    place,
    session::Session,
};
fn main() {
    let s = Session::new(false, 60.0, &|_| ());
    place::pin(1).unwrap();
    let unit = Pair::unit(&s).unwrap();
    for streams in [1, 6, 8, 12] {
        let p = Pair::new(&s, Target::new(Kind::Min, Element::F32, 512), streams).unwrap();
        for _ in 0..3 {
            let c = costs(&s, &p, &unit, 10);
            println!("{streams} {:.3?}\n   {:.3?}", c.nanoseconds, c.adds);
        }
        // trace
        let c = Chain::new(&[Target::new(Kind::Min, Element::F32, 512)], streams, 16).unwrap();
        let v: Vec<f64> = (0..200).map(|_| s.time(|| c.run(100)) / 1600.0).collect();
        println!("{:.2?}", v.iter().step_by(8).collect::<Vec<_>>());
    }
}
