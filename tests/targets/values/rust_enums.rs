// Enums in all encodings: tagged, niche in one or several places, without values, with given discriminants.
use crate::group;
use crate::json::{object, quoted, Json};
use std::borrow::Cow;
use std::convert::Infallible;
use std::num::NonZeroU32;

#[derive(Clone, Copy)]
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

#[derive(Clone, Copy)]
pub enum Bits {
    None = 0,
    One = 1,
    Two = 2,
    Four = 4,
}

pub enum Payload {
    Nothing,
    Number(i64),
    Pair(u8, u32),
    Rect { width: u8, height: u32 },
    Single { text: String },
    Empty {},
    Inner(Level),
    Words(Vec<&'static str>),
}

pub enum Only {
    One(u32, u8),
}

pub enum OnlyUnit {
    Here,
}

#[repr(i16)]
pub enum Tagged {
    Negative(u32) = -2,
    Positive { value: u8 } = 3,
    Far = 300,
}

#[repr(C)]
pub enum LikeC {
    A(u8),
    B { x: u64 },
}

// Niches of `bool` and of `Level` inside, on two levels
pub enum Wrapped {
    Flag(bool),
    None,
    Nothing,
}

pub enum Recursive {
    Leaf(i32),
    Node(Box<Recursive>, Box<Recursive>),
}

pub enum Huge {
    Small = 1,
    Big = 0x7fff_ffff_ffff_fff0,
}

// A variant that can't be, between others
pub enum Rare {
    Yes(u8),
    No(Infallible),
    Other,
}

// Values of the capacity of a String that it can't have mean the other variants, some with values of their own
pub enum Mixed {
    Text(String),
    Byte(u8),
    Wide { at: u64 },
    Nothing,
}

#[repr(u8)]
pub enum Small {
    Number(u32) = 5,
    Nothing = 9,
}

#[repr(C, u8)]
pub enum Both {
    First(u16),
    Second,
}

macro_rules! by_name {
    ($($type:ident : $($variant:ident),+;)*) => {
        $(impl Json for $type {
            fn json(&self) -> String {
                quoted(match self { $($type::$variant => stringify!($variant)),+ })
            }
            fn key(&self) -> Option<String> {
                Some(self.json())
            }
        })*
    };
}

by_name!(
    Level: Low, Middle, High;
    Signed: Minus, Plus;
    Bits: None, One, Two, Four;
    OnlyUnit: Here;
    Huge: Small, Big;
);

impl Json for Payload {
    fn json(&self) -> String {
        match self {
            Payload::Nothing => quoted("Nothing"),
            Payload::Number(value) => object(&[("Number", value.json())]),
            Payload::Pair(left, right) => object(&[("Pair", (*left, *right).json())]),
            Payload::Rect { width, height } => object(&[("Rect", object(&[("width", width.json()), ("height", height.json())]))]),
            Payload::Single { text } => object(&[("Single", object(&[("text", text.json())]))]),
            Payload::Empty {} => quoted("Empty"),
            Payload::Inner(level) => object(&[("Inner", level.json())]),
            Payload::Words(words) => object(&[("Words", words.json())]),
        }
    }
}

impl Json for Only {
    fn json(&self) -> String {
        let Only::One(first, second) = self;
        object(&[("One", (*first, *second).json())])
    }
}

impl Json for Tagged {
    fn json(&self) -> String {
        match self {
            Tagged::Negative(value) => object(&[("Negative", value.json())]),
            Tagged::Positive { value } => object(&[("Positive", object(&[("value", value.json())]))]),
            Tagged::Far => quoted("Far"),
        }
    }
}

impl Json for LikeC {
    fn json(&self) -> String {
        match self {
            LikeC::A(value) => object(&[("A", value.json())]),
            LikeC::B { x } => object(&[("B", object(&[("x", x.json())]))]),
        }
    }
}

impl Json for Wrapped {
    fn json(&self) -> String {
        match self {
            Wrapped::Flag(value) => object(&[("Flag", value.json())]),
            Wrapped::None => quoted("None"),
            Wrapped::Nothing => quoted("Nothing"),
        }
    }
}

impl Json for Rare {
    fn json(&self) -> String {
        match self {
            Rare::Yes(value) => object(&[("Yes", value.json())]),
            Rare::No(never) => never.json(),
            Rare::Other => quoted("Other"),
        }
    }
}

impl Json for Mixed {
    fn json(&self) -> String {
        match self {
            Mixed::Text(value) => object(&[("Text", value.json())]),
            Mixed::Byte(value) => object(&[("Byte", value.json())]),
            Mixed::Wide { at } => object(&[("Wide", object(&[("at", at.json())]))]),
            Mixed::Nothing => quoted("Nothing"),
        }
    }
}

impl Json for Small {
    fn json(&self) -> String {
        match self {
            Small::Number(value) => object(&[("Number", value.json())]),
            Small::Nothing => quoted("Nothing"),
        }
    }
}

impl Json for Both {
    fn json(&self) -> String {
        match self {
            Both::First(value) => object(&[("First", value.json())]),
            Both::Second => quoted("Second"),
        }
    }
}

impl Json for std::cmp::Ordering {
    fn json(&self) -> String {
        quoted(&format!("{self:?}"))
    }
}

impl Json for Recursive {
    fn json(&self) -> String {
        match self {
            Recursive::Leaf(value) => object(&[("Leaf", value.json())]),
            Recursive::Node(left, right) => object(&[("Node", format!("[{}, {}]", left.json(), right.json()))]),
        }
    }
}

impl Json for Infallible {
    fn json(&self) -> String {
        match *self {}
    }
}

impl Json for NonZeroU32 {
    fn json(&self) -> String {
        self.get().json()
    }
}

impl Json for Cow<'_, str> {
    fn json(&self) -> String {
        (**self).json()
    }
}

