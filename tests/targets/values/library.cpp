// Values of the standard library's classes.
#include "library.h"

namespace golden {
enum class Level : unsigned char { low = 1, high = 200 };
struct Money {
    long units;
    int cents;
    bool operator<(const Money &other) const { return units < other.units; }
};
struct alignas(8) Coin {
    int value;
    short kind;
};
struct Order {
    int id;
    std::string title;
    std::vector<Money> parts;
};
struct Node {
    int value;
    std::shared_ptr<Node> next;
    std::weak_ptr<Node> before;
};
} // namespace golden
using namespace golden;

template <> struct Json<Level> {
    static std::string of(Level value) { return value == Level::low ? "\"low\"" : value == Level::high ? "\"high\"" : std::to_string((int)value); }
};
template <> struct Json<Money> {
    static std::string of(const Money &value) { return object({{"units", json(value.units)}, {"cents", json(value.cents)}}); }
};
template <> struct Json<Coin> {
    static std::string of(const Coin &value) { return object({{"value", json(value.value)}, {"kind", json(value.kind)}}); }
};
template <> struct Json<Order> {
    static std::string of(const Order &value) { return object({{"id", json(value.id)}, {"title", json(value.title)}, {"parts", json(value.parts)}}); }
};
struct Delete {
    long calls = 0;
    template <class T> void operator()(T *pointer) { calls++, delete pointer; }
};

namespace golden {
static const Money moneys[] = {{1, 2}, {3, 4}};
struct Texts {
    std::string empty, small, edge{"fifteen letters"}, edge22{"twenty-two letters her"}, edge23{"twenty-three letters he"}, large, cut, binary, not_text;
    std::wstring wide, wide_large;
    std::u8string eight;
    std::u16string sixteen, sixteen_large;
    std::u32string thirty_two;
    std::string_view view, no_view;
    std::wstring_view wide_view;
    std::u16string_view sixteen_view;
    std::filesystem::path path;
    std::string *pointer;
    const std::string &reference = large;
    std::string array[2];
} texts;

struct Rows {
    std::vector<int> numbers, none, many;
    std::vector<std::string> names;
    std::vector<bool> flags, no_flags, many_flags;
    std::vector<char> letters;
    std::vector<std::vector<int>> nested;
    std::vector<Order> orders;
    std::vector<Level> levels;
    std::vector<double> reals;
    std::vector<unsigned char> bytes;
    std::vector<Money *> pointers;
    std::array<short, 5> fixed;
    std::array<char, 8> fixed_letters;
    std::array<std::array<int, 2>, 2> square;
    std::array<int, 0> nothing;
    std::deque<int> deque, empty_deque, large_deque, moved_deque;
    std::deque<Order> deque_of_orders;
    std::list<Money> list, empty_list;
    std::list<char> letters_list;
    std::list<int> many_list;
    std::forward_list<std::string> forward, empty_forward;
    std::forward_list<int> many_forward;
    std::span<int> span;
    std::span<const Money, 2> fixed_span{moneys};
    std::initializer_list<int> initial;
    std::valarray<double> values;
    std::bitset<5> bits;
    std::bitset<130> many_bits;
    std::stack<int> stack;
    std::queue<std::string> queue;
    std::priority_queue<int> priority;
} rows;

struct Maps {
    std::map<int, std::string> map, empty, many;
    std::map<std::string, Money> by_name;
    std::map<Money, int> by_money;
    std::map<char, short> small;
    std::map<Level, std::vector<int>> by_level;
    std::map<double, bool> by_real;
    std::map<bool, int> by_bool;
    std::map<std::pair<int, int>, int> by_pair;
    std::map<std::string, std::map<std::string, int>> nested;
    std::multimap<std::string, int> multi, distinct;
    std::set<std::string> set;
    std::set<char> letters;
    std::set<int> many_numbers;
    std::multiset<int> multi_set;
    std::unordered_map<std::string, Money> hash;
    std::unordered_map<int, char> small_hash, empty_hash;
    std::unordered_multimap<int, int> multi_hash;
    std::unordered_set<std::string> hash_set;
    std::unordered_set<long> many_hash;
    std::unordered_multiset<char> multi_hash_set;
    std::map<int, std::string> *pointer;
} maps;

struct Values {
    std::pair<char, long> pair;
    std::pair<std::string, Order> pair_of_order;
    std::tuple<char, int, double> tuple;
    std::tuple<> no_tuple;
    std::tuple<std::string> one_tuple;
    std::tuple<std::string, std::tuple<int, Level>, std::vector<int>> nested_tuple;
    std::optional<int> maybe, nothing;
    std::optional<Order> maybe_order;
    std::optional<std::string> maybe_text;
    std::optional<Money *> maybe_null;
    std::variant<int, std::string, Money> variant_int, variant_text, variant_money;
    std::variant<std::monostate, double> variant_empty;
    std::any any_nothing, any_int, any_text, any_money, any_small;
    std::atomic<int> atomic{41};
    std::atomic<bool> atomic_bool{true};
    std::atomic<double> atomic_real{1.5};
    std::atomic<Money *> atomic_pointer;
    std::atomic<Coin> atomic_coin;
    std::atomic_flag flag{};
    std::complex<double> complex{1.5, -2};
    std::complex<float> complex_float{0.5f, 3};
    std::reference_wrapper<Money> wrapper;
    std::function<int(int)> no_call, plain_call, lambda_call, large_call;
    Values(Money &money) : wrapper(money) {}
};

struct Owners {
    std::unique_ptr<Order> unique, no_unique;
    std::unique_ptr<int> unique_int;
    std::unique_ptr<std::string> unique_text;
    std::unique_ptr<int[]> unique_array;
    std::unique_ptr<Money, Delete> with_delete;
    std::unique_ptr<Money, void (*)(Money *)> with_function{nullptr, nullptr};
    std::shared_ptr<Order> shared, no_shared, other;
    std::shared_ptr<int> shared_int, alias;
    std::weak_ptr<Order> weak, no_weak, expired;
    std::shared_ptr<Node> ring;
} owners;

struct Times {
    std::chrono::nanoseconds nanoseconds{1500};
    std::chrono::microseconds microseconds{-3};
    std::chrono::milliseconds milliseconds{1500};
    std::chrono::seconds seconds{90};
    std::chrono::minutes minutes{2};
    std::chrono::hours hours{24};
    std::chrono::duration<double> real{0.25};
    std::chrono::duration<int, std::ratio<1, 30>> frames{7};
    std::chrono::system_clock::time_point now, before;
    std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds> second;
    std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds> milli;
    std::chrono::steady_clock::time_point steady;
} times;
} // namespace golden

