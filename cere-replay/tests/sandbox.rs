//! Packages whose code tries to do harm: each is stopped by the sandbox and the error names the call; without the sandbox
//! the same code succeeds.

mod common;

use cere_replay::Options;
use cere_sandbox::Sandbox;
use common::*;
use std::path::Path;

/// What a region does before its loop, and what the sandbox says of it.
struct Harm {
    code: &'static str,
    named: &'static str,
}

/// `HOME` stands for a directory that is not the replay's business; each ends with the loop's sum if it had its way.
const HARMS: &[Harm] = &[
    Harm {
        code: r#"int f = open("HOME/written", O_WRONLY | O_CREAT, 0600); if (f < 0) return; write(f, "x", 1); close(f)"#,
        named: "/written\"",
    },
    Harm {
        code: r#"char b[6] = {}; int f = open("HOME/secret", O_RDONLY); if (f < 0 || read(f, b, 6) != 6 || b[0] != 's') return"#,
        named: "/secret\"",
    },
    Harm {
        code: r#"if (rename("HOME/secret", "HOME/moved") || rename("HOME/moved", "HOME/secret")) return"#,
        named: "system call rename of \"",
    },
    Harm {
        code: r#"if (unlink("HOME/gone") || mkdir("HOME/gone", 0700) || rmdir("HOME/gone")) return; close(creat("HOME/gone", 0600))"#,
        named: "system call unlink of \"",
    },
    Harm {
        code: r#"if (symlink("/etc/passwd", "HOME/link") || unlink("HOME/link")) return"#,
        named: "system call symlink of \"",
    },
    Harm {
        code: r#"if (chmod("HOME/secret", 0600)) return"#,
        named: "system call chmod",
    },
    Harm {
        code: r#"int s = socket(AF_INET, SOCK_STREAM, 0); if (s < 0) return;
            struct sockaddr_in to = {}; to.sin_family = AF_INET; to.sin_port = htons(9); to.sin_addr.s_addr = htonl(0x7f000001);
            connect(s, (struct sockaddr *)&to, sizeof to); close(s)"#,
        named: "system call socket",
    },
    Harm {
        code: r#"int p[2]; if (socketpair(AF_UNIX, SOCK_STREAM, 0, p)) return; close(p[0]); close(p[1])"#,
        named: "system call socketpair",
    },
    Harm {
        code: r#"for (int i = 0; i < 20; i++) { int p = fork(); if (p == 0) _exit(0); if (p < 0) return; waitpid(p, 0, 0); }"#,
        named: "system call clone",
    },
    Harm {
        code: r#"if (syscall(SYS_fork) == 0) syscall(SYS_exit_group, 0)"#,
        named: "system call fork",
    },
    Harm {
        code: r#"if (kill(getppid(), 0)) return"#,
        named: "system call kill",
    },
    Harm {
        code: r#"if (syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0)) return"#,
        named: "system call ptrace",
    },
    Harm {
        code: r#"if (syscall(SYS_userfaultfd, 0) < 0) return"#,
        named: "system call userfaultfd",
    },
    Harm {
        code: r#"char b[64]; if (syscall(SYS_keyctl, 0, -3, 1) < 0 && errno != ENOSYS && errno != ENOKEY) return"#,
        named: "system call keyctl",
    },
    Harm {
        code: r#"if (syscall(SYS_shmget, 77, 4096, 0600 | IPC_CREAT) < 0) return; shmctl(shmget(77, 4096, 0), IPC_RMID, 0)"#,
        named: "system call shmget",
    },
    Harm {
        code: r#"char *no[] = {0}; (void)no; if (access("/bin/true", X_OK)) return; if (vfork() == 0) { execv("/bin/true", no); _exit(1); }"#,
        named: "system call vfork",
    },
];

const HEAD: &str = r#"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <stdio.h>
#include <unistd.h>
extern "C" { extern long table[512]; long helper(long);
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
void invoke(void *) { CODE; for (int i = 1; i < 100; i++) table[0] += table[i] * 2; } }
"#;