impl Json for Cow<'_, [u16]> {
    fn json(&self) -> String {
        (**self).json()
    }
}

static NUMBER: u32 = 7;

group!(Enums {
    low: Level = Level::Low;
    high: Level = Level::High;
    minus: Signed = Signed::Minus;
    bits: Bits = Bits::Two;
    no_bits: Bits = Bits::None;
    only_unit: OnlyUnit = OnlyUnit::Here;
    small: Huge = Huge::Small;
    big: Huge = Huge::Big;
    nothing: Payload = Payload::Nothing;
    number: Payload = Payload::Number(-1);
    pair: Payload = Payload::Pair(1, 2);
    rect: Payload = Payload::Rect { width: 3, height: 4 };
    single: Payload = Payload::Single { text: String::from("inside") };
    empty: Payload = Payload::Empty {};
    inner: Payload = Payload::Inner(Level::Middle);
    words: Payload = Payload::Words(vec!["a", "b"]);
    only: Only = Only::One(5, 6);
    negative: Tagged = Tagged::Negative(8);
    positive: Tagged = Tagged::Positive { value: 9 };
    far: Tagged = Tagged::Far;
    like_c: LikeC = LikeC::B { x: 10 };
    like_c_short: LikeC = LikeC::A(11);
    flag: Wrapped = Wrapped::Flag(false);
    no_flag: Wrapped = Wrapped::Nothing;
    first_none: Wrapped = Wrapped::None;
    rare: Rare = Rare::Yes(1);
    rare_other: Rare = Rare::Other;
    mixed_text: Mixed = Mixed::Text("mixed".into());
    mixed_byte: Mixed = Mixed::Byte(2);
    mixed_wide: Mixed = Mixed::Wide { at: 3 };
    mixed_nothing: Mixed = Mixed::Nothing;
    small_number: Small = Small::Number(4);
    small_nothing: Small = Small::Nothing;
    both: Both = Both::First(5);
    both_second: Both = Both::Second;
    recursive: Recursive = Recursive::Node(Box::new(Recursive::Leaf(1)), Box::new(Recursive::Node(Box::new(Recursive::Leaf(2)), Box::new(Recursive::Leaf(3)))));
    several: [Payload; 3] = [Payload::Pair(1, 2), Payload::Nothing, Payload::Number(3)];
    level_list: Vec<Level> = vec![Level::Low, Level::High];
    borrowed: Cow<'static, str> = Cow::Borrowed("borrowed");
    owned: Cow<'static, str> = Cow::Owned(String::from("owned"));
    lent: Cow<'static, [u16]> = Cow::Borrowed(&[1, 2]);
    held: Cow<'static, [u16]> = Cow::Owned(vec![3, 4]);
});

