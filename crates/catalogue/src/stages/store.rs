//! Messages of this stage: see [`super`].

use crate::entry::stage;

stage! {
    "Any command" {
        E4001 "a command without this option"
            ["... has no option ..."]
            "`--store` or `--json` with a command that has none",
            "leave it out",
            "`cere manual` has no option --store";
        E4002 "no store in this directory"
            ["there is no store ..."]
            "the directory has no `.cere`",
            "run `cere instrument -- <build command>` here, or name the store with `--store`",
            "there is no store /home/ada/wave/.cere: run `cere instrument -- <build command>` first, or name one with --store";
        E4003 "a store without a build"
            ["no build is recorded in ..."]
            "the store has no build",
            "run `cere instrument`",
            "no build is recorded in /home/ada/wave/.cere: run `cere instrument -- <build command>` first, or name its store with --store";
        E4004 "another command uses the store"
            ["the store ... is in use by ...: wait for it, or use another --store"]
            "another command writes to it",
            "wait for it, or use another `--store`",
            "the store /home/ada/wave/.cere is in use by process 4711 (cere capture): wait for it, or use another --store";
        E4005 "the store cannot be written"
            ["cannot open the lock ...", "cannot create ...: give a writable place with --store"]
            "the store cannot be written",
            "name a writable one with `--store`",
            "cannot create /usr/share/wave/.cere/tmp: give a writable place with --store: Permission denied (os error 13)";
        E4006 "a file of a newer CERE"
            ["... has format version ..., this cere reads up to ..."]
            "a newer CERE wrote it",
            "install a newer CERE",
            "a package has format version 9, this cere reads up to 8: install a newer cere";
        E4007 "a file of an older CERE"
            ["... has format version ..., this cere reads from ... on: make it again"]
            "an older CERE wrote it",
            "make it again: build, profile or capture",
            "a package has format version 2, this cere reads from 5 on: make it again";
        E4008 "a file of another version of CERE"
            ["... has version ..., this cere reads ..."]
            "another version of CERE wrote it",
            "as the message says: clean and build again with `cere instrument`, or make the file again",
            ".cere/units/1f3a.json has version 11, this cere reads 14: run `cere instrument` on a clean build";
        E4009 "a damaged file in the store"
            ["... is damaged"]
            "a file in the store is damaged",
            "remove it and make it again",
            ".cere/profile.json is damaged: expected value at line 1 column 1";
        E4010 "no region or codelet of that name"
            ["nothing is called ... (near: ...)"]
            "no region or codelet has this name",
            "`cere regions` and `cere codelets` list the names",
            "nothing is called slove@* (near: solve@wave.c:61): `cere regions` and `cere codelets` list the names";
        E4011 "a name that is not unique"
            ["... begins ... names (...): give more of it, or a glob such as ..."]
            "the prefix is not unique",
            "give more of the name, or a glob",
            "solve begins 2 names (solve@wave.c:61, solve_all@wave.c:90): give more of it, or a glob such as 'solve*'";
        E4012 "a part of CERE is missing"
            ["... is missing (looked in ...)"]
            "a part of CERE was not found",
            "install all of CERE, or set `CERE_HOME` to the directory that has it",
            "libcere_preload.so is missing (looked in /usr/local/lib/cere): build or install all of CERE, or set CERE_HOME to the directory that holds it";
        E4013 "a tool is started anew for each run"
            ["... does not stay (...) and is started anew for each run, which takes longer"]
            "its server ended twice, e.g. killed for memory, or the executable is static",
            "nothing; results are the same. For speed: use dynamically linked LLVM tools";
        E4014 "a name that is not UTF-8"
            ["the argument ... is not UTF-8", "the directory that ... is called ..., which is not UTF-8"]
            "what CERE keeps is text",
            "rename it, or make a link with another name",
            "the argument \"caf\\xE9.dat\" is not UTF-8, and what CERE keeps is text: give the file another name, or a link with another name (`ln -s`)";
        E4015 "flags with an open quotation mark"
            ["missing closing quote"]
            "flags are split like in a shell",
            "close the quote",
            "missing closing quote: close ' or write \\' for the character itself";
        E4016 "a time limit was reached"
            ["... did not end within the --timeout of ... s and was killed"]
            "the limit was reached",
            "give a larger `--timeout`",
            "./app did not end within the --timeout of 10 s and was killed";
        E4017 "a signal ended the command"
            ["ended by signal ..., which came while ... ran"]
            "you or the system ended the command",
            "start it again";
        E4018 "the Python package does not find the command"
            ["there is no command ...: install CERE ..."]
            "the [Python package](python.md) does not find it",
            "install CERE, or set `CERE` to its file";
        E4019 "no such codelet file"
            ["there is no codelet file ...", "... is a directory, not a codelet: ..."]
            "the path is wrong",
            "`cere codelets` lists what the store has",
            "there is no codelet file solve.codelet";
        E4020 "no build to compare codelets with"
            ["the store records no build whose sources are there, ..."]
            "without a build no codelet is older than it",
            "`cere instrument -- <build command>` first";
        E4021 "nowhere to unpack"
            ["there is no writable directory to unpack the codelet in: set TMPDIR"]
            "neither the store nor the directory of temporary files is writable",
            "set `TMPDIR` to a directory that can be written";
        E4022 "not a file of CERE"
            ["not ...: it starts with ... instead of ...", "... is cut short: ...", "... which cannot be: ..."]
            "another file, a part of one, or one that was changed",
            "copy it again from its source, or make it again",
            "a package is cut short: 64 bytes needed at offset 0, 3 there";
        E4023 "a step was ended"
            ["cere ... was ended: ..."]
            "a signal ended it: you, or the system when memory was short",
            "start the same command again: it goes on where it stopped";
        E4024 "the place of the output"
            ["no file can be written in ..."]
            "the directory is not there, cannot be written, or is full",
            "name another place by `-o`";
        E4025 "no such code"
            ["there is no message ..."]
            "the code is misspelt, or of another version of CERE",
            "`cere explain --list` prints all codes",
            "there is no message CERE-9999";
    }
    "Package" {
        E4101 "a captured image cannot be read"
            ["the image ..., which the captured process had loaded, cannot be read"]
            "the file was removed or changed",
            "capture again";
        E4102 "a program without symbols"
            ["... lost the symbols of its objects"]
            "`strip`, `-s` or `-Wl,-x`",
            "build without them";
        E4103 "symbols of files are missing"
            ["the symbol table of ... mixes the static variables of the units ... and ..."]
            "`strip -g` removed the file symbols",
            "build without it";
        E4104 "the program changed since the run"
            ["no image of the captured process holds region ...: ... changed since the run"]
            "the program was rebuilt meanwhile",
            "capture again";
        E4105 "the image is of another build"
            ["... holds the unit ..., which the store ... does not know"]
            "the image is of another build",
            "build it again with `cere instrument`";
    }
}
