// Smart pointers, cells, locks, trait objects and closures.
use crate::group;
use crate::json::{concrete, counted, object, quoted, Json};
use crate::kinds::Inner;
use std::cell::{Cell, OnceCell, RefCell, UnsafeCell};
use std::future::Future;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, RwLock};

pub trait Shape {
    fn area(&self) -> f64;
    fn shown(&self) -> String;
}

pub struct Square {
    pub side: f64,
}
pub struct Circle(pub f64);
#[repr(align(32))]
pub struct Wide {
    pub one: u8,
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.side * self.side
    }
    fn shown(&self) -> String {
        concrete("rust::owners::Square", object(&[("side", self.side.json())]))
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.0
    }
    fn shown(&self) -> String {
        concrete("rust::owners::Circle", self.0.json())
    }
}

impl Shape for Wide {
    fn area(&self) -> f64 {
        self.one as f64
    }
    fn shown(&self) -> String {
        concrete("rust::owners::Wide", object(&[("one", self.one.json())]))
    }
}

impl Shape for u32 {
    fn area(&self) -> f64 {
        *self as f64
    }
    fn shown(&self) -> String {
        concrete("u32", self.json())
    }
}

impl Json for dyn Shape {
    fn json(&self) -> String {
        self.shown()
    }
}

impl<T: Json + ?Sized> Json for Rc<T> {
    fn json(&self) -> String {
        counted(Rc::as_ptr(self).cast::<u8>() as usize, Rc::strong_count(self), Rc::weak_count(self), (**self).json())
    }
}

impl<T: Json + ?Sized> Json for Arc<T> {
    fn json(&self) -> String {
        counted(Arc::as_ptr(self).cast::<u8>() as usize, Arc::strong_count(self), Arc::weak_count(self), (**self).json())
    }
}

impl<T: Json + Copy> Json for Cell<T> {
    fn json(&self) -> String {
        self.get().json()
    }
}

impl<T: Json> Json for RefCell<T> {
    fn json(&self) -> String {
        unsafe { (*self.as_ptr()).json() }
    }
}

impl<T: Json> Json for Mutex<T> {
    fn json(&self) -> String {
        self.lock().unwrap().json()
    }
}

impl<T: Json> Json for RwLock<T> {
    fn json(&self) -> String {
        self.read().unwrap().json()
    }
}

impl<T: Json> Json for OnceCell<T> {
    fn json(&self) -> String {
        self.get().json()
    }
}

impl<T: Json> Json for OnceLock<T> {
    fn json(&self) -> String {
        self.get().json()
    }
}

fn inner(small: u8) -> Inner {
    Inner { small, big: 1 << 33, middle: 12 }
}

fn shared() -> Rc<Inner> {
    let first = Rc::new(inner(3));
    std::mem::forget(Rc::downgrade(&first));
    std::mem::forget(first.clone());
    first
}

group!(Boxes {
    boxed: Box<Inner> = Box::new(inner(1));
    number: Box<u16> = Box::new(5);
    twice: Box<Box<u16>> = Box::new(Box::new(6));
    list: Box<[u32]> = vec![1, 2, 3].into_boxed_slice();
    text: Box<str> = "boxed".into();
    unit: Box<()> = Box::new(());
    pinned: Pin<Box<Inner>> = Box::pin(inner(2)), shown |all| (*all.pinned).json();
    manual: ManuallyDrop<Inner> = ManuallyDrop::new(inner(4)), shown |all| (*all.manual).json();
    maybe: MaybeUninit<u32> = MaybeUninit::new(7), shown |_| "7".into();
    unsafe_cell: UnsafeCell<u32> = UnsafeCell::new(8), shown |_| "8".into();
});

group!(Counted {
    alone: Rc<Inner> = Rc::new(inner(5));
    shared: Rc<Inner> = shared();
    number: Rc<u16> = Rc::new(7);
    text: Rc<str> = "counted".into(), shown |_| quoted("counted");
    list: Rc<[u16]> = vec![1, 2, 3].into();
    wide: Rc<u128> = Rc::new(1 << 100);
    in_cell: Rc<RefCell<Inner>> = Rc::new(RefCell::new(inner(6)));
    shape: Rc<dyn Shape> = Rc::new(Square { side: 1.5 });
    wide_shape: Rc<dyn Shape> = Rc::new(Wide { one: 4 });
    weak: Weak<Inner> = Rc::downgrade(Box::leak(Box::new(shared()))), shown |all| all.weak.upgrade().map(|there| counted(Rc::as_ptr(&there) as usize, Rc::strong_count(&there) - 1, Rc::weak_count(&there), (*there).json())).unwrap();
    expired: Weak<Inner> = { let gone = Rc::new(inner(1)); Rc::downgrade(&gone) }, shown |_| quoted("<expired>");
    no_weak: Weak<Inner> = Weak::new(), shown |_| "null".into();
    across: Arc<Inner> = Arc::new(inner(8));
    across_text: Arc<str> = "arc".into(), shown |_| quoted("arc");
    locked: Arc<Mutex<Inner>> = Arc::new(Mutex::new(inner(9)));
    across_shape: Arc<dyn Shape> = Arc::new(Circle(2.5));
    option: Option<Rc<u16>> = Some(Rc::new(9));
    no_option: Option<Rc<u16>> = None;
});

