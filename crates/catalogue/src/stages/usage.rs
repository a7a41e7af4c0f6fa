//! Messages of this stage: see [`super`].

use crate::entry::stage;

stage! {
    "The command line" {
        E8001 "options that do not go together"
            ["... goes with --on ...", "... go with --on slurm", "--run runs programs on this machine: ...", "--untrusted runs in the sandbox, which --no-sandbox leaves out", "--ratio needs --keeps slow", "--json is for the tests themselves: ..."]
            "an option means nothing without another, or excludes it",
            "add or leave out the option that the message names",
            "--remote-cere goes with --on ssh:HOST";
        E8002 "a value that cannot be"
            ["... is no number of a processor", "... is no range", "... is no time", "from ... to 3600 seconds: ...", "... runs backwards, ...", "... names more than ... invocations", "... is no range of sizes: ...", "a size is from 1 to ...", "the factor has to be above 1", "... has more than ... sizes: take a larger step", "... it holds control characters", "... name one rank, or leave out --rank for the slowest"]
            "the value has another form, or lies outside its range",
            "the message says the form; `cere COMMAND --help` has an example",
            "9-3 is no range";
        E8003 "something is missing on the command line"
            ["--flags is needed: ...", "an opt pipeline is needed, ...", "... is needed", "... are needed", "a number of seconds is needed"]
            "the command cannot do anything without it",
            "`cere COMMAND --help` has an example";
        E8004 "a word that is none of the known ones"
            ["... is none of ...", "... is no schedule: ...", "--affinity is compact, scatter or a list", "--level ...: there are ...", "... is no state: ...", "there is no method ...", "... NAME=COMMAND is needed"]
            "the option takes certain words",
            "take one of those in the message",
            "--bind: `near` is none of primary, close, spread";
        E8005 "no such compiler or runtime"
            ["there is no compiler ...", "--runtime: there is no file ..."]
            "the path is wrong",
            "correct it";
    }
    "Faults of CERE" {
        E9001 "a bug of CERE"
            ["this is a bug, please report it", "the call was lost: ...", "a worker did something else than ...", "a job is of a region that is not tuned", "... JSON between the parts of a replay is not valid: ...", "LLVM cannot run ..."]
            "two parts of CERE do not agree",
            "install all of CERE anew, of one version; if it stays, report it with the message and the command";
    }
}
