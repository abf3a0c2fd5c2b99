// Types of Rust, and what this program finds out about them itself: run without arguments it prints facts.
// The bytes of enum values are printed, so that a reader of the debug info can be asked which variant they are.
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem::{align_of, offset_of, size_of, size_of_val};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub enum Level {
    Low = 1,
    Middle = 7,
    High = 200,
}

#[derive(Clone, Copy)]
pub enum Signed {
    Minus = -5,
    Plus = 5,
}

pub enum Payload {
    Nothing,
    Number(i64),
    Pair { left: u8, right: u32 },
    Text(String),
}

pub enum Single {
    Only(u32, u8),
}

#[repr(i16)]
pub enum Tagged {
    Negative(u32) = -2,
    Positive(u8) = 3,
}

pub struct Inner {
    pub small: u8,
    pub big: u64,
    pub middle: u16,
}

pub struct Node {
    pub value: i32,
    pub next: Option<Box<Node>>,
}

pub trait Shape {
    fn area(&self) -> f64;
}

pub struct Square {
    pub side: f64,
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.side * self.side
    }
}

pub struct Meters(pub f32);

pub union Either {
    pub bits: u32,
    pub real: f32,
}

pub struct Everything<'a, T> {
    pub flag: bool,
    pub letter: char,
    pub tiny: i8,
    pub huge: u128,
    pub real: f32,
    pub unit: (),
    pub tuple: (u8, u32, i16),
    pub array: [[u16; 3]; 2],
    pub text: &'a str,
    pub slice: &'a [Inner],
    pub string: String,
    pub numbers: Vec<i32>,
    pub queue: VecDeque<u8>,
    pub hash: HashMap<String, i32>,
    pub tree: BTreeMap<u32, String>,
    pub boxed: Box<Inner>,
    pub counted: Rc<Inner>,
    pub shared: Arc<Mutex<Inner>>,
    pub cell: RefCell<u32>,
    pub shape: Box<dyn Shape>,
    pub call: fn(i32) -> i32,
    pub pointer: *const Inner,
    pub level: Level,
    pub payload: Payload,
    pub generic: T,
    pub meters: Meters,
    pub nested: Inner,
}

pub struct Options<'a> {
    pub reference: Option<&'a u32>,
    pub boxed: Option<Box<u32>>,
    pub truth: Option<bool>,
    pub nested: Option<Option<bool>>,
    pub level: Option<Level>,
    pub letter: Option<char>,
    pub number: Option<u32>,
    pub text: Option<String>,
    pub result: Result<u8, String>,
    pub deep: Option<Result<Option<Box<u16>>, Level>>,
    pub payload: Option<Payload>,
    pub unit_error: Result<(), Level>,
}

pub static COUNTER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(5);
pub static mut TABLE: [u16; 4] = [1, 2, 3, 4];
thread_local! { static PER_THREAD: Cell<u32> = Cell::new(3); }

macro_rules! size {
    ($name:literal, $type:ty) => {
        println!("size|{}|{}", $name, size_of::<$type>());
        println!("align|{}|{}", $name, align_of::<$type>());
    };
}

macro_rules! fields {
    ($name:literal, $type:ty, $value:expr, $($field:ident),+) => {
        $(println!("field|{}|{}|{}|{}", $name, stringify!($field), offset_of!($type, $field), size_of_val(&$value.$field));)+
    };
}

// The value's bytes, and the variants on the way in as its maker knows them
macro_rules! variant {
    ($type:ty, $field:literal, $path:literal, $value:expr) => {{
        // Padding is zeroed first; a move into place leaves it alone or copies what was there
        let mut room = std::mem::MaybeUninit::<$type>::zeroed();
        unsafe { room.as_mut_ptr().write($value) };
        let bytes = unsafe { std::slice::from_raw_parts(room.as_ptr() as *const u8, size_of::<$type>()) };
        let text: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("variant|{}|{}|{}", $field, $path, text.concat());
    }};
}

fn tell_variants() {
    let number = 7u32;
    variant!(Option<&u32>, "reference", "None", None);
    variant!(Option<&u32>, "reference", "Some", Some(&number));
    variant!(Option<Box<u32>>, "boxed", "None", None);
    variant!(Option<Box<u32>>, "boxed", "Some", Some(Box::new(1)));
    variant!(Option<bool>, "truth", "None", None);
    variant!(Option<bool>, "truth", "Some", Some(true));
    variant!(Option<bool>, "truth", "Some", Some(false));
    variant!(Option<Option<bool>>, "nested", "None", None);
    variant!(Option<Option<bool>>, "nested", "Some.None", Some(None));
    variant!(Option<Option<bool>>, "nested", "Some.Some", Some(Some(true)));
    variant!(Option<Level>, "level", "None", None);
    variant!(Option<Level>, "level", "Some", Some(Level::High));
    variant!(Option<char>, "letter", "None", None);
    variant!(Option<char>, "letter", "Some", Some('x'));
    variant!(Option<u32>, "number", "None", None);
    variant!(Option<u32>, "number", "Some", Some(0));
    variant!(Option<String>, "text", "None", None);
    variant!(Option<String>, "text", "Some", Some(String::from("some")));
    variant!(Result<u8, String>, "result", "Ok", Ok(3));
    variant!(Result<u8, String>, "result", "Err", Err(String::from("bad")));
    type Deep = Option<Result<Option<Box<u16>>, Level>>;
    variant!(Deep, "deep", "None", None);
    variant!(Deep, "deep", "Some.Ok.None", Some(Ok(None)));
    variant!(Deep, "deep", "Some.Ok.Some", Some(Ok(Some(Box::new(4)))));
    variant!(Deep, "deep", "Some.Err", Some(Err(Level::Middle)));
    variant!(Option<Payload>, "payload", "None", None);
    variant!(Option<Payload>, "payload", "Some.Nothing", Some(Payload::Nothing));
    variant!(Option<Payload>, "payload", "Some.Number", Some(Payload::Number(-1)));
    variant!(Option<Payload>, "payload", "Some.Pair", Some(Payload::Pair { left: 1, right: 2 }));
    variant!(Option<Payload>, "payload", "Some.Text", Some(Payload::Text(String::from("text"))));
    variant!(Result<(), Level>, "unit_error", "Ok", Ok(()));
    variant!(Result<(), Level>, "unit_error", "Err", Err(Level::Low));
}

