//! D, by ldc.

use super::facts::{BackEnd, Call, Facts, Front, OBJECTS, Passed, value};
use std::path::{Path, PathBuf};

pub const FACTS: Facts = Facts {
    name: "D",
    extensions: &["d"],
    drivers: &[("ldc2", "ldc2"), ("ldmd2", "ldmd2")],
    variables: &[("DC", "ldc2"), ("DMD", "ldmd2")],
    front: Front::Own(call),
    form: "",
    back_end: BackEnd::Clang,
    unwinds: true,
    is_library: |path| path.contains("/include/d/"),
};

/// Options that make no code.
const OTHER: [&str; 9] = [
    "--version",
    "-version",
    "--help",
    "-h",
    "--help-hidden",
    "-o-",
    "--o-",
    "-E",
    "--print-config",
];

/// Takes a call of `ldc2` or `ldmd2` apart; the bitcode goes to `scratch`.
fn call(arguments: &[String], scratch: &Path) -> Result<Call, Passed> {
    if arguments.iter().any(|a| OTHER.contains(&&**a)) {
        return Err(Passed::Other);
    }
    let sources: Vec<&String> = arguments
        .iter()
        .filter(|a| !a.starts_with('-') && a.ends_with(".d"))
        .collect();
    let Some(first) = sources.first() else {
        return Err(Passed::Other);
    };
    if arguments.iter().any(|a| matches!(&**a, "-run" | "--run")) {
        return Err(Passed::Cannot(
            "it compiles and runs at once (-run): compile the program first".to_owned(),
        ));
    }
    let mut level = "0";
    let (mut debug, mut compiles, mut library, mut shared) = (false, false, false, false);
    let mut output = None;
    let mut directory = None;
    let mut codegen = vec![
        "-fPIC".to_owned(),
        "-ffunction-sections".to_owned(),
        "-fdata-sections".to_owned(),
    ];
    let mut front = Vec::new();
    let mut link = Vec::new();
    for argument in arguments {
        // One or two dashes are the same.
        let word = argument
            .strip_prefix("--")
            .or(argument.strip_prefix('-'))
            .filter(|_| argument.starts_with('-'));
        let Some(word) = word else {
            match argument.ends_with(".d") || argument.ends_with(".di") {
                true => front.push(argument.clone()),
                false => link.push(argument.clone()),
            }
            continue;
        };
        match word {
            "c" => compiles = true,
            "lib" => library = true,
            "g" | "gc" => debug = true,
            "O" | "O3" | "O4" | "O5" => level = "3",
            "O0" | "O1" | "O2" | "Os" | "Oz" => level = &word[1..],
            "singleobj" | "flto" | "flto=thin" | "flto=full" => {}
            _ if word == "m32" || word.starts_with("mtriple") && !word.contains("x86_64") => {
                return Err(Passed::Cannot("it compiles for another machine".to_owned()));
            }
            _ if word.starts_with("of") => output = value(word, "of").map(PathBuf::from),
            _ if word.starts_with("od") => directory = value(word, "od").map(PathBuf::from),
            _ if word.starts_with("L-")
                || word.starts_with("L=")
                || word.starts_with("link-")
                || word == "shared"
                || word.starts_with("static")
                || word.starts_with("defaultlib") =>
            {
                link.push(argument.clone());
                shared |= word == "shared";
                // These change the code as well.
                if word == "shared" || word.starts_with("fsanitize") || word == "betterC" {
                    front.push(argument.clone());
                }
            }
            _ => {
                if let Some(cpu) = word.strip_prefix("mcpu=") {
                    codegen.push(format!("-march={cpu}"));
                }
                front.push(argument.clone());
            }
        }
    }
    if library {
        return Err(Passed::Cannot(
            "it makes an archive (-lib): compile with -c, and archive the objects by ar".to_owned(),
        ));
    }
    let stem = |source: &str| {
        Path::new(source)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let beside = directory.unwrap_or_default();
    let each = (compiles && output.is_none()).then(|| beside.clone());
    if compiles && output.is_some() && sources.len() > 1 {
        front.push("-singleobj".to_owned());
    }
    let output = match output {
        Some(output) => output,
        None if compiles => beside.join(format!("{}.o", stem(first))),
        None if shared => format!("lib{}.so", stem(first)).into(),
        None => stem(first).into(),
    };
    codegen.insert(0, format!("-O{level}"));
    let bitcode = ["-c", "-O0", "--frame-pointer=none", "--output-bc"].map(str::to_owned);
    front.extend(bitcode);
    front.push(if debug {
        "-g".to_owned()
    } else {
        "--gline-tables-only".to_owned()
    });
    front.push(format!("-od={}", scratch.display()));
    let words = link;
    let link = (!compiles).then(|| {
        let mut line = words;
        line.insert(0, OBJECTS.to_owned());
        line.push(format!("-of={}", output.display()));
        line
    });
    Ok(Call {
        front,
        bitcode: None,
        codegen,
        debug,
        output,
        each,
        link,
        by_cc: false,
        changes: vec![
            "D is compiled to bitcode by ldc, and optimised by LLVM 22 in place of its own LLVM"
                .to_owned(),
        ],
    })
}
