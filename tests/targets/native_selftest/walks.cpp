// Walk programs on real structures: C's, and the containers of whichever C++ library this is compiled with.
#include "walk_plans.h"
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/mman.h>

enum { OK, UNREADABLE, CUT };

struct Town { long code; char name[24]; };
struct Customer { long id; Town *town; double limit; };
struct Order { long id; Customer *customer; double total; Order *self; };

static void structs()
{
    Town town{7, "Utrecht"};
    Customer first{3, &town, 1.5}, second{4, nullptr, 2.5};
    Order orders[] = {{1, &first, 10, &orders[0]}, {2, &second, 20, &orders[0]}, {3, nullptr, 30, nullptr}};
    walk({point(0, sizeof(Order), 2), end, point(8, sizeof(Customer), 5), point(24, sizeof(Order), 2), end, point(8, sizeof(Town)), end});
    for (int i = 0; i < 3; i++) {
        take(&orders[i], i);
        expect(i, &orders[i]);
    }
    take(nullptr, 3);
    for (const Customer *customer : {&first, &second})
        expect(customer == &first ? 0 : 1, customer);
    expect(0, &town);
    expect(1, &orders[0]);
    expect(1, &first);
    absent(0, &second);
    absent(2, &town);
}

static void texts()
{
    static const char *narrow = "a narrow text";
    static const char16_t *wide = u"wide";
    static const char32_t *wider = U"wider, and longer than its limit allows";
    static const char *empty = "", *exact = "sixteen letters.";
    struct { const char *a; const char16_t *b; const char32_t *c; const char *d, *e, *f; } object{narrow, wide, wider, empty, exact, nullptr};
    auto text = [](uint32_t offset, unsigned unit, unsigned limit) { return step(LANE_WALK_OP_TEXT, offset, unit, LANE_WALK_NOTHING, limit); };
    walk({point(0, sizeof object, 2), end, text(0, 1, 100), text(8, 2, 100), text(16, 4, 5), text(24, 1, 9), text(32, 1, 16), text(40, 1, 16), end});
    take(&object, 0);
    expect(0, narrow, 14);
    expect(0, wide, 10);
    expect(0, wider, 20);
    state(0, wider, CUT, 20);
    state(0, empty, OK, 1);
    state(0, exact, OK, 17);
}

static void arrays()
{
    Customer customers[3] = {{1, nullptr, 1}, {2, nullptr, 2}, {3, nullptr, 3}};
    std::vector<Order> orders{{10, &customers[0], 1, nullptr}, {11, &customers[1], 2, nullptr}, {12, &customers[2], 3, nullptr}}, none;
    std::vector<int> many(1000);
    for (int i = 0; i < 1000; i++)
        many[size_t(i)] = i;
    auto array = [](size_t size, uint32_t target, unsigned limit) { return step(LANE_WALK_OP_ARRAY, 0, size, target, limit, LANE_WALK_FLAG_END_POINTER, 8); };
    walk({point(0, sizeof orders, 2), end, array(sizeof(Order), 4, 100), end, point(8, sizeof(Customer)), end});
    take(&orders, 0);
    take(&none, 1);
    expect(0, orders.data(), 3 * sizeof(Order));
    for (auto &customer : customers)
        expect(0, &customer);
    walk({point(0, sizeof many, 2), end, array(4, LANE_WALK_NOTHING, 100), end});
    take(&many, 2);
    expect(2, many.data(), 400);
    state(2, many.data(), CUT, 400);
    absent(2, &many[100]);
    struct { const short *data; uint32_t count, other; } counted{(const short *)"elements behind a head", 3, 0xffffffff};
    walk({point(0, sizeof counted, 2), end, step(LANE_WALK_OP_ARRAY, 0, 2, LANE_WALK_NOTHING, 100, LANE_WALK_FLAG_COUNT_32, 8, 9), end});
    take(&counted, 3);
    expect(3, (const char *)counted.data + 9, 6);
    absent(3, counted.data);
}

