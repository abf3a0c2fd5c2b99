// The types of values.c and a variable of each.
#pragma once
#include <complex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uchar.h>
#include <wchar.h>

struct scalars {
    char letter, quote, zero, high;
    signed char small;
    unsigned char byte;
    short half_word;
    unsigned short counted;
    int number;
    unsigned int natural;
    long lengthy;
    unsigned long long most;
    bool yes, no;
    float single, tenth;
    double pi, huge, tiny, nothing, negative;
    double not_a_number, infinite, below;
    long double exact, inexact;
    __int128 wide, wide_negative, wide_small;
    unsigned __int128 wide_most;
    _Complex float imaginary;
    double _Complex imaginary_double;
    wchar_t wide_letter;
    char16_t utf16;
    char32_t utf32, unpaired;
    const int constant;
    volatile int changing;
    _Atomic int shared;
    size_t size;
#ifndef __clang__
    _Float16 half, half_tenth;
    _Decimal64 money;
    _Decimal32 small_money;
    _Decimal128 much_money;
#endif
    __float128 quad;
} scalars = {.constant = 12};

enum color { RED, GREEN = 5, BLUE };
enum access { READ = 1, WRITE = 2, EXECUTE = 4, ALL = 7 };
enum level { LOW = -3, MIDDLE, HIGH = 1000 };
enum large { LARGE = 0x123456789ALL };
typedef enum { FIRST, SECOND } order_t;

struct enums {
    enum color red, blue, none;
    enum access read, both, all, strange, empty;
    enum level low, high;
    enum large large;
    order_t second;
} enums;

struct bits {
    unsigned first : 3;
    int negative : 4;
    unsigned : 2;
    bool yes : 1;
    enum color color : 4;
    long long crossing : 50;
    unsigned char tail : 7;
};
struct __attribute__((packed)) packed {
    char mark;
    int number;
    unsigned long long bits : 37;
    unsigned long long more : 27;
    short last;
};
struct point {
    int x, y;
};
union either {
    int whole;
    unsigned char bytes[4];
    float real;
};
struct anonymous {
    int tag;
    union {
        struct {
            short low, high;
        };
        int both;
    };
    struct {
        struct point inner;
    };
};
struct __attribute__((aligned(32))) aligned {
    char one;
    long two;
};
struct empty {
};
struct records {
    struct bits bits;
    struct packed packed;
    struct point point;
    union either either;
    struct anonymous anonymous;
    struct aligned aligned;
    struct empty empty;
    struct {
        int inside;
        struct point deep;
    } unnamed;
} records;

typedef int vector __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(32)));
struct item {
    int key;
    double value;
};
struct counted {
    int count;
    struct item items[];
};
struct text_at_end {
    unsigned length;
    char text[];
};
struct unknown_end {
    int other;
    int tail[];
};
struct arrays {
    int five[5];
    int matrix[2][3];
    int cube[2][2][2];
    char text[16];
    char lines[2][8];
    char full[4];
    char zeros[4];
    wchar_t wide[6];
    char16_t utf16[6];
    unsigned char bytes[4];
    struct point points[2];
    int many[150];
    bool flags[3];
    enum color colors[2];
    const char *names[3];
    vector vector;
    floats floats;
    struct counted *counted;
    struct text_at_end *at_end;
    struct unknown_end *unknown;
} arrays;

struct node {
    int value;
    struct node *next;
};
struct link {
    struct link *next, *before;
};
struct holder {
    struct link chain;
    int id;
};
struct opaque;
typedef struct point place_t;
typedef int (*handler_t)(int, char);
struct operations {
    handler_t handle;
    void (*none)(void);
};
struct pointers {
    int *number;
    int **twice;
    void *plain;
    void *null;
    struct point *point;
    const struct point *null_point;
    place_t *place;
    char *text;
    const char *null_text;
    char *empty_text;
    char **text_at;
    const wchar_t *wide_text;
    const char16_t *utf16_text;
    const char *utf8;
    const char *not_text;
    const char *long_text;
    const char *cut_character;
    const char *page_end;
    const char *unended;
    int (*array)[3];
    char (*text_array)[8];
    struct opaque *opaque;
    handler_t handler;
    struct operations operations;
    struct operations *operations_at;
    struct node *list;
    struct node *ring;
    struct holder *holder;
    struct point *bad;
    const char *bad_text;
    int *unaligned;
    struct point *half;
    unsigned char *bytes;
    struct aligned *restrict aligned;
    void (**table)(void);
} pointers;
