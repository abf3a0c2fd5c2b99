// Rust values, and the JSON that each should be shown as, made by this program's own code. It prints where its groups of values are, then waits for the
// end of its input, so that a reader can look at them meanwhile.
//   group|rust::kinds::Scalars|address       expect|field|JSON of the group above
#![allow(dead_code)]
#[path = "rust_containers.rs"]
mod containers;
#[path = "rust_enums.rs"]
mod enums;
#[path = "rust_json.rs"]
mod json;
#[path = "rust_kinds.rs"]
mod kinds;
#[path = "rust_library.rs"]
mod library;
#[path = "rust_owners.rs"]
mod owners;

use std::io::{Read, Write};

fn main() {
    kinds::tell();
    enums::tell();
    containers::tell();
    owners::tell();
    library::tell();
    println!("ready");
    std::io::stdout().flush().unwrap();
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
}
