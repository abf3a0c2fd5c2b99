#[cfg(test)]
use std::{fs, path::Path, thread, time::Duration};

/// In a process of their own or in one: they meet by files.
#[cfg(test)]
fn meet(own: &str, other: &str) {
    fs::write(own, "").unwrap();
    while !Path::new(other).exists() {
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(200));
}

#[test]
fn meets_left() {
    meet("left", "right");
}

#[test]
fn meets_right() {
    meet("right", "left");
}
