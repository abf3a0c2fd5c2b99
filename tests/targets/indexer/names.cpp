// One of each kind of name that patterns must cope with. Every function is called, so that each is in the symbol table.
#include <cstdio>
#include <functional>
#include <ostream>
#include <string>

#define KEEP __attribute__((noinline, used))

namespace {
struct Hidden {
    int value;
    KEEP int reveal() const { return value; }
};
KEEP int local_helper(int value) { return value + 1; }
} // namespace

namespace auth {
KEEP bool validate(const char *token) { return token && *token; }
namespace token {
KEEP bool validate(int length) { return length > 3; }
KEEP int refresh() { return 7; }
namespace jwt {
KEEP bool validate(long stamp) { return stamp != 0; }
} // namespace jwt
} // namespace token
} // namespace auth

namespace net {
template <class T> struct Queue {
    T items[4];
    int count = 0;
    KEEP void push(T item) { items[count++ & 3] = item; }
    template <class U> KEEP U sum(U start) const { return start + (U)items[0] + (U)items[1]; }
};
template <class T> KEEP T twice(T value) { return value + value; }
template <> KEEP const char *twice<const char *>(const char *value) { return value; }

class Connection {
  public:
    KEEP explicit Connection(int fd) : fd_(fd) {}
    KEEP virtual ~Connection() { fd_ = -1; }
    KEEP bool operator==(const Connection &other) const { return fd_ == other.fd_; }
    KEEP bool operator<(const Connection &other) const { return fd_ < other.fd_; }
    KEEP int operator()(int a, int b) const { return a + b + fd_; }
    KEEP int operator[](int index) const { return index + fd_; }
    KEEP operator bool() const { return fd_ > 0; }
    KEEP operator std::string() const { return "fd"; }
    KEEP Connection &operator++() { ++fd_; return *this; }
    KEEP const Connection *operator->() const { return this; }
    KEEP static Connection make(int fd) { return Connection(fd); }
    KEEP [[gnu::abi_tag("v2")]] int tagged() const { return fd_; }
    KEEP virtual int send(const char *text, int length) { return text ? length : -1; }
    int fd_;
};
KEEP std::ostream *operator<<(std::ostream *out, const Connection &connection) { return connection.fd_ ? out : nullptr; }

struct Base { virtual int run(int) = 0; int pad = 1; };
struct Other { virtual int walk(int) = 0; int pad = 2; };
struct Both final : Base, Other {
    KEEP int run(int value) override { return value + pad_; }
    KEEP int walk(int value) override { return value - pad_; }
    int pad_ = 3;
};
} // namespace net

KEEP int operator""_km(unsigned long long value) { return (int)value * 1000; }

extern "C" {
KEEP int parse_header(const char *text, int length) { return text[0] + length; }
KEEP int parse_body(const char *text) { return text[0]; }
KEEP int parse__internal(int value) { return value; }
int parse_alias(const char *text) __attribute__((alias("parse_body")));
KEEP int dotted(int value) __asm__("dotted.name.v1");
KEEP int dotted(int value) { return value * 3; }
}

KEEP std::function<int(int)> make_adder(int base) {
    return [base](int value) { return base + value; };
}

KEEP int outer(int seed) {
    auto first = [&](int value) __attribute__((noinline)) { return value + seed; };
    auto second = [](auto value) __attribute__((noinline)) { return (int)value * 2; };
    struct Local {
        KEEP int go(int value) { return value ^ 5; }
    } local;
    return first(2) + second(3) + second(1.5) + local.go(seed);
}

int main(int argc, char **argv) {
    net::Queue<int> ints;
    net::Queue<double> doubles;
    ints.push(argc);
    doubles.push(2.5);
    net::Connection one(argc), two = net::Connection::make(4);
    net::Both both;
    net::Base *base = &both;
    net::Other *other = &both;
    Hidden hidden{argc};
    int total = ints.sum<int>(1) + (int)ints.sum<long>(2) + (int)doubles.sum<double>(1) + net::twice(3) + (int)net::twice(2.0) + *net::twice("x");
    total += one == two, total += one < two, total += one(1, 2) + one[3] + (bool)one + (int)std::string(one).size() + (++one).fd_ + one->fd_ + one.tagged();
    total += one.send("x", 1) + base->run(1) + other->walk(2) + 3_km + (net::operator<<((std::ostream *)nullptr, one) != nullptr);
    total += auth::validate("t") + auth::token::validate(4) + auth::token::refresh() + auth::token::jwt::validate(9L);
    total += local_helper(argc) + hidden.reveal() + parse_header(argv[0], 1) + parse_body(argv[0]) + parse_alias(argv[0]) + parse__internal(1) + dotted(2);
    total += make_adder(2)(3) + outer(argc);
    printf("%d\n", total);
    return 0;
}
