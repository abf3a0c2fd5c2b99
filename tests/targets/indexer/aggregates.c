// Structs, unions, arrays in them, complex, quadruple and vector types by value: each class of eightbyte and its merges (System V AMD64 ABI §3.2.3).
#include <complex.h>
#include <stdint.h>
#include <stdio.h>

#define CASE __attribute__((noinline, noclone))

typedef float four_floats __attribute__((vector_size(16)));
typedef int two_ints __attribute__((vector_size(8)));
typedef struct { float f; int i; } merged8;
typedef struct { double d; char c; } sse_integer;
typedef struct { char c; double d; } integer_sse;
typedef struct { float f; double d; } floats_apart;
typedef struct { int i; float a, b, c; } merged16;
typedef struct { char text[16]; } chars16;
typedef struct { short s[5]; } shorts10;
typedef struct { struct { int a; struct { short b; char c[2]; } in; } out; float last; } nested12;
typedef struct { unsigned long a : 40, b : 40; int c : 7; } crossing;
typedef struct { float _Complex c; } complex8;
typedef struct { float before; float _Complex c; } complex12;
typedef struct { double _Complex c; } complex16;
typedef struct { long double x; } extended16;
typedef union { long double x; long l; } extended_or_long;
typedef union { double d; char c[12]; } double_or_chars;
typedef union { float f[4]; double d; } all_floats;
typedef struct { __int128 x; } wide16;
typedef struct { __float128 x; } quad16;
typedef struct { four_floats v; } vector16;
typedef struct { two_ints v; } vector8;
typedef struct { int x; } __attribute__((aligned(16))) aligned16;
typedef struct __attribute__((packed)) { char c; int i; double d; } packed13;
typedef struct { double x, y, z; } doubles24;
typedef struct { long double x; int i; } extended32;
typedef struct { long l[5]; } longs40;
typedef struct { char c; } byte1;
typedef enum { LOW, HIGH = 300 } level;
typedef struct { level one; _Bool two; } levels;
static volatile long sink;

#define TAKES(type, read) CASE long case_##type(int before, type value, int after) { sink = before; return (long)(value read) + after; }
TAKES(merged8, .f)
TAKES(sse_integer, .d)
TAKES(integer_sse, .d)
TAKES(floats_apart, .d)
TAKES(merged16, .c)
TAKES(chars16, .text[15])
TAKES(shorts10, .s[4])
TAKES(nested12, .last)
TAKES(crossing, .b)
TAKES(complex8, .c)
TAKES(complex12, .c)
TAKES(complex16, .c)
TAKES(extended16, .x)
TAKES(extended_or_long, .l)
TAKES(double_or_chars, .d)
TAKES(all_floats, .f[3])
TAKES(wide16, .x)
TAKES(quad16, .x)
TAKES(vector16, .v[2])
TAKES(vector8, .v[1])
TAKES(aligned16, .x)
TAKES(packed13, .d)
TAKES(doubles24, .z)
TAKES(extended32, .i)
TAKES(longs40, .l[4])
TAKES(byte1, .c)
TAKES(levels, .one)
CASE long case_float128(int before, __float128 value, double after) { sink = before; return (long)(value + after); }
CASE long case_long_double_complex(int before, long double _Complex value, int after) { sink = before; return (long)creall(value) + after; }
CASE long case_two_ints(int before, two_ints value, int after) { sink = before; return value[1] + after; }
CASE double case_registers_run_out(long a, long b, long c, long d, long e, sse_integer f, long g, doubles24 h, merged16 i, integer_sse j, int last) {
    sink = a + b + c + d + e + (long)f.d + g + (long)h.y + i.i + j.c;
    return last;
}
CASE double case_vectors_run_out(four_floats a, four_floats b, four_floats c, four_floats d, four_floats e, four_floats f, four_floats g, complex16 h, quad16 i, vector16 j, double last) {
    sink = (long)(a[0] + b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + creal(h.c) + (double)i.x + j.v[0]);
    return last;
}

