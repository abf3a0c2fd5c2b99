// Scalars, structs, tuples, arrays, unions, pointers and functions.
use crate::json::{object, pointed, quoted, Json};
use crate::{group, shown_struct};
use std::marker::PhantomData;
use std::num::{NonZeroI64, NonZeroU8, Wrapping};
use std::ptr::NonNull;

shown_struct!(Inner { small: u8, big: u64, middle: u16 });
shown_struct!(Outer { first: Inner, name: &'static str, second: (u8, Inner) });
shown_struct!(#[repr(C, packed)] Packed { one: u8, four: [u8; 4] });
shown_struct!(#[repr(align(64))] Aligned { one: u8, two: u16 });

pub struct Unit;
pub struct Meters(pub f32);
pub struct Pair(pub u8, pub Inner);
pub struct Named<T>(pub u32, pub PhantomData<T>);
pub struct Marked<T> {
    pub id: u32,
    pub marker: PhantomData<T>,
}
pub struct Tail<T: ?Sized> {
    pub head: u16,
    pub rest: T,
}
pub union Either {
    pub bits: u32,
    pub real: f32,
}

impl Json for Unit {
    fn json(&self) -> String {
        quoted("Unit")
    }
}
impl Json for Meters {
    fn json(&self) -> String {
        self.0.json()
    }
}
impl Json for Pair {
    fn json(&self) -> String {
        format!("[{}, {}]", self.0.json(), self.1.json())
    }
}
impl<T> Json for Named<T> {
    fn json(&self) -> String {
        self.0.json()
    }
}
impl<T> Json for Marked<T> {
    fn json(&self) -> String {
        object(&[("id", self.id.json())])
    }
}
impl<T: Json> Json for Tail<T> {
    fn json(&self) -> String {
        object(&[("head", self.head.json()), ("rest", self.rest.json())])
    }
}
impl Json for Either {
    fn json(&self) -> String {
        unsafe { object(&[("bits", self.bits.json()), ("real", self.real.json())]) }
    }
}

group!(Scalars {
    yes: bool = true;
    no: bool = false;
    letter: char = 'x';
    accent: char = 'é';
    crab: char = '🦀';
    bell: char = '\u{7}';
    quote: char = '"';
    byte: u8 = 65;
    signed8: i8 = -128;
    signed16: i16 = i16::MIN;
    signed32: i32 = -2_000_000_000;
    signed64: i64 = i64::MIN;
    signed128: i128 = i128::MIN;
    unsigned16: u16 = u16::MAX;
    unsigned32: u32 = u32::MAX;
    unsigned64: u64 = u64::MAX;
    unsigned128: u128 = u128::MAX;
    sized: usize = usize::MAX;
    signed: isize = -1;
    half: f32 = 0.5;
    tenth: f64 = 0.1;
    negative: f64 = -1.5e300;
    not_a_number: f64 = f64::NAN;
    infinite: f32 = f32::NEG_INFINITY;
    unit: () = ();
    non_zero: NonZeroU8 = NonZeroU8::new(7).unwrap(), shown |_| "7".into();
    non_zero_signed: NonZeroI64 = NonZeroI64::new(-7).unwrap(), shown |_| "-7".into();
    wrapping: Wrapping<u16> = Wrapping(9), shown |_| "9".into();
});

fn inner(small: u8) -> Inner {
    Inner { small, big: 1 << 40, middle: 300 }
}

group!(Structs {
    inner: Inner = inner(1);
    outer: Outer = Outer { first: inner(2), name: "outer", second: (3, inner(4)) };
    packed: Packed = Packed { one: 1, four: [1, 2, 3, 4] };
    aligned: Aligned = Aligned { one: 1, two: 2 };
    unit: Unit = Unit;
    newtype: Meters = Meters(2.5);
    pair: Pair = Pair(7, inner(5));
    tuple: (u8, u64, i16) = (1, 2, -3);
    tuple_of_one: (u8,) = (9,);
    nested: ((u8, bool), [u16; 2]) = ((1, true), [2, 3]);
    named: Named<String> = Named(17, PhantomData);
    marked: Marked<String> = Marked { id: 18, marker: PhantomData };
    tail: Tail<[u8; 3]> = Tail { head: 1, rest: [1, 2, 3] };
    array: [u32; 4] = [1, 2, 3, 4];
    grid: [[u16; 3]; 2] = [[1, 2, 3], [4, 5, 6]];
    empty: [u64; 0] = [];
    many: [u16; 130] = std::array::from_fn(|index| index as u16);
    structs: [Inner; 2] = [inner(1), inner(2)];
    units: [(); 3] = [(); 3];
    either: Either = Either { real: 1.5 };
});

pub extern "C" fn c_handler(by: i32) -> i32 {
    by + 1
}

pub fn handler(by: &str) -> usize {
    by.len()
}

static TARGET: Inner = Inner { small: 9, big: 99, middle: 999 };
static NUMBER: u32 = 77;
static BYTES: [u8; 4] = [1, 2, 3, 4];

fn function(address: usize, name: &str) -> String {
    quoted(&format!("{address:#x} <{name}>"))
}

group!(Pointers {
    reference: &'static Inner = &TARGET;
    exclusive: &'static mut Inner = Box::leak(Box::new(inner(6)));
    number: &'static u32 = &NUMBER;
    twice: &'static &'static u32 = Box::leak(Box::new(&NUMBER));
    raw: *const Inner = &raw const TARGET;
    raw_mutable: *mut u16 = Box::leak(Box::new(5u16));
    null: *const Inner = std::ptr::null();
    unknown: *const () = std::ptr::dangling(), shown |all| quoted(&format!("{:#x}", all.unknown as usize));
    dangling: *const u64 = 0x1000 as *const u64, shown |_| quoted("<unreadable 0x1000>");
    non_null: NonNull<Inner> = NonNull::from(&TARGET), shown |all| all.non_null.as_ptr().json();
    text: &'static str = "text \"quoted\" naïve 🦀\n";
    empty_text: &'static str = "";
    long_text: &'static str = Box::leak("0123456789abcdef".repeat(100).into_boxed_str());
    slice: &'static [Inner] = Box::leak(vec![inner(1), inner(2)].into_boxed_slice());
    exclusive_slice: &'static mut [u16] = Box::leak(vec![1, 2, 3].into_boxed_slice());
    empty_slice: &'static [u64] = &[];
    bytes: &'static [u8] = &BYTES;
    raw_slice: *const [u8] = &raw const BYTES, shown |all| pointed(all.raw_slice as *const u8 as usize, "[1, 2, 3, 4]".into());
    texts: &'static [&'static str] = &["one", "two", ""];
    array: &'static [u8; 4] = &BYTES;
    tail: &'static Tail<[u8]> = Box::leak(Box::new(Tail { head: 3, rest: [1, 2, 3] })),
        shown |all| pointed(&all.tail.head as *const u16 as usize, object(&[("head", "3".into()), ("rest", quoted("<cut>"))]));
    function: fn(&str) -> usize = handler, shown |all| function(all.function as usize, "rust::kinds::handler");
    c_function: extern "C" fn(i32) -> i32 = c_handler, shown |all| function(all.c_function as usize, "rust::kinds::c_handler");
});

pub fn tell() {
    Scalars::tell();
    Structs::tell();
    Pointers::tell();
}
