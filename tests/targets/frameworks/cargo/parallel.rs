use std::sync::Barrier;

static MEET: Barrier = Barrier::new(2);

#[test]
fn meets_left() {
    MEET.wait();
    std::thread::sleep(std::time::Duration::from_millis(200));
}

#[test]
fn meets_right() {
    MEET.wait();
    std::thread::sleep(std::time::Duration::from_millis(200));
}
