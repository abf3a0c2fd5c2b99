// One function for each way a C++ argument or result can travel beyond what C has (Itanium C++ ABI §3.1). Names begin with case_.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define CASE __attribute__((noinline))

static volatile long sink;

namespace shop {
enum class Size : uint8_t { small = 1, large = 200 };
enum class Mood : long { calm = -5, wild = 1L << 40 };
struct Empty {};
struct Trivial { int a, b; };
struct Owner { // passed behind a pointer: it has a destructor
    explicit Owner(int value) : value(value) {}
    Owner(const Owner &other) : value(other.value + 1) {}
    ~Owner() { sink = value; }
    int value;
};
struct Derived : Trivial { int c; };

struct Basket {
    int count;
    CASE int case_method(int add, const char *why) { count += add; return why[0] + count; }
    CASE long case_const_method(long by) const { return count * by; }
    CASE static double case_static_method(double x, int y) { return x + y; }
    CASE Owner case_hidden_result_method(int x) { return Owner(x + count); }
    CASE virtual int case_virtual(short a, unsigned char b) { return a + b + count; }
    CASE bool operator<(const Basket &other) const;
    CASE explicit Basket(int case_count) : count(case_count) {}
};
bool Basket::operator<(const Basket &other) const { return count < other.count; }

CASE int case_references(int &a, const long &b, int &&c, const std::string &d) { a++; return (int)(a + b + c + d.size()); }
CASE Size case_scoped_enum(Size a, Mood b, int c) { sink = (long)b + c; return a; }
CASE int case_owner(Owner owner, int after, const char *text) { return owner.value + after + text[0]; }
CASE Owner case_owner_result(int before, double x) { return Owner(before + (int)x); }
CASE int case_string(std::string text, int after) { return (int)text.size() + after; }
CASE std::string case_string_result(const char *text, int count) { return std::string(text) + std::to_string(count); }
CASE int case_unique(std::unique_ptr<int> owned, int after) { return *owned + after; }
CASE int case_vector_reference(std::vector<int> &items, size_t at) { return items[at]; }
CASE int case_empty(Empty nothing, int after, Empty again, double last) { (void)nothing, (void)again; return after + (int)last; }
CASE int case_trivial(Trivial pair, Derived three, int after) { return pair.a + three.c + after; }
CASE int case_pair(std::pair<int, double> pair, int after) { return pair.first + after; }
CASE std::nullptr_t case_null(std::nullptr_t nothing, int after) { sink = after; return nothing; }
CASE int case_member_pointers(int Trivial::*data, long (Basket::*method)(long) const, int after) { sink = data != nullptr && method != nullptr; return after; }
CASE char16_t case_characters(char16_t a, char32_t b, wchar_t c, char8_t d, char e) { sink = a + b + c + d; return (char16_t)e; }
template <class T> CASE T case_template(T value, int count) { T total = value; for (int i = 0; i < count; i++) total += value; return total; }
template <class... Parts> CASE int case_pack(int first, Parts... parts) { return first + (int)(parts + ... + 0); }
CASE double case_defaults(int a, double b = 2.5, const char *c = "default") { return a + b + c[0]; }
CASE int case_lambda(int base) {
    auto inner = [base](int case_inner, double scale) __attribute__((noinline)) { return base + case_inner + (int)scale; };
    return inner(base + 1, 1.5) + inner(base + 2, 2.5);
}
struct Left { virtual ~Left() {} long l = 1; };
struct Right { virtual int case_right(int a) { return a; } virtual ~Right() {} long r = 2; };
struct Both : Left, Right { CASE int case_right(int a) override { return a + (int)r; } };
struct Virtual : virtual Left { CASE explicit Virtual(int case_value, const char *text) : value(case_value + text[0]) {} int value; };
struct Most : Virtual { CASE explicit Most(int case_most) : Virtual(case_most + 1, "x") {} };
namespace { CASE int case_hidden_place(int unused, long used, float both) { return (int)(used + both); } }
} // namespace shop

int main(int argc, char **) {
    using namespace shop;
    for (int turn = 0; turn < 2; turn++) {
        Basket basket(argc + turn);
        sink += basket.case_method(5, "why") + basket.case_const_method(-7) + (long)Basket::case_static_method(1.5, 9) + basket.case_hidden_result_method(3).value;
        Basket *some = turn ? &basket : new Basket(4);
        sink += some->case_virtual(-300, 250) + (basket < *some);
        int number = 5;
        sink += case_references(number, 77L, 88, "reference") + (long)case_scoped_enum(Size::large, Mood::wild, 99);
        Owner owner(11);
        sink += case_owner(owner, 111, "owned") + case_owner_result(222, 3.5).value + case_string("short", 333);
        sink += (long)case_string_result("text", 444).size() + case_unique(std::make_unique<int>(5), 555);
        std::vector<int> items{1, 2, 3};
        sink += case_vector_reference(items, 2) + case_empty({}, 666, {}, 7.5) + case_trivial({1, 2}, {{3, 4}, 5}, 777) + case_pair({1, 2.5}, 888);
        sink += case_null(nullptr, 999) == nullptr;
        sink += case_member_pointers(&Trivial::b, &Basket::case_const_method, 1001) + case_characters(u'a', U'b', L'c', u8'd', 'e');
        sink += case_template(3, 4) + (long)case_template(2.5, 3) + case_template((short)7, 2) + case_pack(1, 2.5, 3L, 'x') + (long)case_defaults(1002);
        sink += case_lambda(1003);
        Both both;
        Right *right = &both;
        sink += right->case_right(1004) + Most(1005).value + Virtual(1006, "v").value + case_hidden_place(1, 1007, 2.5f);
    }
    std::printf("%ld\n", sink);
    return 0;
}
