// A small shop, for what values of calls, watches and variables are shown as. `shop ROUNDS [PAUSE_MS]`: each round places an order of known contents.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace shop {
enum class Mode { Live, Test };
struct Item { int id; double price; };
struct Order {
    int id;
    std::string name;
    std::vector<Item> items;
    double total;
    Mode mode;
    Order *next;
};
struct Receipt { int order; double paid; std::string note; long copies[3]; };
struct Point { int x, y; };
struct Till { long opened; std::map<std::string, int> coins; Order *last; };
struct Shape { virtual ~Shape() = default; int corners = 0; };
struct Square : Shape { double side = 1.5; Square() { corners = 4; } };

Till till = {7, {{"dime", 3}, {"penny", 12}}, nullptr};
Till *gTill = &till;
static int counter = 0;
int table[4] = {10, 20, 30, 40};

__attribute__((noinline)) double price(const Item &item) { return item.price * 2; }
__attribute__((noinline)) Point moved(Point from, int by) { return {from.x + by, from.y - by}; }
__attribute__((noinline)) int area(const Shape *shape) { return shape->corners * 3 + shape->corners; }
__attribute__((noinline)) Receipt place(Order *order, bool paid) {
    counter++;
    till.last = order;
    double sum = 0;
    for (const Item &item : order->items) sum += price(item);
    order->total = sum;
    return {order->id, paid ? sum : 0.0, "thanks, " + order->name, {1, 2, order->id}};
}
__attribute__((noinline)) int refund(std::unique_ptr<Order> order, const char *password) {
    if (order->id % 2) throw std::runtime_error("odd order " + std::to_string(order->id));
    return password ? order->id : -1;
}
}  // namespace shop

int main(int argc, char **argv) {
    using namespace shop;
    long rounds = argc > 1 ? atol(argv[1]) : 3, pause_ms = argc > 2 ? atol(argv[2]) : 0;
    for (int round = 0; round < rounds; round++) {
        Order later{round + 100, "later", {}, 0, Mode::Test, nullptr};
        Order order{round, "order " + std::to_string(round), {}, 0, Mode::Live, &later};
        for (int i = 0; i <= round % 3; i++) order.items.push_back({i, i + 0.5});
        till.coins["round"] = round;
        table[2] = round;
        Receipt receipt = place(&order, round % 2 == 0);
        Point at = moved({round, 5}, 2);
        Square square;
        int corners = area(&square);
        try {
            refund(std::make_unique<Order>(order), "hunter2hunter2");
        } catch (const std::runtime_error &error) {
            printf("refund: %s\n", error.what());
        }
        printf("round %d: %s %g %d,%d %d\n", round, receipt.note.c_str(), receipt.paid, at.x, at.y, corners);
        fflush(stdout);
        if (pause_ms) usleep(static_cast<useconds_t>(pause_ms) * 1000);
    }
    return counter == rounds ? 0 : 1;
}
