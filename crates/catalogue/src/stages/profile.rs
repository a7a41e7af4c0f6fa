//! Messages of this stage: see [`super`].

use crate::entry::stage;

stage! {
    "Profile" {
        E2001 "the program is not there"
            ["there is no program ...", "there is no program ... in PATH"]
            "wrong path",
            "correct it; `./program` for one in this directory",
            "there is no program ./wave: build it, or correct the path";
        E2002 "not a program of this machine"
            ["... is not a program of this machine"]
            "another architecture, or no ELF file",
            "build it here with `cere instrument`",
            "run.sh is not a program of this machine: build it here with `cere instrument -- <build command>`";
        E2003 "the program was not built under cere instrument"
            ["... is not instrumented"]
            "the plain compiler built it",
            "build it again with `cere instrument`",
            "./wave is not instrumented: build it again with `cere instrument -- <build command>`";
        E2004 "the program is linked statically"
            ["... is linked statically, so the preload library cannot enter it"]
            "`-static`",
            "link without it",
            "./wave is linked statically, so the preload library cannot enter it: link it without -static";
        E2005 "the program is of another build"
            ["... holds the unit ..., which ... does not know: it is of another build"]
            "the program is not of the build in this store",
            "build it again, or name its store with `--store`",
            "./wave holds the unit 1f3a, which .cere does not know: it is of another build; build it again with `cere instrument`, or name its store with --store";
        E2006 "no instrumented code was loaded"
            ["... ended with status ... without a profile: ..."]
            "no instrumented image was loaded, or the preload library failed",
            "see the messages above it; build with `cere instrument`";
        E2007 "the profiled program did not succeed"
            ["the profiled run of ... ended with ..."]
            "the program returned a status other than 0, or a signal ended it",
            "nothing, if that is how it ends; else see its own messages";
        E2008 "the profile of a program that failed"
            ["... ended with status ...; the profile up to there is in ..."]
            "the program failed",
            "the profile is kept and valid up to there",
            "./wave ended with status 3; the profile up to there is in .cere/profile.json";
        E2009 "the preload library failed"
            ["the preload library failed at start; the program runs unprofiled"]
            "see the message before it",
            "as that message says";
        E2010 "too little room for a run"
            ["... has ... bytes free, a run needs ...: make room, or name another --store"]
            "the disk is full",
            "make room",
            ".cere/tmp has 8192 bytes free, a run needs 33554432: make room, or name another --store";
        E2011 "the disk was full in the run"
            ["the disk has no room for a profile in ...", "the disk that holds the store was full: ..."]
            "the disk filled while the program ran; the program itself was not disturbed",
            "make room and profile again";
        E2012 "other processes have no profile"
            ["... more processes of the run were instrumented; the profile is of the main one"]
            "the program starts processes",
            "profile the process that matters";
        E2013 "time in other threads"
            ["... % of the processor time (... of ... s) is in threads other than the first: ..."]
            "threads outside the OpenMP team do that part of the work",
            "nothing: their regions are captured like the first's";
        E2014 "too many threads at once"
            ["... invocations are not timed: they came in threads beside ... others"]
            "more threads run at once than a profile has room for",
            "nothing";
        E2015 "too many regions"
            ["... invocations of regions for which there was no room are not timed"]
            "more regions than the profile can hold",
            "nothing";
        E2016 "recursion too deep for a probe"
            ["... invocations inside ... active ones, or more than there was room for, ..."]
            "deep recursion",
            "nothing; the time counts for the caller";
        E2017 "a region in a signal handler"
            ["... invocations in signal handlers came while a probe was at work ..."]
            "a handler has regions",
            "nothing";
        E2018 "probes take much of the run"
            ["probes took ... % of the run. That is subtracted, but not their cost to the code around them, ..."]
            "the regions are short; one run does not show what probes cost the code around them",
            "`cere profile --runs 3`";
        E2019 "what the probes cost"
            ["... probes ran, and each cost ... cycles more ..."]
            "for your information: this is subtracted",
            "nothing";
        E2020 "runs that differ"
            ["the runs differ: ... had other invocations in another run"]
            "the program does not do the same each time",
            "give it fixed input; times are of one run there";
        E2021 "loops too short for probes"
            ["too short to be captured, and entered so often that probes slow the program down: ..."]
            "these loops take fewer than 2000 cycles an invocation",
            "a clean build with `cere instrument` leaves them in place; with `--all-loops` it does not";
        E2023 "nothing to split"
            ["--split ...: this loop has no loop inside that is not a region already; ...", "--split ...: this is a parallel region, ..."]
            "there is nothing to split",
            "`cere regions` lists what is inside; capture that",
            "--split solve@wave.c:61: this loop has no loop inside that is not a region already; loops of functions that it calls are regions of their own (`cere regions` lists them)";
        E2024 "a recorded command does not work any more"
            ["... could not be compiled again as in the last build ...", "... could not be linked again ...", "... was compiled from standard input, which is gone: ..."]
            "`--split` and `--functions` repeat a recorded command, and what that needs is not there any more",
            "build again with `cere instrument`: the choice is kept";
        E2025 "the program holds an old copy of the code"
            ["... was compiled again with the regions that were asked for, but ... still holds it as it was: ..."]
            "it is linked from an archive or a copy of the object that the build did not make again",
            "remove that copy or clean the build, and build again";
        E2026 "a split loop is gone"
            ["the build has no loop of ... at ... any more, which --split named: ..."]
            "its line has changed",
            "name the loop anew";
        E2028 "no function of that name"
            ["--functions ...: the build has no function of that name ..."]
            "no unit of the build so far defines one; the choice is kept for later builds",
            "correct the name, or go on building; `--functions ''` forgets all choices";
        E2029 "a function without its code"
            ["--functions ...: the build only declares ...; ..."]
            "its code is in a library, or of a compile without wrappers",
            "compile that with `cere instrument` too";
        E2030 "the compiler dropped the function"
            ["--functions ...: the compiler dropped the function, ..."]
            "nothing uses it",
            "nothing";
        E2031 "a function that cannot be a region"
            ["... is no region as a whole: ...; its loops are regions as before"]
            "[a reason](cannot.md#functions-that-stay-in-place)",
            "choose its callers, or what it calls";
        E2033 "times scatter"
            ["the invocations of ... regions fall into ... classes by their times: a second run shows which of them are noise"]
            "times scatter in a long program",
            "nothing; a second run follows";
        E2034 "the program filters system calls"
            ["the program puts a system call filter (seccomp) in force, ..."]
            "nothing after that point is timed or captured",
            "run the program without the filter";
        E2035 "interpreted code has no regions"
            ["... without a profile: .... About ...: code in ... is interpreted, so it has no regions", "... is made while it runs, ..."]
            "the program is an interpreter or a virtual machine",
            "instrument what it loads: see [other languages](languages.md#interpreters-and-virtual-machines)";
        E2036 "a launcher started CERE"
            ["this is rank ... of ... that a launcher started"]
            "each rank would run the program by itself",
            "put the launcher behind CERE: `cere profile -- mpirun -n 4 ./app`";
        E2037 "an object file is no program"
            ["... is an object file: name the program that it is linked into"]
            "it was compiled, not linked",
            "name the program that it is linked into",
            "k.o is an object file: name the program that it is linked into";
        E2038 "no such rank"
            ["no process of the run had the rank ..., or it ran no region"]
            "the launcher started fewer processes, or the rank runs other code",
            "`cere profile` without `--rank` shows the ranks: name one of them";
        E2039 "other processes than before"
            ["the process that was profiled before (...) is not in this run: ..."]
            "the program starts other processes, or gives them other arguments",
            "profile again; if its processes differ by chance, name what tells them apart by `--process-key`";
    }
}
