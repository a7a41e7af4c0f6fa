//! Messages of this stage: see [`super`].

use crate::entry::stage;

stage! {
    "Replay" {
        E5001 "the region has no codelet"
            ["the region ... has no codelet: cere capture ... takes one"]
            "no invocation of it was captured yet",
            "run the command that the message names; on a terminal CERE offers to do it",
            "the region solve@wave.c:61 has no codelet: `cere capture 'solve@wave.c:61' -- ./wave` takes one";
        E5002 "the loop is no region"
            ["the loop ... is no region, so that there can be no codelet of it: ..."]
            "it was not outlined",
            "see [the reasons](cannot.md#loops-that-stay-in-place)",
            "the loop init@wave.c:20 is no region, so that there can be no codelet of it: setjmp in the loop";
        E5003 "codelets of an older build were left out"
            ["left out ... of an older build (...)"]
            "a pattern met codelets of older builds",
            "name one exactly, or remove them with `cere codelets --prune`";
        E5004 "a damaged package"
            ["... is damaged: its checksum is ..., ... was recorded"]
            "the package is not complete",
            "copy or capture it again",
            "the package is damaged: its checksum is 9a3c, 55d0 was recorded";
        E5005 "a package that CERE did not make"
            ["the manifest is not one that a capture writes: ..."]
            "the package was changed or made by other means",
            "take it from its source again";
        E5006 "no room to unpack"
            ["... has room for a package of ... bytes, half of what is free"]
            "the package is too large for the disk",
            "make room, or name another `--store`";
        E5007 "nowhere to keep unpacked packages"
            ["neither the store nor the user's cache directory is writable: using ... for this replay alone"]
            "both directories refuse new files, so the unpacked package is not kept",
            "nothing, or give a writable `--store`";
        E5008 "a package of another machine"
            ["... was captured on ..., this machine is ...", "... was captured with pages of ... bytes, ..."]
            "another architecture or page size",
            "replay it on such a machine";
        E5009 "the processor lacks instructions"
            ["... was built with ... and captured on ...; this processor lacks ..."]
            "missing instructions",
            "replay elsewhere, or build for fewer instructions and capture again",
            "solve@wave.c:61:1 was built with -march=native and captured on Xeon; this processor lacks avx512f: replay it on one that has it, or build the program for a smaller set of instructions and capture again";
        E5010 "a shared library is missing"
            ["... needs ..., which this machine does not have in its library directories"]
            "a shared library is missing",
            "install it";
        E5011 "the flags need another library"
            ["... needs ...: neither its libraries nor the captured image define that (do the flags call ...)"]
            "the flags ask for a runtime library that the program does not have",
            "use other flags";
        E5012 "the libraries are others"
            ["... neither its libraries nor the captured image define that (a library here is another ...)"]
            "the codelet is of an older version, or this machine has other libraries",
            "build and capture again";
        E5013 "a variable that the program does not have"
            ["the region uses ..., which the captured image does not have", "the region uses ..., a thread-local variable of another image ..."]
            "the recompiled code took a path that the program does not have",
            "compare with the build's own flags";
        E5014 "a flag that has no effect on kept code"
            ["the flag ... cannot be used on kept code: ..."]
            "flags for the front end, the preprocessor, the linker or another target have no effect on IR",
            "leave the flag out",
            "the flag -DN=100 cannot be used on kept code: it is for the preprocessor";
        E5015 "no page trace"
            ["... has no page trace to warm up by"]
            "captured with `--no-trace`",
            "capture again, or `--warmup working-set`";
        E5016 "no energy counters"
            ["this machine shows no energy counters: ..."]
            "virtual machines hide them; else the kernel's module is missing",
            "measure on the machine itself, or `modprobe intel_rapl_msr`";
        E5017 "energy counters of root alone"
            ["... cannot be read by this user: run as root, or let everybody read energy counters: ..."]
            "Linux keeps them from other users",
            "the command in the message, once after each start of the machine";
        E5018 "energy counters that stand still"
            ["the energy counters ... did not move while ... s of work ran"]
            "counters that count nothing, as some virtual machines have",
            "measure elsewhere";
        E5019 "an energy counter that cannot be used"
            ["the energy counter ... is not there any more", "the energy counter ... holds ..., not a number of microjoules ..."]
            "its module was removed, or is broken",
            "load it again; measure without energy";
        E5020 "an operand that is not there"
            ["the operands of ... cannot be placed: it has no operand ..."]
            "the name means nothing in the package",
            "take one of `--operand list`, or a range of addresses";
        E5021 "several operands of one name"
            ["... names ... operands: say which with ..."]
            "several variables have the name",
            "take one of the names in the message";
        E5022 "an operand that the region does not touch"
            ["... was not in memory at entry, or the invocation did not touch its pages"]
            "the region does not use the operand",
            "leave it out";
        E5023 "two operands share lines"
            ["... and ... overlap", "... and ... lie on the same cache line", "and a line is in one state only"]
            "two operands with different states have the same lines",
            "give both the same state, or name one";
        E5024 "the processor flushes no lines"
            ["this processor flushes no lines by address (clflush), ..."]
            "an operand is to be other than warm",
            "`--warmup cold` for all";
        E5025 "a warm-up without its option"
            ["--warm-to goes with --warmup cold"]
            "--warm-to says how far a cold cache is warmed, so it means nothing with another warm-up",
            "add `--warmup cold`",
            "--warm-to goes with --warmup cold";
        E5026 "no such processor"
            ["processor ... is not there for this process: it may run on ..."]
            "`--affinity` or `--places` names another processor",
            "correct it";
        E5027 "a codelet with code on its stack"
            ["... cannot be replayed: a unit of it passes procedures that use variables of the procedure around them ..."]
            "the compiler puts code on the stack; now refused at capture",
            "no remedy";
        E5028 "no room near the captured image"
            ["no free range of ... bytes within 2 GiB of the captured image ..."]
            "the addresses are taken",
            "replay on another machine";
        E5029 "the captured addresses are refused"
            ["the system refuses the captured addresses ..."]
            "this system has something there",
            "replay on another machine, or outside the container";
        E5030 "the kernel is too old for a replay"
            ["this kernel does not know MAP_FIXED_NOREPLACE (Linux 4.17 does)"]
            "old kernel",
            "use a newer one";
        E5031 "the replay took too long"
            ["the replay of ... ran longer than ... s..."]
            "the region waits for something that no replay has, or is long: the limit follows from its time in vivo, which the message says",
            "give a larger `--timeout`";
        E5032 "the captured program lacks a variable"
            ["the replay of ... does not end as in vivo (...): the region uses the variable ..., which the captured program does not have as such"]
            "the build's optimiser split, shrank or removed the variable",
            "replay with the build's flags; from another architecture, where it was captured";
        E5033 "the region left what was captured"
            ["the replay of ... failed (exit code ..."]
            "the region left what was captured: see below",
            "compare with a replay under the build's flags; the words behind `replay:` have an entry each, CERE-5101 to CERE-5116";
        E5034 "the replay crashed"
            ["the replay of ... was ended by signal ..."]
            "a crash of the runtime",
            "report it";
        E5035 "the sandbox ended the replay"
            ["the replay of ... was ended by the sandbox: ..."]
            "a limit of the sandbox",
            "`--no-sandbox` for a package that you trust";
        E5036 "the sandbox could not be set up"
            ["cannot confine ...: ..."]
            "the sandbox could not be set up",
            "`--no-sandbox` for a package that you trust";
        E5037 "the compiler refuses the code"
            ["... failed on ...: ..."]
            "the compiler refuses the IR under these flags",
            "use other flags";
        E5038 "no record of a replay"
            ["no record is kept of the replay of ..."]
            "the database cannot be written",
            "the result is valid; see the reason";
        E5039 "a replay measured nothing"
            ["the replay of ... measured nothing"]
            "no repetition was left after those that were disturbed",
            "replay it again, with more repetitions";
        E5040 "a function cannot run on the other architecture"
            ["... cannot be replayed on ...: ...", "the region reached ..., which cannot run on ... as it was captured on ...: ..."]
            "it holds what only the captured architecture has, or data that lies in memory otherwise there: long double, instructions by name, inline assembly, lists of arguments",
            "replay it where it was captured, or build without it (a portable path, another flag) and capture again",
            "sum8@norm.c:6:1 cannot be replayed on aarch64-linux-gnu: it uses long double, which has 80 bits on the captured architecture alone";
        E5041 "machine code of another architecture"
            ["the region called ...: machine code of ... without IR, which ... cannot run"]
            "a library of the program's own, or an object that the wrappers did not build, has no IR",
            "build it under `cere instrument` too, or replay where it was captured";
        E5042 "an architecture that CERE does not make code for"
            ["--target ... is not an architecture that CERE makes code for"]
            "the name is misspelt, or of a big-endian or another system",
            "take one that the message names";
        E5043 "no emulator"
            ["this machine does not run programs of ..., and ... is not there"]
            "programs of another architecture need an emulator",
            "install it (Debian: qemu-user), or name one with `--runner`";
        E5044 "the target's libraries are missing"
            ["... has no ...: the loader and the libraries of ... are not there"]
            "the system that programs of the target need is not there, or not all of it",
            "install it (Debian: libc6-arm64-cross), or name a directory with `--sysroot`";
        E5045 "the runtime for the target is missing"
            ["the runtime of replays on ... is missing (looked in ...)"]
            "this CERE was built for its own architecture alone",
            "run `make cross`, or install a CERE that has it";
    }
    "What the region did (exit code 4)" {
        E5101 "it touched memory that was not captured"
            ["the region read ...", "the region wrote ...", "which the captured invocation did not touch there: likely the recompiled region took another path or reads further"]
            "other flags change which memory is touched: a wider vector, a load ahead of its test",
            "replay with flags nearer to the build's";
        E5102 "it writes its own code"
            ["captured code cannot be written"]
            "the region changes its own code",
            "no remedy: use the build's flags";
        E5103 "it used a null pointer"
            ["a null pointer: likely a symbol or pointer that the package lacks"]
            "the package lacks what the pointer led to",
            "report it with the message";
        E5104 "it used memory that was never there"
            ["which was not mapped when the region was captured: likely a wild pointer"]
            "the region computed another address",
            "replay it with the build's flags: if that is exact, these flags break the code";
        E5105 "it jumped to code that was not captured"
            ["the region jumped to ...: code that the captured invocation did not execute and that the package holds no IR of"]
            "the recompiled region took another path",
            "replay with flags nearer to the build's";
        E5106 "it continued a context"
            ["the region jumped into ... (...) as it was built: these flags make other code of it"]
            "the region continues a coroutine or another context that was left before it, or jumps to a computed address",
            "replay it with the build's flags";
        E5107 "it jumped to a removed label"
            ["the region jumped to a label of ... (...) that the compiler has removed under these flags"]
            "a computed `goto` to a label that the optimiser found unreachable",
            "replay it with the build's flags";
        E5108 "it called a captured address"
            ["the region called ... at its captured address ...: the package's code does not lead there"]
            "the program keeps the function's address in another form (compressed, encrypted), so the packager did not find it",
            "replay it with the build's flags";
        E5109 "it jumped into a library"
            ["the region jumped to ..., in ...: no word of the captured memory led there when the package was made"]
            "the program keeps a pointer to a function of the library in another form than an address",
            "replay it with the build's flags";
        E5110 "the library is another"
            ["the libraries of this machine do not have that function", "this machine has another build of that library"]
            "another version of a library is installed here",
            "install the version of the captured program, or capture here";
        E5111 "an instruction that the processor does not have"
            ["the region executed an instruction at ... that this processor does not have (or a trap ...)"]
            "missing instructions, or undefined behaviour",
            "replay without `-march`; if it stays, the source lets the compiler remove code that is reached";
        E5112 "an address that is not aligned"
            ["the region used ... a non-canonical address, or one that is no multiple of the size that a vector instruction needs"]
            "other flags take data to be aligned further",
            "look for a cast to a type that needs more alignment than the data has; else leave out `-march`";
        E5113 "it trapped in arithmetic"
            ["the region divided by zero, or trapped in arithmetic"]
            "a division by zero, or a trap that the flags ask for (`-ftrapv`)",
            "replay it with the build's flags: if that is exact, these flags break the code";
        E5114 "it uses a stream of memory"
            ["the region uses a stream that was opened before it by open_memstream, fmemopen, fopencookie or popen"]
            "the stream's memory is the C library's, which a replay has anew",
            "see [What cannot be a codelet](cannot.md)";
        E5115 "it aborted"
            ["the region aborted: abort, std::terminate, or an exception that would have to pass captured code without IR"]
            "the recompiled region found something that its source does not allow",
            "replay it with the build's flags: if that is exact, these flags break the code";
        E5116 "the C library aborted"
            ["the C library aborted in the region: ..."]
            "the C library found its memory damaged; its own words follow",
            "replay it with the build's flags: if that is exact, these flags break the code";
    }
    "Notes under a replay" {
        E5201 "warmed up by itself"
            ["the package has no page trace: warmed up by a run over itself (working-set)"]
            "the caches are warm from the region itself, not from the program before it",
            "capture it again without `--no-trace`";
        E5202 "a page trace with a gap"
            ["the page trace is empty (...)", "the page trace has a gap: ..."]
            "the trace does not reach from its start to the entry; the reason stands in brackets",
            "nothing";
        E5203 "several runs share a reading"
            ["too short for the clock: ... runs share a reading, ..."]
            "one run is below the resolution of the clock: the time is a mean over N runs",
            "nothing";
        E5204 "too short, and timed singly"
            ["too short for the clock, and timed one by one all the same, ..."]
            "`--operand` excludes batches",
            "compare minima of many repetitions";
        E5205 "operands share lines with other data"
            ["... bytes beside ... are on its cache lines: ...", "... and ... share a cache line, ..."]
            "lines at the ends of operands hold other data too",
            "nothing";
        E5206 "a part of the operand was there"
            ["...: ... of ... bytes, those in memory at entry ..."]
            "the region touches a part of the operand",
            "nothing";
        E5207 "its energy is not known"
            ["its energy is not known: ...", "preparing a repetition takes much longer than the region: ..."]
            "the region is short beside what restores its state: its energy is lost in that, or known to the steps that the note names",
            "measure the energy of a longer region";
        E5208 "no copy ran beside it"
            ["none of ... copies ran beside it: ..."]
            "`--energy` counts whole packages, and nothing else ran on them",
            "nothing";
        E5209 "all repetitions were disturbed"
            ["no repetition was undisturbed: the times are of disturbed ones"]
            "the machine is busy",
            "replay again when it is quiet";
        E5210 "a variable that the build removed"
            ["the captured program does not have ...: ..."]
            "the build's optimiser removed the variable; the replay counts",
            "nothing";
        E5211 "the replay moves between processors"
            ["the system does not let the replay stay on one processor (...)"]
            "repetitions that move are discarded",
            "nothing";
        E5212 "answers of the kernel are missing"
            ["what the region asked is not all in the capture: ..."]
            "the region asked the kernel what the captured one did not ask",
            "nothing; compare the result";
    }
    "Try and mcp" {
        E5301 "nothing to try"
            ["nothing to try: no source of the chosen codelets changed ..."]
            "sources, patches or files are what was captured",
            "edit one, or give `--flags`";
        E5302 "a baseline has to be right"
            ["Not frozen: a baseline has to be right."]
            "the present table has a wrong result, or the sources changed since",
            "mend the edit, then press `b`";
        E5303 "a system call that was not captured"
            ["the region makes the system call ..., which the captured one did not make: ..."]
            "`--untrusted` lets code make captured calls alone",
            "leave the call out, or try it without `--untrusted`";
        E5304 "code that is refused"
            ["it has ..., which the captured code has not: refused in code that nobody has read"]
            "assembly, a constructor, an ifunc or a section of its own",
            "use intrinsics, or try it without `--untrusted`";
        E5305 "the kernel cannot keep code from system calls"
            ["this kernel has no Syscall User Dispatch (...): code that nobody has read (--untrusted) cannot be kept from system calls"]
            "Linux before 5.11, or a container that refuses it",
            "another kernel";
        E5306 "a limit of the server"
            ["the budget of ... s of compiles and replays is used up", "all ... tries are used up", "cere ... took longer than ... s and was ended"]
            "limits of `cere mcp`",
            "start it with more";
        E5307 "a flag that agents may not give"
            ["...: agents may give flags that choose how code is made ..."]
            "the flag names a file, or loads one",
            "use `-O`, `-f` and `-m`";
        E5308 "no such source or region"
            ["no source of the build is called so", "no source of the chosen codelets is called ...", "... are called so", "a region or a codelet of the store is needed, not a file"]
            "the name is of no file or region of this build, or of two",
            "give more of its path; `cere regions` lists files and regions";
        E5309 "a source is not there"
            ["... is not there any more: put it back, or name the file with its code now by --source"]
            "it was moved or removed after the build",
            "put it back, or name the file that has its code now by `--source OLD=NEW`";
        E5310 "no such variant"
            ["--source ...: there is no file ..."]
            "the path is wrong",
            "correct it";
        E5311 "a patch that does not apply"
            ["--patch ...: it does not apply to ...", "--patch ...: it holds no change of a file: ..."]
            "it is of another state of the source, or no patch",
            "make it again with `git diff` from the sources that were built";
        E5312 "a tree without these sources"
            ["--dir ...: it has no file of the build in the place that it had there ...", "--dir ...: the chosen codelets have no sources"]
            "the tree is another one, or its root is another folder",
            "name the folder that takes the place of the build's";
        E5313 "a compiler that takes no edited file"
            ["...: give the tree with the edited source by --dir", "its compiler has a form of its own"]
            "this compiler reads no file in another's place",
            "give the tree with the edited source by `--dir`";
        E5314 "the build's directory is gone"
            ["... was compiled in ..., which is not there ..."]
            "relative paths of the compile lead nowhere",
            "make the build's directories first";
    }
}