static void strings()
{
#ifdef __GLIBCXX__
    std::string small("in itself"), large("a text that is too long to lie in its own object");
    walk({point(0, sizeof small, 2), end, step(LANE_WALK_OP_ARRAY, 0, 1, LANE_WALK_NOTHING, 1024, 0, 8), end});
    take(&small, 0);
    take(&large, 1);
    expect(0, small.data(), small.size());
    expect(1, large.data(), large.size());
    printf("regions 0 1\nregions 1 2\n"); // the small one is not copied twice
#endif
}

static void parts()
{
    struct Slot { long kind; Town *town; };
    Town towns[4] = {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}};
    struct { uint16_t count; Slot slots[4]; } row{3, {{0, &towns[0]}, {1, &towns[1]}, {0x102, &towns[2]}, {1, &towns[3]}}};
    auto when = [](unsigned mask, unsigned flags, uint64_t low, uint64_t high) { return step(LANE_WALK_OP_WHEN, 0, 8, 6, mask, flags, low, high); };
    auto each = [](unsigned flags) { return step(LANE_WALK_OP_EACH, 8, sizeof(Slot), 4, 4, flags, 0); };
    walk({point(0, sizeof row, 2), end, each(0), end, when(0, 0, 1, 1), end, point(8, sizeof(Town)), end});
    take(&row, 0);
    walk({point(0, sizeof row, 2), end, each(LANE_WALK_FLAG_COUNTED), end, when(0xff, 0, 1, 2), end, point(8, sizeof(Town)), end});
    take(&row, 1);
    walk({point(0, sizeof row, 2), end, each(0), end, step(LANE_WALK_OP_WHEN, 0, 8, 7, 0, LANE_WALK_FLAG_NOT, 1, 1), step(LANE_WALK_OP_WHEN, 0, 2, 7, 0, 0, 0, 0), end, point(8, sizeof(Town)), end});
    take(&row, 2);
    for (int i = 0; i < 4; i++) {
        i == 1 || i == 3 ? expect(0, &towns[i]) : absent(0, &towns[i]);
        i == 1 || i == 2 ? expect(1, &towns[i]) : absent(1, &towns[i]); // only three of them count
        i == 0 || i == 2 ? expect(2, &towns[i]) : absent(2, &towns[i]);
    }
}

static void lists()
{
    Town towns[5] = {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}, {5, "e"}};
    std::list<Town *> doubly, empty;
    std::forward_list<Town *> singly;
    for (auto &town : towns) {
        doubly.push_back(&town);
        singly.push_front(&town);
    }
#ifdef __GLIBCXX__
    const uint32_t first = 0;
#else
    const uint32_t first = 8; // prev, next, size
#endif
    walk({point(0, sizeof doubly, 2), end, step(LANE_WALK_OP_LIST, first, 24, 4, 100, LANE_WALK_FLAG_SENTINEL, first, 0), end, point(16, sizeof(Town)), end});
    take(&doubly, 0);
    take(&empty, 1);
    walk({point(0, sizeof doubly, 2), end, step(LANE_WALK_OP_LIST, first, 24, 4, 3, LANE_WALK_FLAG_SENTINEL, first, 0), end, point(16, sizeof(Town)), end});
    take(&doubly, 2);
    walk({point(0, sizeof singly, 2), end, step(LANE_WALK_OP_LIST, 0, 16, 4, 100, 0, 0), end, point(8, sizeof(Town)), end});
    take(&singly, 3);
    int index = 0;
    for (auto &town : doubly) {
        for (int call : {0, 3})
            expect(call, town);
        index++ < 3 ? expect(2, town) : absent(2, town);
        expect(0, &town);
    }
    printf("regions 0 11\nregions 1 1\n");
    struct Ring { long value; Ring *next; } ring[3] = {{1, &ring[1]}, {2, &ring[2]}, {3, &ring[0]}}, knot[3] = {{1, &knot[1]}, {2, &knot[2]}, {3, &knot[1]}};
    walk({step(LANE_WALK_OP_LIST, 0, 16, LANE_WALK_NOTHING, 60000, 0, 8), end});
    take(ring, 4);
    take(knot, 5);
    for (auto &node : ring)
        expect(4, &node);
    for (auto &node : knot)
        expect(5, &node);
    printf("regions 4 3\nregions 5 3\ntruncated 5\n"); // it ends when the event has taken its time
}

