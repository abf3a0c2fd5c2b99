// Uses classes that only homes_defined.cpp defines.
namespace shop {
class Order;
template <typename T> class Box;
int total(const Order& order, const Box<int>& box);
const Order& first();
const Box<int>& second();
} // namespace shop
class Plain;
int read(Plain* plain) { return plain != nullptr; }

int main() { return shop::total(shop::first(), shop::second()) + read(nullptr) - 13; }