/// What comes of a package with this code: nothing, or the error.
fn outcome(at: &Path, options: &Options, code: &str) -> Result<(), String> {
    let home = at.join("home");
    let code = code.replace("HOME", &home.display().to_string());
    let place = at.join(format!("package{}", options.settings.sandbox.is_on()));
    package(
        &place,
        &manifest(),
        &HEAD.replace("CODE", &code),
        &sum_pages(9900),
    );
    let replay = replay(&place, options).map_err(|error| error.to_string())?;
    match replay.comparison {
        // The region changes its stack as well, and nothing of that was captured.
        Some(c) if c.first.iter().any(|d| d.address == DATA) => Err("it gave up".to_owned()),
        _ => Ok(()),
    }
}

#[test]
fn harm_is_stopped_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let home = at.join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("secret"), "secret").unwrap();
    std::fs::write(home.join("gone"), "").unwrap();
    let confined = options(at);
    let mut free = confined.clone();
    free.settings.sandbox = Sandbox::none();
    for harm in HARMS {
        let error = outcome(at, &confined, harm.code).expect_err(harm.code);
        let named = error.contains(harm.named) && error.contains("the sandbox refuses");
        assert!(named, "{}: {error}", harm.code);
        assert!(!home.join("written").exists(), "{}", harm.code);
        outcome(at, &free, harm.code).unwrap_or_else(|error| panic!("{}: {error}", harm.code));
        let _ = std::fs::remove_file(home.join("written"));
    }
}

#[test]
fn what_a_region_may_do_it_does() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::create_dir(at.join("home")).unwrap();
    for code in [
        // The C library reads such files when it is first asked.
        r#"int f = open("/proc/meminfo", O_RDONLY); if (f < 0) return; close(f)"#,
        r#"int f = open("/nowhere/at/all", O_RDONLY); if (f >= 0 || errno != ENOENT) return"#,
        r#"char n[] = "/dev/null"; int f = open(n, O_WRONLY); if (f < 0 || write(f, n, 1) != 1) return; close(f)"#,
        r#"struct rlimit l; if (getrlimit(RLIMIT_NOFILE, &l)) return"#,
        r#"puts("output")"#,
    ] {
        outcome(at, &options(at), code).unwrap_or_else(|error| panic!("{code}: {error}"));
    }
}

#[test]
fn capabilities_and_privileges_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::create_dir(at.join("home")).unwrap();
    let code = r#"char text[8192] = {}; int f = open("/proc/self/status", O_RDONLY); if (f < 0) return;
        if (read(f, text, 8191) <= 0) return; close(f);
        if (!__builtin_strstr(text, "CapEff:\t0000000000000000")) return;
        if (!__builtin_strstr(text, "NoNewPrivs:\t1")) return"#;
    outcome(at, &options(at), code).unwrap();
}

#[test]
fn large_files_are_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::create_dir(at.join("home")).unwrap();
    let code = r#"static char many[1 << 20]; for (int i = 0; i < 100; i++) if (write(2, many, sizeof many) != sizeof many) return"#;
    // As a parent in Python leaves it.
    // SAFETY: takes no pointers; no test relies on this signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let error = outcome(at, &options(at), code).unwrap_err();
    assert!(error.contains("64 MiB that the sandbox allows"), "{error}");
}

#[test]
fn a_unit_includes_a_file_while_it_is_compiled() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::create_dir(at.join("home")).unwrap();
    let secret = at.join("home/secret");
    std::fs::write(&secret, "secret").unwrap();
    let confined = options(at);
    let mut free = confined.clone();
    free.settings.sandbox = Sandbox::none();
    for directive in ["incbin", "include"] {
        if directive == "include" {
            std::fs::write(&secret, "nop\n").unwrap();
        }
        let include = format!(
            "__asm__(\".section .rodata.stolen,\\\"a\\\"\\n.{directive} \\\"{}\\\"\\n.text\\n\");",
            secret.display()
        );
        let place = at.join(directive);
        let source = format!("{include}\n{SUM}");
        package(&place, &manifest(), &source, &sum_pages(9900));
        let error = replay(&place, &confined).unwrap_err().to_string();
        assert!(
            error.contains("it ran in a sandbox") && error.contains(&secret.display().to_string()),
            "{error}"
        );
        replay(&place, &free).unwrap();
    }
}
