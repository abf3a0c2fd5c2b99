#[test]
fn quick() {}

#[test]
fn slow_never_ends() {
    loop {
        std::thread::park();
    }
}