#define GIVES(type, ...) CASE type case_give_##type(int seed) { sink = seed; type made = __VA_ARGS__; return made; }
GIVES(merged8, {seed, 2})
GIVES(sse_integer, {seed, 'c'})
GIVES(integer_sse, {'c', seed})
GIVES(floats_apart, {1.5f, seed})
GIVES(chars16, {"0123456789abcde"})
GIVES(shorts10, {{1, 2, 3, 4, (short)seed}})
GIVES(extended16, {seed + 0.5L})
GIVES(wide16, {(__int128)seed << 70})
GIVES(aligned16, {seed})
GIVES(packed13, {'c', 7, seed})
GIVES(doubles24, {1, 2, seed})
GIVES(longs40, {{1, 2, 3, 4, seed}})
GIVES(levels, {HIGH, 1})
CASE long double case_give_long_double(int seed) { return seed * 1.25L; }
CASE double complex case_give_complex(int seed) { return seed + 2.5 * I; }
CASE float complex case_give_float_complex(int seed) { return seed + 3.5f * I; }
CASE __int128 case_give_int128(int seed) { return (__int128)seed << 65; }
CASE two_ints case_give_two_ints(int seed) { return (two_ints){seed, 5}; }

int main(void) {
    four_floats v = {1, 2, 3, 4};
    for (int turn = 0; turn < 2; turn++) {
        sink += case_merged8(1, (merged8){2.5f, 3 + turn}, 4) + case_sse_integer(5, (sse_integer){6.5, 'd'}, 7) + case_integer_sse(8, (integer_sse){'e', 9.5}, 10);
        sink += case_floats_apart(11, (floats_apart){1.5f, 12.5}, 13) + case_merged16(14, (merged16){15, 1.5f, 2.5f, 3.5f}, 16) + case_chars16(17, (chars16){"0123456789abcde"}, 18);
        sink += case_shorts10(19, (shorts10){{1, 2, 3, 4, 5}}, 20) + case_nested12(21, (nested12){{22, {23, "x"}}, 24.5f}, 25) + case_crossing(26, (crossing){1L << 39, 3L << 37, 28}, 29);
        sink += case_complex8(30, (complex8){1 + 2 * I}, 31) + case_complex12(32, (complex12){1.5f, 2 + 3 * I}, 33) + case_complex16(34, (complex16){3 + 4 * I}, 35);
        sink += case_extended16(36, (extended16){1.5L}, 37) + case_extended_or_long(38, (extended_or_long){.x = 2.5L}, 39) + case_double_or_chars(40, (double_or_chars){.c = "elevenchars"}, 41);
        sink += case_all_floats(42, (all_floats){{1, 2, 3, 4}}, 43) + case_wide16(44, (wide16){(__int128)45 << 66}, 46) + case_quad16(47, (quad16){48.5}, 49) + case_vector16(50, (vector16){v}, 51);
        sink += case_vector8(52, (vector8){{53, 54}}, 55) + case_aligned16(56, (aligned16){57}, 58) + case_packed13(59, (packed13){'p', 60, 61.5}, 62) + case_doubles24(63, (doubles24){1, 2, 3}, 64);
        sink += case_extended32(65, (extended32){66.5L, 67}, 68) + case_longs40(69, (longs40){{1, 2, 3, 4, 5}}, 70) + case_byte1(71, (byte1){'b'}, 72) + case_levels(73, (levels){HIGH, 1}, 74);
        sink += case_float128(75, 76.5, 77.5) + case_long_double_complex(78, 79 + 80 * I, 81) + case_two_ints(82, (two_ints){83, 84}, 85);
        sink += (long)case_registers_run_out(1, 2, 3, 4, 5, (sse_integer){6.5, 'r'}, 7, (doubles24){1, 2, 3}, (merged16){8, 1, 2, 3}, (integer_sse){'s', 9.5}, 86);
        sink += (long)case_vectors_run_out(v, v + 1, v, v, v, v, v, (complex16){5 + 6 * I}, (quad16){7.5}, (vector16){v + 2}, 87.5);
        sink += (long)case_give_merged8(88).f + (long)case_give_sse_integer(89).d + (long)case_give_integer_sse(90).d + (long)case_give_floats_apart(91).d + case_give_chars16(92).text[3];
        sink += case_give_shorts10(93).s[4] + (long)case_give_extended16(94).x + (long)case_give_wide16(95).x + case_give_aligned16(96).x + (long)case_give_packed13(97).d + (long)case_give_doubles24(98).z;
        sink += case_give_longs40(99).l[4] + case_give_levels(100).one + (long)case_give_long_double(101) + (long)creal(case_give_complex(102)) + (long)crealf(case_give_float_complex(103));
        sink += (long)case_give_int128(104) + case_give_two_ints(105)[0];
    }
    printf("%ld\n", sink);
    return 0;
}