static void trees()
{
    std::map<long, std::pair<long, Town *>> map, empty;
    static Town towns[40];
    for (long i = 0; i < 40; i++) {
        towns[i] = {i, "town"};
        map[i * 7 % 40] = {i, &towns[i]};
    }
#ifdef __GLIBCXX__
    const uint32_t root = 16, left = 16, right = 24, value = 32;
#else
    const uint32_t root = 8, left = 0, right = 8, value = 32;
#endif
    auto tree = [&](unsigned limit) { return step(LANE_WALK_OP_TREE, root, value + 24, 4, limit, 0, left, right); };
    walk({point(0, sizeof map, 2), end, tree(100), end, point(value + 16, sizeof(Town)), end});
    take(&map, 0);
    take(&empty, 1);
    walk({point(0, sizeof map, 2), end, tree(10), end, point(value + 16, sizeof(Town)), end});
    take(&map, 2);
    int index = 0;
    for (auto &pair : map) {
        expect(0, (const char *)&pair - value, value + sizeof pair);
        expect(0, pair.second.second);
        index++ < 10 ? expect(2, pair.second.second) : absent(2, pair.second.second);
    }
    expect(2, (const char *)&*map.begin() - value, value);
    printf("regions 0 81\nregions 1 1\n");
}

template <typename T> static void deque_of(long call, size_t count, size_t popped, unsigned limit)
{
    std::deque<T> deque;
    for (size_t i = 0; i < count + popped; i++)
        deque.push_back(T(i));
    for (size_t i = 0; i < popped; i++)
        deque.pop_front();
#ifdef __GLIBCXX__
    const uint64_t per_block = sizeof(T) < 512 ? 512 / sizeof(T) : 1;
    walk({point(0, sizeof deque, 2), end, step(LANE_WALK_OP_BLOCKS, 16, sizeof(T), LANE_WALK_NOTHING, limit, 0, 48, per_block), end});
#else
    const uint64_t per_block = sizeof(T) < 256 ? 4096 / sizeof(T) : 16; // map {first, begin, end, cap}, start, size
    walk({point(0, sizeof deque, 2), end, step(LANE_WALK_OP_MAPPED, 8, sizeof(T), LANE_WALK_NOTHING, limit, 0, 32 | 40ull << 32, per_block), end});
#endif
    take(&deque, call);
    for (size_t i = 0; i < count && i < limit + 2; i++)
        i < limit ? expect(call, &deque[i]) : absent(call, &deque[i]);
}

static void deques()
{
    deque_of<long>(0, 0, 0, 100);
    deque_of<long>(1, 10, 0, 100);
    deque_of<long>(2, 64, 0, 100);
    deque_of<long>(3, 65, 60, 100);
    deque_of<long>(4, 500, 30, 100);
    deque_of<int>(5, 3000, 1500, 200);
}

