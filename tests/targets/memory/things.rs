// Rust variables for debug_memory. Prints "ready", then lives until its standard input ends; each line there makes it print what it has.
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

#[derive(Clone, Copy, PartialEq)]
pub enum Shape {
    Idle,
    Circle(f64),
    Rect { w: u32, h: u32 },
}

pub struct Order {
    pub id: u32,
    pub name: &'static str,
    pub shape: Shape,
    pub tag: Option<u16>,
}

mod shop {
    use super::*;
    pub static TOTAL: AtomicU64 = AtomicU64::new(5);
    pub static mut LEVEL: i32 = -3;
    pub static mut ORDERS: [Order; 2] =
        [Order { id: 7, name: "bolt", shape: Shape::Circle(2.5), tag: Some(9) }, Order { id: 8, name: "nut", shape: Shape::Rect { w: 3, h: 4 }, tag: None }];
    pub static NAME: &str = "a shop";
    pub static LETTER: char = 'ß';
}
static TABLE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static NAMES: Mutex<Option<HashMap<String, u32>>> = Mutex::new(None);
thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(4) };
    static WORDS: RefCell<Vec<String>> = RefCell::new(Vec::new());
}

fn next() -> u32 {
    static COUNTER: AtomicU64 = AtomicU64::new(100);
    COUNTER.fetch_add(1, Ordering::SeqCst) as u32
}

fn main() {
    TABLE.lock().unwrap().extend([3, 1, 4]);
    *NAMES.lock().unwrap() = Some(HashMap::from([("a".to_string(), 1), ("b".to_string(), 2)]));
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    WORDS.with(|words| words.borrow_mut().push("hello".to_string()));
    shop::TOTAL.fetch_add(u64::from(next()), Ordering::SeqCst);
    println!("ready {} {}", shop::NAME, shop::LETTER);
    for line in std::io::stdin().lock().lines() {
        line.unwrap();
        let (level, id, w) = unsafe {
            let orders = &*std::ptr::addr_of!(shop::ORDERS);
            (shop::LEVEL, orders[0].id, if let Shape::Rect { w, h } = orders[1].shape { w * h } else { 0 })
        };
        println!("total {} level {} id {} area {} depth {} table {:?}", shop::TOTAL.load(Ordering::SeqCst), level, id, w, DEPTH.with(Cell::get), TABLE.lock().unwrap());
    }
}
