// What a value should be shown as: JSON by its type, from the value itself.
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::fmt::Write;

pub const ELEMENTS: usize = 100;
pub const TEXT: usize = 1024;

pub trait Json {
    fn json(&self) -> String;
    // As the key of an object; None for what can be none
    fn key(&self) -> Option<String> {
        None
    }
}

pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(out, "\\{letter}").unwrap(),
            letter if (letter as u32) < 0x20 => write!(out, "\\u{:04x}", letter as u32).unwrap(),
            letter => out.push(letter),
        }
    }
    out + "\""
}

pub fn text(whole: &str) -> String {
    let shown: String = whole.chars().take(TEXT).collect();
    quoted(&if shown.len() < whole.len() { shown + "…" } else { shown })
}

pub fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let mut shown: Vec<String> = items.iter().take(ELEMENTS).cloned().collect();
    if items.len() > ELEMENTS {
        shown.push(quoted(&format!("… {} more", items.len() - ELEMENTS)));
    }
    format!("[{}]", shown.join(", "))
}

pub fn object(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("{}: {value}", quoted(name))).collect();
    format!("{{{}}}", members.join(", "))
}

// A raw pointer to what is shown as `value`
pub fn pointed(address: usize, value: String) -> String {
    match value.strip_prefix('{') {
        Some("}") => format!("{{\"@\": \"{address:#x}\"}}"),
        Some(members) => format!("{{\"@\": \"{address:#x}\", {members}"),
        None => format!("{{\"@\": \"{address:#x}\", \"*\": {value}}}"),
    }
}

// A struct's members by name
#[macro_export]
macro_rules! members {
    ($value:expr, $($name:ident),*) => {
        $crate::json::object(&[$((stringify!($name), $crate::json::Json::json(&$value.$name))),*])
    };
}

// A struct and how it is shown
#[macro_export]
macro_rules! shown_struct {
    ($(#[$attribute:meta])* $name:ident { $($field:ident : $type:ty),* $(,)? }) => {
        $(#[$attribute])*
        pub struct $name { $(pub $field: $type),* }
        impl $crate::json::Json for $name {
            fn json(&self) -> String {
                $crate::members!(self, $($field),*)
            }
        }
    };
}

// A struct of values, one of it at an address that is told, and what each is shown as: by its type, or as `shown` makes it.
#[macro_export]
macro_rules! group {
    ($name:ident { $($field:ident : $type:ty = $value:expr $(, shown $shown:expr)?;)* }) => {
        pub struct $name { $(pub $field: $type),* }
        impl $name {
            pub fn tell() -> &'static $name {
                static PLACE: std::sync::atomic::AtomicPtr<$name> = std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
                let all: &'static $name = Box::leak(Box::new($name { $($field: $value),* }));
                PLACE.store(all as *const $name as *mut $name, std::sync::atomic::Ordering::Relaxed);
                println!("group|{}|{}", std::any::type_name::<$name>(), PLACE.load(std::sync::atomic::Ordering::Relaxed) as usize);
                $(println!("expect|{}|{}", stringify!($field), $crate::shown!(all, $name, $field $(, $shown)?));)*
                all
            }
        }
    };
}

#[macro_export]
macro_rules! shown {
    ($all:ident, $name:ident, $field:ident) => {
        $crate::json::Json::json(&$all.$field)
    };
    ($all:ident, $name:ident, $field:ident, $shown:expr) => {{
        let shown: fn(&$name) -> String = $shown;
        shown($all)
    }};
}

macro_rules! displayed {
    ($($type:ty),*) => {
        $(impl Json for $type {
            fn json(&self) -> String {
                self.to_string()
            }
            fn key(&self) -> Option<String> {
                Some(quoted(&self.to_string()))
            }
        })*
    };
}

displayed!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

// Those that fit in 64 bits as numbers
macro_rules! wide {
    ($($type:ty),*) => {
        $(impl Json for $type {
            fn json(&self) -> String {
                let fits = i64::try_from(*self).is_ok() || u64::try_from(*self).is_ok();
                if fits { self.to_string() } else { quoted(&self.to_string()) }
            }
            fn key(&self) -> Option<String> {
                Some(quoted(&self.to_string()))
            }
        })*
    };
}

wide!(i128, u128);

macro_rules! floating {
    ($($type:ty),*) => {
        $(impl Json for $type {
            fn json(&self) -> String {
                if self.is_finite() { format!("{self:?}") } else { quoted(&self.to_string().to_lowercase()) }
            }
        })*
    };
}

floating!(f32, f64);

impl Json for bool {
    fn json(&self) -> String {
        self.to_string()
    }
}

impl Json for () {
    fn json(&self) -> String {
        "null".into()
    }
}

impl Json for char {
    fn json(&self) -> String {
        if self.is_control() { (*self as u32).to_string() } else { quoted(&self.to_string()) }
    }
}

impl Json for str {
    fn json(&self) -> String {
        text(self)
    }
    fn key(&self) -> Option<String> {
        Some(text(self))
    }
}

impl Json for String {
    fn json(&self) -> String {
        text(self)
    }
    fn key(&self) -> Option<String> {
        Some(text(self))
    }
}

impl<T: Json + ?Sized> Json for &T {
    fn json(&self) -> String {
        (**self).json()
    }
    fn key(&self) -> Option<String> {
        (**self).key()
    }
}

impl<T: Json + ?Sized> Json for &mut T {
    fn json(&self) -> String {
        (**self).json()
    }
}

impl<T: Json + ?Sized> Json for Box<T> {
    fn json(&self) -> String {
        (**self).json()
    }
}

impl<T: Json> Json for *const T {
    fn json(&self) -> String {
        if self.is_null() { "null".into() } else { pointed(*self as usize, unsafe { (**self).json() }) }
    }
}

impl<T: Json> Json for *mut T {
    fn json(&self) -> String {
        self.cast_const().json()
    }
}

impl<T: Json> Json for [T] {
    fn json(&self) -> String {
        list(self.iter().map(Json::json))
    }
}

impl<T: Json, const N: usize> Json for [T; N] {
    fn json(&self) -> String {
        self[..].json()
    }
}

macro_rules! listed {
    ($($type:ident),*) => {
        $(impl<T: Json> Json for $type<T> {
            fn json(&self) -> String {
                list(self.iter().map(Json::json))
            }
        })*
    };
}

listed!(Vec, VecDeque, LinkedList, BinaryHeap, HashSet, BTreeSet);

// Maps: an object where all keys can be its keys
fn pairs<'a, K: Json + 'a, V: Json + 'a>(items: impl Iterator<Item = (&'a K, &'a V)>) -> String {
    let items: Vec<(&K, &V)> = items.collect();
    if items.iter().any(|(key, _)| key.key().is_none()) {
        return list(items.iter().map(|(key, value)| format!("[{}, {}]", key.json(), value.json())));
    }
    let mut members: Vec<String> = items.iter().take(ELEMENTS).map(|(key, value)| format!("{}: {}", key.key().unwrap(), value.json())).collect();
    if items.len() > ELEMENTS {
        members.push(format!("\"…\": \"{} more\"", items.len() - ELEMENTS));
    }
    format!("{{{}}}", members.join(", "))
}