// Laid out by hand as in Rust's standard library.
static void tables()
{
    struct Bucket { long key; Town *town; };
    alignas(16) static uint8_t memory[32 * sizeof(Bucket) + 32 + 16];
    static Town towns[32];
    Bucket *buckets = (Bucket *)memory;
    uint8_t *control = memory + 32 * sizeof(Bucket);
    memset(control, 0xff, 48);
    for (long i = 0; i < 32; i++)
        if (i % 5 != 2 && i < 27) {
            control[i] = uint8_t(i * 3);
            towns[i] = {i, "in a table"};
            buckets[31 - i] = {i, &towns[i]};
        }
    control[7] = 0x80; // deleted
    struct { uint8_t *control; uint64_t mask, left, items; } table{control, 31, 0, 0};
    walk({point(0, sizeof table, 2), end, step(LANE_WALK_OP_SWISS, 0, sizeof(Bucket), 4, 100, 0, 8), end, point(8, sizeof(Town)), end});
    take(&table, 0);
    expect(0, control, 32);
    for (long i = 0; i < 32; i++)
        control[i] & 0x80 ? absent(0, &buckets[31 - i]) : (expect(0, &buckets[31 - i]), expect(0, &towns[i]));

    long ring[8] = {0, 10, 20, 30, 40, 50, 60, 70};
    struct { uint64_t capacity; long *data; uint64_t first, count; } deque{8, ring, 6, 5};
    walk({point(0, sizeof deque, 2), end, step(LANE_WALK_OP_RING, 8, 8, LANE_WALK_NOTHING, 100, 0, 0 | 16ull << 32, 24), end});
    take(&deque, 1);
    expect(1, &ring[6], 16);
    expect(1, &ring[0], 24);
    absent(1, &ring[3]);
    deque.first = 9; // not possible
    take(&deque, 2);
    absent(2, &ring[0]);
}

static void b_trees()
{
    struct Inner;
    struct Leaf { Inner *parent; long keys[11]; uint16_t place, length; };
    struct Inner { Leaf leaf; Leaf *edges[12]; };
    static Leaf leaves[9];
    static Inner middle[3], top;
    long key = 0;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            Leaf &leaf = leaves[3 * i + k];
            leaf.length = 6;
            for (int n = 0; n < 6; n++)
                leaf.keys[n] = key++;
            middle[i].edges[k] = &leaf;
            if (k < 2)
                middle[i].leaf.keys[middle[i].leaf.length++] = key++;
        }
        top.edges[i] = &middle[i].leaf;
        if (i < 2)
            top.leaf.keys[top.leaf.length++] = key++;
    }
    struct { Leaf *root; uint64_t height, count; } map{&top.leaf, 2, uint64_t(key)};
    auto tree = [](unsigned limit) { return step(LANE_WALK_OP_BTREE, 0, sizeof(Leaf), LANE_WALK_NOTHING, limit, 0, 8, sizeof(Leaf) | uint64_t(offsetof(Leaf, length)) << 32); };
    walk({point(0, sizeof map, 2), end, tree(100), end});
    take(&map, 0);
    walk({point(0, sizeof map, 2), end, tree(13), end}); // 6 and 1 and 6
    take(&map, 1);
    for (int i = 0; i < 9; i++)
        for (int call : {0, 1})
            call && i > 1 ? absent(call, &leaves[i]) : expect(call, &leaves[i]);
    for (auto &node : middle)
        expect(0, &node);
    expect(1, &top);
    map.height = 1ull << 40; // damaged
    take(&map, 2);
    printf("regions 0 14\nregions 2 1\n");
}

static long global = 0x123456789abcdef;
static thread_local long own = 77;

static void *elsewhere(void *)
{
    own = 99;
    take(nullptr, 1);
    expect(1, &own);
    return nullptr;
}

static void addresses()
{
    Town town{9, "pointed to"};
    static Town *pointer = &town;
    uint64_t thread_pointer;
    __asm__("movq %%fs:0, %0" : "=r"(thread_pointer));
    auto at = [](unsigned flags, const void *address, size_t size, uint32_t target) { return step(LANE_WALK_OP_AT, 0, size, target, 0, flags, (uint64_t)address); };
    walk({at(0, &global, 8, LANE_WALK_NOTHING), at(0, &pointer, 8, 4), at(LANE_WALK_FLAG_THREAD_LOCAL, (void *)((uint64_t)&own - thread_pointer), 8, LANE_WALK_NOTHING), end, point(0, sizeof town), end});
    take(nullptr, 0);
    expect(0, &global);
    expect(0, &town);
    expect(0, &own);
    pthread_t thread;
    pthread_create(&thread, nullptr, elsewhere, nullptr);
    pthread_join(thread, nullptr);
    static const uint64_t vtable[3] = {0, sizeof(Town), 8}, large[3] = {0, 500, 8};
    struct { const Town *value; const uint64_t *vtable; } object{&town, vtable}, huge{&town, large};
    walk({point(0, sizeof object, 2), end, step(LANE_WALK_OP_DYNAMIC, 0, 0, LANE_WALK_NOTHING, 24, 0, 8), end});
    take(&object, 2);
    state(2, &town, CUT, 24);
    huge.vtable = (const uint64_t *)0x10;
    take(&huge, 3);
    absent(3, &town);
}

