// What holds several values: in a row, in a ring, in nodes, in hash tables and trees of all sizes, with elements of all sizes.
use crate::enums::{Level, Payload};
use crate::group;
use crate::kinds::Inner;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};

fn inner(small: u8) -> Inner {
    Inner { small, big: small as u64 + 100, middle: 7 }
}

fn wrapped() -> VecDeque<u16> {
    let mut ring = VecDeque::with_capacity(8);
    ring.extend([1u16, 2, 3, 4, 5, 6, 7, 8]);
    for next in 9..14 {
        ring.pop_front();
        ring.push_back(next);
    }
    ring.pop_front();
    ring
}

fn counted(count: u32) -> HashMap<u32, u64> {
    (0..count).map(|key| (key, key as u64 * 1_000)).collect()
}

fn with_holes() -> HashMap<u16, u8> {
    let mut table: HashMap<u16, u8> = (0..60).map(|key| (key, key as u8)).collect();
    table.retain(|key, _| key % 3 == 0);
    table
}

fn tree(count: i32) -> BTreeMap<i32, i64> {
    (0..count).map(|key| (key * 7 % count, key as i64)).collect()
}

group!(Rows {
    numbers: Vec<i32> = vec![1, -2, 3];
    none: Vec<i32> = Vec::new();
    spare: Vec<u8> = { let mut list = Vec::with_capacity(100); list.push(1); list };
    structs: Vec<Inner> = vec![inner(1), inner(2)];
    texts: Vec<String> = vec!["one".into(), String::new(), "three".into()];
    nested: Vec<Vec<u8>> = vec![vec![1], vec![], vec![2, 3]];
    units: Vec<()> = vec![(); 3];
    many: Vec<u32> = (0..250).collect();
    pairs: Vec<(u8, String)> = vec![(1, "one".into()), (2, "two".into())];
    options: Vec<Option<String>> = vec![None, Some("some".into())];
    payloads: Vec<Payload> = vec![Payload::Nothing, Payload::Number(4)];
    wide: Vec<u128> = vec![u128::MAX, 1];
    queue: VecDeque<u16> = (1..5).collect();
    ring: VecDeque<u16> = wrapped();
    texts_ring: VecDeque<String> = { let mut ring: VecDeque<String> = VecDeque::with_capacity(4); ring.push_back("b".into()); ring.push_front("a".into()); ring };
    no_queue: VecDeque<u64> = VecDeque::new();
    unit_queue: VecDeque<()> = [(), ()].into();
    linked: LinkedList<u64> = [1, 2, 3].into();
    linked_texts: LinkedList<String> = ["x".to_string(), "y".to_string()].into();
    no_linked: LinkedList<u64> = LinkedList::new();
    heap: BinaryHeap<u32> = [3, 1, 2].into();
    string: String = "string with \"quotes\", naïve 🦀".into();
    empty: String = String::new();
    long: String = "0123456789abcdef".repeat(200);
});

group!(Tables {
    none: HashMap<u32, u64> = HashMap::new();
    one: HashMap<u32, u64> = counted(1);
    three: HashMap<u32, u64> = counted(3);
    some: HashMap<u32, u64> = counted(60);
    many: HashMap<u32, u64> = counted(90);
    holes: HashMap<u16, u8> = with_holes();
    cleared: HashMap<u16, u8> = { let mut table = with_holes(); table.clear(); table };
    texts: HashMap<String, String> = [("a", "1"), ("b", "2"), ("", "3")].into_iter().map(|(key, value)| (key.into(), value.into())).collect();
    borrowed: HashMap<&'static str, Vec<u8>> = [("x", vec![1]), ("y", vec![])].into();
    structs: HashMap<u8, Inner> = [(1, inner(1)), (2, inner(2))].into();
    by_tuple: HashMap<(u8, u16), bool> = [((1, 2), true), ((3, 4), false)].into();
    options: HashMap<i8, Option<String>> = [(-1, None), (1, Some("one".into()))].into();
    wide: HashMap<u128, u8> = [(1 << 100, 1)].into();
    set: HashSet<u64> = [10, 20, 30].into();
    text_set: HashSet<String> = ["p".to_string(), "q".to_string()].into();
    no_set: HashSet<u64> = HashSet::new();
    unit_set: HashSet<()> = [()].into();
    within: HashMap<String, HashMap<u8, HashSet<u8>>> = [("in".to_string(), [(1, [2].into())].into())].into();
});

group!(Trees {
    none: BTreeMap<i32, i64> = BTreeMap::new();
    one: BTreeMap<i32, i64> = tree(1);
    leaf: BTreeMap<i32, i64> = tree(11);
    two_levels: BTreeMap<i32, i64> = tree(12);
    three_levels: BTreeMap<i32, i64> = tree(99);
    emptied: BTreeMap<i32, i64> = { let mut tree = tree(50); while tree.pop_first().is_some() {} tree };
    texts: BTreeMap<String, String> = [("k", "v"), ("l", "w")].into_iter().map(|(key, value)| (key.into(), value.into())).collect();
    structs: BTreeMap<u8, Inner> = [(1, inner(1)), (2, inner(2))].into();
    by_tuple: BTreeMap<(u8, u16), bool> = [((1, 2), true), ((3, 4), false)].into();
    by_pair: BTreeMap<Option<u8>, u8> = [(None, 0), (Some(1), 1)].into();
    set: BTreeSet<u32> = (0..40).collect();
    small_set: BTreeSet<&'static str> = ["b", "a"].into();
    no_set: BTreeSet<u32> = BTreeSet::new();
    big_set: BTreeSet<u16> = (0..300).collect();
    unit_values: BTreeMap<u8, ()> = [(1, ())].into();
    lists: BTreeMap<u64, Vec<Level>> = [(5, vec![Level::Low]), (6, vec![])].into();
});

pub fn tell() {
    Rows::tell();
    Tables::tell();
    Trees::tell();
}
