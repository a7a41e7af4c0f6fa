//! Man pages and completions of shells.

use crate::common::{run, succeed, text};
use std::process::Command;

#[test]
fn every_subcommand_has_a_page_and_shells_complete_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    succeed(at, "manual share");
    let read = |name: &str| {
        let file = at.join("share").join(name);
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    };
    let help = text(&run(at, "--help").stdout);
    let commands = help.lines().skip_while(|l| *l != "Commands:").skip(1);
    let commands = commands.map_while(|l| l.split_whitespace().next());
    let commands: Vec<&str> = commands.filter(|name| *name != "help").collect();
    assert!(
        commands.contains(&"replay") && !commands.contains(&"manual"),
        "{commands:?}"
    );
    let shells = [
        read("bash-completion/completions/cere"),
        read("zsh/site-functions/_cere"),
        read("fish/vendor_completions.d/cere.fish"),
    ];
    let whole = read("man/man1/cere.1");
    for command in &commands {
        let page = read(&format!("man/man1/cere-{command}.1"));
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains("Example"),
            "{page}"
        );
        assert!(whole.contains(&format!("cere\\-{command}(1)")), "{command}");
        for shell in &shells {
            assert!(shell.contains(command), "{command}");
        }
    }
    for text in shells.iter().chain([&whole]) {
        assert!(!text.contains("manual"), "the hidden subcommand is shown");
    }
    // Pages of what follows a subcommand, as in `cere guard add`, apart.
    let inner = |page: &str| {
        let mut all = commands.iter();
        all.any(|command| page.starts_with(&format!("cere-{command}-")))
    };
    let pages = std::fs::read_dir(at.join("share/man/man1")).expect("pages");
    let pages = pages.map(|page| page.expect("a page").file_name());
    let outer = pages.filter(|page| !inner(&page.to_string_lossy()));
    assert_eq!(outer.count(), commands.len() + 1);
    let syntax = Command::new("bash")
        .arg("-n")
        .arg(at.join("share/bash-completion/completions/cere"))
        .status()
        .expect("bash runs");
    assert!(syntax.success());
}
