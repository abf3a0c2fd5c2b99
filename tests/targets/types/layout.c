// Types of C, and what this program finds out about them itself.
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <uchar.h>
#include <wchar.h>

#include "says.h"

struct hidden;
struct hidden *hidden_get(void);
struct never_defined;

typedef struct list_node {
    int value;
    struct list_node *next;
} list_node;

struct tree {
    struct tree *left, *right, *parent;
    list_node *items;
    double weight;
};

enum color { RED, GREEN = 5, BLUE = -3 };
enum permission { READ = 1, WRITE = 2, EXECUTE = 4, ALL = 7 };
typedef enum { ANON_A = 10, ANON_B } anonymous_enum;
enum big { BIG_ZERO, BIG_ONE = 0xFFFFFFFFu };

typedef int callback(const char *name, void *context);
typedef unsigned short port_number;

struct scalars {
    _Bool flag;
    char letter;
    signed char tiny;
    unsigned char octet;
    short shorter;
    port_number port;
    int number;
    unsigned word;
    long longer;
    unsigned long long longest;
    __int128 huge;
    unsigned __int128 huge_unsigned;
    float single;
    double twice;
    long double extended;
    float _Complex pair;
    double _Complex pair_twice;
    char16_t utf16;
    char32_t utf32;
    wchar_t wide;
    enum color color;
    enum permission permission;
    anonymous_enum anonymous;
    enum big big;
    const char *const text;
    const volatile int watched;
    char *restrict only;
};

struct bits {
    unsigned a : 3;
    int b : 5;
    unsigned long long c : 40;
    unsigned d : 24;
    _Bool e : 1;
    unsigned : 0;
    unsigned char f : 7;
    unsigned g : 9;
    enum permission h : 3;
    int plain;
    short i : 4;
};

struct __attribute__((packed)) packed_bits {
    char start;
    unsigned a : 7;
    unsigned long long b : 60;
    unsigned short c : 13;
    int plain;
    char end;
};

union either {
    int number;
    double real;
    char text[9];
    struct {
        short low, high;
    } halves;
};

struct anonymous {
    int kind;
    union {
        long number;
        struct {
            short x, y;
            union {
                char deep;
                int deeper;
            };
        };
    };
    struct {
        int named_inner;
    } named;
};

struct arrays {
    int one[7];
    short two[3][5];
    char three[2][3][4];
    list_node nodes[4];
    void *pointers[6];
    callback *handlers[2];
    int (*to_array)[9];
    int zero[0];
    long flexible[];
};

typedef float vector4 __attribute__((vector_size(16)));

struct __attribute__((aligned(64))) mixed {
    vector4 lanes;
    struct never_defined *opaque;
    struct hidden *hidden;
    void *nothing;
    int (*variadic)(const char *format, ...);
    struct bits bits;
    _Atomic int counted;
    char last;
};

struct scalars global_scalars;
struct bits global_bits;
struct packed_bits global_packed;
union either global_either;
struct anonymous global_anonymous;
struct arrays *global_arrays;
struct mixed global_mixed;
struct tree *global_tree;
static int file_local = 3;
_Thread_local long per_thread = 4;
static const int folded = 77;
const double table_of[3][2] = {{1, 2}, {3, 4}, {5, 6}};

__attribute__((noinline)) int take(struct tree *tree, const struct scalars *scalars, callback *call, enum color color, struct mixed mixed, ...)
{
    static unsigned calls_seen = 5;
    calls_seen += file_local++ + per_thread++;
    return call("x", tree) + (int)color + mixed.last + scalars->number + (int)calls_seen;
}

__attribute__((noinline)) long sum_of(int count, long values[count])
{
    long grown[count + 1], total = 0;
    for (int index = 0; index < count; index++)
        grown[index] = values[index];
    for (int index = 0; index < count; index++)
        total += grown[index];
    return total;
}

static int called(const char *name, void *context)
{
    return name[0] + (context != NULL);
}

