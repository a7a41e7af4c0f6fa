use super::*;

/// Zones with their name, counter and range, in a directory.
fn tree(zones: &[(&str, &str, &str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    // The interface itself is an entry as well.
    std::fs::create_dir(root.path().join("intel-rapl")).unwrap();
    for (zone, name, value, range) in zones {
        let zone = root.path().join(zone);
        std::fs::create_dir(&zone).unwrap();
        for (file, content) in [
            ("name", name),
            ("energy_uj", value),
            ("max_energy_range_uj", range),
        ] {
            std::fs::write(zone.join(file), format!("{content}\n")).unwrap();
        }
    }
    root
}

fn set(root: &Path, zone: &str, value: &str) {
    std::fs::write(root.join(zone).join("energy_uj"), value).unwrap();
}

fn error(root: &Path) -> String {
    Counters::under(root).unwrap_err().to_string()
}

#[test]
fn packages_and_their_memory_count_once() {
    let root = tree(&[
        ("intel-rapl:0", "package-0", "10", "1000"),
        ("intel-rapl:0:0", "core", "5", "1000"),
        ("intel-rapl:0:1", "uncore", "1", "1000"),
        ("intel-rapl:0:2", "dram", "20", "1000"),
        ("intel-rapl:1", "psys", "99", "1000"),
        ("intel-rapl:2", "package-1", "30", "1000"),
        ("intel-rapl:10", "package-2", "40", "1000"),
        ("intel-rapl-mmio:0", "package-0", "10", "1000"),
        ("intel-rapl:1:0", "dram", "7", "1000"),
    ]);
    let counters = Counters::under(root.path()).unwrap();
    assert_eq!(
        counters.names(),
        "package-0 + package-0 dram + package-1 + package-2"
    );
    let before = counters.read().unwrap();
    assert_eq!(before, Reading(vec![10, 20, 30, 40]));
    for zone in ["intel-rapl:0:0", "intel-rapl:1", "intel-rapl-mmio:0"] {
        set(root.path(), zone, "500");
    }
    set(root.path(), "intel-rapl:0", "110");
    set(root.path(), "intel-rapl:0:2", "21");
    let joules = counters.since(&before, 1.0).unwrap();
    assert!((joules - 101e-6).abs() < 1e-12, "{joules}");
}

#[test]
fn the_second_interface_counts_where_it_is_alone() {
    let root = tree(&[
        ("intel-rapl-mmio:0", "package-0", "1", "9"),
        ("intel-rapl:0", "psys", "1", "9"),
    ]);
    let counters = Counters::under(root.path()).unwrap();
    assert_eq!(counters.names(), "package-0");
}

#[test]
fn a_counter_begins_again() {
    let root = tree(&[("intel-rapl:0", "package-0", "262143328800", "262143328850")]);
    let counters = Counters::under(root.path()).unwrap();
    let before = counters.read().unwrap();
    set(root.path(), "intel-rapl:0", "1000");
    let joules = counters.since(&before, 1.0).unwrap();
    assert!((joules - 1050e-6).abs() < 1e-12, "{joules}");
}

#[test]
fn no_counters() {
    let root = tempfile::tempdir().unwrap();
    let gone = root.path().join("none");
    let found = error(&gone);
    assert!(
        found.contains("this machine shows no energy counters")
            && found.contains("none does not exist; virtual machines usually hide them"),
        "{found}"
    );
    assert!(error(root.path()).contains("is empty"));
    let root = tree(&[
        ("intel-rapl:0", "psys", "1", "9"),
        ("dtpm", "package", "1", "9"),
    ]);
    assert!(error(root.path()).contains("has no zone of a processor package"));
}

#[test]
fn a_file_of_roots() {
    let error = EnergyError::of(
        Path::new("/sys/class/powercap"),
        Path::new("/sys/class/powercap/intel-rapl:0/energy_uj"),
        std::io::Error::from_raw_os_error(libc::EACCES),
    );
    let found = error.to_string();
    assert!(
        found.contains("intel-rapl:0/energy_uj cannot be read by this user")
            && found.contains("`sudo chmod a+r /sys/class/powercap/*/energy_uj`"),
        "{found}"
    );
    // The tests may be root's, whom no mode keeps out.
    use std::os::unix::fs::PermissionsExt;
    let root = tree(&[("intel-rapl:0", "package-0", "1", "9")]);
    let path = root.path().join("intel-rapl:0/energy_uj");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    match File::open(&path) {
        Ok(_) => assert!(Counters::under(root.path()).is_ok()),
        Err(_) => assert!(self::error(root.path()).contains("sudo chmod a+r")),
    }
}

#[test]
fn what_is_no_counter() {
    for (value, range, wanted) in [
        ("-5", "9", "`-5`, not a number of microjoules up to 9"),
        ("10", "9", "`10`, not a number of microjoules up to 9"),
        ("", "9", "``, not"),
        (
            "1",
            "0",
            "max_energy_range_uj holds `0`, not a number of microjoules above 0",
        ),
        ("1", "many", "`many`"),
    ] {
        let root = tree(&[("intel-rapl:0", "package-0", value, range)]);
        let found = error(root.path());
        assert!(found.contains(wanted), "{value} of {range}: {found}");
    }
}

#[test]
fn a_zone_that_goes_away() {
    for file in ["name", "energy_uj", "max_energy_range_uj"] {
        let root = tree(&[("intel-rapl:0", "package-0", "1", "9")]);
        std::fs::remove_file(root.path().join("intel-rapl:0").join(file)).unwrap();
        let found = error(root.path());
        assert!(
            found.contains(&format!("intel-rapl:0/{file} is not there any more")),
            "{found}"
        );
    }
    // What sysfs answers whoever has the file open.
    let gone = std::io::Error::from_raw_os_error(libc::ENODEV);
    let error = EnergyError::of(Path::new("/a"), Path::new("/a/b"), gone);
    assert!(matches!(error, EnergyError::Gone { .. }), "{error}");
}

#[test]
fn a_counter_that_stands_still() {
    let root = tree(&[("intel-rapl:0", "package-0", "1", "9")]);
    let counters = Counters::under(root.path()).unwrap();
    let before = counters.read().unwrap();
    assert_eq!(counters.since(&before, 0.01).unwrap(), 0.0);
    let found = counters.since(&before, 0.3).unwrap_err().to_string();
    assert!(
        found.contains("package-0 did not move while 0.30 s of work ran"),
        "{found}"
    );
}
