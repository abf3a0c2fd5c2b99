// One function for each way a Rust argument or result can travel. Functions to be checked have `case_` in their name.
use std::fmt::Debug;
use std::hint::black_box;
use std::num::NonZeroU32;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Color {
    Red = 1,
    Green = 200,
}

#[derive(Debug)]
pub enum Shape {
    Circle(f64),
    Square { side: u32, name: String },
}

#[derive(Clone, Copy)]
pub struct Meters(f64);
#[derive(Clone, Copy)]
pub struct Id(u32);
pub struct Unit;
#[derive(Clone, Copy)]
pub struct Pair {
    x: i32,
    y: i32,
}
#[derive(Clone, Copy)]
pub struct Three {
    a: u64,
    b: u64,
    c: u64,
}
#[derive(Clone, Copy)]
pub struct Mixed {
    a: u64,
    b: f64,
}
pub trait Speak {
    fn case_speak(&self, times: u8) -> i64;
}
impl Speak for Id {
    #[inline(never)]
    fn case_speak(&self, times: u8) -> i64 {
        black_box(self.0 as i64 * times as i64)
    }
}
impl Id {
    #[inline(never)]
    fn case_method(&mut self, by: u32, scale: f32) -> u32 {
        self.0 += by * scale as u32;
        self.0
    }
    #[inline(never)]
    fn case_by_value(self, by: u16) -> Id {
        Id(self.0 + by as u32)
    }
}

#[inline(never)]
fn case_integers(a: i8, b: u8, c: i16, d: u16, e: i32, f: u32, g: i64, h: u64) -> i64 {
    black_box(a as i64 + b as i64 + c as i64 + d as i64 + e as i64 + f as i64 + g + h as i64)
}
#[inline(never)]
fn case_floats(a: f32, b: f64, c: f32) -> f64 {
    black_box(a as f64 + b + c as f64)
}
#[inline(never)]
fn case_f32(a: f32) -> f32 {
    black_box(a * 2.0)
}
#[inline(never)]
fn case_bool_char(a: bool, b: char, c: usize) -> bool {
    black_box(a && b as usize > c)
}
#[inline(never)]
fn case_char(a: char) -> char {
    black_box(a)
}
#[inline(never)]
fn case_references(a: &i32, b: &mut u64, c: *const u8, d: Box<i32>) -> i32 {
    *b += 1;
    black_box(*a + *d + !c.is_null() as i32)
}
#[inline(never)]
fn case_str(before: i32, text: &str, after: i32) -> usize {
    black_box(text.len() + before as usize + after as usize)
}
#[inline(never)]
fn case_slice(items: &[u32], after: u32) -> u32 {
    black_box(items[0] + after)
}
#[inline(never)]
fn case_string(text: String, after: u32) -> usize {
    black_box(text.len() + after as usize)
}
#[inline(never)]
fn case_string_reference(text: &String, after: u32) -> usize {
    black_box(text.len() + after as usize)
}
#[inline(never)]
fn case_dyn(value: &dyn Speak, after: u16) -> i64 {
    black_box(value.case_speak(3) + after as i64)
}
#[inline(never)]
fn case_box_dyn(value: Box<dyn Speak>, after: u16) -> i64 {
    black_box(value.case_speak(2) + after as i64)
}
#[inline(never)]
fn case_enum(color: Color, after: i32) -> Color {
    if black_box(after) > 0 { color } else { Color::Red }
}
#[inline(never)]
fn case_data_enum(shape: Shape, after: i32) -> i32 {
    black_box(match shape {
        Shape::Circle(radius) => radius as i32 + after,
        Shape::Square { side, name } => side as i32 + name.len() as i32 + after,
    })
}
#[inline(never)]
fn case_newtype(length: Meters, id: Id, after: i32) -> f64 {
    black_box(length.0 + id.0 as f64 + after as f64)
}
#[inline(never)]
fn case_unit(_nothing: Unit, _void: (), after: i32) {
    black_box(after);
}
#[inline(never)]
fn case_three(three: Three, after: i32) -> u64 {
    black_box(three.a + three.b + three.c + after as u64)
}
#[inline(never)]
fn case_small_struct(pair: Pair, after: i32) -> i32 {
    black_box(pair.x + pair.y + after)
}
#[inline(never)]
fn case_mixed(mixed: Mixed, after: i32) -> f64 {
    black_box(mixed.a as f64 + mixed.b + after as f64)
}
#[inline(never)]
fn case_option(value: Option<u32>, after: i32) -> Option<u32> {
    black_box(value.map(|inner| inner + after as u32))
}
#[inline(never)]
fn case_niche(value: Option<&u32>, number: Option<NonZeroU32>, after: u32) -> u32 {
    black_box(value.copied().unwrap_or(1) + number.map_or(2, NonZeroU32::get) + after)
}
#[inline(never)]
fn case_hidden_result(a: u32, b: u64) -> Three {
    black_box(Three { a: a as u64, b, c: 3 })
}
#[inline(never)]
fn case_string_result(a: u32, text: &u8) -> String {
    black_box(format!("{a} {text}"))
}
#[inline(never)]
fn case_result(a: u32) -> Result<u32, String> {
    if black_box(a) > 5 { Ok(a) } else { Err("small".to_string()) }
}
#[inline(never)]
fn case_tuple(pair: (u32, u32), after: u32) -> (u32, u32) {
    black_box((pair.0 + after, pair.1))
}
#[inline(never)]
fn case_wide(a: u128, after: u32) -> u128 {
    black_box(a + after as u128)
}
#[inline(never)]
fn case_wide_pair(pair: (u128, u64), maybe: Option<i128>, after: u32) -> u64 {
    black_box(pair.0 as u64 + pair.1 + maybe.unwrap_or(5) as u64 + after as u64)
}
#[inline(never)]
fn case_wide_float(pair: (u128, f64), turned: (u8, i128), after: u32) -> f64 {
    black_box(pair.0 as f64 + pair.1 + turned.0 as f64 + turned.1 as f64 + after as f64)
}
#[inline(never)]
fn case_many(a: u64, b: &str, c: u64, d: u64, e: &str, f: u64, g: u64) -> u64 {
    black_box(a + b.len() as u64 + c + d + e.len() as u64 + f + g)
}
#[inline(never)]
fn case_generic<T: Debug>(value: &T, after: u32) -> usize {
    black_box(format!("{value:?}").len() + after as usize)
}
#[inline(never)]
fn case_callback(operation: fn(i32) -> i32, value: i32) -> i32 {
    black_box(operation(value))
}
#[no_mangle]
#[inline(never)]
pub extern "C" fn case_exported(a: i32, b: f64, c: Three, d: i32) -> i32 {
    black_box(a + b as i32 + c.b as i32 + d)
}
#[inline(never)]
fn case_unused(_unused: u32, used: u32, text: &u8) -> u32 {
    black_box(used + *text as u32)
}

