//! The same readings as text, for the replay's switch, which is assembly.

/// Assembly of [`crate::clock::start`]: puts the counter in RAX and overwrites RDX.
#[macro_export]
macro_rules! start_asm {
    () => {
        "lfence\nrdtsc\nlfence\nshl rdx, 32\nor rax, rdx"
    };
}

/// Assembly of [`crate::clock::stop`]: puts the counter in RAX and the processor's register TSC_AUX in ECX, and overwrites RDX.
#[macro_export]
macro_rules! stop_asm {
    () => {
        "rdtscp\nlfence\nshl rdx, 32\nor rax, rdx"
    };
}