// What is around an object: so far before it, or as far as the words say that lie before where it points.
static void near()
{
    static const int64_t words[3] = {24, -16, 0};
    static const int64_t far[3] = {1ll << 30, 1ll << 62, 0};
    struct { uint64_t before[2]; const int64_t *words; uint64_t between[2]; uint64_t after; } object{{1, 2}, words + 2, {}, 3}, wild{{1, 2}, far + 2, {}, 3}, bad{{1, 2}, (const int64_t *)0x20, {}, 3};
    auto nearby = [](unsigned flags, int64_t a, int64_t b) { return step(LANE_WALK_OP_NEAR, 0, 8, LANE_WALK_NOTHING, 0, flags, (uint64_t)a, (uint64_t)b); };
    walk({point(0, 8, 2), end, nearby(0, -8, 0), nearby(LANE_WALK_FLAG_TOLD, 0, -8), nearby(LANE_WALK_FLAG_TOLD, 0, -16), end});
    take(&object.words, 0);
    expect(0, &object.before[1]);
    expect(0, &object.before[0]);
    expect(0, &object.after);
    take(&wild.words, 1);
    expect(1, &wild.before[1]);
    puts("regions 1 2");
    take(&bad.words, 2);
    expect(2, &bad.before[1]);
    puts("regions 2 2");
    walk({nearby(0, 0, 0), end}); // an object in the payload is nowhere
    take(&object, 3);
    puts("regions 3 0");
}

// A budget of so many bytes: what was copied before is whole, the rest is cut.
static void budgets()
{
    std::vector<std::string> lines;
    for (int i = 0; i < 100; i++)
        lines.push_back("line " + std::to_string(i) + " of a hundred, none of which is short enough for its own object");
    std::vector<std::string> *all = &lines;
    walk({point(0, 24, 2), end, step(LANE_WALK_OP_ARRAY, 0, sizeof(std::string), 4, 100, LANE_WALK_FLAG_END_POINTER, 8), end, point(0, 60), end}, int(argument));
    take(all, 0);
    printf("budget %ld\n", argument);
    if (argument >= 40)
        expect(0, all, 24);
}

// As many calls with an image each.
static void many()
{
    std::vector<long> numbers(40, 7);
    walk({point(0, 40 * sizeof(long)), end});
    for (int i = 0; i < int(argument); i++)
        take(numbers.data(), i);
}

typedef float Vector __attribute__((vector_size(16)));
typedef double Wide __attribute__((vector_size(32)));
struct Big { long words[5]; };
extern "C" {
TRACED long double wide(Vector vector, long call, long double value, Big big) { __asm__ volatile("" : : "x"(vector), "m"(big) : "memory"); return value * 2 + call; }
TRACED _Complex long double complex(Vector vector, long call, long double value, Big) { __asm__ volatile("" : : "x"(vector) : "memory"); _Complex long double made; __real__ made = value; __imag__ made = 1.5l * call; return made; }
TRACED Vector vector(Vector vector, long call) { return vector + float(call); }
TRACED __attribute__((target("avx"))) Wide wide_vector(double first, Wide vector, long call) { return vector * first + double(call); }
TRACED long none(long call) { __asm__ volatile("" : : : "memory"); return call; }
}

