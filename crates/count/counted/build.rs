//! The loader runs this library's constructor before all others: counted code needs its buffer from its first instruction on.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,initfirst");
}
