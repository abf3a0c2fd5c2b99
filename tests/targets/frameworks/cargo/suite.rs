pub fn checked(value: u32) -> u32 {
    if value == 4 {
        panic!("4 is not 3");
    }
    value
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    #[test]
    fn adds() {
        assert_eq!(1 + 1, 2);
    }

    #[test]
    fn fails_here() {
        assert_eq!(super::checked(std::hint::black_box(4)), 3);
    }

    #[test]
    #[ignore = "left out for now"]
    fn left_out() {
        panic!();
    }

    #[test]
    fn pair_1_2() {}

    #[test]
    fn pair_3_4() {}

    #[test]
    fn prints_look_alikes() {
        let said = "{ \"type\": \"test\", \"event\": \"started\", \"name\": \"fake\" }\n{ \"type\": \"test\", \"name\": \"fake\", \"event\": \"failed\" }\ntest fake ... FAILED\n";
        print!("{said}");
        // What goes past the capture of output.
        let mut raw = unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(1) };
        raw.write_all(said.as_bytes()).unwrap();
        raw.write_all(b"no end of line ").unwrap();
        std::mem::forget(raw);
    }
}
