// Values of C++'s own kinds of types: classes with bases and virtual functions, references, pointers to members, enums, templates.
#include <functional>

#include "json.h"

namespace shop {
enum class Level : unsigned char { low = 1, middle = 7, high = 200 };
enum Mask { none = 0, first = 1, second = 2, fourth = 8 };
class Declared;

struct Money {
    long units;
    int cents;
    static const int limit = 4711;
    static int created;
    Money operator+(const Money &other) const { return {units + other.units, cents + other.cents}; }
};
int Money::created = 3;

struct Shape {
    int id = 1;
    virtual ~Shape() {}
    virtual double area() const { return 0; }
};
struct Circle : Shape {
    double radius = 2.5;
    double area() const override { return 3 * radius * radius; }
};
struct Named {
    const char *name = "named";
    virtual const char *tell() const { return name; }
};
struct Label : Shape, Named {
    int width = 7;
    const char *tell() const override { return "label"; }
};
struct Plain {
    int x = 1;
    int y = 2;
};
struct Derived : Plain {
    int x = 3;
};
struct Left : Plain {
    int left = 4;
};
struct Right : Plain {
    int right = 5;
};
struct Both : Left, Right {
    int both = 6;
};
struct Empty {};
struct Hollow : Empty {
    char tail = 't';
};
struct Top {
    long top = 8;
};
struct Sides : virtual Top {
    int side = 9;
};
struct Other : virtual Top {
    int another = 10;
};
struct Diamond : Sides, Other {
    long last = 11;
};
template <typename T, int N> struct Ring {
    T slots[N];
    unsigned at;
    Ring *next;
};
struct Methods {
    int number = 3;
    Money price = {1, 2};
    int twice(int by) const { return number * by; }
    virtual int thrice(int by) const { return number * by * 3; }
};
class Private {
    int hidden = 12;

  protected:
    union {
        int whole = 0x00020001;
        struct {
            short low, high;
        };
    };

  public:
    const int constant = 5;
    mutable int changing = 6;
    bool yes : 1 = true;
    Level level : 8 = Level::middle;
    decltype(nullptr) nothing = nullptr;
    std::string said() const;
};
struct Kinds {
    Level level, strange;
    Mask both, zero, unknown;
    Money money;
    Derived derived;
    Both bases;
    Hollow hollow;
    Diamond diamond;
    Private secret;
    Ring<Money, 2> ring;
    Ring<char, 4> letters;
    Circle circle;
    Label label;
    char8_t utf8;
    char16_t utf16;
    wchar_t wide;
    Money array[2][2];
};
static Money paid{100, 50};
static int counter = 17;
struct Links {
    Money &reference = paid;
    Money &&other = static_cast<Money &&>(paid);
    const int &number = counter;
    const char *const &text;
    Shape *shape, *circle, *label_shape;
    Named *label_named;
    Shape &circle_reference;
    Diamond *diamond;
    Sides *sides;
    Top *top;
    Declared *declared;
    int Methods::*field, Methods::*no_field;
    Money Methods::*money_field;
    int (Methods::*method)(int) const, (Methods::*no_method)(int) const;
    int (Methods::*virtual_method)(int) const;
    int (*function)(int);
    void (*nothing)();
    Links *self;
};

std::string members_of(const Money &m)
{
    return object({{"units", json(m.units)}, {"cents", json(m.cents)}});
}
std::string members_of(const Derived &d)
{
    return object({{"Plain::x", json(d.Plain::x)}, {"y", json(d.y)}, {"x", json(d.x)}});
}
std::string members_of(const Both &b)
{
    return object({{"Left::Plain::x", json(b.Left::x)}, {"Left::Plain::y", json(b.Left::y)}, {"left", json(b.left)}, {"Right::Plain::x", json(b.Right::x)},
                   {"Right::Plain::y", json(b.Right::y)}, {"right", json(b.right)}, {"both", json(b.both)}});
}
std::string members_of(const Diamond &d)
{
    return object({{"class", "\"shop::Diamond\""}, {"side", json(d.side)}, {"another", json(d.another)}, {"last", json(d.last)}, {"top", json(d.top)}});
}
std::string members_of(const Circle &c)
{
    return object({{"class", "\"shop::Circle\""}, {"id", json(c.id)}, {"radius", json(c.radius)}});
}
std::string members_of(const Label &l)
{
    return object({{"class", "\"shop::Label\""}, {"id", json(l.id)}, {"name", json(l.name)}, {"width", json(l.width)}});
}
std::string Private::said() const
{
    return object({{"hidden", json(hidden)}, {"whole", json(whole)}, {"low", json(low)}, {"high", json(high)}, {"constant", json(constant)},
                   {"changing", json(changing)}, {"yes", json((bool)yes)}, {"level", level == Level::middle ? "\"middle\"" : "?"}, {"nothing", "null"}});
}
template <typename T, int N> std::string members_of(const Ring<T, N> &r)
{
    return object({{"slots", std::is_same_v<T, char> ? in_quotes((const char *)r.slots) : list_of(r.slots, N)}, {"at", json(r.at)}, {"next", "null"}});
}
} // namespace shop
using namespace shop;

