/* refuse COMMAND...: runs it where personality() fails with EPERM, as in containers with a strict seccomp profile,
   and where addresses are therefore as the system makes them. With REFUSE, the call that it names fails instead. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    {"personality", SYS_personality},
    {"unshare", SYS_unshare},
    {"seccomp", SYS_seccomp},
    {"landlock_create_ruleset", 444},
};

int main(int argc, char **argv) {
    const char *name = getenv("REFUSE") ? getenv("REFUSE") : "personality";
    unsigned at = 0;
    while (at < sizeof calls / sizeof *calls && strcmp(calls[at].name, name)) at++;
    if (at == sizeof calls / sizeof *calls) {
        fprintf(stderr, "refuse: %s is not known here\n", name);
        return 97;
    }
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[at].number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    (void)argc;
    /* The ordinary layout, whatever the parent runs under. */
    personality(0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("refuse: seccomp");
        return 99;
    }
    execvp(argv[1], argv + 1);
    perror("refuse: exec");
    return 98;
}
