// Values handed over in every way: what a plan copies of each at the call and at the return shows all of it. Functions have `case_` in their names.
#include <any>
#include <complex>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include <unistd.h>

#define CASE __attribute__((noinline))

namespace shop {
struct Item { std::string name; int price; };
struct Order { int id; std::vector<Item> items; Order *next; const char *note; double total; };
struct Point { int x, y; };
struct Span { const char *text; long length; };
struct Shape { virtual ~Shape() {} int id = 1; };
struct Circle : Shape { double radius = 2.5; std::string label = "a circle with a long label"; };
struct Named { virtual ~Named() {} std::string name = "named"; };
struct Both : Shape, Named { int more = 7; };
struct Large { int numbers[90]; std::string last; };
struct Crate : Shape { int numbers[120] = {1, 2}; std::string last = "after many numbers"; };
struct Store : Shape { std::string first = "before very much"; int numbers[1000] = {1, 2}; std::string last = "after very much"; };
struct Front { virtual ~Front() {} const char *title = "a front"; };
struct Crated : Front, Crate { std::string mark = "a mark on a crate"; };
struct Root { virtual ~Root() {} std::string root = "a root that is virtual"; };
struct Left : virtual Root { const char *left = "left of it"; };
struct Right : virtual Root { std::string right = "right of it, somewhat longer"; };
struct Tree : Left, Right { std::string tree = "the tree with both of them"; };
enum class Mood { calm = 1, wild = 2 };

CASE int case_pointer(const Order *order) { return order->id; }
CASE int case_reference(const Order &order, int after) { return order.id + after; }
CASE int case_by_value(Order order, int after) { return order.id + after; }
CASE int case_string(std::string text) { return (int)text.size(); }
CASE int case_point(Point at, Mood mood) { return at.x + (int)mood; }
CASE int case_span(Span span, int after) { return (int)span.length + after; }
CASE int case_map(const std::map<std::string, int> &map) { return (int)map.size(); }
CASE int case_shape(Shape *shape) { return shape->id; }
CASE int case_second_base(Named *named) { return (int)named->name.size(); }
CASE int case_large(Shape *shape) { return shape->id + 1; }
CASE int case_huge(const Shape &shape) { return shape.id + 2; }
CASE int case_far_base(Shape *shape) { return shape->id + 3; }
CASE int case_near_base(const Front *front) { return front->title[0]; }
CASE int case_virtual_own(Left *left) { return left->left[1]; }
CASE int case_virtual_whole(const Right &right) { return (int)right.right.size(); }
CASE int case_virtual_base(Root *root) { return (int)root->root.size(); }
CASE int case_no_vtable(Shape *shape) { return shape != nullptr; }
CASE int case_owner(std::unique_ptr<Shape> owner) { return owner->id; }
CASE int case_shared(const std::shared_ptr<Point> &shared) { return shared->x; }
CASE int case_any(const std::any &any) { return std::any_cast<Point>(any).y; }
CASE int case_any_text(const std::any &any) { return (int)std::any_cast<const std::string &>(any).size(); }
CASE int case_any_large(std::any any) { return (int)std::any_cast<const Large &>(any).last.size(); }
CASE int case_any_pointer(const std::any *any) { return std::any_cast<Order *>(*any)->id; }
CASE int case_any_nothing(const std::any &any, int after) { return any.has_value() + after; }
CASE int case_choice(std::variant<int, std::string> choice, std::optional<Point> maybe) { return (int)choice.index() + maybe->x; }
CASE int case_complex(std::complex<double> number, long double wide) { return (int)(number.real() + wide); }
CASE int case_null(const Order *order, std::string *text) { return order == nullptr && text == nullptr; }
CASE int case_bad(const Order *order) { return order != nullptr; }

CASE Order case_give_order(int id) { return {id, {{"pen", 3}}, nullptr, "given", 1.5}; }
CASE Point case_give_point(int x) { return {x, -x}; }
CASE std::string case_give_string(int count) { return std::string(count, 'x') + "!"; }
CASE std::vector<std::string> case_give_vector() { return {"one", "two"}; }
CASE const Item *case_give_pointer(const Order &order) { return &order.items[0]; }
CASE std::unique_ptr<Shape> case_give_owner() { return std::make_unique<Circle>(); }
CASE long double case_give_wide(int x) { return x + 0.5L; }
} // namespace shop

int main(int count, char **arguments) {
    while (count > 1 && access(arguments[1], F_OK)) usleep(1000);
    using namespace shop;
    Order last{2, {}, nullptr, "last", 0.5};
    Order first{1, {{"a book with a long title", 10}, {"pen", 2}}, &last, "first", 12.25};
    Circle circle;
    Both both;
    long sum = case_pointer(&first) + case_reference(first, 3) + case_by_value(first, 4) + case_string("not so short a text") + case_point({3, 4}, Mood::wild);
    sum += case_span({"span", 4}, 5) + case_map({{"one", 1}, {"two", 2}}) + case_shape(&circle) + case_second_base(&both);
    sum += case_owner(std::make_unique<Circle>()) + case_shared(std::make_shared<Point>(Point{5, 6})) + case_any(std::any(Point{7, 8}));
    const std::any held = &last;
    sum += case_any_text(std::string("a text in an any")) + case_any_large(Large{{1, 2}, "after many numbers"}) + case_any_pointer(&held) + case_any_nothing({}, 6);
    sum += case_choice(std::string("chosen, and long enough"), Point{9, 10}) + case_complex({1.5, -2.5}, 3.25L) + case_null(nullptr, nullptr) + case_bad((Order *)16);
    sum += case_give_order(4).id + case_give_point(5).x + (long)case_give_string(40).size() + (long)case_give_vector().size() + case_give_pointer(first)->price;
    sum += case_give_owner()->id + (long)case_give_wide(6);
    static Store store;
    Crate crate;
    Crated crated;
    Left left;
    Tree tree;
    void *raw[64] = {(void *)0x20, (void *)9};
    sum += case_large(&crate) + case_huge(store) + case_far_base(&crated) + case_near_base(&crated) + case_virtual_own(&left) + case_virtual_whole(tree);
    sum += case_virtual_base(&tree) + case_no_vtable((Shape *)raw);
    std::printf("%ld\n", sum);
    return 0;
}
