//! `cere reduce` on a miscompile that a pass plug-in plants.

use crate::common::{has, json, refused, run, text};
use crate::export::captured;
use crate::schemas::conforms;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes 31 of the 63 of every `and` with it.
const WRONG: &str = r#"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
using namespace llvm;
struct Wrong : PassInfoMixin<Wrong> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    for (Function &F : M)
      for (BasicBlock &B : F)
        for (Instruction &I : B)
          if (I.getOpcode() == Instruction::And)
            if (auto *C = dyn_cast<ConstantInt>(I.getOperand(1)); C && C->getZExtValue() == 63)
              I.setOperand(1, ConstantInt::get(C->getType(), 31));
    return PreservedAnalyses::none();
  }
};
extern "C" PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "wrong", "1", [](PassBuilder &PB) {
            PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, OptimizationLevel L) {
              if (L == OptimizationLevel::O2)
                MPM.addPass(Wrong());
            });
          }};
}
"#;

fn plugin(directory: &Path) -> PathBuf {
    let source = directory.join("wrong.cpp");
    std::fs::write(&source, WRONG).expect("a file");
    let flags = Command::new("llvm-config-22")
        .arg("--cxxflags")
        .output()
        .expect("llvm-config-22 runs");
    let made = directory.join("wrong.so");
    let output = Command::new("clang++-22")
        .args(text(&flags.stdout).split_whitespace())
        .args(["-shared", "-fPIC"])
        .arg(&source)
        .arg("-o")
        .arg(&made)
        .output()
        .expect("clang++-22 runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    made
}

#[test]
fn a_planted_miscompile() {
    let directory = captured();
    let at = directory.path();
    let flags = format!("-O2 -fpass-plugin={}", plugin(at).display());
    let line = [
        "reduce",
        "sums*",
        "--json",
        "--flags",
        &flags,
        "--seconds",
        "40",
        "-o",
        "bug",
    ];
    let said = json(at, &line);
    conforms("reduce", &said);
    let [before, after] = [0, 1].map(|i| said["instructions"][i].as_u64().expect("a number"));
    assert!(after < before, "{said}");
    let end = |index: usize| said["ends"][index]["end"].clone();
    assert!(end(0) != end(1) && end(1) == end(2), "{said}");
    // The cause is still there, and the folder shows the difference.
    let ir = std::fs::read_to_string(at.join("bug/unit0.ll")).expect("IR");
    has(&ir, ", 63");
    let shown = Command::new("make")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .args(["-C", "bug", "show"])
        .current_dir(at)
        .output()
        .expect("make runs");
    let shown = text(&shown.stdout);
    let states: Vec<&str> = shown.lines().filter(|l| l.starts_with("state:")).collect();
    assert_eq!(states.len(), 3, "{shown}");
    assert!(states[0] != states[1] && states[1] == states[2], "{shown}");
}

#[test]
fn what_is_right_cannot_be_reduced() {
    let directory = captured();
    let at = directory.path();
    refused(at, "reduce sums* --flags -O3 -o out", "is not to be seen");
    refused(at, "reduce sums* -o out2", "--flags is needed");
    refused(
        at,
        "reduce sums* --flags -O3 --ratio 2 -o out3",
        "--keeps slow",
    );
    assert!(
        !run(at, "reduce sums* --flags -O3 --keeps slow --ratio 1.0")
            .status
            .success()
    );
    assert!(
        !run(at, "reduce sums* --flags -flto -o out4")
            .status
            .success()
    );
}