static Money money{12, 50};
static Values values{money};
static std::map<int, std::string> one_map{{1, "one"}};
__attribute__((noinline)) static int twice(int number)
{
    return number * 2;
}

#define EXPECT(group, member) expect(#member, group.member)

static void say_texts()
{
    texts.small = "small", texts.large = "a text that is long enough to be somewhere else, für alle", texts.cut = std::string(3000, 'x');
    texts.binary = std::string("a\0b", 3), texts.not_text = "\xff\xfe", texts.wide = L"wide ß", texts.wide_large = L"a wide text that is long enough";
    texts.eight = u8"é", texts.sixteen = u"été", texts.sixteen_large = u"a long text with 😀 in it", texts.thirty_two = U"日本 😀";
    texts.view = std::string_view(texts.large).substr(2, 4), texts.wide_view = texts.wide, texts.sixteen_view = texts.sixteen, texts.path = "/tmp/some/file";
    texts.pointer = &texts.small, texts.array[0] = "first", texts.array[1] = texts.large;
    group("golden::Texts", &texts);
    EXPECT(texts, empty), EXPECT(texts, small), EXPECT(texts, edge), EXPECT(texts, edge22), EXPECT(texts, edge23), EXPECT(texts, large);
    EXPECT(texts, cut), EXPECT(texts, binary), expect_text("not_text", "\"base64://4=\""), EXPECT(texts, wide), EXPECT(texts, wide_large);
    EXPECT(texts, eight), EXPECT(texts, sixteen), EXPECT(texts, sixteen_large), EXPECT(texts, thirty_two), EXPECT(texts, view), EXPECT(texts, no_view);
    EXPECT(texts, wide_view), EXPECT(texts, sixteen_view), EXPECT(texts, path), EXPECT(texts, pointer), EXPECT(texts, reference), EXPECT(texts, array);
}

