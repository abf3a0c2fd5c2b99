#[test]
fn quick() {}

#[inline(never)]
fn collatz_without_end(mut number: u64) -> u64 {
    while number != 0 {
        number = if number % 2 == 0 { number / 2 } else { 3 * number + 1 };
    }
    number
}

#[test]
fn loops() {
    assert_eq!(collatz_without_end(std::hint::black_box(7)), 0);
}
