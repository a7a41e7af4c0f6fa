//! Man pages, completions, and how much a command says.

mod common;

use common::{run, succeed, text};

#[test]
fn pages_and_completions_of_every_command() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    succeed(at, &["manual", "out"]);
    let read = |name: &str| std::fs::read_to_string(at.join("out").join(name)).expect(name);
    for command in [
        "instrument",
        "profile",
        "capture",
        "replay",
        "tune",
        "hybrid",
    ] {
        let page = read(&format!("man1/cere-{command}.1"));
        assert!(page.contains("Examples:"), "{command}");
        for shell in ["bash/cere.bash", "zsh/_cere", "fish/cere.fish"] {
            assert!(read(shell).contains(command), "{shell} lacks {command}");
        }
    }
    assert!(read("man1/cere.1").contains("codelets"));
    let help = text(&succeed(at, &["--help"]).stdout);
    assert!(!help.contains("manual"), "{help}");
}

#[test]
fn a_quiet_command_says_nothing_but_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    std::fs::create_dir(at.join(".cere")).expect("a store");
    let said = |arguments: &[&str]| text(&run(at, arguments).stderr);
    assert!(said(&["results"]).contains("no records yet"));
    assert_eq!(said(&["results", "--quiet"]), "");
    assert!(said(&["-q", "profile", "--", "./absent"]).contains("error: "));
    assert!(said(&["-q", "-v", "results"]).contains("cannot be used with"));
}