impl<K: Json, V: Json, S> Json for HashMap<K, V, S> {
    fn json(&self) -> String {
        pairs(self.iter())
    }
}

impl<K: Json, V: Json> Json for BTreeMap<K, V> {
    fn json(&self) -> String {
        pairs(self.iter())
    }
}

// What is itself null when there, is told apart from nothing
impl<T: Json> Json for Option<T> {
    fn json(&self) -> String {
        match self.as_ref().map(Json::json) {
            None => "null".into(),
            Some(shown) if shown == "null" => object(&[("Some", shown)]),
            Some(shown) => shown,
        }
    }
}

impl<T: Json, E: Json> Json for Result<T, E> {
    fn json(&self) -> String {
        match self {
            Ok(value) => object(&[("Ok", value.json())]),
            Err(value) => object(&[("Err", value.json())]),
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident),+))*) => {
        $(impl<$($name: Json),+> Json for ($($name,)+) {
            #[allow(non_snake_case)]
            fn json(&self) -> String {
                let ($($name,)+) = self;
                format!("[{}]", [$($name.json()),+].join(", "))
            }
        })*
    };
}

tuples!((A)(A, B)(A, B, C)(A, B, C, D));

// Rc and Arc: who shares it, then what it is
pub fn counted(address: usize, strong: usize, weak: usize, value: String) -> String {
    let counts = format!("\"@strong\": {strong}, \"@weak\": {weak}");
    match value.strip_prefix('{') {
        Some("}") => format!("{{\"@\": \"{address:#x}\", {counts}}}"),
        Some(members) => format!("{{\"@\": \"{address:#x}\", {counts}, {members}"),
        None => format!("{{\"@\": \"{address:#x}\", {counts}, \"*\": {value}}}"),
    }
}

// A trait object: which type it is, then what
pub fn concrete(type_name: &str, value: String) -> String {
    let class = format!("\"class\": {}", quoted(type_name));
    match value.strip_prefix('{') {
        Some("}") => format!("{{{class}}}"),
        Some(members) => format!("{{{class}, {members}"),
        None => format!("{{{class}, \"*\": {value}}}"),
    }
}
