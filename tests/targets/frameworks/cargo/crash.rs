#[test]
fn quick() {}

#[test]
fn dies() {
    // The other test, which may run beside this one, is to have ended.
    std::thread::sleep(std::time::Duration::from_millis(300));
    extern "C" {
        fn raise(signal: i32) -> i32;
    }
    loop {
        unsafe { raise(11) }; // the first one takes Rust's own handler away
    }
}