fn tell_layout(all: &Everything<i16>, options: &Options) {
    size!("enums::Inner", Inner);
    size!("enums::Node", Node);
    size!("enums::Everything<i16>", Everything<i16>);
    size!("enums::Options", Options);
    size!("enums::Payload", Payload);
    size!("enums::Single", Single);
    size!("enums::Tagged", Tagged);
    size!("enums::Either", Either);
    fields!("enums::Inner", Inner, all.nested, small, big, middle);
    fields!("enums::Node", Node, Node { value: 1, next: None }, value, next);
    fields!(
        "enums::Everything<i16>", Everything<i16>, all, flag, letter, tiny, huge, real, unit, tuple, array, text, slice, string, numbers, queue,
        hash, tree, boxed, counted, shared, cell, shape, call, pointer, level, payload, generic, meters, nested
    );
    println!("field|enums::Everything<i16>|tuple.__0|{}|1", offset_of!(Everything<i16>, tuple.0));
    println!("field|enums::Everything<i16>|tuple.__1|{}|4", offset_of!(Everything<i16>, tuple.1));
    println!("field|enums::Everything<i16>|nested.middle|{}|2", offset_of!(Everything<i16>, nested.middle));
    fields!(
        "enums::Options", Options, options, reference, boxed, truth, nested, level, letter, number, text, result, deep, payload, unit_error
    );
    println!("enum|enums::Level|Low|1\nenum|enums::Level|Middle|7\nenum|enums::Level|High|{}", Level::High as i32);
    println!("enum|enums::Signed|Minus|{}\nenum|enums::Signed|Plus|5", Signed::Minus as i64);
}

#[no_mangle]
#[inline(never)]
pub fn handle(all: &Everything<i16>, maybe: Option<&Inner>, list: &mut Node, words: &[String], level: Level, how: &dyn Shape) -> Result<u32, String> {
    list.value += words.len() as i32 + level as i32;
    if maybe.is_none() && how.area() > 1e9 {
        return Err(all.string.clone());
    }
    Ok(list.value as u32 + PER_THREAD.with(|cell| cell.get()))
}

#[no_mangle]
#[inline(never)]
pub fn judge(single: &Single, tagged: &Tagged, either: &Either, signed: Signed) -> i64 {
    let Single::Only(first, second) = single;
    let more = match tagged {
        Tagged::Negative(value) => *value as i64,
        Tagged::Positive(value) => *value as i64,
    };
    more + *first as i64 + *second as i64 + unsafe { either.bits } as i64 + signed as i64
}

fn main() {
    let nested = || Inner { small: 1, big: 2, middle: 3 };
    let slice = [nested()];
    let all = Everything {
        flag: true, letter: 'x', tiny: -1, huge: 1 << 100, real: 1.5, unit: (), tuple: (1, 2, 3), array: [[1, 2, 3], [4, 5, 6]], text: "text",
        slice: &slice, string: String::from("string"), numbers: vec![1, 2, 3], queue: VecDeque::new(), hash: HashMap::new(),
        tree: BTreeMap::new(), boxed: Box::new(nested()), counted: Rc::new(nested()), shared: Arc::new(Mutex::new(nested())),
        cell: RefCell::new(1), shape: Box::new(Square { side: 2.0 }), call: |by| by + 1, pointer: &slice[0], level: Level::Middle,
        payload: Payload::Pair { left: 1, right: 2 }, generic: 5i16, meters: Meters(1.0), nested: nested(),
    };
    let options = Options {
        reference: None, boxed: None, truth: None, nested: None, level: None, letter: None, number: None, text: None, result: Ok(1), deep: None,
        payload: None, unit_error: Ok(()),
    };
    tell_layout(&all, &options);
    tell_variants();
    println!("address|enums::COUNTER|{}", &raw const COUNTER as usize);
    println!("address|enums::TABLE|{}", &raw const TABLE as usize);
    println!("address|handle|{}", handle as *const () as usize);
    let mut node = Node { value: 1, next: Some(Box::new(Node { value: 2, next: None })) };
    let result = handle(&all, Some(&all.nested), &mut node, &[], Level::Low, &Square { side: 1.0 });
    let sum = judge(&Single::Only(1, 2), &Tagged::Positive(3), &Either { bits: 4 }, Signed::Minus);
    let sum = sum + judge(&Single::Only(1, 2), &Tagged::Negative(3), &Either { real: 4.0 }, Signed::Plus);
    std::process::exit((result.is_err() || sum == 99 || options.number.is_some()) as i32);
}