static void say_rows()
{
    static int numbers[] = {5, 6, 7};
    static std::initializer_list<int> initial{8, 9};
    rows.numbers = {1, -2, 3}, rows.names = {"one", "", "a name that is long enough to be somewhere else"}, rows.flags = {true, false, true, true};
    for (int i = 0; i < 250; i++)
        rows.many.push_back(i), rows.many_flags.push_back(i % 3 == 0), rows.many_list.push_back(i), rows.many_forward.push_front(i), rows.large_deque.push_back(i);
    for (int i = 0; i < 5000; i++)
        rows.moved_deque.push_back(i);
    for (int i = 0; i < 4950; i++)
        rows.moved_deque.pop_front();
    rows.letters = {'a', 'b', 'c'}, rows.nested = {{1}, {}, {2, 3}}, rows.orders = {{1, "first", {{1, 2}}}, {2, "second", {}}};
    rows.levels = {Level::low, Level::high, (Level)7}, rows.reals = {0.5, 1e100, NAN}, rows.bytes = {1, 2, 255}, rows.pointers = {&money, nullptr};
    rows.fixed = {1, 2, 3, 4, -5}, rows.fixed_letters = {'f', 'i', 'x'}, rows.square[1][0] = 7, rows.deque = {1, 2, 3};
    rows.deque.push_front(0), rows.deque_of_orders.push_back({3, "third", {{5, 6}}}), rows.list = {{1, 2}, {3, 4}}, rows.letters_list = {'x', 'y'};
    rows.forward = {"one", "two"}, rows.span = numbers, rows.initial = initial;
    rows.values = {1.5, 2.5}, rows.bits = 0b10110, rows.many_bits[129] = true, rows.many_bits[64] = true, rows.stack.push(1), rows.stack.push(2);
    rows.queue.push("queued"), rows.priority.push(3), rows.priority.push(9), rows.priority.push(5);
    group("golden::Rows", &rows);
    EXPECT(rows, numbers), EXPECT(rows, none), EXPECT(rows, many), EXPECT(rows, names), EXPECT(rows, flags), EXPECT(rows, no_flags), EXPECT(rows, many_flags);
    EXPECT(rows, letters), EXPECT(rows, nested), EXPECT(rows, orders), EXPECT(rows, levels), EXPECT(rows, reals), EXPECT(rows, bytes), EXPECT(rows, pointers);
    EXPECT(rows, fixed), EXPECT(rows, fixed_letters), EXPECT(rows, square), EXPECT(rows, nothing), EXPECT(rows, deque), EXPECT(rows, empty_deque);
    EXPECT(rows, large_deque), EXPECT(rows, moved_deque), EXPECT(rows, deque_of_orders), EXPECT(rows, list), EXPECT(rows, empty_list), EXPECT(rows, letters_list);
    EXPECT(rows, many_list), EXPECT(rows, forward), EXPECT(rows, empty_forward), EXPECT(rows, many_forward), EXPECT(rows, span), EXPECT(rows, fixed_span);
    EXPECT(rows, initial), EXPECT(rows, values), EXPECT(rows, bits), EXPECT(rows, many_bits), EXPECT(rows, stack), EXPECT(rows, queue), EXPECT(rows, priority);
}