type Deep = Option<Result<Option<Box<u16>>, Level>>;

group!(Options {
    no_reference: Option<&'static u32> = None;
    reference: Option<&'static u32> = Some(&NUMBER);
    no_box: Option<Box<u32>> = None;
    boxed: Option<Box<u32>> = Some(Box::new(8));
    no_truth: Option<bool> = None;
    truth: Option<bool> = Some(true);
    falsehood: Option<bool> = Some(false);
    nested_none: Option<Option<bool>> = None;
    nested_some: Option<Option<bool>> = Some(None);
    nested_all: Option<Option<bool>> = Some(Some(true));
    thrice: Option<Option<Option<u8>>> = Some(Some(None));
    no_level: Option<Level> = None;
    level: Option<Level> = Some(Level::High);
    no_letter: Option<char> = None;
    letter: Option<char> = Some('x');
    no_number: Option<u32> = None;
    number: Option<u32> = Some(0);
    wide: Option<u128> = Some(1 << 100);
    no_wide: Option<u128> = None;
    no_wide_signed: Option<i128> = None;
    wide_result: Result<i128, u8> = Err(5);
    no_non_zero: Option<NonZeroU32> = None;
    non_zero: Option<NonZeroU32> = Some(NonZeroU32::new(3).unwrap());
    no_text: Option<String> = None;
    text: Option<String> = Some(String::from("some"));
    empty_text: Option<String> = Some(String::new());
    no_slice: Option<&'static str> = None;
    slice: Option<&'static str> = Some("slice");
    no_list: Option<Vec<u8>> = None;
    list: Option<Vec<u8>> = Some(vec![1, 2]);
    unit: Option<()> = Some(());
    no_unit: Option<()> = None;
    no_function: Option<fn()> = None, shown |_| "null".into();
    raw: Option<*const u32> = Some(std::ptr::null());
    no_payload: Option<Payload> = None;
    payload: Option<Payload> = Some(Payload::Pair(3, 4));
    payload_nothing: Option<Payload> = Some(Payload::Nothing);
    tuple: Option<(u8, bool)> = Some((1, false));
    no_tuple: Option<(u8, bool)> = None;
    ok: Result<u8, String> = Ok(3);
    err: Result<u8, String> = Err(String::from("bad"));
    unit_ok: Result<(), Level> = Ok(());
    unit_err: Result<(), Level> = Err(Level::Low);
    always: Result<u32, Infallible> = Ok(4);
    never: Result<Infallible, String> = Err(String::from("always"));
    no_infallible: Option<Infallible> = None;
    two: Result<Option<u8>, Option<String>> = Err(None);
    result_of_result: Result<Result<u8, bool>, bool> = Ok(Err(true));
    mixed: Option<Mixed> = Some(Mixed::Byte(6));
    no_mixed: Option<Mixed> = None;
    rare: Option<Rare> = Some(Rare::Other);
    order: Option<std::cmp::Ordering> = Some(std::cmp::Ordering::Less);
    no_order: Option<std::cmp::Ordering> = None;
    order_twice: Option<Option<std::cmp::Ordering>> = Some(None);
    deep_none: Deep = None;
    deep_ok_none: Deep = Some(Ok(None));
    deep_ok: Deep = Some(Ok(Some(Box::new(4))));
    deep_err: Deep = Some(Err(Level::Middle));
});

pub fn tell() {
    Enums::tell();
    Options::tell();
}
