//! Messages of this stage: see [`super`].

use crate::entry::stage;

stage! {
    "Check, select, predict, report, results" {
        E6001 "no profile in the store"
            ["there is no profile in ..."]
            "the command needs to know where the time goes",
            "`cere profile -- ./app input`",
            "there is no profile in .cere: run `cere profile -- ./app input` first, or name the store with --store";
        E6002 "the profile is of another build"
            ["the profile in ... is of another build than the last one"]
            "you built again",
            "profile again",
            "the profile in .cere is of another build than the last one (other@j.c:4 is not in it): run `cere profile -- ./k` again";
        E6003 "no codelets of the build"
            ["the store ... has no codelets of the current build and of ..."]
            "none was captured in the profile's command",
            "`cere capture -- ./app input`, or profile the command that has codelets";
        E6004 "no energy is known"
            ["no region's energy is known ..."]
            "no record of `cere replay --energy` at the build's flags on this machine",
            "`cere replay '*' --energy`";
        E6005 "codelets of another command"
            ["left out ... of another command, ..."]
            "the profile is of another command, or of another directory",
            "`cere profile` with the command to work on";
        E6006 "codelets of other input"
            ["left out ... of the same command with other input ..."]
            "a file that the command names, or its standard input, has changed since the capture",
            "capture again";
        E6007 "codelets of older builds"
            ["left out ... of older builds: ..."]
            "you built again",
            "capture again; `cere codelets --prune` removes them";
        E6008 "another build of other units"
            ["... of another build of ... than the profile's"]
            "other units of the program were built again since the capture",
            "capture again if they decide what the region works on";
        E6009 "sources changed since the build"
            ["... changed since the build: ..."]
            "a source or a header was edited after `cere instrument`",
            "build and capture again";
        E6010 "a source is gone"
            ["... is gone since the build"]
            "a source was removed or renamed",
            "nothing, if its code is still wanted; the report has no lines of it";
        E6011 "the codelet is of an older build"
            ["it is of an older build: ..."]
            "the codelet's code was built again since",
            "capture again";
        E6012 "too short under these flags"
            ["... counts as profiled (... % of the run): ..."]
            "under these flags one invocation is below the resolution of the clock",
            "nothing; the region's time stays that of the profile";
        E6013 "a damaged codelet"
            ["the codelet ... is damaged: remove it, and capture it again"]
            "its file was changed or cut off after it was captured",
            "remove it and capture it again";
        E6014 "the program is not run again"
            ["the program is not run again, so replays are compared with the times of its profile: ..."]
            "the program changed, or reads a pipe",
            "give it the same input, or accept it";
        E6015 "it had other invocations"
            ["... other invocations than in the profile's run, so its replays are compared with that: ..."]
            "the program does not do the same each time",
            "give it fixed input";
        E6016 "replays with another result"
            ["... regions have a codelet whose result is not the original's"]
            "verdict `different`",
            "see [Reading a verdict](verdict.md)";
        E6017 "not all classes have a codelet"
            ["class ... of ... has no codelet", "its codelets come from several captures"]
            "the region's invocations fall into classes, and a codelet stands for each",
            "capture the region again; `cere codelets --prune`";
        E6018 "nothing to compare with"
            ["its time in vivo is not known", "it has no codelet"]
            "the capture could not be matched with an invocation of the profile, or there is none",
            "capture the region again";
        E6019 "the coverage cannot be reached"
            ["no choice of regions covers ... % of the run: ... % is the most that those that may be chosen reach"]
            "regions that have no codelet, or too short ones, cannot be chosen",
            "a smaller `--coverage`",
            "no choice of regions covers 99.00 % of the run: 81.20 % is the most that those that may be chosen reach";
        E6020 "no regions were chosen"
            ["no regions were chosen"]
            "no region can be replayed",
            "capture longer regions";
        E6021 "no parallel region ran"
            ["no parallel region ran in the profiled run"]
            "the program has none, or they were compiled without -fopenmp",
            "build with `-fopenmp` under `cere instrument`";
        E6022 "no parallel region can be used"
            ["no parallel region has a codelet that can be used"]
            "each of them lacks codelets, or they cannot be replayed",
            "read the reasons above it";
        E6023 "a region counts as profiled"
            ["not predicted, counts as profiled (... % of the run): ..."]
            "the region has no usable codelets",
            "capture it";
        E6024 "the sequential part varies"
            ["the sequential part is not constant: ..."]
            "it changes with the number of threads",
            "expect a larger error";
        E6025 "more threads than processors"
            ["... threads are more than the ... processors that this process may run on: they take turns"]
            "the threads share processors",
            "expect a larger error";
        E6026 "more ranks and threads than processors"
            ["... ranks x ... threads are more than the ... processors ..."]
            "replays are of one rank alone",
            "fewer threads, or expect a larger error";
        E6027 "processes without a profile"
            ["... of the ... processes that the launcher started are not in the profile"]
            "they run no instrumented program, or were killed",
            "nothing; what they do does not count";
        E6028 "a rank without a profile"
            ["a run left no profile of rank ..., which the profile has"]
            "the rank failed, or fewer were started",
            "see the rank's own messages";
        E6029 "one rank of a program of MPI"
            ["the program uses MPI, and one rank of it ran"]
            "it was started without a launcher, or by one of one process",
            "`cere profile -- mpirun -n N ...`, and the same with `cere capture`";
        E6030 "other programs in other ranks"
            ["other programs than that of rank ... run in rank ..."]
            "the launcher starts several programs",
            "nothing; they count as profiled";
        E6031 "ranks that run other regions"
            ["rank ... spends ... in ... that rank ... does not run, as ...: they count as profiled..."]
            "codelets are of one rank",
            "`cere capture --rank`";
        E6032 "memory on other nodes"
            ["captured with ... threads, so where more (...) would have their memory on this machine's ... nodes is not known"]
            "first-touched memory of more threads was not seen",
            "capture with as many threads";
        E6033 "no flags for this processor"
            ["... lists no flags that this processor can run: one set a line is needed"]
            "each set needs instructions that this processor lacks, or the file is empty",
            "correct the list";
        E6034 "no replays to compare yet"
            ["no replays to compare with the run yet: cere check makes some"]
            "a comparison needs replays",
            "`cere check`";
        E6035 "records and codelets that are left out"
            ["... records come from other machines or other versions of cere: ..."]
            "it says what is done",
            "nothing";
        E6036 "the database is damaged"
            ["... is damaged: move it away, the next replay begins a new one"]
            "the database",
            "`sqlite3 FILE .recover` may save records";
        E6037 "the database is in use"
            ["... was in use by another process for ... s"]
            "a command that keeps records held it",
            "try again";
    }
    "Guard and compare" {
        E6101 "no tests of performance here"
            ["there is no folder cere-guard here or above"]
            "no region was added, or the directory is another one",
            "`cere guard add`, or `--tests DIR`",
            "there is no folder cere-guard here or above: `cere guard add REGION` makes one, --tests names another";
        E6102 "no tests in the folder"
            ["... holds no tests"]
            "all were removed",
            "`cere guard add`";
        E6103 "tests of another version"
            ["... has version ..., this cere reads ...: use the cere that made it, ..."]
            "another CERE made the folder",
            "use that one, or remove the folder and add the regions again";
        E6104 "a document that cannot be read"
            ["... is not valid"]
            "an unknown key, or a limit that is no number",
            "the message names line and key",
            "guard.toml is not valid: unknown key `limt` at line 3";
        E6105 "limits of no test"
            ["guard.toml has limits for ..., and no test is called so"]
            "the region is gone or is called otherwise",
            "correct the name: `cere guard list`";
        E6106 "too large for a repository"
            ["... would take ... MB, more than ..."]
            "the codelets touch much memory",
            "capture an invocation with less memory, a smaller input, or `--max-size`";
        E6107 "a codelet from elsewhere"
            ["... was not captured from a build of the store ..."]
            "the codelet is from elsewhere, so that its source cannot be compiled",
            "build and capture here";
        E6108 "sources outside the repository"
            ["... of its sources are not in ..."]
            "a checkout elsewhere has them not",
            "put them into the repository, or at the same place wherever it runs";
        E6109 "even the captured code is not right"
            ["... is no test, as its replay is ..."]
            "even the captured code has another result",
            "see [Reading a verdict](verdict.md)";
        E6110 "files of two tests were exchanged"
            ["... holds a codelet of ..."]
            "files of two tests were exchanged",
            "add both regions again";
        E6111 "the baseline cannot be replayed"
            ["the baseline cannot be replayed, which is no fault of the sources"]
            "the codelet cannot run on this machine",
            "the rest of the message";
        E6112 "a source that keeps changing"
            ["... was saved while it was compiled, ... times: ..."]
            "a program writes the source again and again",
            "try again when it rests";
        E6113 "the baseline has other counts"
            ["the baseline itself has other ... than when it was taken"]
            "another compiler, version of CERE, or geometry",
            "nothing; `cere guard accept` keeps those of now";
        E6114 "a baseline of another processor"
            ["the baseline was taken on another processor"]
            "baselines are compared on the machine at hand",
            "nothing: both codes are measured here";
        E6115 "a result that is not accepted"
            ["its result is ...: ... capture the region again"]
            "`cere guard accept` met code with another result",
            "if it is the right one: capture and add the region again";
        E6116 "a side of a comparison that means nothing"
            ["...: captured, sources, flags:FLAGS, ... is needed"]
            "a side of `cere compare` is none of these",
            "name one of them";
        E6117 "no region in common"
            ["no region of ... was captured in ..."]
            "the two stores have no region in common",
            "capture the same regions in both";
        E6118 "no replay in common"
            ["the two have no replay in common"]
            "records of other files or options",
            "replay the same `.codelet` files with the same options on both";
        E6119 "records are compared with records"
            ["records are compared with records: ...", "... holds records of replays: they are compared with records, ..."]
            "one side is a file of records, the other is not",
            "name a file of `cere results --json` or a store on both sides";
        E6120 "a store without codelets"
            ["... is no store with codelets: cere capture takes some"]
            "nothing was captured there, or it is another directory",
            "`cere capture` there";
        E6121 "git failed"
            ["git ... in ...: ...", "cannot run git: ..."]
            "git's own words follow",
            "correct the commit, or install git; or name a checkout by `dir:TREE`";
    }
    "Count" {
        E6201 "an unknown geometry"
            ["--geometry ...: it is neither here, none, one of ..., nor a file"]
            "the name is not known",
            "take one of those names, or give a JSON file",
            "--geometry larg: it is neither here, none, one of zen4, skylake, nor a file";
        E6202 "the counted code stopped writing"
            ["the counted code of ... stopped writing before the region ended"]
            "the region closed the descriptor that counts go to, or ended the process",
            "a region that closes descriptors that it did not open cannot be counted";
        E6203 "the stream of counts is damaged"
            ["the stream of the counted code is wrong at byte ..."]
            "the region wrote over the buffer, or a signal handler with counted code interrupted a counter",
            "replay it: if that is exact, report this as a bug";
        E6204 "two counted runs differ"
            ["two counted runs of ... differ"]
            "its work depends on more than captured memory",
            "see whether `cere replay` reports repetitions that differ";
        E6205 "no counted code"
            ["... has no counted code"]
            "no function of the region's units was compiled",
            "report this as a bug";
        E6206 "counts that are too large"
            ["... exceed 64 bits"]
            "the codelet executes too much for a counter",
            "capture a shorter invocation";
        E6207 "the program did not enter it so often"
            ["the counted program did not enter it so often"]
            "the program took another way this time, or the region is in a shared library",
            "run `cere profile` and `cere capture` again with the same input; libraries are not counted in the program";
        E6208 "the invocation did not return"
            ["the invocation did not return in the counted program"]
            "an exception left it, or it ended the program",
            "`cere count` counts it in the replay";
        E6209 "the machine has no hardware counters"
            ["no hardware counter works on this machine: ... the kernel has no ... here ..."]
            "a virtual machine without counters",
            "pass them on (QEMU: `-cpu host,pmu=on`), run on the hardware itself, or leave `--hardware` out";
        E6210 "hardware counters are not allowed"
            ["no hardware counter works on this machine: ... the kernel refuses ..."]
            "`perf_event_paranoid` is above 2, or a container refuses the call",
            "`sysctl kernel.perf_event_paranoid=2`, CAP_PERFMON, or a seccomp profile that allows `perf_event_open`";
        E6211 "the kernel has no hardware counters"
            ["no hardware counter works on this machine: ... this kernel, or this container, has no perf_event_open ..."]
            "it was built without, or the call is filtered",
            "a kernel with `CONFIG_PERF_EVENTS`";
        E6212 "counters were shared"
            ["...: counted for ... % of the time, the value is scaled"]
            "others use the processor's counters",
            "stop other profilers; `sysctl kernel.nmi_watchdog=0`";
        E6213 "an empty region could not be counted"
            ["...: what entering the region costs could not be counted and is not subtracted"]
            "the same, for the empty region",
            "stop other profilers; `sysctl kernel.nmi_watchdog=0`";
        E6214 "the counters cannot be switched"
            ["the kernel refuses to switch the hardware counters"]
            "the region closed their descriptors",
            "a region that closes descriptors that it did not open cannot be measured";
        E6215 "a replay without counters"
            ["... cannot be started with the kernel's counters, or they cannot be read"]
            "the kernel's limit of descriptors or counters",
            "see the reason; raise `ulimit -n`";
        E6216 "the counted replay ended in another state"
            ["hardware counters: the measured replay ended in another state"]
            "the result depends on more than captured memory",
            "see [verdict](verdict.md)";
        E6217 "metrics need caches"
            ["--geometry none: the metrics need ... caches; take here, a name or a file"]
            "`cere metrics` simulates caches",
            "leave `--geometry` out";
        E6218 "traffic needs caches"
            ["--geometry none: traffic needs ... caches; take here, a name or a file"]
            "`cere roofline` simulates caches",
            "leave `--geometry` out";
        E6219 "the machine was not measured"
            ["this machine was not measured, so that its roofs are not known: ..."]
            "`cere roofline` needs peaks and bandwidths",
            "`cere machine`, or `--machine FILE`";
        E6220 "not a measurement of a machine"
            ["--machine ...: it is no measurement of ...", "... it has version ..."]
            "the file is something else, or of another version of CERE",
            "measure again with `cere machine`";
        E6221 "neither peaks nor bandwidths"
            ["the measurement of ... has neither peaks nor bandwidths"]
            "they could not be measured",
            "run `cere machine` again";
        E6222 "the kernel cannot be built or captured"
            ["the kernel ... cannot be built: ...", "... cannot be captured: ..."]
            "the compiler's message, or the program's, follows",
            "correct the source, or the program, as the compiler's words say";
        E6223 "above its roof"
            ["it is above its roof, by ..."]
            "noise, a roof that was measured too low, or hardware that moves less than simulated",
            "`--fresh`; measure the machine again";
        E6225 "llvm-mca of another version"
            ["llvm-mca-22 printed what cannot be read (...)"]
            "it is another version's",
            "install LLVM 22's";
        E6226 "a processor that llvm-mca does not know"
            ["llvm-mca-22 knows no processor ..."]
            "`--model` of `cere asm` names another",
            "take a name that the line in the message lists";
        E6227 "no debug information"
            ["no instruction has a line: ..."]
            "the codelet is from elsewhere and was built without `-g`, or its units are of an older CERE",
            "build with `cere instrument` again, or with `-g`";
        E6228 "sources are gone"
            ["... gone since the build, so that lines have no text: ..."]
            "the sources were moved or removed",
            "put them back, or build again";
        E6229 "lines may be others"
            ["... changed since the build, so that the lines may be others ..."]
            "the sources were edited",
            "build and capture again";
        E6230 "a codelet that is not listed"
            ["not listed: ..."]
            "the code of one codelet could not be listed, with its reason; the others are",
            "as the reason says";
        E6231 "a codelet that is not measured"
            ["not measured: ..."]
            "the metrics of one codelet failed, with its reason; the others are measured",
            "as the reason says";
        E6232 "no memory for counts"
            ["no memory for the buffer of a counted thread"]
            "the limit on address space is too small",
            "raise `ulimit -v`";
    }
    "Subset and measure" {
        E6301 "more clusters than points"
            ["... points cannot make ... clusters: take --clusters ... or fewer"]
            "there are fewer regions than clusters",
            "ask for fewer clusters";
        E6302 "an unknown metric"
            ["... is no metric and no group of them: ..."]
            "`--metrics` names something else",
            "`cere metrics --list`",
            "wights is no metric and no group of them: `cere metrics --list` shows them; all, counts and thesis are sets";
        E6303 "metrics that do not distinguish"
            ["none of the chosen metrics tells the ... points apart: ..."]
            "all are constant or have no value",
            "choose others with `--metrics`";
        E6304 "a region that is not covered"
            ["... count as uncovered", "... counts as uncovered", "not timed: ..."]
            "a codelet of the region cannot be replayed, or is too short; the reason follows",
            "nothing, or capture it again";
        E6305 "a subset of one program"
            ["one program only: ..."]
            "nothing was compared with other programs",
            "name more stores";
        E6306 "not an archive of a subset"
            ["... is not an archive that cere subset wrote", "... is cut off within ...: copy it again"]
            "another file, or a part of one",
            "copy the archive again";
        E6307 "an archive that was changed"
            ["the subset was changed after it was made: ...", "... is damaged: its checksum is not that of its name"]
            "the archive was edited or damaged",
            "make it or copy it again";
        E6308 "not a measurement of a subset"
            ["... is no measurement of a subset: cere measure writes one"]
            "another file",
            "name one that `cere measure -o` wrote";
        E6309 "results of different subsets"
            ["... is a result of another subset: ...", "... are results of different subsets: ..."]
            "the codelets are others",
            "measure one subset on all machines";
        E6310 "points without a time"
            ["... has no time of ... of ... points: they are left out"]
            "some codelets failed there, or the archive did not hold all",
            "measure an archive of `cere subset --whole`";
        E6311 "no linked replay in the archive"
            ["the archive has no linked replay of it: ..."]
            "it was made without `--prebuilt`",
            "`cere subset --prebuilt`, or measure without `--prebuilt`";
        E6312 "options that linked replays exclude"
            ["--prebuilt runs code that is linked already: ..."]
            "linked replays are of the code as built",
            "leave out `--flags`, or `--prebuilt`";
        E6313 "times of another warm-up"
            ["the reference times of the subset were taken with another --warmup: leave it out"]
            "times of two states of the caches do not compare",
            "leave out --warmup";
        E6314 "one measurement twice"
            ["... is the same measurement as ...: name each once"]
            "a file twice, or its copy",
            "name it once";
        E6315 "one store twice"
            ["the store ... is named twice"]
            "one program would count twice",
            "name it once";
        E6316 "a package is missing in the archive"
            ["... lacks the package of ...: make it again with cere subset"]
            "the archive was edited",
            "make the archive again with `cere subset`";
        E6317 "no interval"
            ["no interval: without a measured check ..."]
            "the distance of members from their representatives is unknown",
            "`--checks 1` or more when the subset is made";
        E6318 "two kinds of machine"
            ["two kinds of machine took part, ... and ...: ..."]
            "a measurement is of one kind of processor",
            "measure each alone";
        E6319 "nothing could be measured"
            ["no codelet could be measured: ..."]
            "all replays failed; the first reason follows",
            "see [Replay](#replay)";
        E6320 "chunks without a result"
            ["... of ... chunks have no result (...): the same command goes on with them"]
            "a node was lost, or a worker failed",
            "start the same command again";
        E6321 "the directory has another job"
            ["... has another job (...)"]
            "the directory `FILE.work` belongs to another measurement",
            "finish that one, remove the directory, or take another `-o`";
        E6322 "too few measurements to rank"
            ["--rank compares several measurements: ..."]
            "one file only",
            "name more with `--machine`";
        E6323 "a program of the subset failed"
            ["--run ...: ... failed: ..."]
            "the command ended with another status than 0",
            "correct the command";
        E6324 "nothing to rank"
            ["there is nothing to rank"]
            "no measurement has a time",
            "measure a subset first";
        E6325 "codelets of a result"
            ["the replay's result is ..."]
            "a replay with another result is not timed",
            "replay it and read the [verdict](verdict.md)";
        E6326 "too little to train metrics"
            ["metrics are trained on machines where all codelets were measured: ...", "... points were measured on all machines: ..."]
            "choosing metrics needs two points that all machines have",
            "name more measurements by `--machines`";
        E6327 "nothing is timed under an emulator"
            ["this is an emulator of ... on a machine of ...: ..."]
            "`cere measure` runs under qemu-user, whose speed is not that of a machine",
            "measure on such a machine, or model one: `cere measure --model CPU`";
        E6328 "a processor that is not modelled"
            ["llvm-mca-22 has no model of a processor ...", "how fast ... runs is not known: ...", "...: ... is no architecture that is modelled"]
            "LLVM has no model of that name, or the frequency has to be said",
            "`llvm-mca-22 -mtriple=aarch64 -mcpu=help` lists names; `--hertz 3e9`";
        E6329 "a codelet that is not modelled"
            ["no model of it for ...", "it runs in ... threads, and the model knows one", "the modelled code's result is ...", "the model of ... knows ... of its executed instructions, ...", "it calls ... once every ... cycles, ...", "none of its code was counted: ..."]
            "the model knows one thread and the codelet's own code alone",
            "nothing; it is left out of the file, by name";
    }
    "Tune" {
        E6401 "no region that matters has a codelet"
            ["no region that matters has a codelet", "... has no codelet"]
            "only codelets can be tuned",
            "`cere capture -- PROGRAM ARGUMENTS`";
        E6402 "a region that cannot be tuned"
            ["... cannot be tuned: ...", "... cannot be replayed as built: ..."]
            "its replay as built fails or has another result",
            "replay it and read the verdict";
        E6403 "too short to be timed"
            ["its invocations are too short to be timed one by one"]
            "one invocation is below the resolution of the clock",
            "tune the region around it";
        E6404 "no region can be tuned"
            ["no region can be tuned: see the reasons above"]
            "none has a codelet that replays exactly as built",
            "read the reasons above it";
        E6405 "an unknown goal"
            ["... is no goal: time, energy or edp ..."]
            "the goal is a word",
            "take one of them";
        E6406 "an unknown space of flags"
            ["there is no space ..."]
            "neither a known space nor a file has this name",
            "a name from `levels`, `codegen`, `passes`, `full`, or a file",
            "there is no space lvels: name one of levels, codegen, passes, full, or a file";
        E6407 "a space with an error"
            ["line ... of the space: ...", "the space is empty: ..."]
            "an error in your file",
            "correct that line",
            "line 3 of the space: \"O3\" is no flag; a flag starts with a dash";
        E6408 "a folder that is not empty"
            ["... is not empty: name a folder that does not exist yet, or remove it"]
            "`cere export` and `cere reduce` write into new folders",
            "name another one";
        E6409 "more than one codelet"
            ["... names ... codelets: name one of ..."]
            "`cere export` and `cere reduce` take one codelet",
            "name it as REGION:INVOCATION";
        E6410 "not to be seen alone"
            ["... is not to be seen in the codelet's IR for folders ..."]
            "the flags are right or fast there: variables have external names before optimisation",
            "`cere replay --flags` shows whether replays have it";
        E6411 "a reference that is not exact"
            ["under ... the whole codelet is ...: a reference has to be exact"]
            "the build's flags, or -O0, do not give the captured result",
            "name flags by `--baseline` that do";
        E6412 "a space that changes values"
            ["the space ... has nothing to try: its flags change values (--change-values)"]
            "each choice in it changes floating-point results",
            "add `--change-values`, or another space";
        E6413 "flags that the processor cannot run"
            ["... is not tried: this processor cannot run it"]
            "it says what is done",
            "nothing";
        E6414 "a flag that breaks code"
            ["... of ... variants with ... failed, ...: nothing with it is chosen"]
            "a flag that breaks code",
            "nothing";
        E6415 "a search of another version"
            ["the earlier search of ... was made by another version of cere: start again with --again"]
            "its journal cannot be read by this version",
            "`--again`";
        E6416 "no winner was confirmed"
            ["the budget was over before its best variants were measured again, so no winner was confirmed"]
            "the last part of a budget is for confirming winners",
            "a longer `--budget`; the search continues";
        E6417 "nothing is faster"
            ["nothing is surely faster than the code as built"]
            "no winner was confirmed",
            "a larger budget or another space";
        E6419 "machines of several kinds"
            ["processors of ... kinds take part (...)"]
            "machines of `--on` differ",
            "for your information; to tune for one kind, name a partition or hosts of that kind";
        E6420 "an option of many machines"
            ["--chunk goes with --on"]
            "chunks are for many machines",
            "name a place",
            "--chunk goes with --on";
        E6421 "not a budget"
            ["... is no budget: give a number of evaluations (400), or a time (90s, 30m, 2h)"]
            "the word is neither a number nor a time",
            "correct it",
            "\"soon\" is no budget: give a number of evaluations (400), or a time (90s, 30m, 2h)";
        E6422 "a codelet of a profile-guided build"
            ["... a folder would need the profile, which is not part of a codelet; ..."]
            "the flags read a file of counts",
            "capture a build without it";
        E6423 "no time to reduce by"
            ["the whole codelet's time cannot be measured under both sets of flags"]
            "a replay under one of them fails or is too short",
            "`cere replay --flags` shows why";
        E6424 "seen once and not again"
            ["what is to be kept was seen once and not again: ..."]
            "it is not deterministic, or the time varies too much",
            "a quieter machine, or a larger `--ratio`";
    }
    "Hybrid" {
        E6501 "options without an effect"
            ["... had no effect, because no program was run"]
            "these options are about runs",
            "name the program and its arguments after `--`";
        E6502 "nothing is tuned"
            ["nothing in ... is tuned", "there are no choices to link"]
            "no search has ended in this store, and none is named",
            "`cere tune`, or `--flags-file`";
        E6503 "the program is not known"
            ["which program is meant? Name it after --"]
            "the store has no profile",
            "name it";
        E6504 "the program is not of this build"
            ["... holds no code that cere instrument built", "... holds the unit ..., which ... does not know", "... has no link of ... recorded"]
            "the program is of another build",
            "build it again with `cere instrument`";
        E6505 "the link cannot be made again"
            ["..., an input of the link of ..., is not there any more", "the link of ... would not make it again: ..."]
            "an object or archive was removed or rebuilt",
            "build it again with `cere instrument`";
        E6506 "several units in one object"
            ["... holds several units, linked into one object (ld -r): those cannot be replaced singly"]
            "the build uses `ld -r`",
            "no remedy";
        E6507 "the code is in another image"
            ["its code is not in ...: name the file that holds it by --image"]
            "the region is in a shared library",
            "`--image`";
        E6508 "a loop that cannot have flags"
            ["the loop ... is no region, so that it cannot have flags of its own"]
            "it was not outlined, so it has no code of its own",
            "remove it from the flags file";
        E6509 "no parallel region"
            ["... is no parallel region, so that it forks no team"]
            "`threads` or `bind` for a loop",
            "leave them out";
        E6510 "an error in the flags file"
            ["the flags file ... has an error", "... has flags for ... twice", "... which this build does not have"]
            "the file was edited, or is of another build",
            "correct the file, or tune again";
        E6511 "output that differs from run to run"
            ["the output of ... differs from run to run (...)"]
            "lines or words differ in number",
            "`--ignore TEXT`, or have the program print none";
        E6512 "words that differ from run to run"
            ["... words of the output differ from run to run and are not compared, as in: ..."]
            "it says what is done",
            "nothing";
        E6513 "a rank that did not answer"
            ["rank ... of ... ran without saying whether it is the other build of ..."]
            "the rank has not the environment of this command, or does not see the store",
            "see [what the environment needs](tutorial-mpi.md#what-the-environment-needs)";
        E6514 "a rank that ended otherwise"
            ["in rank ... it ..., and the plain build ..."]
            "a process of the rank ends with another status, or is killed",
            "nothing: the build is refused";
        E6515 "no output to compare"
            ["there is no output to compare..."]
            "it prints nothing, or a script keeps what it prints",
            "have it print its result";
        E6516 "it did not run in a rank"
            ["it did not run in rank ..."]
            "the hybrid did not run in a rank in which the plain build did",
            "see the rank's own messages";
        E6517 "a program that does not succeed each time"
            ["...: give it a run that succeeds", "... it does not do the same each time"]
            "the program's exit status is not 0, or varies",
            "other arguments";
        E6518 "more runs are needed"
            ["... runs are inconclusive about the hybrid's gain: adding runs"]
            "it says what is done",
            "nothing";
        E6519 "no decision about the gain"
            ["inconclusive: after ... runs the hybrid has ... times the plain build's speed, ..."]
            "the gain is smaller than the noise",
            "a quieter machine, or more `--rounds`";
        E6520 "no gain in the program"
            ["the linked program does not surely gain", "it does not gain in the linked program"]
            "the region keeps the flags of the build",
            "nothing";
        E6521 "another output"
            ["with its flags the output is another", "together their output is another"]
            "the flags change the result",
            "nothing; they are not used";
        E6522 "others lose more"
            ["with its flags other regions lose more than it gains"]
            "code that moves changes other regions",
            "nothing";
        E6523 "one level for all code is best"
            ["all of the program with ... is faster"]
            "one level for all code is best",
            "nothing";
        E6524 "a file that cannot be written there"
            ["the hybrid binary and the flags file cannot both be ...", "... names the program itself", "... is a directory: name a file"]
            "one file would overwrite the other",
            "another file name";
        E6525 "no other build can be run"
            ["no other build of ... could be run: ..."]
            "the launcher does not start the program itself, or hands on another environment",
            "have it pass on LD_PRELOAD and what begins with CERE_";
    }
}
