//! Messages of this stage: see [`super`].

use crate::entry::stage;

stage! {
    "Files and the machine" {
        E7001 "a file that is not there"
            ["... No such file or directory"]
            "the path in the message leads nowhere",
            "correct the path",
            "cannot read gone.toml: No such file or directory (os error 2)";
        E7002 "the disk is full"
            ["... No space left on device", "... Disk quota exceeded"]
            "the file system or the user's share of it has no room",
            "`cere codelets` and `du -sh .cere` show what takes room; free some, or name a `--store` elsewhere";
        E7003 "not allowed"
            ["... Permission denied", "... Read-only file system", "... Operation not permitted"]
            "the file or directory in the message belongs to another user, or lies on a disk that cannot be written",
            "name a writable place (`--store`, `-o`), or change its permissions";
        E7005 "not on this architecture"
            ["this machine is ...: CERE ... on x86-64; replay, measure, results work here"]
            "what the command needs is made for x86-64 alone: the preload library, and code that counts",
            "do that on an x86-64 machine, and bring its `.codelet` files here",
            "this machine is aarch64: CERE captures on x86-64; replay, measure, results work here";
    }
    "Many machines" {
        E7101 "an unknown place"
            ["... is no place to run at (...)"]
            "`--on` names something else",
            "give `local`, `ssh:HOST[:PORT],...`, `slurm` or `hq`",
            "`cluster` is no place to run at (unknown): give `local`, `ssh:HOST[:PORT],...`, `slurm` or `hq`";
        E7102 "the directory has another job"
            ["... has another job (..., wanted is ...)"]
            "the directory has chunks of other work",
            "remove it, or name another";
        E7103 "another command runs the job"
            ["the job in ... is run by ...: wait for it, or stop it"]
            "another command runs it",
            "wait for it, or stop it";
        E7104 "another version of CERE there"
            ["the job in ... has version ..., this cere reads ..."]
            "hosts have other versions of CERE",
            "install the same everywhere";
        E7105 "no room for a result"
            ["cannot write ...: the disk is full: ...", "... the quota is used up: ..."]
            "no room for a result",
            "free some; the same command goes on";
        E7106 "a chunk is done again"
            ["chunk ... is done again: ... is damaged (...)"]
            "a result was cut off or is of another job",
            "nothing";
        E7107 "a damaged job"
            ["... is damaged (...): remove the directory of the job, ..."]
            "a file of the job was changed",
            "remove the directory of the job, and start the same command again";
        E7108 "a worker ended"
            ["the worker ended with ...: ..."]
            "the worker's last words follow",
            "remove the cause; the same command goes on";
        E7109 "the command was ended"
            ["... ended by signal ...: finished chunks are kept, ..."]
            "you ended the command",
            "the same command goes on";
        E7110 "no host is left"
            ["no host is left (...)", "... no connection: ..."]
            "ssh cannot reach the hosts without a password",
            "make `ssh -o BatchMode=yes HOST true` work";
        E7111 "no CERE on the host"
            ["cannot run ... there: ..."]
            "the host has no `cere` on the PATH of a command by ssh",
            "install it there";
        E7112 "the job cannot be kept on the host"
            ["cannot keep the job there (...): ..."]
            "the host's disk is full, or its home cannot be written",
            "free some, or set `CERE_JOBS` there";
        E7113 "Slurm is not here"
            ["cannot run ... (...): install Slurm's commands ..."]
            "Slurm's commands are not here",
            "install them, or go to a machine of the cluster";
        E7114 "HyperQueue is not here"
            ["cannot run ... (...): get HyperQueue's program ..."]
            "HyperQueue is not on the PATH",
            "get it from its releases";
        E7115 "the scheduler refuses"
            ["... refuses: ..."]
            "the scheduler's words",
            "choose another partition, account or limit";
        E7116 "no job arrays"
            ["this cluster refuses: it takes no job arrays (...)"]
            "MaxArraySize is 1 or less",
            "use another place";
        E7117 "a job without a result"
            ["... ended ... without a result (...): ..."]
            "the scheduler's state and the worker's last words follow",
            "remove the cause; the same command goes on";
        E7118 "no file system in common"
            ["... it left no log: do the nodes of ... have ...?"]
            "the directory is not on a shared file system",
            "put the store on one";
        E7119 "chunks wait"
            ["chunks wait in the queue of ...: ..."]
            "the scheduler's reason",
            "wait, or ask the cluster's administrators";
    }
}
