//! What a region changes beside memory is compared: a replay under flags that let it round goes another way, and is different.

use crate::common::{directory_with, instrument, json, succeed};

const SOURCE: &str = r#"
#include <locale.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
typedef void (*Function)(void);
static double x[1000];
static const double exact = 0x1.7f9fa9fbc9c0fp+0;
__attribute__((noinline)) static int registers(int n) {
    int k = 0;
    for (; k < 2; k++) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += x[i];
        atexit(sum == exact ? (Function)sched_yield : (Function)getpid);
    }
    return k;
}
__attribute__((noinline)) static int translates(int n) {
    int k = 0;
    for (; k < 2; k++) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += x[i];
        if (sum != exact) setlocale(LC_ALL, "C");
    }
    return k;
}
__attribute__((noinline)) static int zones(int n) {
    int k = 0;
    for (; k < 2; k++) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += x[i];
        timezone = sum == exact ? 3600 : 7200;
    }
    return k;
}
int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    for (int i = 0; i < 1000; i++) x[i] = 1.0 / (i * i + 1.7);
    printf("%d %d %d\n", registers(1000), translates(1000), zones(1000));
}
"#;

/// Where the program is position-independent, and where a library's function has the address of an entry of the linkage table.
#[test]
fn functions_and_locales() {
    for build in ["-fPIE -pie", "-fno-pie -no-pie"] {
        let directory = directory_with(&[("main.c", SOURCE)]);
        let at = directory.path();
        let line = format!("$CC -O1 -w {build} main.c -o app");
        instrument(at, &line);
        succeed(at, "capture registers* translates* zones* -- ./app");
        for (region, place) in [
            ("registers*", "to be run at the end"),
            ("translates*", "the locale"),
            ("zones*", "timezone"),
        ] {
            // Where the library has its variable itself, it is not compared: docs/design/limits.md.
            if region == "zones*" && !build.contains("no-pie") {
                continue;
            }
            let replay = |flags: &str| {
                json(
                    at,
                    &["replay", "--json", "--reps", "1", "--flags", flags, region],
                )
            };
            let own = replay("-O1");
            assert_eq!(own["verdict"], "exact", "{build}: {own}");
            let rounds = replay("-O3 -ffast-math -march=native");
            assert_eq!(rounds["verdict"], "different", "{build}: {rounds}");
            let reason = rounds["reason"].as_str().expect("a reason");
            assert!(reason.contains(place), "{build}: {reason}");
        }
    }
}
