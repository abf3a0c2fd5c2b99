// Panics that nobody catches: `deaths HOW`.
use std::collections::BTreeMap;
use std::io::Write;

#[derive(Debug)]
struct Order {
    id: u32,
    cents: Vec<u32>,
}

#[inline(never)]
fn settle(how: &str, order: &Order, index: usize) -> u32 {
    let mut totals: BTreeMap<u32, u32> = BTreeMap::new();
    totals.insert(order.id, order.cents.iter().sum());
    let sum = totals[&order.id];
    match how {
        "panic" => panic!("order {} is {} short\nby two lines", order.id, sum),
        "index" => order.cents[index],
        "unwrap" => None::<u32>.unwrap(),
        "result" => "x1".parse::<u32>().expect("a number"),
        "overflow" => deeper(order, 1),
        _ => sum,
    }
}

#[inline(never)]
#[allow(unconditional_recursion)]
fn deeper(order: &Order, depth: u32) -> u32 {
    let room = [depth; 64];
    deeper(order, depth + 1) + std::hint::black_box(room)[3]
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    println!("dies of {way}");
    std::io::stdout().flush().unwrap();
    let order = Order { id: 7, cents: vec![1, 2, 3] };
    if let Some(how) = way.strip_prefix("thread:") {
        let how = how.to_string();
        let worker = std::thread::Builder::new().name("worker".into()).spawn(move || settle(&how, &order, 12)).unwrap();
        println!("{}", if worker.join().is_err() { "goes on" } else { "?" });
        return;
    }
    println!("{}", settle(&way, &order, 12));
}
