//! Messages of this stage: see [`super`].

use crate::entry::stage;

stage! {
    "Capture" {
        E3001 "the captured program did not succeed"
            ["... ended with ...; what was captured until then is kept"]
            "the program returned a status other than 0, or a signal ended it",
            "nothing, if that is how it ends: `--ignore-status`; else see its own messages";
        E3002 "codelets of another command were replaced"
            ["replaced ... of another command, ..."]
            "a store has one codelet of each region and invocation",
            "a `--store` for each command keeps both";
        E3003 "a profile is made first"
            ["the store has no sufficient profile of this command with what it reads now: profiling first, without its output"]
            "it says what is done",
            "nothing";
        E3004 "no region is worth a capture"
            ["there is nothing to capture: no region passes"]
            "no region has more than 1 % and 2000 cycles an invocation",
            "name a region";
        E3005 "the work is in other threads"
            ["there is nothing to capture: no region passes, and ... ran in threads other than the program's first alone ..."]
            "they take less than 1 % or 2000 cycles an invocation",
            "name one";
        E3006 "nothing was captured"
            ["nothing was captured: see the reasons above"]
            "every region was refused",
            "read the `skipped:` lines";
        E3007 "captures were lost"
            ["some captures were lost: see the reasons above"]
            "a capture should have become a codelet",
            "read the messages of the run: disk space, memory";
        E3008 "some regions were not captured"
            ["... of the named regions were not captured: see the reasons above"]
            "their captures were refused, or the run did not reach them",
            "read the `skipped:` lines";
        E3009 "the run was cut off"
            ["...; what was captured until then is kept"]
            "the time limit or a signal ended the run",
            "give a larger `--timeout`";
        E3010 "a region has no codelet"
            ["skipped: ...: ..."]
            "this region has no codelet",
            "find the reason below";
        E3011 "no time in vivo"
            ["no time in vivo: ..."]
            "the profile's run and the captured run are not comparable, or the invocation was not timed",
            "profile again with the same input",
            "no time in vivo: the region ran only 3 times in the profile's run";
        E3012 "a wrong list of invocations"
            ["--invocation ...: ... is not the number of an invocation"]
            "lists look like `1,12` or `3-5`",
            "correct it",
            "--invocation 1;3: `1;3` is not the number of an invocation, which count from 1; lists look like 1,12 or 3-5";
        E3013 "nothing is missing"
            ["the store has all codelets that can be had"]
            "`--missing` found nothing to do",
            "nothing";
        E3014 "nested captures need more runs"
            ["run ..., without output, for invocations that captures of run ... disturb: ..."]
            "nested captures need runs of their own",
            "nothing";
        E3015 "a program without ranks"
            ["... has no ranks, or only one: leave out --rank"]
            "the command starts one process",
            "leave out `--rank`, or start the program by its launcher";
        E3016 "a plan without a profile"
            ["there is no profile, and named invocations need none: leave out --plan"]
            "a plan is made from a profile",
            "leave out `--plan`, or `cere profile` first";
        E3017 "a run took nothing"
            ["run ... of the program did not reach the invocations that were left: ..."]
            "in this run the program did not reach the invocations",
            "give the program the same input for each run, or name invocations one by one";
        E3018 "runs end otherwise"
            ["... ended with status ..., the captured run with ...: does it need its first state again?"]
            "the program leaves files or other state behind, which change its next run",
            "remove what it leaves before each run, e.g. by a script around it";
    }
    "Reasons: the region was not met" {
        E3101 "it was not outlined"
            ["it was not outlined: ..."]
            "the pass left the loop in place",
            "see [loops that stay in place](cannot.md#loops-that-stay-in-place)";
        E3102 "it never ran"
            ["it never ran with these arguments"]
            "the run took other ways through the program",
            "give other arguments";
        E3103 "it ran in other threads"
            ["it ran in threads other than the program's first alone (... times): ...", "invocation ... never came: it ran ... times in the program's first thread, and ... times in others, ..."]
            "only other threads than the program's first entered it",
            "name a thread by `--thread`; `cere profile --json` has the regions of each";
        E3104 "the thread entered it less often"
            ["invocation ... never came: thread ... entered it ... times"]
            "in pools it is chance which thread does what",
            "name a smaller number, or another thread";
        E3105 "there was no such invocation"
            ["invocation ... never came: it ran ... times"]
            "the run entered it less often",
            "name a smaller number";
        E3106 "it matters too little"
            ["its self time is ... % of the run, not above ... %", "its invocations take ... cycles, fewer than ..."]
            "a region of that size gains the program nothing, or is shorter than what a capture can time",
            "name the region to capture it anyway";
        E3107 "other captures were in the way"
            ["it runs inside ...", "its page trace runs through ...", "the program's allocator lacks the memory that ... freed"]
            "captures of nested regions disturb each other",
            "capture it alone, with `--invocation`";
    }
    "Reasons: it depends on more than memory" {
        E3201 "it depends on outside state"
            ["calls ...: it depends on outside state", "calls ... on descriptor ...: ..."]
            "it reads or writes outside memory: a replay has no such files or sockets",
            "capture a loop inside it. If the reason says `N loops inside are no regions`, the command that it names makes regions of them",
            "calls read on descriptor 3 (data.bin): it depends on outside state";
        E3202 "it waits for threads or changes processes"
            ["calls ...: it waits for another thread", "calls ...: it waits for another thread, or uses its state", "... it sleeps, and the program handles signals", "... it starts a thread or a process", "... it starts a thread", "... it changes what signals do", "calls ...: its thread ends inside"]
            "a replay has neither other threads to wait for, nor other processes",
            "capture a loop inside it";
        E3203 "a system call that no replay can make"
            ["calls ..., which fails half way", "calls ... to drop memory of a file or shared memory, whose content comes back"]
            "what the call did to memory cannot be done again",
            "capture a loop inside it";
        E3204 "it touches another thread's stack"
            ["it touches the stack of another thread (...), which a replay does not have"]
            "the other thread does not exist in a replay",
            "no remedy";
        E3205 "a stack beside the thread's own data"
            ["frames or data of the program share a page with its thread's control block, ..."]
            "the page has to be open for the thread to go on",
            "give threads stacks that end at a multiple of 4096";
        E3206 "thread-local variables of another image"
            ["it leads to ..., which uses thread-local variables ...: a replay has those of the region's own image only"]
            "a replay has the thread-local variables of the region's own image only",
            "link the two into one";
        E3207 "code on the stack"
            ["... passes procedures that use variables of the procedure around them ..."]
            "the compiler puts code on the stack for them, which no replay executes",
            "no remedy";
        E3208 "local symbols with one name"
            ["several objects without IR have a local symbol ..."]
            "nothing tells which of them the region's code uses",
            "rename them, or build the objects with `cere instrument`";
        E3209 "the kernel reaches its memory"
            ["the program has ...: its memory is reached from outside while a capture has it closed"]
            "the kernel would read or write memory that the capture has closed",
            "turn off io_uring, userfaultfd or aio in the program";
        E3210 "the program crashes"
            ["the program crashes inside: it may not access ..."]
            "it is the program's own error",
            "mend the program: it crashes without CERE too";
        E3211 "memory that a handler of SIGSEGV sees to"
            ["it touches ..., which it may not, and the program's own handler of SIGSEGV runs: a replay has no such handler"]
            "a write barrier of a garbage collector, lazy memory or a guard page",
            "capture an invocation or a region that does not touch such memory, or turn the collector's incremental mode off";
        E3212 "guard pages"
            ["calls ... for guard pages, which a replay does not have"]
            "a replay does not have them",
            "capture a loop inside it";
        E3213 "a signal arrives"
            ["it takes signal ...", "a signal that the program handles arrives inside, and it goes on for long"]
            "its handler is not part of the region",
            "run it without that signal (a timer, for example)";
        E3214 "it waits for another thread"
            ["it waits for another thread: those stand still while it runs, and it has not ended after ... s ...", "the program's other threads have to stand still while it runs, and it runs for more than 10 s: ..."]
            "the other threads stand still while it runs: it spins until another thread has done something, or it is long",
            "capture a loop inside it; or, if it is long, profile first, or use a smaller input";
        E3215 "a call of MPI that no replay answers"
            ["calls MPI_...: ...", "calls ...: it waits for other ranks", "calls ...: other ranks reach memory without a call of this one", "calls ...: it reads or writes files", "calls ...: it ends the program"]
            "what follows in the message says why no replay answers it",
            "capture a loop inside it, or one without that call";
        E3216 "memory that other processes write"
            ["it takes memory that other processes change: they have it mapped as well, to write it"]
            "it exchanges data with other processes, as MPI does within a machine",
            "capture a loop inside it that does not";
        E3217 "memory that changes meanwhile"
            ["it reads memory that something else changes meanwhile, at ..."]
            "another process or a thread that was not stopped writes there",
            "capture a loop inside it; report it, if there is no other process";
        E3218 "another thread runs on"
            ["another thread (...), which rested in ..., runs on meanwhile and may change what it reads or writes"]
            "its call has a time limit above 1 s, or writes",
            "capture another invocation, a shorter region, or without that thread";
        E3219 "OpenMP beside other threads"
            ["it enters a parallel region of OpenMP in a thread that is not the program's first one", "threads of the OpenMP runtime run beside it, and it runs in another thread than the program's first one"]
            "the OpenMP runtime's team belongs to the program's first thread in a replay",
            "capture it where the first thread runs it, or with `OMP_NUM_THREADS=1`";
        E3220 "a thread that ends or cannot be listed"
            ["another thread ends", "the program's threads cannot be listed: ...", "the library's list of threads is spoilt: it failed before"]
            "all other threads have to stand still, and one of them came to its end or could not be found",
            "capture again: another invocation meets another moment";
    }
    "Reasons: the system or the program does not allow it" {
        E3301 "the kernel cannot dispatch system calls"
            ["the kernel has no Syscall User Dispatch (Linux 5.11 and later have it)"]
            "the kernel is older than 5.11, or a container refuses it",
            "use a newer kernel";
        E3302 "the kernel does not hold other threads"
            ["the kernel does not hold system calls of other threads", "the kernel does not report what other threads do: ..."]
            "a container or a security module refuses it",
            "use another kernel or container";
        E3303 "an alternate signal stack"
            ["the region runs in a signal handler on an alternate stack"]
            "a capture needs a stack of its own there",
            "no remedy";
        E3304 "another thread is inside the kernel"
            ["another thread is inside ..., which reaches memory that a capture closes"]
            "its call is interrupted, but what it does cannot be",
            "capture another invocation";
        E3305 "another thread blocks all signals"
            ["another thread blocks all signals, faults included"]
            "it takes no signal that would stop it",
            "in a program in D, add `--DRT-gcopt=parallel:0` to its arguments, which the runtime takes: its collector then starts no threads; else no remedy";
        E3306 "another thread cannot be stopped"
            ["another thread (...) cannot be stopped", "another thread (...) has a stack that the program made itself, which a capture closes", "threads run that were not started by pthread_create", "other threads start threads or processes all the time"]
            "a capture has to stop all threads",
            "no remedy";
        E3307 "too many mappings"
            ["the program has too many mappings", "it takes more mappings than vm.max_map_count allows"]
            "each stretch of pages with one protection is a mapping of the kernel's",
            "raise `vm.max_map_count`";
        E3308 "the disk has no room for copies"
            ["it takes more memory than the disk of the store has free: ...", "it writes more memory than the disk of the store has free: ..."]
            "a capture needs up to twice the memory that the region touches, in a file in the store",
            "free space on the disk of the store, or name another one with `--store`";
        E3309 "no file for copies"
            ["cannot make room in ..."]
            "the disk of the store, or a limit (`ulimit -f`), allows no file of 32 MiB",
            "make room, or raise the limit";
        E3310 "no memory is left"
            ["no memory is left", "it takes more pages than can be noted"]
            "the region touches more than the machine can hold twice",
            "use a smaller input";
        E3311 "memory at two addresses"
            ["it takes memory that is mapped at two addresses, to write it"]
            "a write at one address would be missed at the other",
            "no remedy";
        E3312 "there is no /proc"
            ["cannot list /proc/...", "cannot read /proc/..."]
            "the program was started in a sandbox without `/proc`",
            "start it outside";
        E3313 "the capture cannot be kept"
            ["cannot keep a capture: ..."]
            "the message gives it: the disk, or a library whose name is not UTF-8",
            "remove that cause and capture again";
    }
}
