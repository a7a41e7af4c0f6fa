/* Two invocations of a loop, then a system call filter that ends the process for all but a few calls, then two more. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static double grid[20000];

__attribute__((noinline)) static double work(int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += grid[i] += i;
  return sum;
}

#define ALLOW(name, jump) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, jump, 0)

int main(int argc, char **argv) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(write, 3),
      ALLOW(exit_group, 2),
      ALLOW(rt_sigreturn, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  double sum = work(20000) + work(20000);
  printf("%g\n", sum);
  fflush(stdout);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    return 1;
  if (argc > 1 && !strcmp(argv[1], "syscall")) {
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
      return 1;
  } else if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    return 1;
  }
  printf("%g\n", work(20000) + work(20000));
  return 0;
}
