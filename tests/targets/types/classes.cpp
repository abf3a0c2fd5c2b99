// Types of C++ and of its standard library, and what this program finds out about them itself.
#include <any>
#include <array>
#include <atomic>
#include <complex>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "says.h"
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace shop {

enum class Level : unsigned char { low = 1, middle = 7, high = 200 };
enum Mask { none = 0, first = 1, second = 2, fourth = 8, both = 3 };

class Declared;

struct Money {
    long units;
    int cents;
    static const int limit = 4711;
    static constexpr double rate = 1.5;
    static int created;
    constexpr static Level floor = Level::low;
};
int Money::created = 3;

template <typename T, int N> class Ring {
public:
    T slots[N];
    unsigned at;
    Ring *next;
    struct Cursor {
        T *place;
        Level level;
    } cursor;
    using value_type = T;
};

class Order {
public:
    virtual ~Order() {}
    virtual int weigh(int each) const { return each; }
    int id;
    std::string title;
    Money price;
    std::vector<Money> parts;
    Ring<Money, 3> ring;
    Order &self;
    Order &&other;
    int Order::*field;
    int (Order::*method)(int) const;
    Level level;
    Mask mask;
    char8_t utf8;
    char16_t utf16;
    char32_t utf32;
    wchar_t wide;
    bool done;
    decltype(nullptr) nothing;
    Declared *declared;
    union {
        int whole;
        struct {
            short low;
            short high;
        };
    };
    Order(Order &o) : id(1), self(o), other(static_cast<Order &&>(o)), field(&Order::id), method(&Order::weigh) {}
};

struct Left {
    virtual void turn() {}
    int left;
};
struct Right {
    virtual void turn_back() {}
    int right;
};
struct Plain {
    int plain;
};
struct Both : Left, Right, Plain {
    int both;
};
struct Top {
    long top;
};
struct Sides : virtual Top {
    int side;
    int bits : 5;
};
struct Other : virtual Top {
    int another;
};
struct Diamond : Sides, Other {
    long last;
};

struct Empty {};
struct Derived : Empty, Plain {
    char tail;
};

struct Library {
    std::string text;
    std::string_view view;
    std::vector<int> numbers;
    std::vector<bool> flags;
    std::array<short, 5> fixed;
    std::deque<int> deque;
    std::list<Money> list;
    std::map<int, std::string> map;
    std::set<std::string> set;
    std::unordered_map<std::string, Money> hash;
    std::pair<char, long> pair;
    std::tuple<char, int, double> tuple;
    std::optional<Money> maybe;
    std::variant<int, std::string, Money> variant;
    std::any any;
    std::unique_ptr<Order> unique;
    std::shared_ptr<Order> shared;
    std::weak_ptr<Order> weak;
    std::function<int(int)> call;
    std::atomic<long> counter;
    std::complex<double> complex;
};

Library *library;
Derived derived_one;
thread_local int visits = 4;
namespace {
int hidden_count = 12;
}
static Money *const fixed_price = nullptr;

int next_number()
{
    static int counter = 100;
    return ++counter;
}

} // namespace shop

namespace shop {
__attribute__((noinline)) int handle(Order &order, const std::vector<Money> &parts, Diamond diamond, std::map<int, std::string> names,
                                     std::unique_ptr<Order> owned, Level level)
{
    auto twice = [&order](int by) { return order.id * by; };
    return twice(2) + (int)parts.size() + (int)diamond.last + (int)names.size() + (owned != nullptr) + (int)level + next_number() + hidden_count +
           visits + (fixed_price == nullptr);
}

template <typename T, int N> __attribute__((noinline)) T *ring_next(Ring<T, N> *ring, Ring<T, N> copy)
{
    return &ring->slots[(ring->at + copy.at) % N];
}
} // namespace shop

using namespace shop;
using Ring3 = Ring<Money, 3>;

static size_t distance(const void *from, const void *to)
{
    return (size_t)((const char *)to - (const char *)from);
}

