// Panics through traced frames: caught, uncaught, in threads, aborting, and with a backtrace. The first argument says which.
use std::panic;

struct Guard(i64);
impl Drop for Guard {
    fn drop(&mut self) {
        selftest_dropped(self.0);
    }
}

#[no_mangle]
#[inline(never)]
fn selftest_dropped(n: i64) -> i64 {
    std::hint::black_box(n + 1)
}

#[no_mangle]
#[inline(never)]
fn selftest_thrower(n: i64) -> i64 {
    let _guard = Guard(n);
    if n % 4 == 3 {
        panic!("odd, and the message is a literal");
    }
    if n % 2 == 1 {
        panic!("odd {}", n);
    }
    std::hint::black_box(n * 2)
}

#[no_mangle]
#[inline(never)]
fn selftest_middle(n: i64) -> i64 {
    let value = selftest_thrower(n) + 1;
    std::hint::black_box(value)
}

#[no_mangle]
#[inline(never)]
fn selftest_catcher(n: i64) -> i64 {
    panic::catch_unwind(|| selftest_middle(n)).unwrap_or(-1)
}

#[no_mangle]
#[inline(never)]
fn selftest_overflow(n: u64) -> u64 {
    let frame = std::hint::black_box([n; 64]);
    selftest_overflow(n + 1) + frame[(n % 64) as usize]
}

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    match which.as_str() {
        "caught" => {
            let sum: i64 = (0..20).map(selftest_catcher).sum();
            println!("sum {}", sum);
        }
        "thread" => {
            let ended = std::thread::spawn(|| selftest_middle(3)).join();
            println!("thread ended badly: {}", ended.is_err());
        }
        "uncaught" => {
            selftest_middle(7);
        }
        "abort" => std::process::abort(),
        "overflow" => {
            println!("{}", selftest_overflow(1));
        }
        other => panic!("what is {}?", other),
    }
}