static void say_maps()
{
    maps.map = {{1, "one"}, {-2, "minus two"}, {3, "a text that is long enough to be somewhere else"}}, maps.by_name = {{"a", {1, 2}}, {"b", {3, 4}}};
    for (int i = 0; i < 1000; i++)
        maps.many[i * 7 % 1000] = std::to_string(i), maps.many_numbers.insert(i * 7 % 1000), maps.many_hash.insert(i);
    maps.by_money = {{{1, 2}, 3}}, maps.small = {{'a', 1}, {'b', 2}, {'\n', 3}}, maps.by_level = {{Level::low, {1, 2}}, {Level::high, {}}};
    maps.by_real = {{0.5, true}, {-1.25, false}}, maps.by_bool = {{true, 1}}, maps.by_pair = {{{1, 2}, 3}}, maps.nested = {{"outer", {{"inner", 1}}}};
    maps.multi = {{"a", 1}, {"a", 2}, {"b", 3}}, maps.distinct = {{"a", 1}, {"b", 3}}, maps.set = {"one", "two"}, maps.letters = {'z', 'a'};
    maps.multi_set = {3, 1, 3}, maps.hash = {{"x", {1, 2}}, {"a key that is long enough to be somewhere else", {3, 4}}}, maps.small_hash = {{1, 'a'}, {2, 'b'}};
    maps.multi_hash = {{1, 2}, {1, 3}}, maps.hash_set = {"p", "q"}, maps.multi_hash_set = {'c', 'c'}, maps.pointer = &one_map;
    group("golden::Maps", &maps);
    EXPECT(maps, map), EXPECT(maps, empty), EXPECT(maps, many), EXPECT(maps, by_name), EXPECT(maps, by_money), EXPECT(maps, small), EXPECT(maps, by_level);
    EXPECT(maps, by_real), EXPECT(maps, by_bool), EXPECT(maps, by_pair), EXPECT(maps, nested), EXPECT(maps, multi), EXPECT(maps, distinct), EXPECT(maps, set);
    EXPECT(maps, letters), EXPECT(maps, many_numbers), EXPECT(maps, multi_set), EXPECT(maps, hash), EXPECT(maps, small_hash), EXPECT(maps, empty_hash);
    EXPECT(maps, multi_hash), EXPECT(maps, hash_set), EXPECT(maps, many_hash), EXPECT(maps, multi_hash_set);
    expect_text("pointer", "{\"@\": \"" + address(maps.pointer) + "\", \"*\": " + json(*maps.pointer) + "}");
}

static void say_values()
{
    long much[8] = {1};
    values.pair = {'x', -5}, values.pair_of_order = {"key", {1, "title", {}}}, values.tuple = {'t', 7, 2.5}, std::get<0>(values.one_tuple) = "one";
    values.nested_tuple = {"text", {3, Level::high}, {1, 2}}, values.maybe = 5, values.maybe_order = Order{9, "maybe", {{1, 1}}}, values.maybe_text = "there", values.maybe_null = nullptr;
    values.variant_int = 5, values.variant_text = "variant", values.variant_money = Money{7, 8}, values.any_int = 42, values.any_text = std::string("any text");
    values.any_money = Money{1, 99}, values.any_small = 'c', values.atomic_pointer = &money, values.atomic_coin = Coin{4, 5}, values.flag.test_and_set();
    values.plain_call = twice, values.lambda_call = [](int by) { return by + 1; }, values.large_call = [much](int by) { return (int)much[by & 7]; };
    group("golden::Values", &values);
    EXPECT(values, pair), EXPECT(values, pair_of_order), EXPECT(values, tuple), expect_text("no_tuple", "[]"), EXPECT(values, one_tuple), EXPECT(values, nested_tuple), EXPECT(values, maybe);
    EXPECT(values, nothing), EXPECT(values, maybe_order), EXPECT(values, maybe_text);
    expect_text("maybe_null", values.maybe_null.has_value() && !*values.maybe_null ? "{\"Some\": null}" : "?");
    expect_text("variant_int", "{\"int\": " + json(std::get<0>(values.variant_int)) + "}");
    expect_text("variant_text", "{\"std::string\": " + json(std::get<1>(values.variant_text)) + "}");
    expect_text("variant_money", "{\"golden::Money\": " + json(std::get<2>(values.variant_money)) + "}");
    expect_text("variant_empty", "{\"std::monostate\": {}}"), expect_text("any_nothing", values.any_nothing.has_value() ? "?" : "null");
    expect_text("any_int", "{\"int\": " + json(std::any_cast<int>(values.any_int)) + "}");
    expect_text("any_text", "{\"std::string\": " + json(std::any_cast<std::string>(values.any_text)) + "}");
    expect_text("any_money", "{\"golden::Money\": " + json(std::any_cast<Money>(values.any_money)) + "}");
    expect_text("any_small", "{\"char\": " + json(std::any_cast<char>(values.any_small)) + "}");
    EXPECT(values, atomic), EXPECT(values, atomic_bool), EXPECT(values, atomic_real), EXPECT(values, atomic_pointer), EXPECT(values, atomic_coin);
    EXPECT(values, complex), EXPECT(values, complex_float), EXPECT(values, wrapper), expect_text("no_call", values.no_call ? "?" : "null");
    expect_text("plain_call", in_quotes(address((const void *)twice) + " <twice(int)>"));
    if (values.plain_call(1) + values.lambda_call(1) + values.large_call(1) != 4)
        abort();
}

