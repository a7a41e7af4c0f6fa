use super::*;

fn codelet(number: usize, program: usize) -> Codelet {
    Codelet {
        name: format!("f{number}@a.c:1:1"),
        program,
        sha256: format!("{number:064x}"),
        bytes: 1,
        reference: vec![0.1, 0.11],
    }
}

/// A subset of points (program, seconds), a codelet each; `clusters` begin with their representatives, and all others are checks.
pub fn of(programs: &[f64], points: &[(usize, f64)], clusters: &[&[usize]]) -> Subset {
    let values: Vec<Vec<f64>> = (0..points.len()).map(|i| vec![i as f64]).collect();
    let mut subset = Subset {
        version: SUBSET_VERSION,
        id: String::new(),
        machine: Machine::default(),
        choice: Choice {
            unified: false,
            metrics: vec!["mflops".into()],
            dropped: Vec::new(),
            logarithm: false,
            components: None,
            warmup: None,
            geometry: "zen3".into(),
        },
        programs: programs
            .iter()
            .enumerate()
            .map(|(number, seconds)| Program {
                name: format!("p{number}"),
                command: format!("./p{number}"),
                seconds: *seconds,
            })
            .collect(),
        codelets: points
            .iter()
            .enumerate()
            .map(|(number, (program, _))| codelet(number, *program))
            .collect(),
        points: points
            .iter()
            .enumerate()
            .map(|(number, (program, seconds))| Point {
                name: format!("f{number}@a.c:1"),
                program: *program,
                seconds: *seconds,
                members: vec![(number, 1.0)],
            })
            .collect(),
        dendrogram: cere_cluster::ward(&values).unwrap(),
        variance: vec![1.0; points.len()],
        elbow: clusters.len(),
        clusters: clusters
            .iter()
            .map(|members| Cluster {
                representative: members[0],
                members: members.to_vec(),
                checks: members[1..].to_vec(),
            })
            .collect(),
    };
    subset.identify().unwrap();
    subset
}

/// Two programs of 5 and 10 s with two points each, in two clusters.
pub fn subset() -> Subset {
    of(
        &[5.0, 10.0],
        &[(0, 3.0), (0, 1.0), (1, 2.0), (1, 6.0)],
        &[&[0, 2], &[3, 1]],
    )
}

/// Programs that are covered whole, with a point in each cluster; one check a cluster.
pub fn large(clusters: usize, programs: usize) -> Subset {
    let points: Vec<(usize, f64)> = (0..clusters * programs)
        .map(|p| (p % programs, 1.0))
        .collect();
    let members: Vec<Vec<usize>> = (0..clusters)
        .map(|c| (c * programs..(c + 1) * programs).collect())
        .collect();
    let members: Vec<&[usize]> = members.iter().map(Vec::as_slice).collect();
    let mut subset = of(&vec![clusters as f64; programs], &points, &members);
    for cluster in &mut subset.clusters {
        cluster.checks.truncate(1);
    }
    subset.identify().unwrap();
    subset
}

#[test]
fn what_was_changed_is_refused() {
    let good = subset();
    good.check().unwrap();
    assert_eq!(good.measured(), [0, 1, 2, 3]);
    assert_eq!(good.labels(), [0, 1, 0, 1]);
    assert_eq!(good.point_name(3), "p1/f3@a.c:1");
    // 15 s of programs, four codelets of 0.1 s.
    assert!((good.reduction() - 15.0 / 0.4).abs() < 1e-9);
    let fails = |change: fn(&mut Subset), identified: bool, part: &str| {
        let mut bad = subset();
        change(&mut bad);
        if identified {
            bad.identify().unwrap();
        }
        let error = bad.check().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    fails(|s| s.programs[0].seconds = 6.0, false, "changed after");
    fails(|s| s.version = 9, true, "newer cere");
    fails(|s| s.programs[0].seconds = -1.0, true, "p0");
    fails(|s| s.codelets[1].sha256 = "..".into(), true, "f1");
    fails(|s| s.codelets[1].reference.clear(), true, "f1");
    fails(|s| s.points[2].members[0].0 = 7, true, "f2");
    fails(|s| s.points[2].program = 2, true, "f2");
    fails(|s| s.clusters[0].representative = 1, true, "not in it");
    fails(|s| s.clusters[0].members.push(3), true, "each point once");
    fails(|s| s.clusters[0].members.push(9), true, "point 9");
}