static Kinds kinds;
static Circle circle;
static Label label;
static Diamond diamond;
static Shape shape;
static const char *words = "words";
static int twice(int number)
{
    return number * 2;
}
static Links links{.text = words, .circle_reference = circle};

static void say_kinds()
{
    kinds.level = Level::high, kinds.strange = (Level)9, kinds.both = (Mask)(first | fourth), kinds.unknown = (Mask)(second | 4), kinds.money = {7, 8};
    kinds.ring = {{{1, 2}, {3, 4}}, 1, nullptr}, kinds.letters = {"abc", 2, nullptr}, kinds.utf8 = u8'u', kinds.utf16 = u'é', kinds.wide = L'ß';
    kinds.array[1][0] = {5, 6};
    group("shop::Kinds", &kinds);
    expect_text("level", "\"high\""), expect_text("strange", std::to_string((int)kinds.strange)), expect_text("both", "\"first|fourth\"");
    expect_text("zero", "\"none\""), expect_text("unknown", "\"second|0x4\""), expect("money", kinds.money), expect("derived", kinds.derived);
    expect("bases", kinds.bases), expect_text("hollow", object({{"tail", json(kinds.hollow.tail)}})), expect("diamond", kinds.diamond);
    expect_text("secret", kinds.secret.said()), expect("ring", kinds.ring), expect("letters", kinds.letters), expect("circle", kinds.circle);
    expect("label", kinds.label), expect_text("utf8", in_quotes(std::string(1, (char)kinds.utf8))), expect("utf16", kinds.utf16), expect("wide", kinds.wide);
    expect("array", kinds.array);
}

static void say_links()
{
    links.shape = &shape, links.circle = &circle, links.label_shape = &label, links.label_named = &label, links.diamond = &diamond, links.sides = &diamond;
    links.top = &diamond, links.declared = (Declared *)&counter, links.field = &Methods::number, links.no_field = nullptr, links.money_field = &Methods::price;
    links.method = &Methods::twice, links.virtual_method = &Methods::thrice, links.function = twice, links.self = &links;
    group("shop::Links", &links);
    expect_text("reference", json(links.reference)), expect_text("other", json(links.other)), expect_text("number", json(links.number));
    expect_text("text", json(links.text));
    expect_text("shape", pointed(links.shape, object({{"class", "\"shop::Shape\""}, {"id", json(shape.id)}})));
    expect_text("circle", pointed(links.circle, json(circle))), expect_text("label_shape", pointed(links.label_shape, json(label)));
    expect_text("label_named", pointed(links.label_named, json(label))), expect_text("circle_reference", json(circle));
    expect_text("diamond", pointed(links.diamond, json(diamond))), expect_text("sides", pointed(links.sides, json(diamond)));
    expect_text("top", pointed(links.top, object({{"top", json(links.top->top)}}))), expect_text("declared", in_quotes(address(links.declared)));
    expect_text("field", "\"&shop::Methods::number\""), expect_text("no_field", "null"), expect_text("money_field", "\"&shop::Methods::price\"");
    expect_text("method", "\"&shop::Methods::twice(int) const\""), expect_text("no_method", "null");
    expect_text("virtual_method", "\"<virtual function 0 of shop::Methods>\"");
    expect_text("function", in_quotes(address((void *)links.function) + " <twice(int)>")), expect_text("nothing", "null");
}

int main()
{
    say_kinds();
    say_links();
    ready();
    return (kinds.money + paid).cents + (links.*&Links::self == nullptr) + Methods().twice(links.function(1)) == 0;
}