// What lies in vector and x87 registers, and where the caller put what is passed in memory. The program's own registers stay as they are.
static void registers()
{
    const Section section{point(0, 16), point(8, sizeof(Big)), end};
    std::vector<plan_op> ops{
        {LANE_PLAN_OP_VECTOR, 0, 16, 24, 0}, {GPR, 0, 8, 8, 0}, {LANE_PLAN_OP_LEA, 0, 8, 40, 0}, {LANE_PLAN_OP_LEA, 0, 8, 48, 16}, {LANE_PLAN_OP_IMAGE, 0, 0, 16, 500},
        {LANE_PLAN_OP_WALK, 0, 0, 40, 0}, {END, 0, 0, 0, 0}, {LANE_PLAN_OP_X87, 0, 16, 0, 0}, {LANE_PLAN_OP_X87, 1, 16, 16, 0}, {LANE_PLAN_OP_VECTOR, 0, 16, 32, 0}, {END, 0, 0, 0, 0}};
    std::vector<uint8_t> made((const uint8_t *)ops.data(), (const uint8_t *)(ops.data() + ops.size()));
    made.insert(made.end(), (const uint8_t *)section.data(), (const uint8_t *)(section.data() + section.size()));
    uint32_t id = 1;
    for (void *function : {(void *)wide, (void *)complex, (void *)vector, (void *)none}) {
        patch_with((uint64_t)function, hook_for(function, id, made), recorder.enter_gpr);
        id++;
    }
    Big big{{1, 2, 3, 4, 5}};
    for (long call = 0; call < 20; call++) {
        Vector given{float(call), 2, 3, 4};
        long double first = wide(given, call, 1.0l / 3, big);
        _Complex long double second = complex(given, call, 1.0l / 7, big);
        Vector third = vector(given, call);
        none(call);
        long double sum = 0;
        for (int i = 1; i < 9; i++)
            sum += (first + i) * (__real__ second - i) / (__imag__ second + i); // with the whole of the x87 stack
        printf("%La %La %La %g %g %La\n", first, __real__ second, __imag__ second, double(third[0]), double(third[3]), sum);
    }
}

// 32 bytes of ymm1 at the call, of ymm0 at the return. The program's own registers stay as they are.
__attribute__((target("avx"))) static void wide_registers()
{
    std::vector<plan_op> ops{{LANE_PLAN_OP_VECTOR, 1, 32, 8, 0}, {GPR, 0, 8, 0, 0}, {END, 0, 0, 0, 0}, {LANE_PLAN_OP_VECTOR, 0, 32, 0, 0}, {END, 0, 0, 0, 0}};
    std::vector<uint8_t> made((const uint8_t *)ops.data(), (const uint8_t *)(ops.data() + ops.size()));
    patch_with((uint64_t)wide_vector, hook_for((void *)wide_vector, 1, made), recorder.enter_gpr);
    for (long call = 0; call < 20; call++) {
        Wide found = wide_vector(2, Wide{double(call), 2, 3, 4}, call);
        printf("%g %g %g %g\n", found[0], found[1], found[2], found[3]);
    }
}

int main(int count, char **arguments)
{
    static const struct { const char *name; void (*run)(); } scenarios[] = {
        {"structs", structs}, {"texts", texts}, {"arrays", arrays}, {"strings", strings}, {"parts", parts}, {"lists", lists}, {"trees", trees},
        {"deques", deques}, {"tables", tables}, {"b_trees", b_trees}, {"addresses", addresses}, {"near", near}, {"budgets", budgets}, {"many", many}, {"registers", registers},
        {"wide_registers", wide_registers},
    };
    if (count < 5)
        fail("RECORDER POOL SCENARIO ARGUMENT");
    load_recorder(arguments[1], arguments[2]);
    argument = atol(arguments[4]);
    if (!getenv("SELFTEST_UNARMED")) {
        trace_internals();
        if (recorder.arm())
            fail("strobe_arm");
    }
    for (auto &scenario : scenarios)
        if (!strcmp(scenario.name, arguments[3])) {
            scenario.run();
            return 0;
        }
    fail("no scenario %s", arguments[3]);
}
