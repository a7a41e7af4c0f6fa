//! Numbers of system calls as packages have them, whatever machine replays: those of x86-64.

macro_rules! numbers {
    ($($name:ident = $number:literal: $what:literal;)*) => {
        $(#[doc = $what]
        pub const $name: i64 = $number;)*
    };
}

numbers! {
    WRITE = 1: "`write`";
    WRITEV = 20: "`writev`";
    SCHED_YIELD = 24: "`sched_yield`";
    MADVISE = 28: "`madvise`";
    RT_SIGPROCMASK = 14: "`rt_sigprocmask`";
    GETPID = 39: "`getpid`";
    UNAME = 63: "`uname`";
    GETTIMEOFDAY = 96: "`gettimeofday`";
    GETRLIMIT = 97: "`getrlimit`";
    GETRUSAGE = 98: "`getrusage`";
    SYSINFO = 99: "`sysinfo`";
    TIMES = 100: "`times`";
    GETUID = 102: "`getuid`";
    GETGID = 104: "`getgid`";
    GETEUID = 107: "`geteuid`";
    GETEGID = 108: "`getegid`";
    GETPPID = 110: "`getppid`";
    GETTID = 186: "`gettid`";
    TIME = 201: "`time`";
    FUTEX = 202: "`futex`";
    CLOCK_GETTIME = 228: "`clock_gettime`";
    CLOCK_GETRES = 229: "`clock_getres`";
    GETCPU = 309: "`getcpu`";
    GETRANDOM = 318: "`getrandom`";
}

/// Names in packages of the functions of the kernel's shared page, in the order of `call::SHARED`.
pub const SHARED: [&str; 6] = [
    "__vdso_clock_gettime",
    "__vdso_gettimeofday",
    "__vdso_time",
    "__vdso_clock_getres",
    "__vdso_getcpu",
    "__vdso_getrandom",
];

/// Gives `$then` the functions of the C library that ask the kernel, with their arguments and the numbers of what they ask, behind
/// `$more`.
#[macro_export]
macro_rules! question_family {
    ($then:ident $(, $more:path)?) => {
        $then! {
            $($more;)?
            clock_gettime(id, time) = CLOCK_GETTIME;
            clock_getres(id, time) = CLOCK_GETRES;
            gettimeofday(time, zone) = GETTIMEOFDAY;
            time(at) = TIME;
            times(at) = TIMES;
            getrusage(who, usage) = GETRUSAGE;
            getrandom(to, length, flags) = GETRANDOM;
            getpid() = GETPID;
            getppid() = GETPPID;
            gettid() = GETTID;
            getuid() = GETUID;
            geteuid() = GETEUID;
            getgid() = GETGID;
            getegid() = GETEGID;
            uname(to) = UNAME;
            sysinfo(to) = SYSINFO;
            write(to, from, length) = WRITE;
            writev(to, parts, count) = WRITEV;
        }
    };
}
