//! Which system calls a confined process makes.

use crate::Kind;
use cere_arch::call::own as number;
use cere_arch::target::Target;
use cere_format::replay::{Guard, GuardedCall};
use libc::sock_filter;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;

/// Calls that no task needs, by what they reach.
const REFUSED: [(i64, &str); 70] = [
    // The network. What uses io_uring passes by filters.
    (libc::SYS_socket, "socket"),
    (libc::SYS_socketpair, "socketpair"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_bind, "bind"),
    (libc::SYS_listen, "listen"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_io_uring_setup, "io_uring_setup"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
    (libc::SYS_io_uring_register, "io_uring_register"),
    // Other processes.
    (libc::SYS_ptrace, "ptrace"),
    (libc::SYS_process_vm_readv, "process_vm_readv"),
    (libc::SYS_process_vm_writev, "process_vm_writev"),
    (libc::SYS_process_madvise, "process_madvise"),
    (libc::SYS_pidfd_getfd, "pidfd_getfd"),
    (libc::SYS_pidfd_send_signal, "pidfd_send_signal"),
    (libc::SYS_kcmp, "kcmp"),
    (libc::SYS_shmget, "shmget"),
    (libc::SYS_shmat, "shmat"),
    (libc::SYS_msgget, "msgget"),
    (libc::SYS_semget, "semget"),
    (libc::SYS_mq_open, "mq_open"),
    // The kernel, its keys, its clocks and its log.
    (libc::SYS_bpf, "bpf"),
    (libc::SYS_perf_event_open, "perf_event_open"),
    (libc::SYS_userfaultfd, "userfaultfd"),
    (libc::SYS_keyctl, "keyctl"),
    (libc::SYS_add_key, "add_key"),
    (libc::SYS_request_key, "request_key"),
    (libc::SYS_init_module, "init_module"),
    (libc::SYS_finit_module, "finit_module"),
    (libc::SYS_delete_module, "delete_module"),
    (libc::SYS_kexec_load, "kexec_load"),
    (libc::SYS_kexec_file_load, "kexec_file_load"),
    (libc::SYS_reboot, "reboot"),
    (libc::SYS_syslog, "syslog"),
    (libc::SYS_acct, "acct"),
    (libc::SYS_swapon, "swapon"),
    (libc::SYS_swapoff, "swapoff"),
    (libc::SYS_quotactl, "quotactl"),
    (libc::SYS_settimeofday, "settimeofday"),
    (libc::SYS_clock_settime, "clock_settime"),
    (libc::SYS_adjtimex, "adjtimex"),
    (libc::SYS_clock_adjtime, "clock_adjtime"),
    (libc::SYS_sethostname, "sethostname"),
    (libc::SYS_setdomainname, "setdomainname"),
    (libc::SYS_lookup_dcookie, "lookup_dcookie"),
    (libc::SYS_vhangup, "vhangup"),
    (libc::SYS_fanotify_init, "fanotify_init"),
    // Mounts and namespaces.
    (libc::SYS_mount, "mount"),
    (libc::SYS_umount2, "umount2"),
    (libc::SYS_mount_setattr, "mount_setattr"),
    (libc::SYS_move_mount, "move_mount"),
    (libc::SYS_open_tree, "open_tree"),
    (libc::SYS_fsopen, "fsopen"),
    (libc::SYS_fsconfig, "fsconfig"),
    (libc::SYS_fsmount, "fsmount"),
    (libc::SYS_fspick, "fspick"),
    (libc::SYS_pivot_root, "pivot_root"),
    (libc::SYS_chroot, "chroot"),
    (libc::SYS_unshare, "unshare"),
    (libc::SYS_setns, "setns"),
    (libc::SYS_name_to_handle_at, "name_to_handle_at"),
    (libc::SYS_open_by_handle_at, "open_by_handle_at"),
    // Extended attributes: landlock does not know of them.
    (libc::SYS_setxattr, "setxattr"),
    (libc::SYS_lsetxattr, "lsetxattr"),
    (libc::SYS_fsetxattr, "fsetxattr"),
    (libc::SYS_removexattr, "removexattr"),
    (libc::SYS_lremovexattr, "lremovexattr"),
    (libc::SYS_fremovexattr, "fremovexattr"),
    (libc::SYS_nfsservctl, "nfsservctl"),
];

/// Likewise, where the architecture has them.
const REFUSED_OWN: [&str; 3] = ["iopl", "ioperm", "modify_ldt"];

const FCHMODAT2: i64 = 452;

/// Calls that no replay makes, beside those: other processes, and what landlock does not know of files.
const REFUSED_REPLAYS: [(i64, &str); 15] = [
    (libc::SYS_kill, "kill"),
    (libc::SYS_tkill, "tkill"),
    (libc::SYS_rt_sigqueueinfo, "rt_sigqueueinfo"),
    (libc::SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_fchownat, "fchownat"),
    (libc::SYS_utimensat, "utimensat"),
    (libc::SYS_truncate, "truncate"),
    (libc::SYS_fchmod, "fchmod"),
    (FCHMODAT2, "fchmodat2"),
    (libc::SYS_fchown, "fchown"),
    (libc::SYS_setpriority, "setpriority"),
    (libc::SYS_ioprio_set, "ioprio_set"),
    (libc::SYS_migrate_pages, "migrate_pages"),
    (libc::SYS_setpgid, "setpgid"),
];

/// Likewise, where the architecture has them.
const REFUSED_REPLAYS_OWN: [&str; 8] = [
    "fork",
    "vfork",
    "chmod",
    "chown",
    "lchown",
    "utime",
    "utimes",
    "futimesat",
];

/// Calls that landlock decides, with the argument that holds the path: a region whose call is refused is told by it.
const DECIDED: [(i64, &str, u8); 10] = [
    (libc::SYS_openat, "openat", 1),
    (libc::SYS_openat2, "openat2", 1),
    (libc::SYS_mkdirat, "mkdirat", 1),
    (libc::SYS_mknodat, "mknodat", 1),
    (libc::SYS_unlinkat, "unlinkat", 1),
    (libc::SYS_renameat, "renameat", 1),
    (libc::SYS_renameat2, "renameat2", 1),
    (libc::SYS_linkat, "linkat", 1),
    (libc::SYS_symlinkat, "symlinkat", 2),
    (libc::SYS_execve, "execve", 0),
];

/// Likewise, where the architecture has them.
const DECIDED_OWN: [(&str, u8); 9] = [
    ("open", 0),
    ("creat", 0),
    ("mkdir", 0),
    ("mknod", 0),
    ("rmdir", 0),
    ("unlink", 0),
    ("rename", 0),
    ("link", 0),
    ("symlink", 1),
];

/// Calls with which a process starts others or threads: the namespaces of new processes are theirs to leave out.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80, // CLONE_NEWTIME
];
/// Stands for the process's own id until it is known.
pub(crate) const OWN_ID: u32 = 0x7fff_fff1;
/// Requests of `ioctl` that type on the terminal.
const TYPING: [u64; 2] = [0x5412, 0x541c];
/// The sixth argument, which no call has that is asked about.
const SIXTH: u8 = 5;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that no task needs.
fn refused() -> impl Iterator<Item = (i64, &'static str)> {
    all(&REFUSED, &REFUSED_OWN)
}