static void tell_records()
{
    SIZE(shop::Money), SIZE(shop::Order), SIZE(shop::Both), SIZE(shop::Diamond), SIZE(shop::Sides), SIZE(shop::Derived), SIZE(shop::Library);
    SIZE(shop::Level), SIZE(shop::Mask), SIZE(shop::Empty);
    printf("size|shop::Ring<shop::Money, 3>|%zu\n", sizeof(Ring3));
    FIELD(shop::Money, units), FIELD(shop::Money, cents);
    FIELD(shop::Order, id), FIELD(shop::Order, title), FIELD(shop::Order, price), FIELD(shop::Order, parts), FIELD(shop::Order, ring);
    FIELD(shop::Order, field), FIELD(shop::Order, method), FIELD(shop::Order, level), FIELD(shop::Order, mask), FIELD(shop::Order, utf8);
    FIELD(shop::Order, utf16), FIELD(shop::Order, utf32), FIELD(shop::Order, wide), FIELD(shop::Order, done), FIELD(shop::Order, nothing);
    FIELD(shop::Order, declared), FIELD(shop::Order, whole), FIELD(shop::Order, low), FIELD(shop::Order, high);
    FIELD(shop::Both, left), FIELD(shop::Both, right), FIELD(shop::Both, plain), FIELD(shop::Both, both);
    FIELD(shop::Derived, plain), FIELD(shop::Derived, tail);
    printf("enum|shop::Level|low|%d\n", (int)shop::Level::low), printf("enum|shop::Level|middle|%d\n", (int)shop::Level::middle), printf("enum|shop::Level|high|%d\n", (int)shop::Level::high);
    ENUM(shop::Mask, none), ENUM(shop::Mask, first), ENUM(shop::Mask, second), ENUM(shop::Mask, fourth), ENUM(shop::Mask, both);
    printf("field|shop::Ring<shop::Money, 3>|slots|%zu|%zu\n", offsetof(Ring3, slots), sizeof(((Ring3 *)8)->slots));
    printf("field|shop::Ring<shop::Money, 3>|at|%zu|4\n", offsetof(Ring3, at));
    printf("field|shop::Ring<shop::Money, 3>|cursor.level|%zu|1\n", offsetof(Ring3, cursor.level));
}

static void tell_bases(Diamond &diamond, Both &both)
{
    ADDRESS("base Both Right", distance(&both, static_cast<Right *>(&both)));
    ADDRESS("base Both Plain", distance(&both, static_cast<Plain *>(&both)));
    ADDRESS("base Diamond Other", distance(&diamond, static_cast<Other *>(&diamond)));
    ADDRESS("base Diamond Top", distance(&diamond, static_cast<Top *>(&diamond)));
    Sides alone;
    ADDRESS("base Sides Top", distance(&alone, static_cast<Top *>(&alone)));
    // What a reader finds where the vtable pointers point: for virtual bases, 8-byte offsets before it
    const void *table = *reinterpret_cast<void **>(&diamond);
    for (int slot = -5; slot < 0; slot++)
        printf("slot|Diamond|%d|%ld\n", slot * 8, static_cast<const long *>(table)[slot]);
    for (int slot = -3; slot < 0; slot++)
        printf("slot|Sides|%d|%ld\n", slot * 8, (*reinterpret_cast<const long *const *>(&alone))[slot]);
}

static void tell_library()
{
    FIELD(shop::Library, text), FIELD(shop::Library, view), FIELD(shop::Library, numbers), FIELD(shop::Library, flags);
    FIELD(shop::Library, fixed), FIELD(shop::Library, deque), FIELD(shop::Library, list), FIELD(shop::Library, map);
    FIELD(shop::Library, set), FIELD(shop::Library, hash), FIELD(shop::Library, pair), FIELD(shop::Library, tuple);
    FIELD(shop::Library, maybe), FIELD(shop::Library, variant), FIELD(shop::Library, any), FIELD(shop::Library, unique);
    FIELD(shop::Library, shared), FIELD(shop::Library, weak), FIELD(shop::Library, call), FIELD(shop::Library, counter);
    FIELD(shop::Library, complex), FIELD(shop::Library, pair.second), FIELD(shop::Library, pair.first);
}

int main(int, char **)
{
    tell_records();
    Diamond diamond{};
    Both both{};
    tell_bases(diamond, both);
    tell_library();
    Library full{};
    library = &full;
    ADDRESS("shop::library", &library), ADDRESS("shop::Money::created", &Money::created), ADDRESS("hidden_count", &hidden_count);
    ADDRESS("main", main);
    char room[sizeof(Order)];
    Order *order = new (room) Order(*reinterpret_cast<Order *>(room));
    Ring3 ring{};
    std::map<int, std::string> names{{1, "one"}};
    derived_one.tail = 1;
    return handle(*order, full.list.size() ? full.numbers.size() ? std::vector<Money>(2) : std::vector<Money>() : std::vector<Money>(1), diamond, names,
                  nullptr, Level::low) +
               (ring_next(&ring, ring) != nullptr) ==
           12345;
}
