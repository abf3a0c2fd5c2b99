// Trait objects handed over in every way, and pairs with wide numbers: what a plan copies of each at the call and at the return shows all of it.
use std::error::Error;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

pub trait Shape {
    fn area(&self) -> f64;
}
pub struct Circle {
    radius: f64,
    label: String,
}
pub struct Wide {
    first: u64,
    filler: [u16; 200],
    last: String,
}
#[repr(align(64))]
pub struct Aligned {
    side: f64,
    names: Vec<String>,
}
pub struct Holder {
    inner: Box<dyn Shape>,
}
#[derive(Debug)]
pub struct Broken {
    why: String,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.radius
    }
}
impl Shape for Wide {
    fn area(&self) -> f64 {
        (self.first + self.last.len() as u64 + self.filler[199] as u64) as f64
    }
}
impl Shape for Aligned {
    fn area(&self) -> f64 {
        self.side + self.names.len() as f64
    }
}
impl Shape for Holder {
    fn area(&self) -> f64 {
        self.inner.area()
    }
}
impl Shape for u32 {
    fn area(&self) -> f64 {
        *self as f64
    }
}
impl std::fmt::Display for Broken {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str(&self.why)
    }
}
impl Error for Broken {}

macro_rules! case {
    ($name:ident, $argument:ident: $kind:ty, $body:expr) => {
        #[no_mangle]
        #[inline(never)]
        pub fn $name($argument: $kind) -> f64 {
            black_box(stringify!($name)); // no two have the same code
            black_box($body)
        }
    };
}

case!(case_reference, shape: &dyn Shape, shape.area());
case!(case_exclusive, shape: &mut dyn Shape, shape.area());
case!(case_boxed, shape: Box<dyn Shape>, shape.area());
case!(case_counted, shape: Rc<dyn Shape>, shape.area());
case!(case_aligned, shape: Arc<dyn Shape>, shape.area());
case!(case_wide, shape: &dyn Shape, shape.area());
case!(case_number, shape: &dyn Shape, shape.area());
case!(case_nested, shape: &dyn Shape, shape.area());
case!(case_list, shapes: &[Box<dyn Shape>], shapes.iter().map(|one| one.area()).sum());
case!(case_option, shape: Option<&dyn Shape>, shape.map_or(0.0, |one| one.area()));
case!(case_closure, called: &dyn Fn(u16) -> f64, called(2));
case!(case_error, error: &(dyn Error + Send + Sync), error.to_string().len() as f64);
case!(case_gone, shape: &dyn Shape, &shape as *const _ as usize as f64);
case!(case_wrong, shape: &dyn Shape, &shape as *const _ as usize as f64);

case!(case_wide_pair, pair: (u128, u64), pair.0 as f64 + pair.1 as f64);
case!(case_wide_turned, pair: (u8, i128), pair.0 as f64 + pair.1 as f64);
case!(case_wide_float, pair: (u128, f64), pair.0 as f64 + pair.1);
case!(case_wide_two, pair: (i128, u128), pair.0 as f64 + pair.1 as f64);
case!(case_wide_option, maybe: Option<i128>, maybe.map_or(0.0, |one| one as f64));
case!(case_wide_none, maybe: Option<u128>, maybe.map_or(0.0, |one| one as f64));

#[no_mangle]
#[inline(never)]
pub fn case_give_wide(number: u128) -> Option<u128> {
    black_box(number.checked_add(1 << 90))
}

#[no_mangle]
#[inline(never)]
pub fn case_give_boxed(radius: f64) -> Box<dyn Shape> {
    black_box(Box::new(Circle { radius, label: "a given circle".into() }))
}

#[no_mangle]
#[inline(never)]
pub fn case_give_error(number: u32) -> Result<(), Box<dyn Error>> {
    black_box(Err(Box::new(Broken { why: format!("number {number} is bad") })))
}

fn circle(radius: f64) -> Circle {
    Circle { radius, label: "a circle with a long label".into() }
}

fn wait_for_file() {
    while std::env::args().nth(1).is_some_and(|file| !std::path::Path::new(&file).exists()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn main() {
    wait_for_file();
    let wide = Wide { first: 1, filler: [7; 200], last: "at its end".into() };
    let list: Vec<Box<dyn Shape>> = vec![Box::new(circle(1.0)), Box::new(5u32)];
    let (factor, text) = (black_box(3.0), black_box(String::from("captured")));
    let shown = circle(8.0);
    let halves: (usize, usize) = unsafe { std::mem::transmute(&shown as &dyn Shape) };
    let gone: &dyn Shape = unsafe { std::mem::transmute((16usize, halves.1)) };
    let wrong: &dyn Shape = unsafe { std::mem::transmute((halves.0, 4096usize)) };
    let mut sum = case_reference(&circle(2.5)) + case_exclusive(&mut circle(3.5)) + case_boxed(Box::new(circle(4.5)));
    sum += case_counted(Rc::new(circle(5.5))) + case_aligned(Arc::new(Aligned { side: 6.5, names: vec!["one".into(), "two".into()] }));
    sum += case_wide(&wide) + case_number(&12u32) + case_nested(&Holder { inner: Box::new(circle(7.5)) }) + case_list(&list) + case_option(Some(&shown));
    sum += case_closure(&move |by: u16| factor * by as f64 + text.len() as f64) + case_error(&Broken { why: "a reason".into() });
    sum += case_gone(gone) + case_wrong(wrong) + case_give_boxed(9.5).area() + case_give_error(3).is_err() as u32 as f64;
    sum += case_wide_pair(black_box((1 << 70, 2))) + case_wide_turned(black_box((7, -8))) + case_wide_float(black_box((1 << 80, 2.5)));
    sum += case_wide_two(black_box((-1 << 66, 1 << 127))) + case_wide_option(black_box(Some(-3))) + case_wide_none(black_box(None));
    sum += case_give_wide(black_box(3)).unwrap() as f64;
    println!("{sum}");
}
