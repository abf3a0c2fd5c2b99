// Ordinary C++: templates, lambdas, virtual and pointer-to-member calls, operators, anonymous namespaces, overloads, iterators, C++20 coroutines, static initialisers.
#include <algorithm>
#include <coroutine>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#define KEEP __attribute__((noinline))

namespace geo {
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
    KEEP virtual std::string name() const { return "shape"; }
};
struct Square final : Shape {
    double side;
    KEEP explicit Square(double s) : side(s) {}
    KEEP double area() const override { return side * side; }
    KEEP std::string name() const override { return "square"; }
};
struct Circle : Shape {
    double radius;
    KEEP explicit Circle(double r) : radius(r) {}
    KEEP double area() const override { return 3 * radius * radius; }
};
template <typename T, int N> struct Grid {
    T cells[N][N]{};
    KEEP T &operator()(int x, int y) { return cells[y][x]; }
    KEEP T sum() const { T total{}; for (auto &row : cells) for (auto cell : row) total += cell; return total; }
};
}  // namespace geo

namespace {
KEEP int hidden(int x) { return x * 3; }
struct Vec { int x, y; KEEP Vec operator+(const Vec &o) const { return {x + o.x, y + o.y}; } KEEP bool operator<(const Vec &o) const { return x < o.x; } KEEP explicit operator bool() const { return x || y; } };
struct Early { KEEP Early() { std::printf("static initialiser\n"); } KEEP ~Early() { std::printf("static destructor\n"); } } early;
}  // namespace

KEEP static int overload(int x) { return x + 1; }
KEEP static int overload(const std::string &s) { return (int)s.size(); }
template <typename F> KEEP auto apply(F f, int x) { return f(x); }
template <typename... Ts> KEEP auto add_all(Ts... values) { return (values + ... + 0); }

struct Generator {
    struct promise_type {
        int value = 0;
        Generator get_return_object() { return Generator{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) { value = v; return {}; }
        void return_void() {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> handle;
    ~Generator() { if (handle) handle.destroy(); }
    explicit Generator(std::coroutine_handle<promise_type> h) : handle(h) {}
    Generator(const Generator &) = delete;
    bool next() { handle.resume(); return !handle.done(); }
};

KEEP static Generator count_to(int n) { for (int i = 0; i < n; i++) co_yield i * i; }

int main() {
    std::vector<std::unique_ptr<geo::Shape>> shapes;
    for (int i = 1; i < 50; i++) { if (i % 2) shapes.push_back(std::make_unique<geo::Square>(i)); else shapes.push_back(std::make_unique<geo::Circle>(i)); }
    double area = 0;
    std::map<std::string, int> names;
    for (auto &shape : shapes) { area += shape->area(); names[shape->name()]++; }
    for (auto &[name, count] : names) std::printf("%s %d\n", name.c_str(), count);
    geo::Grid<long, 8> grid;
    for (int i = 0; i < 64; i++) grid(i % 8, i / 8) = i;
    int captured = 5;
    auto lambda = [captured](int x) KEEP { return x * captured; };
    std::function<int(int)> wrapped = lambda;
    int (*pointer)(int) = overload;
    double (geo::Shape::*member)() const = &geo::Shape::area;
    std::vector<Vec> points;
    for (int i = 0; i < 200; i++) points.push_back(Vec{(i * 37) % 101, i} + Vec{1, 1});
    std::sort(points.begin(), points.end());
    long mix = std::accumulate(points.begin(), points.end(), 0L, [](long a, const Vec &p) { return a * 3 + p.x + (p ? 1 : 0); });
    std::variant<int, std::string> either = std::string("text");
    int visited = std::visit([](auto &v) { return overload(v); }, either);
    Generator squares = count_to(20);
    int generated = 0;
    while (squares.next()) generated += squares.handle.promise().value;
    std::optional<int> maybe = generated > 3 ? std::optional<int>(hidden(generated)) : std::nullopt;
    std::ostringstream stream;
    stream << area << ' ' << grid.sum() << ' ' << apply(lambda, 4) + wrapped(6) + pointer(1) << ' ' << (shapes[0].get()->*member)() << ' ' << mix << ' ' << visited << ' ' << *maybe << ' ' << add_all(1, 2L, 3.5);
    std::printf("%s\n", stream.str().c_str());
    return 0;
}
