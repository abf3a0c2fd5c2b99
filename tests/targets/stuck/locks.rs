//! Ways to wait for each other with Rust's standard library, by name.
use std::sync::{mpsc, Arc, Condvar, Mutex};
use std::{env, thread, time::Duration};

fn transfer(name: &str, from: Arc<Mutex<i64>>, to: Arc<Mutex<i64>>) -> thread::JoinHandle<()> {
    thread::Builder::new()
        .name(name.to_string())
        .spawn(move || {
            let mut first = from.lock().unwrap();
            thread::sleep(Duration::from_millis(50));
            let mut second = to.lock().unwrap();
            *first -= 1;
            *second += 1;
        })
        .unwrap()
}

fn main() {
    println!("up");
    match env::args().nth(1).as_deref() {
        Some("mutex") => {
            let (a, b) = (Arc::new(Mutex::new(1)), Arc::new(Mutex::new(2)));
            let one = transfer("pay", a.clone(), b.clone());
            let two = transfer("refund", b, a);
            one.join().unwrap();
            two.join().unwrap();
        }
        Some("condvar") => {
            let pair = (Mutex::new(false), Condvar::new());
            let mut ready = pair.0.lock().unwrap();
            while !*ready {
                ready = pair.1.wait(ready).unwrap();
            }
        }
        Some("channel") => {
            let (send, receive) = mpsc::channel::<i32>();
            let _kept = send;
            println!("{:?}", receive.recv());
        }
        Some("loop") => loop {
            std::hint::spin_loop();
        },
        Some("sleep") => thread::sleep(Duration::from_secs(60)),
        _ => std::process::exit(2),
    }
}
