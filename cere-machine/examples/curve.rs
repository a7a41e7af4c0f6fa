use cere_machine::{
    hierarchy::{target::*, *},
    session::Session,
};
fn main() {
    let s = Session::new(false, 60.0, &|_| ());
    let mut t = Live::new(&s).unwrap();
    let mb: usize = std::env::args().nth(1).map_or(64, |a| a.parse().unwrap());
    let e = caches::Effort {
        repeats: 5,
        per_octave: 4,
        limit: mb << 20,
        loads: 1 << 16,
        over: &|| false,
    };
    let l = caches::line(&mut t, &e).unwrap();
    println!("line {:?} {:.1}", l.read(), s.elapsed());
    let c = caches::sizes(&mut t, 64, &e).unwrap();
    println!("sizes {:.1}", s.elapsed());
    let p = levels::plateaus(&c);
    for x in &p {
        println!("{x:?}");
    }
    for w in p.windows(2) {
        println!(
            "{:?}",
            levels::size(&c, &w[0], &w[1], 4096.0, &[fit::Placement::Random])
        );
    }
    let base = p[0].time;
    println!(
        "{:?} {:.1}",
        caches::ways(
            &mut t,
            64,
            &caches::Wanted {
                times: (base, p[1].time),
                before: None,
                strides: (512, 32 << 10)
            },
            &e
        )
        .unwrap(),
        s.elapsed()
    );
    println!(
        "{:?} {:.1}",
        caches::ways(
            &mut t,
            64,
            &caches::Wanted {
                times: (p[1].time, p[2].time),
                before: Some((12, 4096)),
                strides: (8 << 10, 1 << 20)
            },
            &e
        )
        .unwrap(),
        s.elapsed()
    );
    for r in [(0, 48 << 10), (48 << 10, 2 << 20), (2 << 20, 16 << 20)] {
        println!(
            "lat {r:?} {:.2} {:.1}",
            caches::latency(
                &mut t,
                64,
                r,
                &caches::Effort {
                    limit: 1 << 30,
                    ..e
                }
            )
            .unwrap(),
            s.elapsed()
        );
    }
    println!(
        "mem {:?} {:.1}",
        caches::memory_latency(&mut t, 64, &e).unwrap(),
        s.elapsed()
    );
    let pg = tlb::page(
        &mut t,
        64,
        &caches::Effort {
            limit: 256 << 20,
            ..e
        },
    )
    .unwrap();
    println!("{pg:.2?}");
    println!("{:?} {:.1}", tlb::read_page(&pg), s.elapsed());
    let en = tlb::entries(&mut t, 64, 2 << 20, &caches::Effort { per_octave: 8, ..e }).unwrap();
    for x in levels::plateaus(&en.added()) {
        println!("{x:?}");
    }
    for l in en.read() {
        println!("{l:?}");
    }
    println!("{:.1}", s.elapsed());
    for a in en.added() {
        print!("{} {:.2}, ", a.0, a.1);
    }
}
