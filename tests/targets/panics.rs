// Rust: panics caught and joined, drop order, generics, trait objects, closures, iterators; `panics uncaught` ends by a panic of the main thread.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic;
use std::thread;

thread_local! { static TRAIL: RefCell<String> = const { RefCell::new(String::new()) }; }

struct Guard(u32);

impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        TRAIL.with(|trail| trail.borrow_mut().push_str(&(self.0 % 10).to_string()));
    }
}

trait Shape {
    fn area(&self) -> u64;
    #[inline(never)]
    fn twice(&self) -> u64 {
        self.area() * 2
    }
}

struct Square(u64);
struct Wide<T>(T, T);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}

impl<T: Copy + Into<u64>> Shape for Wide<T> {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0.into() * self.1.into()
    }
}

#[inline(never)]
fn descend(depth: u32, kind: u32) -> u32 {
    let _guard = Guard(depth);
    if depth == 0 {
        match kind % 4 {
            0 => panic!("kind {kind}"),
            1 => {
                let empty: Vec<u32> = Vec::new();
                return empty[kind as usize];
            }
            2 => return None::<u32>.expect("nothing here"),
            _ => return kind,
        }
    }
    descend(depth - 1, kind) + 1
}

#[inline(never)]
fn attempt(depth: u32, kind: u32) -> u32 {
    match panic::catch_unwind(|| descend(depth, kind)) {
        Ok(value) => value,
        Err(cause) => match cause.downcast_ref::<String>() {
            Some(text) => text.len() as u32,
            None => cause.downcast_ref::<&str>().map_or(1000, |text| text.len() as u32),
        },
    }
}

#[inline(never)]
fn apply<F: Fn(u32) -> u32>(call: F, value: u32) -> u32 {
    call(value)
}

#[inline(never)]
fn try_question(value: u32) -> Result<u32, String> {
    let checked = value.checked_sub(10).ok_or_else(|| format!("{value} is too small"))?;
    Ok(checked * 2)
}

fn main() {
    let how = std::env::args().nth(1).unwrap_or_default();
    println!("start {how}");
    if how == "uncaught" {
        println!("{}", descend(4, 0));
        return;
    }
    panic::set_hook(Box::new(|info| eprintln!("hook: {}", info.location().map_or(0, |at| at.line()))));
    let mut sum = 0u64;
    for round in 0..400 {
        sum += u64::from(attempt(round % 9, round));
    }
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(7)), Box::new(Wide(3u32, 9u32)), Box::new(Wide(2u8, 4u8))];
    let areas: u64 = shapes.iter().map(|shape| shape.twice()).sum();
    let offset = areas as u32;
    let closed = apply(|value| value.wrapping_mul(offset), 12);
    let mut words = BTreeMap::new();
    for number in 0..300u32 {
        *words.entry(try_question(number % 40).unwrap_or_else(|text| text.len() as u32)).or_insert(0u32) += 1;
    }
    let joined: Vec<bool> = (0..6).map(|n| thread::spawn(move || descend(n, n)).join().is_ok()).collect();
    let trail = TRAIL.with(|trail| trail.borrow().len());
    println!("sum {sum} areas {areas} closed {closed} words {words:?} joined {joined:?} trail {trail}");
    std::process::exit(if how == "abort" { std::process::abort() } else { 11 });
}
