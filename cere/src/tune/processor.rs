//! What of a space this processor can run: code for another one would cost an evaluation each, and tell nothing.

use crate::words;
use cere_tune::Space;
use std::arch::is_x86_feature_detected as has;

/// Takes out of `space` the choices whose code this processor cannot run, and tells them.
pub fn only_runnable(space: &mut Space) -> Vec<String> {
    let mut left_out = Vec::new();
    for group in &mut space.groups {
        group.choices.retain(|choice| {
            let runs = choice.iter().all(|flag| runs(flag));
            if !runs {
                left_out.push(words::join(choice));
            }
            runs
        });
    }
    space.groups.retain(|group| !group.choices.is_empty());
    left_out
}

/// Whether this processor has the instructions that `flag` allows. Flags that are not known here do: a replay tells.
fn runs(flag: &str) -> bool {
    let v2 = || has!("sse3") && has!("ssse3") && has!("sse4.2") && has!("popcnt");
    let v3 = || {
        let bits = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("movbe");
        v2() && bits && has!("avx2") && has!("fma") && has!("f16c")
    };
    match flag {
        "-march=x86-64-v2" => v2(),
        "-march=x86-64-v3" => v3(),
        "-march=x86-64-v4" => {
            let more = has!("avx512bw") && has!("avx512cd") && has!("avx512dq");
            v3() && has!("avx512f") && has!("avx512vl") && more
        }
        "-msse3" => has!("sse3"),
        "-mssse3" => has!("ssse3"),
        "-msse4.1" => has!("sse4.1"),
        "-msse4" | "-msse4.2" => has!("sse4.2"),
        "-mpopcnt" => has!("popcnt"),
        "-mavx" => has!("avx"),
        "-mavx2" => has!("avx2"),
        "-mfma" => has!("fma"),
        "-mf16c" => has!("f16c"),
        "-mbmi" => has!("bmi1"),
        "-mbmi2" => has!("bmi2"),
        "-mlzcnt" => has!("lzcnt"),
        "-mavx512f" => has!("avx512f"),
        "-mavx512bw" => has!("avx512bw"),
        "-mavx512cd" => has!("avx512cd"),
        "-mavx512dq" => has!("avx512dq"),
        "-mavx512vl" => has!("avx512vl"),
        "-mavx512vnni" => has!("avx512vnni"),
        "-mavx512vbmi" => has!("avx512vbmi"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_processor_lacks_is_left_out() {
        let text = "
            [[group]]
            name = \"wide\"
            choices = [\"-O2\", \"-march=x86-64-v4 -ffp-contract=off\", \"-mavx2\"]
            [[group]]
            name = \"wider\"
            choices = [\"-mavx512vbmi\"]
        ";
        let mut space = Space::parse(text).unwrap();
        let left_out = only_runnable(&mut space);
        let groups: Vec<usize> = space.groups.iter().map(|g| g.choices.len()).collect();
        let of = |name: &str| left_out.iter().any(|l| l.starts_with(name));
        let kernel = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let there = |name: &str| kernel.split_whitespace().any(|word| word == name);
        assert_eq!(of("-march=x86-64-v4"), !there("avx512vl"));
        assert_eq!(of("-mavx2"), !there("avx2"));
        assert_eq!(of("-mavx512vbmi"), !there("avx512vbmi"));
        assert!(!of("-O2"));
        assert_eq!(groups.iter().sum::<usize>() + left_out.len(), 4);
        assert!(!groups.contains(&0));
    }
}
