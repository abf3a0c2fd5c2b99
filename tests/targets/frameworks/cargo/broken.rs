#[test]
fn broken() {
    let number: u32 = "text";
}
