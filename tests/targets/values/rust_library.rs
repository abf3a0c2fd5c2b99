// Durations and times, paths, C strings, ranges, and other types of the standard library.
use crate::group;
use crate::json::{object, quoted, Json};
use std::cmp::Reverse;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::{Bound, ControlFlow, Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

impl<T: Json> Json for Range<T> {
    fn json(&self) -> String {
        object(&[("start", self.start.json()), ("end", self.end.json())])
    }
}

impl Json for Duration {
    fn json(&self) -> String {
        let text = format!("{self:?}").replace('µ', "u");
        let unit = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap();
        quoted(&format!("{} {}", &text[..unit], &text[unit..]))
    }
}

// Instant { tv_sec: 1, tv_nsec: 2 } in Debug
fn instant(at: &Instant) -> String {
    let text = format!("{at:?}");
    let numbers: Vec<u64> = text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    quoted(&format!("{}.{:09} s", numbers[0], numbers[1]))
}

group!(Times {
    seconds: Duration = Duration::from_secs(3);
    milliseconds: Duration = Duration::from_millis(1500);
    small: Duration = Duration::from_millis(250);
    microseconds: Duration = Duration::from_nanos(2_500);
    nanoseconds: Duration = Duration::from_nanos(17);
    precise: Duration = Duration::new(1, 1);
    zero: Duration = Duration::ZERO;
    most: Duration = Duration::MAX;
    option: Option<Duration> = Some(Duration::from_secs(1));
    no_option: Option<Duration> = None;
    instant: Instant = Instant::now(), shown |all| instant(&all.instant);
    epoch: SystemTime = SystemTime::UNIX_EPOCH, shown |_| quoted("1970-01-01T00:00:00Z");
    later: SystemTime = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_341_600_250), shown |_| quoted("2026-11-22T10:00:00.250Z");
    earlier: SystemTime = SystemTime::UNIX_EPOCH - Duration::from_millis(500), shown |_| quoted("1969-12-31T23:59:59.500Z");
});

fn path(path: &Path) -> String {
    path.to_str().unwrap().json()
}

group!(Names {
    path_buf: PathBuf = PathBuf::from("/var/log/x"), shown |all| path(&all.path_buf);
    path: &'static Path = Path::new("/etc"), shown |all| path(all.path);
    os_string: OsString = OsString::from("os"), shown |_| quoted("os");
    os_str: &'static OsStr = OsStr::new("os str"), shown |_| quoted("os str");
    c_string: CString = CString::new("c string").unwrap(), shown |_| quoted("c string");
    c_str: &'static CStr = c"c str", shown |_| quoted("c str");
    boxed_path: Box<Path> = PathBuf::from("/boxed").into_boxed_path(), shown |_| quoted("/boxed");
    option: Option<PathBuf> = Some(PathBuf::from("/some")), shown |_| quoted("/some");
    no_option: Option<PathBuf> = None, shown |_| "null".into();
});

group!(Others {
    range: Range<u32> = 1..5;
    inclusive: RangeInclusive<u8> = 1..=5, shown |_| object(&[("start", "1".into()), ("end", "5".into()), ("exhausted", "false".into())]);
    bound: Bound<u8> = Bound::Included(3), shown |_| object(&[("Included", "3".into())]);
    unbounded: Bound<u8> = Bound::Unbounded, shown |_| quoted("Unbounded");
    ready: Poll<u8> = Poll::Ready(3), shown |_| object(&[("Ready", "3".into())]);
    pending: Poll<u8> = Poll::Pending, shown |_| quoted("Pending");
    flow: ControlFlow<u8, ()> = ControlFlow::Break(1), shown |_| object(&[("Break", "1".into())]);
    less: std::cmp::Ordering = std::cmp::Ordering::Less, shown |_| quoted("Less");
    reverse: Reverse<u8> = Reverse(5), shown |_| "5".into();
    v4: Ipv4Addr = Ipv4Addr::LOCALHOST, shown |all| quoted(&all.v4.to_string());
    v6: Ipv6Addr = "2001:db8::1".parse().unwrap(), shown |all| quoted(&all.v6.to_string());
    any: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), shown |_| object(&[("V4", quoted("10.0.0.1"))]);
    socket: SocketAddr = "10.0.0.1:80".parse().unwrap(), shown |_| object(&[("V4", object(&[("ip", quoted("10.0.0.1")), ("port", "80".into())]))]);
});

pub fn tell() {
    Times::tell();
    Names::tell();
    Others::tell();
}
