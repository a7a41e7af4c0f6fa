//! Messages of this stage: see [`super`].

use crate::entry::stage;

stage! {
    "Build" {
        E1001 "LLVM 22 is missing"
            ["... is not in PATH: install LLVM 22 with clang and flang", "cannot start ...: ... (is the package for LLVM 22 installed?)"]
            "LLVM 22 is missing",
            "install it: see [Install](install.md)",
            "clang-22 is not in PATH: install LLVM 22 with clang and flang";
        E1002 "the build compiled nothing"
            ["the build compiled nothing through cere's wrappers, and the store has nothing of this directory"]
            "everything is up to date",
            "clean first";
        E1003 "a build that went past the wrappers"
            ["the build compiled nothing through cere's wrappers, but made ... (by ...)"]
            "compilers were started by a static program, or with `LD_PRELOAD` removed",
            "let the build take CC, CXX, FC or PATH",
            "the build compiled nothing through cere's wrappers, but made app (by /opt/tools/cc1)";
        E1004 "everything was up to date"
            ["nothing was compiled...: everything is up to date, and the units of earlier builds still count..."]
            "it says what is done",
            "nothing";
        E1005 "objects made again without the wrappers"
            ["made again without cere's wrappers since its unit was kept, so its regions are gone: ..."]
            "another compiler has made these objects since",
            "remove them and build again with `cere instrument`";
        E1006 "code without regions in the program"
            ["... % of the code of ... is of no unit, and so has no regions (...): ..."]
            "objects compiled without the wrappers, assembly, or static libraries; their time counts for the region around them",
            "compile the named files under `cere instrument`",
            "12 % of the code of app is of no unit, and so has no regions (objects that cere did not compile): legacy.o";
        E1007 "a program without loops"
            ["the build has no regions: ...", "... has no regions: ..."]
            "no loop and no parallel region in its sources, or all stay in place",
            "`cere regions` gives the reasons",
            "app has no regions: its sources have no loop and no parallel region";
        E1008 "a compiler that is named by its path"
            ["..., which the build names by its path, ..."]
            "it says what is done",
            "nothing";
        E1009 "a cross compiler"
            ["... is left as it is: it compiles for ..."]
            "a cross compiler",
            "nothing; what it makes has no regions";
        E1010 "a warning that came again"
            ["... times in this build: ..."]
            "a warning that was printed once",
            "see that warning";
        E1011 "a source is compiled without regions"
            ["... is compiled without regions: ...", "not instrumented: ...: ..."]
            "the pass failed on this source; the plain compiler accepts it, and compiled it",
            "nothing; this file has no regions. Report it with the message";
        E1012 "no source could be instrumented"
            ["no unit could be instrumented: see above"]
            "the same, for all units",
            "see the messages above it";
        E1013 "the pass made invalid code"
            ["LLVM's verifier rejects what the pass made: ..."]
            "a bug of the pass",
            "report it with the message";
        E1014 "clang warns of the flags of a replay"
            ["clang-22: ..."]
            "clang warns of these flags, e.g. that it takes `-O9` as `-O3`",
            "correct the flags";
        E1015 "the build failed"
            ["the build command ... failed: ..."]
            "the build itself failed",
            "read the compiler's messages",
            "the build command `make` failed: exit status: 2";
        E1016 "link-time optimisation was dropped"
            ["... is dropped: regions are taken from whole objects"]
            "`-flto`",
            "nothing";
        E1017 "an option of gcc that LLVM does not have"
            ["... is dropped: ... does not support it"]
            "an option of gcc that LLVM does not have was dropped or replaced",
            "nothing";
        E1018 "a response file cannot be used"
            ["response files nest too deep at @...", "cannot read the response file ..."]
            "the compile's response file",
            "correct it",
            "cannot read the response file args.rsp: No such file or directory (os error 2)";
        E1019 "a compiler wrapper was started alone"
            ["... is not set: compilers wrapped by cere run under cere instrument ..."]
            "a wrapper was started on its own",
            "start the build with `cere instrument`",
            "CERE_STORE is not set: compilers wrapped by cere run under `cere instrument -- <build command>`";
        E1020 "the pass failed"
            ["the pass failed; this is a bug, please report it with the message above"]
            "a bug",
            "report it";
        E1021 "a region cannot be compiled alone"
            ["a region uses ..., which the rest of the unit does not have: ...", "... keeps addresses of its labels in memory: its region has to keep the flags of the build", "the variable ... holds addresses of labels: ...", "vectors of more than 128 bits are passed to or from the region's code by value, ..."]
            "flags of its own would change what the region shares with the rest of its unit",
            "leave this region the flags of the build; report it if you gave none";
        E1022 "rustc has another LLVM"
            ["its LLVM is ..., and the pass is LLVM 22's: crates are left as they are"]
            "rustc has another LLVM than the pass",
            "use Rust 1.95 or a neighbour of it, or the flags of the message: see [other languages](languages.md#rust)";
        E1023 "crates of another machine"
            ["crates for ... are left as they are"]
            "they are compiled for another machine",
            "build for this one";
        E1024 "how Rust's programs are linked"
            ["link-time optimisation is off for Rust's crates", "the symbols of Rust's programs stay"]
            "instrumented crates are one unit of code each, with symbols",
            "no remedy is needed";
        E1025 "a compiler that is not clang"
            ["--compiler ...: ... is not made of clang", "--compiler ...: ... is clang ..., whose bitcode clang 22 does not read"]
            "the front end has to write LLVM's bitcode, of LLVM 22 or older",
            "name another one",
            "--compiler c++=/usr/bin/g++: /usr/bin/g++ is not made of clang (g++ (Debian 12.2.0)), so it writes no bitcode that clang 22 reads";
        E1026 "a call that cannot be instrumented"
            ["... is left as it is: ..."]
            "a call of `zig` or `ldc2` that makes code in a way that cere cannot take the place of",
            "as the message says";
        E1027 "a module of gfortran's is in the way"
            ["the module ... was compiled by gfortran, whose modules flang cannot read"]
            "a module file of gfortran's is in the way",
            "`cere instrument --module-source DIR`, or the header of the library: see [other languages](languages.md#modules-of-gfortrans)";
        E1028 "the module mpi for flang"
            ["the module mpi is made from ... for flang", "the module mpi cannot be made from ..."]
            "flang reads no module of gfortran's, so `use mpi` is made of the library's header; the second: flang cannot read that",
            "none; the second: include `mpif.h` in place of the module";
        E1029 "modules cannot be made from their sources"
            ["--module-source: ..."]
            "the directory has no source of Fortran, or flang cannot compile one",
            "as the message says",
            "--module-source: there is no source of Fortran in the directory: name the one with the module's .f90 files";
        E1030 "an object cannot be compiled again"
            ["... of ... cannot be compiled: see above", "... could not make ..."]
            "bitcode in an archive or object was refused by the compiler",
            "read the compiler's words above; build that part with clang 22 under `cere instrument`";
        E1031 "a recorded command cannot be used"
            ["the recorded command of ... compiles nothing", "the recorded command of ... does not name it"]
            "the build's record of this source is of another form than this command needs",
            "build it again with `cere instrument`";
        E1032 "a tool is not in PATH"
            ["... is not in PATH: install it, or correct PATH"]
            "the program is not installed, or PATH names other directories",
            "install it, or correct PATH",
            "gcc-13 is not in PATH: install it, or correct PATH";
    }
    "Reasons: the loop or function stays in place" {
        E1101 "several entries"
            ["the loop has several entries"]
            "`goto` leads into the loop, so no function can hold it",
            "give the loop one entry; its time counts for the region around it";
        E1102 "jumps that no function can keep"
            ["computed goto in the loop", "asm goto in the loop", "setjmp in the loop"]
            "the loop jumps in a way that an outlined function cannot keep",
            "move the jump out of the loop";
        E1103 "a coroutine or a naked function"
            ["the function is a coroutine", "the function is naked"]
            "its frame is not a usual one",
            "no remedy";
        E1104 "exceptions that cannot be handled outside"
            ["exceptions in a function that is always inlined", "funclet exception handling", "a landing pad of the loop that other code reaches"]
            "the outlined function could not handle them",
            "leave out `always_inline`; else no remedy";
        E1105 "it asks for its frame"
            ["the loop asks for its frame or return address", "the function asks for its frame or return address"]
            "it would get those of another call",
            "no remedy";
        E1106 "stack memory that the loop shares"
            ["alloca in the loop that outlives it", "the loop gives back stack that was taken before it", "stack that the loop takes is still in use where other code joins"]
            "the loop and its function share stack memory of variable size",
            "take the memory before the loop";
        E1107 "values that no argument can carry"
            ["values in the loop that no argument can carry"]
            "such as scalable vectors or tokens of LLVM's",
            "no remedy";
        E1108 "a part of a parallel region"
            ["it runs within a parallel region, which is a region itself"]
            "the parallel region is captured as a whole",
            "nothing: capture the parallel region";
        E1109 "too short"
            ["too short: ..."]
            "the call and the probe would cost much",
            "nothing: its time counts for the region around it; `cere instrument --all-loops` outlines it";
        E1110 "outlining did not work"
            ["the verifier rejects it: ..."]
            "the outcome of outlining was not valid; the loop is left as it was",
            "report it with the message";
        E1111 "a function of variable arguments"
            ["the function takes variable arguments"]
            "no second function can take them over",
            "choose its callers, or what it calls";
        E1112 "labels with addresses"
            ["the function has labels whose address is taken"]
            "computed goto: the addresses belong to the function",
            "choose its callers";
        E1113 "a call that takes the function's place"
            ["the function ends in a call that has to take its place (musttail)"]
            "the frame of the function that holds the probe would stay",
            "choose its callers";
        E1114 "always inlined"
            ["the function is always inlined: its code belongs to its callers"]
            "there is no function of its own in the program",
            "name the callers";
        E1115 "a function of a special kind"
            ["the function is a handler of interrupts", "the function may return more than once, as setjmp does"]
            "it is not called or left like others",
            "choose its callers";
        E1116 "arguments that cannot be handed on"
            ["the function has an argument that cannot be handed on", "the function returns what cannot be handed on"]
            "the calling convention ties them to this frame",
            "choose its callers";
    }
}
