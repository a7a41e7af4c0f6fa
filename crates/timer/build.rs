//! Names the shared library, so that programs linked to it by its path look it up by its name.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcere_timer.so");
}
