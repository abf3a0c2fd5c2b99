#include <deque>

namespace shop {
class Order {
public:
    explicit Order(int id);
    int total() const;

private:
    int id;
};
Order::Order(int id) : id(id) {}
int Order::total() const { return id; }

template <typename T> class Box {
public:
    explicit Box(T value) : value(value) {}
    T get() const { return value; }

private:
    T value;
};
template class Box<int>;

int total(const Order& order, const Box<int>& box) { return order.total() + box.get(); }
const Order& first() {
    static const Order order(6);
    return order;
}
const Box<int>& second() {
    static const Box<int> box(7);
    return box;
}
} // namespace shop

namespace {
class Hidden {
public:
    __attribute__((noinline)) int size() const { return static_cast<int>(all.size()); }

private:
    std::deque<int> all;
};
} // namespace

class Plain { // it has no functions of its own
    Hidden* hidden;
};
int sized() {
    static const Hidden hidden;
    static Plain plain;
    return hidden.size() + static_cast<int>(sizeof plain);
}
