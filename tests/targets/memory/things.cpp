// C++ variables for debug_memory. Prints "ready", then lives until its standard input ends; each line there makes it print what it has.
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
#include <deque>
#include <list>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int sharedCounter;
extern "C" int library_step(int by);

namespace shop {
enum class Color { Red, Green = 7 };
struct Order {
    int id = 17;
    double total = -4.5;
    std::string customer = "Ada";
    std::vector<int> items{1, 2, 3};
    Color color = Color::Green;
    static int count;
    static constexpr int MAX = 9;
};
int Order::count = 3;
inline namespace v2 { long version = 12; }
namespace { int hidden = 4; }

struct Shape { virtual ~Shape() = default; int sides = 0; };
struct Circle : Shape { double radius = 2.5; };
struct Square : Shape { double edge = 4; Square() { sides = 4; } };
struct Base { int depth = 1; };
struct Left : virtual Base { int left = 2; };
struct Right : virtual Base { int right = 3; };
struct Bottom : Left, Right { int bottom = 4; };

std::vector<Order> orders(4);
std::map<std::string, int> stock{{"bolt", 3}, {"nut", 44}};
std::unordered_map<int, std::string> names{{5, "five"}, {6, "six"}};
std::unique_ptr<Order> owned = std::make_unique<Order>();
std::shared_ptr<std::vector<int>> shared = std::make_shared<std::vector<int>>(3, 8);
std::optional<int> perhaps = 6, never;
std::variant<int, std::string> either = std::string("text");
std::tuple<int, std::string> both{1, "two"};
std::deque<int> queue{10, 20, 30};
std::list<int> chain{7, 8, 9};
std::set<int> unique{3, 1, 2};
std::atomic<int> rising{0};
std::string title = "a title that is too long to be kept inside of the object itself";
std::string brief = "short";
Shape *shape = new Circle;
Order &favourite = orders[2];
Bottom bottom;
int Order::*field = &Order::id;

int next() {
    static int counter = 10;
    thread_local int calls = 1;
    return ++counter + ++calls;
}
int use() { return hidden++ + (int)version; }
}  // namespace shop

int workerTid;

int main() {
    for (int index = 0; auto &order : shop::orders)
        order.id = 100 + index++;
    shop::orders[3].total = 99.25;
    shop::next();
    std::thread([] {
        shop::next();
        shop::next();
        library_step(10);
        workerTid = (int)syscall(SYS_gettid);
        for (;;) {
            shop::rising++;
            usleep(500);
        }
    }).detach();
    while (!*(volatile int *)&workerTid)
        usleep(100);
    library_step(1);
    std::printf("ready %d\n", sharedCounter);
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        std::printf("count %d counter %d total %g first %d rising %d shared %d hidden %d radius %g\n", shop::Order::count, shop::next(), shop::orders[3].total, shop::orders[0].items[0],
                    (int)shop::rising, sharedCounter, shop::use(), dynamic_cast<shop::Circle *>(shop::shape)->radius);
        std::fflush(stdout);
    }
    return 0;
}
