// One of each kind of Rust name that patterns must cope with.
use std::fmt;

mod shapes {
    pub trait Area {
        fn area(&self) -> f64;
        #[inline(never)]
        fn describe(&self) -> usize {
            self.area() as usize + 1
        }
    }

    pub struct Square(pub f64);
    pub struct Circle<T> {
        pub radius: T,
    }

    impl Area for Square {
        #[inline(never)]
        fn area(&self) -> f64 {
            self.0 * self.0
        }
    }

    impl Area for Circle<f32> {
        #[inline(never)]
        fn area(&self) -> f64 {
            (self.radius * self.radius) as f64 * 3.0
        }
    }

    impl<T: Copy> Circle<T> {
        #[inline(never)]
        pub fn grow(&self, by: T) -> (T, T) {
            (self.radius, by)
        }
    }

    impl Square {
        #[inline(never)]
        pub fn scale(&mut self, factor: f64) {
            self.0 *= factor;
        }
    }
}

use shapes::{Area, Circle, Square};

impl fmt::Display for Square {
    #[inline(never)]
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "square {}", self.0)
    }
}

#[inline(never)]
fn generic_sum<T: Copy + Into<f64>>(items: &[T]) -> f64 {
    items.iter().map(|item| (*item).into()).sum()
}

#[inline(never)]
fn apply(operation: &dyn Fn(i32) -> i32, value: i32) -> i32 {
    operation(value)
}

#[inline(never)]
fn with_closure(base: i32) -> i32 {
    let add = |value: i32| {
        let doubled = std::hint::black_box(value * 2);
        doubled + base
    };
    apply(&add, 5)
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn exported_entry(value: u32) -> u32 {
    value + 1
}

fn main() {
    let mut square = Square(2.0);
    square.scale(1.5);
    let circle = Circle { radius: 2.0f32 };
    let grown = circle.grow(1.0);
    let total = generic_sum(&[1.0f32, 2.0]) + generic_sum(&[1i32, 2]);
    println!("{square} {} {} {} {:?} {total} {} {}", square.area(), circle.area(), square.describe() + circle.describe(), grown, with_closure(3), exported_entry(4));
}
