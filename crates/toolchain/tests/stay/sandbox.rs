//! What a run may do, in a started tool and in one that stays: a plugin tries it as soon as it is loaded.

use super::*;

const PLUGIN: &str = r#"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
static void say(const char *what, long result) { fprintf(stderr, "%s %d\n", what, result < 0 ? errno : 0); }
__attribute__((constructor)) static void attempt(void) {
    char path[64], line[256];
    say("read", open("HOME/secret", O_RDONLY));
    say("write", open("HOME/written", O_WRONLY | O_CREAT, 0600));
    say("scratch", open("OUT/scratch", O_WRONLY | O_CREAT, 0600));
    say("socket", socket(AF_INET, SOCK_STREAM, 0));
    say("unshare", unshare(0x10000000));
    say("signal", kill(getppid(), 0));
    say("ptrace", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
    snprintf(path, sizeof path, "/proc/%d/mem", getppid());
    say("memory", open(path, O_RDWR));
    snprintf(path, sizeof path, "/proc/%d/fd/0", getppid());
    say("files", open(path, O_RDWR));
    fprintf(stderr, "privileges %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    int limits[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_CORE, RLIMIT_NPROC};
    for (int i = 0; i < 4; i++) {
        struct rlimit limit;
        getrlimit(limits[i], &limit);
        fprintf(stderr, "limit %lld\n", (long long)limit.rlim_cur);
    }
    const char *files[] = {"/proc/self/status", "/proc/self/net/dev"};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(files[i], "r");
        while (file && fgets(line, sizeof line, file))
            if (i || strstr(line, "Cap") || strstr(line, "Seccomp") || strstr(line, "Sig"))
                fputs(line, stderr);
        if (file) fclose(file);
    }
    fprintf(stderr, "TMPDIR %s\n", getenv("TMPDIR"));
    fprintf(stderr, "LD_PRELOAD %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "none");
    int open_files = 0;
    for (int i = 20; i < 1024; i++) open_files += fcntl(i, F_GETFD) >= 0;
    fprintf(stderr, "files above 20: %d\n", open_files);
    struct dirent *entry;
    DIR *shown = opendir("/proc/self/fd");
    while ((entry = readdir(shown)))
        if (readlinkat(dirfd(shown), entry->d_name, line, sizeof line) > 6 && !memcmp(line, "socket", 6)) fprintf(stderr, "a socket\n");
    exit(3);
}
"#;

#[test]
fn a_run_may_do_what_it_may_in_a_started_tool() {
    let home = directory(&[("secret", "s"), ("a.c", C)]);
    let out = directory(&[]);
    let text = PLUGIN.replace("HOME", &home.path().display().to_string());
    let text = text.replace("OUT", &out.path().display().to_string());
    std::fs::write(home.path().join("plugin.c"), text).unwrap();
    let plugin = home.path().join("plugin.so");
    let built = Command::new(CLANG)
        .args(["-shared", "-fPIC", "-D_GNU_SOURCE", "-w", "-o"])
        .args([&plugin, &home.path().join("plugin.c")])
        .status();
    assert!(built.unwrap().success());
    let sandbox = Sandbox::new();
    let attempt = || {
        let line = Line::new(CLANG)
            .confined(&sandbox)
            .arg(format!("-fpass-plugin={}", plugin.display()))
            .reads(&plugin)
            .arg("-c")
            .path(&home.path().join("a.c"))
            .arg("-o")
            .output(&out.path().join("made"))
            .limit(Duration::from_secs(100));
        match run(&line, "a test").unwrap_err() {
            cere_toolchain::CompileError::Compile { message, .. } => message,
            other => panic!("{other}"),
        }
    };
    // The first run of a tool in this kind of sandbox.
    let started = attempt();
    let pid = server(CLANG, &sandbox).pid();
    let stayed = attempt();
    assert_eq!(server(CLANG, &sandbox).pid(), pid);
    assert_eq!(started, stayed);
    for word in [
        "read 13\n",
        "write 13\n",
        "scratch 0\n",
        "socket 1\n",
        "memory 13\n",
        "LD_PRELOAD none",
        "files above 20: 0",
    ] {
        assert!(stayed.contains(word), "{word}: {stayed}");
    }
    assert!(!stayed.contains("a socket"), "{stayed}");
}
