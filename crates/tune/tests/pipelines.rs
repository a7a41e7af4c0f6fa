//! Samples of the compiler's own pipeline are pipelines that it takes.

use cere_tune::Pipeline;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use std::process::Command;

/// The optimiser that replays use.
const OPT: &str = "opt-22";
/// A loop to vectorise, a call to inline, a recursion, a branch: something for each kind of pass.
const CODE: &str = r#"
define double @sum(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %t, %loop ]
  %at = getelementptr double, ptr %p, i64 %i
  %v = load double, ptr %at
  %w = call double @twice(double %v)
  store double %w, ptr %at
  %t = fadd double %s, %w
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret double %t
}
define internal double @twice(double %v) {
  %slot = alloca double
  store double %v, ptr %slot
  %again = load double, ptr %slot
  %r = fmul double %again, 2.0
  ret double %r
}
define i32 @fib(i32 %n) {
  %few = icmp slt i32 %n, 2
  br i1 %few, label %one, label %two
one:
  ret i32 %n
two:
  %a = sub i32 %n, 1
  %b = sub i32 %n, 2
  %x = call i32 @fib(i32 %a)
  %y = call i32 @fib(i32 %b)
  %z = add i32 %x, %y
  ret i32 %z
}
"#;

fn opt(passes: &str, more: &[&str]) -> Result<String, String> {
    let mut child = Command::new(OPT)
        .arg(format!("-passes={passes}"))
        .args(more)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{OPT}: {e} (is the package for LLVM 22 installed?)"));
    let input = child.stdin.take();
    // The pipe closes here, which is the end of the code; that opt may stop before it has read all is told by its status.
    let _ = input.map(|mut i| std::io::Write::write_all(&mut i, CODE.as_bytes()));
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

#[test]
fn samples_of_real_pipelines() {
    for level in ["O1", "O2", "O3", "Os"] {
        let printed = ["-print-pipeline-passes", "-disable-output"];
        let text = opt(&format!("default<{level}>"), &printed).unwrap();
        let pipeline = Pipeline::parse(&text).unwrap();
        assert_eq!(pipeline.to_string(), text.trim());
        assert!(pipeline.passes() > 60, "{}", pipeline.passes());
        for seed in 0..6 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let drop = [0.7, 0.0, 0.3, 1.0, 0.9, 0.7][seed as usize];
            let sample = pipeline.sample(drop, 4, &mut rng);
            if let Err(message) = opt(&sample, &["-disable-output"]) {
                panic!("{level}, seed {seed}: {message}of {OPT} -passes='{sample}'");
            }
        }
    }
}