group!(Cells {
    cell: Cell<u32> = Cell::new(5);
    truth: Cell<bool> = Cell::new(true);
    maybe: Cell<Option<u8>> = Cell::new(Some(3));
    ref_cell: RefCell<Vec<u8>> = RefCell::new(vec![1, 2]);
    borrowed: RefCell<Inner> = { let cell = RefCell::new(inner(1)); std::mem::forget(cell.borrow()); cell };
    mutex: Mutex<Inner> = Mutex::new(inner(2));
    mutex_text: Mutex<String> = Mutex::new("locked".into());
    rw_lock: RwLock<Vec<u16>> = RwLock::new(vec![1]);
    once: OnceCell<u32> = { let once = OnceCell::new(); once.set(4).unwrap(); once };
    no_once: OnceCell<u32> = OnceCell::new();
    once_lock: OnceLock<String> = { let once = OnceLock::new(); once.set("once".into()).unwrap(); once };
    no_once_lock: OnceLock<String> = OnceLock::new();
    lazy: LazyLock<u32> = { let lazy: LazyLock<u32> = LazyLock::new(|| 11); LazyLock::force(&lazy); lazy }, shown |_| "11".into();
    lazy_idle: LazyLock<u32> = LazyLock::new(|| 11), shown |_| "null".into();
    atomic: AtomicU32 = AtomicU32::new(6), shown |all| all.atomic.load(Ordering::Relaxed).json();
    atomic_bool: AtomicBool = AtomicBool::new(true), shown |_| "true".into();
    atomic_signed: AtomicI64 = AtomicI64::new(-6), shown |_| "-6".into();
    atomic_size: AtomicUsize = AtomicUsize::new(8), shown |_| "8".into();
    atomic_pointer: AtomicPtr<u16> = AtomicPtr::new(Box::leak(Box::new(9))), shown |all| all.atomic_pointer.load(Ordering::Relaxed).json();
});

static STATIC_SQUARE: Square = Square { side: 4.0 };

group!(Shapes {
    square: Box<dyn Shape> = Box::new(Square { side: 2.0 });
    circle: Box<dyn Shape> = Box::new(Circle(3.0));
    number: Box<dyn Shape> = Box::new(12u32);
    reference: &'static dyn Shape = &STATIC_SQUARE;
    exclusive: &'static mut dyn Shape = Box::leak(Box::new(Circle(1.0)));
    list: Vec<Box<dyn Shape>> = vec![Box::new(Square { side: 1.0 }), Box::new(Wide { one: 2 })];
    option: Option<Box<dyn Shape>> = Some(Box::new(Circle(4.0)));
    no_option: Option<Box<dyn Shape>> = None;
});

fn captured(index: usize, members: &str) -> String {
    concrete(&format!("rust::owners::closures::{{closure_env#{index}}}"), members.into())
}

fn closures() -> (Box<dyn Fn(u16) -> u16>, Box<dyn Fn(u64) -> u64>, &'static dyn Fn(u8) -> u8) {
    let (text, number, seen) = (String::from("moved in"), 7u16, &*Box::leak(Box::new(40u64)));
    let moved = move |by: u16| text.len() as u16 + number + by;
    let by_reference = move |by: u64| *seen + by;
    let nothing = |by: u8| by + 1;
    assert!(moved(1) == 16 && by_reference(2) == 42 && nothing(1) == 2);
    (Box::new(moved), Box::new(by_reference), Box::leak(Box::new(nothing)))
}

group!(Closures {
    moved: Box<dyn Fn(u16) -> u16> = closures().0, shown |_| captured(0, &object(&[("text", quoted("moved in")), ("number", "7".into())]));
    by_reference: Box<dyn Fn(u64) -> u64> = closures().1, shown |_| captured(1, &object(&[("seen", "40".into())]));
    nothing: &'static dyn Fn(u8) -> u8 = closures().2, shown |_| captured(2, "{}");
});

async fn waiting(count: u16) -> u16 {
    let text = String::from("kept");
    std::future::pending::<()>().await;
    text.len() as u16 + count
}

fn polled() -> Pin<Box<dyn Future<Output = u16>>> {
    let mut future: Pin<Box<dyn Future<Output = u16>>> = Box::pin(waiting(7));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    future
}

// What is kept across an await; how it is called, compilers decide
fn suspended(_: &Futures) -> String {
    let kept = [("count", "7".into()), ("text", quoted("kept")), ("__awaitee", quoted("Pending"))];
    concrete("rust::owners::waiting::{async_fn_env#0}", object(&[("Suspend0", object(&kept))]))
}

group!(Futures {
    suspended: Pin<Box<dyn Future<Output = u16>>> = polled(), shown suspended;
});

pub fn tell() {
    Boxes::tell();
    let counted = Counted::tell();
    assert!(counted.shape.area() > 0.0);
    Cells::tell();
    Shapes::tell();
    let closures = Closures::tell();
    Futures::tell();
    assert!((closures.moved)(1) == 16 && (closures.by_reference)(2) == 42 && (closures.nothing)(1) == 2);
}
