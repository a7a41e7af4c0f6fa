//! The same readings as text, for the replay's switch, which is assembly.

/// Assembly of [`crate::clock::start`]: leaves the counter in RAX; changes RDX.
#[macro_export]
macro_rules! start_asm {
    () => {
        "lfence\nrdtsc\nlfence\nshl rdx, 32\nor rax, rdx"
    };
}

/// Assembly of [`crate::clock::stop`]: leaves the counter in RAX and in ECX what tells the processor; changes RDX.
#[macro_export]
macro_rules! stop_asm {
    () => {
        "rdtscp\nlfence\nshl rdx, 32\nor rax, rdx"
    };
}