/// Calls that no replay makes, beside those.
fn refused_replays() -> impl Iterator<Item = (i64, &'static str)> {
    all(&REFUSED_REPLAYS, &REFUSED_REPLAYS_OWN)
}

/// `everywhere`, and those of `own` that this architecture has.
fn all(
    everywhere: &'static [(i64, &str)],
    own: &'static [&str],
) -> impl Iterator<Item = (i64, &'static str)> {
    let here = own.iter().filter_map(|name| Some((number(name)?, *name)));
    everywhere.iter().copied().chain(here)
}

fn when(conditions: Vec<(u8, seccompiler::SeccompCmpArgLen, SeccompCmpOp, u64)>) -> SeccompRule {
    let conditions = conditions
        .into_iter()
        .map(|(argument, length, operation, value)| {
            SeccompCondition::new(argument, length, operation, value)
                .expect("an argument's number is below six")
        });
    SeccompRule::new(conditions.collect()).expect("there is a condition")
}

/// The program that does `action` where `rules` hold, and ends processes that call in another convention.
fn program(rules: Rules, action: SeccompAction) -> Vec<sock_filter> {
    let target = match cere_arch::HERE {
        Target::X86_64 => TargetArch::x86_64,
        Target::Aarch64 => TargetArch::aarch64,
        Target::Riscv64 => TargetArch::riscv64,
    };
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, target);
    let filter = filter.expect("two different actions");
    let program: BpfProgram = filter
        .try_into()
        .expect("a program within the kernel's bounds");
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let statement = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // Numbers of the x32 convention name the same calls; elsewhere there are none so high.
    let others = [
        statement(LOAD, 0, 0, 0),
        statement(AT_LEAST, 0, 1, 1 << 30),
        statement(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    let own = program
        .into_iter()
        .map(|s| statement(s.code, s.jt, s.jf, s.k));
    others.into_iter().chain(own).collect()
}

/// The filters of a process of this kind.
pub fn filters(kind: Kind) -> Vec<Vec<sock_filter>> {
    let mut refused: Rules = refused().map(|call| (call.0, Vec::new())).collect();
    let typing = TYPING.map(|request| when(vec![(1, Dword, Eq, request)]));
    refused.insert(libc::SYS_ioctl, typing.into());
    // Limits of other processes are theirs.
    refused.insert(libc::SYS_prlimit64, vec![when(vec![(0, Dword, Ne, 0)])]);
    match kind {
        Kind::Tool | Kind::Keeper => {
            let with = |flag: &i32| {
                let flag = *flag as u64;
                when(vec![(0, Qword, MaskedEq(flag), flag)])
            };
            refused.insert(libc::SYS_clone, NAMESPACES.iter().map(with).collect());
        }
        Kind::Replay => {
            refused.extend(refused_replays().map(|call| (call.0, Vec::new())));
            let thread = libc::CLONE_THREAD as u64;
            refused.insert(
                libc::SYS_clone,
                vec![when(vec![(0, Qword, MaskedEq(thread), 0)])],
            );
            let other = when(vec![(0, Dword, Ne, u64::from(OWN_ID))]);
            refused.insert(libc::SYS_tgkill, vec![other]);
        }
    }
    // Its arguments lie in memory, where no filter looks; the C library then takes clone.
    let unknown = Rules::from([(libc::SYS_clone3, Vec::new())]);
    vec![
        program(unknown, SeccompAction::Errno(libc::ENOSYS as u32)),
        program(refused, SeccompAction::Errno(libc::EPERM as u32)),
    ]
}

/// What a replay's runtime needs to name the call that its region is refused.
pub fn guard() -> Guard {
    // It tells the runtime's own calls from others and is no secret: the filters of the process hold for both.
    const TOKEN: u64 = 0x4345_5245_5341_4e44;
    let other = |more: Option<(u64, u64)>| {
        let mut conditions = vec![(SIXTH, Qword, Ne, TOKEN)];
        conditions.extend(more.map(|(mask, value)| (0, Qword, MaskedEq(mask), value)));
        vec![when(conditions)]
    };
    let plain = refused()
        .chain(refused_replays())
        .map(|call| (call.0, call.1, None));
    let own = DECIDED_OWN
        .iter()
        .filter_map(|call| Some((number(call.0)?, call.0, call.1)));
    let decided = DECIDED.into_iter().chain(own);
    let decided = decided.map(|call| (call.0, call.1, Some(call.2)));
    let known: Vec<_> = plain.chain(decided).collect();
    let mut rules: Rules = known.iter().map(|call| (call.0, other(None))).collect();
    rules.insert(libc::SYS_clone, other(Some((libc::CLONE_THREAD as u64, 0))));
    let program = program(rules, SeccompAction::Trap);
    let call = |(number, name, path): (i64, &str, Option<u8>)| GuardedCall {
        number,
        name: name.to_owned(),
        path,
    };
    let clone = (libc::SYS_clone, "clone", None);
    Guard {
        token: TOKEN,
        program: program.iter().map(|s| (s.code, s.jt, s.jf, s.k)).collect(),
        calls: known.into_iter().chain([clone]).map(call).collect(),
    }
}
