// Arguments and results of all kinds: how each travels is read from the compiler's own intermediate code (test_indexer_rust_passing.py).
// `a_…` take one before a number, `r_…` return one.
use std::hint::black_box;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;
use std::time::Duration;

pub struct Two(pub u64, pub u8);
pub struct Turned(pub u8, pub u32);
pub struct Three(pub u8, pub u16, pub u32);
pub struct ThreeWords(pub u64, pub u32, pub u32);
pub struct Big(pub u64, pub u64, pub u64);
pub struct Floats(pub f32, pub f32);
pub struct FourFloats(pub f32, pub f32, pub f32, pub f32);
pub struct Doubles(pub f64, pub f64);
pub struct Mixed(pub f64, pub u32);
pub struct Nested(pub (u32, ()), pub u16);
pub struct Newtype(pub f64);
pub struct Named<'a>(pub &'a str, pub u64);
pub struct Wide(pub u128, pub u64);
pub struct WideTwo(pub u128, pub u128);
pub enum Unlike { A(u64), B(u32), C }
pub enum Kinds { A(u64), B(f64), C }
pub enum Short { A(u8, u8), B(u16), C }
pub enum Bytes { A([u8; 12]), C }
pub union Either { pub a: u64, pub b: f64 }
#[repr(C)]
pub struct Foreign(pub u64, pub u8);

macro_rules! taken {
    ($($name:ident: $type:ty;)*) => {
        $(#[no_mangle] #[inline(never)] pub fn $name(value: $type, marker: u64) -> u64 { black_box(&value); marker })*
    };
}

macro_rules! returned {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(#[no_mangle] #[inline(never)] pub fn $name(marker: u64) -> $type { black_box(marker); $value })*
    };
}

taken! {
    a_option_byte: Option<u8>; a_option_word: Option<u64>; a_option_float: Option<f64>; a_option_bool: Option<bool>; a_option_str: Option<&str>;
    a_option_slice: Option<&[u8]>; a_option_string: Option<String>; a_option_pair: Option<(u8, bool)>; a_option_box: Option<Box<u8>>;
    a_option_dyn: Option<Box<dyn Fn()>>; a_option_rc: Option<Rc<str>>; a_option_duration: Option<Duration>; a_option_wide: Option<u128>;
    a_result_same: Result<u32, u32>; a_result_kinds: Result<u32, f32>; a_result_sizes: Result<u64, u32>; a_result_unit: Result<(), u8>;
    a_result_box: Result<u64, Box<u8>>; a_result_string: Result<u32, String>; a_result_str: Result<&str, ()>;
    a_two: Two; a_turned: Turned; a_three: Three; a_three_words: ThreeWords; a_big: Big; a_floats: Floats; a_four_floats: FourFloats; a_doubles: Doubles;
    a_mixed: Mixed; a_nested: Nested; a_newtype: Newtype; a_named: Named; a_wide: Wide; a_wide_two: WideTwo; a_foreign: Foreign;
    a_unlike: Unlike; a_kinds: Kinds; a_short: Short; a_bytes: Bytes; a_either: Either;
    a_array: [u8; 4]; a_array_nine: [u8; 9]; a_array_floats: [f32; 2]; a_number: u128; a_duration: Duration; a_range: Range<u32>;
    a_inclusive: RangeInclusive<u32>; a_char: char; a_unit: (); a_vec: Vec<u8>; a_str: &str; a_dyn: &dyn Fn(); a_tuple: (u8, u8); a_tuple_three: (u8, u8, u8);
    a_tuple_float: (f64, f32); a_rc: Rc<str>; a_tuple_wide: (u128, u64); a_tuple_turned: (u8, i128); a_tuple_wide_two: (i128, u128);
    a_tuple_wide_float: (u128, f64); a_option_signed: Option<i128>; a_wide_three: (u128, u64, u64); a_result_wide: Result<u128, u128>;
}

returned! {
    r_option_byte: Option<u8> = Some(1); r_option_word: Option<u64> = Some(1); r_option_float: Option<f64> = Some(1.0); r_option_str: Option<&'static str> = None;
    r_three: Three = Three(1, 2, 3); r_big: Big = Big(1, 2, 3); r_floats: Floats = Floats(1.0, 2.0); r_doubles: Doubles = Doubles(1.0, 2.0);
    r_mixed: Mixed = Mixed(1.0, 2); r_array: [u8; 16] = [1; 16]; r_number: u128 = 5; r_wide: Wide = Wide(1, 2); r_kinds: Kinds = Kinds::B(1.0);
    r_vec: Vec<u8> = Vec::new(); r_result: Result<u32, String> = Ok(1); r_duration: Duration = Duration::ZERO; r_tuple: (u8, u8) = (1, 2);
    r_tuple_three: (u8, u8, u8) = (1, 2, 3); r_result_sizes: Result<u64, u32> = Ok(1);
    r_tuple_wide: (u128, u64) = (1, 2); r_option_wide: Option<u128> = Some(1);
}