static void tell_scalars(void)
{
    SIZE(struct scalars);
    FIELD(struct scalars, flag), FIELD(struct scalars, letter), FIELD(struct scalars, tiny), FIELD(struct scalars, octet);
    FIELD(struct scalars, shorter), FIELD(struct scalars, port), FIELD(struct scalars, number), FIELD(struct scalars, word);
    FIELD(struct scalars, longer), FIELD(struct scalars, longest), FIELD(struct scalars, huge), FIELD(struct scalars, huge_unsigned);
    FIELD(struct scalars, single), FIELD(struct scalars, twice), FIELD(struct scalars, extended), FIELD(struct scalars, pair);
    FIELD(struct scalars, pair_twice), FIELD(struct scalars, utf16), FIELD(struct scalars, utf32), FIELD(struct scalars, wide);
    FIELD(struct scalars, color), FIELD(struct scalars, permission), FIELD(struct scalars, anonymous), FIELD(struct scalars, big);
    FIELD(struct scalars, text), FIELD(struct scalars, watched), FIELD(struct scalars, only);
    ENUM(enum color, RED), ENUM(enum color, GREEN), ENUM(enum color, BLUE);
    ENUM(enum permission, READ), ENUM(enum permission, WRITE), ENUM(enum permission, EXECUTE), ENUM(enum permission, ALL);
    ENUM(anonymous_enum, ANON_A), ENUM(anonymous_enum, ANON_B), ENUM(enum big, BIG_ZERO), ENUM(enum big, BIG_ONE);
}

static void tell_bits(void)
{
    SIZE(struct bits), SIZE(struct packed_bits);
    BITS(struct bits, a); BITS(struct bits, b); BITS(struct bits, c); BITS(struct bits, d); BITS(struct bits, e);
    BITS(struct bits, f); BITS(struct bits, g); BITS(struct bits, h); BITS(struct bits, i); FIELD(struct bits, plain);
    BITS(struct packed_bits, a); BITS(struct packed_bits, b); BITS(struct packed_bits, c);
    FIELD(struct packed_bits, start), FIELD(struct packed_bits, plain), FIELD(struct packed_bits, end);
}

static void tell_records(void)
{
    SIZE(list_node), SIZE(struct tree), SIZE(union either), SIZE(struct anonymous), SIZE(struct arrays), SIZE(struct mixed), SIZE(vector4);
    FIELD(list_node, value), FIELD(list_node, next);
    FIELD(struct tree, left), FIELD(struct tree, parent), FIELD(struct tree, items), FIELD(struct tree, weight);
    FIELD(union either, number), FIELD(union either, real), FIELD(union either, text), FIELD(union either, halves);
    FIELD(struct anonymous, kind), FIELD(struct anonymous, number), FIELD(struct anonymous, x), FIELD(struct anonymous, y);
    FIELD(struct anonymous, deep), FIELD(struct anonymous, deeper), FIELD(struct anonymous, named);
    FIELD(struct arrays, one), FIELD(struct arrays, two), FIELD(struct arrays, three), FIELD(struct arrays, nodes);
    FIELD(struct arrays, pointers), FIELD(struct arrays, handlers), FIELD(struct arrays, to_array), FIELD(struct arrays, zero);
    printf("field|struct arrays|flexible|%zu|0\n", offsetof(struct arrays, flexible));
    EXTENT(struct arrays, one, 0, [0]), EXTENT(struct arrays, two, 0, [0]), EXTENT(struct arrays, three, 0, [0]);
    printf("extent|struct arrays|two|1|5\nextent|struct arrays|three|1|3\nextent|struct arrays|three|2|4\n");
    EXTENT(struct arrays, nodes, 0, [0]), EXTENT(struct arrays, pointers, 0, [0]), EXTENT(struct arrays, handlers, 0, [0]);
    FIELD(struct mixed, lanes), FIELD(struct mixed, opaque), FIELD(struct mixed, hidden), FIELD(struct mixed, nothing);
    FIELD(struct mixed, variadic), FIELD(struct mixed, bits), FIELD(struct mixed, counted), FIELD(struct mixed, last);
}

int main(int count, char **arguments)
{
    long values[] = {1, 2, count};
    tell_scalars();
    tell_bits();
    tell_records();
    ADDRESS("global_scalars", &global_scalars), ADDRESS("global_mixed", &global_mixed), ADDRESS("file_local", &file_local);
    ADDRESS("table_of", table_of), ADDRESS("main", main), ADDRESS("hidden_first", hidden_get());
    VALUE("folded", folded);
    return take(NULL, &global_scalars, called, RED, global_mixed, arguments) + (int)sum_of(3, values) == 12345;
}