static void say_owners()
{
    owners.unique.reset(new Order{1, "unique", {{1, 2}}}), owners.unique_int.reset(new int(7)), owners.unique_text.reset(new std::string("owned"));
    owners.unique_array.reset(new int[3]{4, 5, 6}), owners.with_delete.reset(new Money{2, 3});
    owners.with_function = std::unique_ptr<Money, void (*)(Money *)>(new Money{4, 5}, [](Money *money) { delete money; });
    owners.shared = std::make_shared<Order>(Order{2, "shared", {}}), owners.other = owners.shared, owners.shared_int.reset(new int(8));
    owners.alias = std::shared_ptr<int>(owners.shared, &owners.shared->id), owners.weak = owners.shared, owners.expired = std::make_shared<Order>();
    owners.ring = std::make_shared<Node>(), owners.ring->value = 1, owners.ring->next = std::make_shared<Node>(), owners.ring->next->value = 2;
    owners.ring->next->next = owners.ring, owners.ring->next->before = owners.ring;
    group("golden::Owners", &owners);
    EXPECT(owners, unique), EXPECT(owners, no_unique), EXPECT(owners, unique_int), EXPECT(owners, unique_text), EXPECT(owners, unique_array);
    EXPECT(owners, with_delete), EXPECT(owners, with_function), EXPECT(owners, shared), EXPECT(owners, no_shared), EXPECT(owners, other);
    EXPECT(owners, shared_int), EXPECT(owners, alias), EXPECT(owners, no_weak), EXPECT(owners, expired);
    expect_text("weak", pointed(owners.shared.get(), json(*owners.shared), ", \"@use_count\": " + std::to_string(owners.weak.use_count())));
    Node *first = owners.ring.get(), *second = first->next.get();
    std::string circle = in_quotes("<circular ref to " + address(first) + ">"), uses = ", \"@use_count\": ";
    std::string inner = pointed(second, "{\"value\": 2, \"next\": " + circle + ", \"before\": " + circle + "}", uses + std::to_string(first->next.use_count()));
    expect_text("ring", pointed(first, "{\"value\": 1, \"next\": " + inner + ", \"before\": null}", uses + std::to_string(owners.ring.use_count())));
}

static void say_times()
{
    times.now = std::chrono::system_clock::now(), times.before = std::chrono::system_clock::time_point(std::chrono::seconds(-1000000000));
    times.second = std::chrono::floor<std::chrono::seconds>(times.now), times.milli = std::chrono::floor<std::chrono::milliseconds>(times.now);
    times.steady = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(123456789));
    group("golden::Times", &times);
    EXPECT(times, nanoseconds), EXPECT(times, microseconds), EXPECT(times, milliseconds), EXPECT(times, seconds), EXPECT(times, minutes), EXPECT(times, hours);
    EXPECT(times, real), EXPECT(times, frames), EXPECT(times, now), EXPECT(times, before), EXPECT(times, second), EXPECT(times, milli), EXPECT(times, steady);
}

int main()
{
    say_texts();
    say_rows();
    say_maps();
    say_values();
    say_owners();
    say_times();
    ready();
    return twice((int)texts.no_view.size());
}