// Keeps the optimiser from seeing what is passed.
macro_rules! call {
    ($function:ident($($argument:expr),*)) => {
        $function($(black_box($argument)),*)
    };
}

fn double(value: i32) -> i32 {
    value * 2
}

fn main() {
    let mut total = 0f64;
    for turn in 0..2i32 {
        let mut number = 5u64;
        let three = Three { a: 1, b: 2, c: 3 };
        total += call!(case_integers(-1, 255, -300, 60000, -70000, 4_000_000_000, i64::MIN / 2, 1 << 40)) as f64;
        total += call!(case_floats(1.5, -2.25, 3.5)) + call!(case_f32(2.5)) as f64 + call!(case_bool_char(true, 'ß', 7)) as u8 as f64 + call!(case_char('x')) as u32 as f64;
        total += call!(case_references(&turn, &mut number, &8u8, Box::new(9))) as f64;
        total += (call!(case_str(11, "text", 12)) + call!(case_string("owned".to_string(), 13)) + call!(case_string_reference(&"referred".to_string(), 14))) as f64;
        total += call!(case_slice(&[1, 2, 3], 15)) as f64 + call!(case_dyn(&Id(2), 16)) as f64 + call!(case_box_dyn(Box::new(Id(3)), 17)) as f64;
        total += call!(case_enum(Color::Green, 18)) as i32 as f64 + call!(case_data_enum(Shape::Circle(1.5), 19)) as f64;
        total += call!(case_data_enum(Shape::Square { side: 2, name: "n".into() }, 20)) as f64 + call!(case_newtype(Meters(2.5), Id(21), 22));
        call!(case_unit(Unit, (), 23 + turn));
        total += call!(case_three(three, 24)) as f64 + call!(case_small_struct(Pair { x: 1, y: 2 }, 25)) as f64 + call!(case_mixed(Mixed { a: 1, b: 2.5 }, 26));
        total += call!(case_option(Some(3), 27)).unwrap() as f64 + call!(case_niche(Some(&4), NonZeroU32::new(5), 28)) as f64;
        total += call!(case_hidden_result(29, 30)).a as f64 + call!(case_string_result(31, &32)).len() as f64 + call!(case_result(33)).unwrap() as f64;
        total += call!(case_tuple((1, 2), 34)).0 as f64 + call!(case_wide(1 << 100, 35)) as f64 + call!(case_wide_pair((1 << 70, 2), Some(-3), 48)) as f64 + call!(case_wide_float((1 << 80, 2.5), (7, -8), 49)) + call!(case_many(1, "two", 3, 4, "five", 6, 7)) as f64;
        total += call!(case_generic(&turn, 36)) as f64 + call!(case_generic(&"str", 37)) as f64 + call!(case_callback(double, 38)) as f64;
        total += call!(case_exported(39, 40.5, three, 41)) as f64 + call!(case_unused(42, 43, &44)) as f64;
        let mut id = Id(45);
        total += id.case_method(black_box(46), black_box(2.0)) as f64 + black_box(id).case_by_value(black_box(47)).0 as f64 + black_box(id).case_speak(black_box(3)) as f64;
    }
    println!("{total}");
}
