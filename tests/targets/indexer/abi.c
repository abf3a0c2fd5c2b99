// One function for each way an argument or result can travel (System V AMD64 ABI §3.2.3). Values are chosen so that a wrong place shows.
#include <complex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CASE __attribute__((noinline, noclone))
#define USE(x) __asm__ volatile("" : : "m"(x) : "memory")

enum color { RED = 1, GREEN = 5, BLUE = -3 };
enum big { HUGE_ONE = 0x123456789aLL };
typedef enum color shade_t;
typedef struct { int x, y; } pair8;
typedef struct { long x; double y; } mixed16;
typedef struct { double x, y; } sse16;
typedef struct { float x, y, z; } floats12;
typedef struct { long x, y, z; } big24;
typedef struct { char c[3]; } chars3;
typedef struct { long double x; } ld16;
typedef struct { int a : 5; unsigned b : 20; long c : 30; } bits;
typedef struct __attribute__((packed)) { char c; long l; } packed9;
typedef union { long l; double d; } both;
typedef struct { } nothing;
typedef int (*visitor)(int, const char *);
typedef unsigned char u8;
static volatile long sink;

CASE int case_ints(char a, signed char b, unsigned char c, short d, unsigned short e, int f) { sink = a + b + c + d + e + f; return f - a; }
CASE long case_longs(long a, unsigned long b, int64_t c, uint64_t d, size_t e, long long f, long g, int h) { sink = a + g + h + b + c + d + e + f; return g; }
CASE double case_floats(float a, double b, float c, double d) { sink = (long)(a + b + c); return d * 2; }
CASE float case_float_result(int a, float b) { sink = a; return b + (float)a; }
CASE double case_nine_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i, float j) { sink = (long)(a + b + c + d + e + f + g + h + i + j); return i + j; }
CASE bool case_bool(bool a, _Bool b, int c) { sink = a + b; return c > 3; }
CASE enum color case_enum(enum color a, shade_t b, enum big c) { sink = a + (long)c; return b; }
CASE const char *case_text(const char *a, char *b, const u8 *c, void *d, int *e) { sink = a[0] + b[0] + c[0] + (long)d + *e; return a + 1; }
CASE int case_callback(visitor visit, int (*other)(void), int depth) { sink = (long)other; return visit(depth, "callback"); }
CASE int case_pair8(pair8 p, int after) { sink = p.x; return p.y + after; }
CASE double case_mixed16(int before, mixed16 m, int after, double last) { sink = before + m.x; return m.y + after + last; }
CASE double case_sse16(sse16 s, double after) { sink = (long)s.x; return s.y + after; }
CASE float case_floats12(floats12 f, float after, int more) { sink = more; return f.x + f.z + after; }
CASE long case_big24(int before, big24 b, int after) { sink = before; return b.z + after; }
CASE int case_chars3(chars3 c, int after) { sink = c.c[0]; return c.c[2] + after; }
CASE int case_bits(bits b, int after) { sink = b.a; return b.b + after; }
CASE long case_packed9(packed9 p, int after) { sink = p.c; return p.l + after; }
CASE long case_union(both u, int after) { sink = after; return u.l; }
CASE int case_nothing(nothing n, int after) { USE(n); return after; }
CASE int case_long_double(int before, long double x, int after, double y) { sink = (long)x + before; return after + (int)y; }
CASE long double case_long_double_result(int a, long b) { sink = a; return (long double)b; }
CASE int case_ld_struct(ld16 x, int after) { sink = (long)x.x; return after; }
CASE int case_int128(int before, __int128 x, int after, long b, long c, long d, long e) { sink = (long)x + before + b + c + d + e; return after; }
CASE int case_int128_on_stack(int a, int b, int c, int d, int e, __int128 x, int after, int last) { sink = a + b + c + d + e + (long)x; return after + last; }
CASE int case_pair_on_stack(long a, long b, long c, long d, long e, mixed16 m, sse16 s, long f, long g) { sink = a + b + c + d + e + m.x + (long)s.x; return (int)(f + g); }
CASE int case_two_words_on_stack(long a, long b, long c, long d, long e, struct { long p, q; } *x, big24 y, long f, long g) { sink = a + b + c + d + e + (long)x + y.x; return (int)(f + g); }
CASE pair8 case_pair8_result(int a, int b) { pair8 p = {a, b}; return p; }
CASE big24 case_hidden_result(int a, long b, const char *c) { big24 r = {a, b, c[0]}; return r; }
CASE sse16 case_sse16_result(double a, int b) { sse16 r = {a, b}; return r; }
CASE int case_complex(double complex a, float complex b, int after, double last) { sink = (long)(creal(a) + crealf(b)); return after + (int)last; }
CASE double complex case_complex_result(double a, double b) { return a + b * I; }
CASE int case_variadic(int count, const char *format, ...) { va_list list; va_start(list, format); int total = count; for (int i = 0; i < count; i++) total += va_arg(list, int); va_end(list); return total + format[0]; }
CASE void case_void(void) { sink++; }
CASE void case_array(int values[4], const char text[], double matrix[2][2]) { sink = values[0] + text[0] + (long)matrix[1][1]; }
CASE const int case_const(const int a, volatile long b, const char *const c, char *restrict d) { sink = b; return a + c[0] + d[0]; }
CASE int case_many(char a, float b, const char *c, double d, long e, float f, int *g, short h, const char *i, unsigned char j, double k, bool l) { sink = a + (long)b + c[0] + (long)d + e + (long)f + *g + h + i[0]; return j + (int)k + l; }
CASE static int case_static(int unused, int used, const char *text) { (void)unused; sink = used; return text[0] + used; }
typedef float four_floats __attribute__((vector_size(16)));
CASE float case_vector(int before, four_floats v, float after) { sink = before; return v[1] + after; }

static int visit(int depth, const char *name) { return depth + name[0]; }
static int other(void) { return 3; }

int main(void) {
    int value = 11;
    char text[] = "text";
    struct { long p, q; } two = {1, 2};
    double matrix[2][2] = {{1, 2}, {3, 4}};
    for (int turn = 0; turn < 2; turn++) {
        sink += case_ints('a' + turn, -5, 250, -3000, 60000, -70000);
        sink += case_longs(-1, 1UL << 63, INT64_MIN, UINT64_MAX, 12, -13, 77 + turn, -88);
        sink += (long)case_floats(1.5f, -2.25, 3.5f, 1e100) + (long)case_float_result(3, 0.5f);
        sink += (long)case_nine_doubles(1, 2, 3, 4, 5, 6, 7, 8, 9.5, 10.5f);
        sink += case_bool(true, turn, 2 + turn * 5) + case_enum(BLUE, GREEN, HUGE_ONE);
        sink += case_text("alpha", text, (const u8 *)"beta", &value, &value)[0] + case_callback(visit, other, 5);
        sink += case_pair8((pair8){3, 4}, 55) + (long)case_mixed16(1, (mixed16){2, 3.5}, 44, 4.5) + (long)case_sse16((sse16){1.5, 2.5}, 7.5);
        sink += (long)case_floats12((floats12){1, 2, 3}, 4.5f, 66) + case_big24(5, (big24){1, 2, 3}, 99) + case_chars3((chars3){"ab"}, 123);
        sink += case_bits((bits){1, 2, 3}, 321) + case_packed9((packed9){1, 2}, 456) + case_union((both){.l = 9}, 654) + case_nothing((nothing){}, 777);
        sink += case_long_double(1, 2.5L, 888, 9.5) + (long)case_long_double_result(8, 9) + case_ld_struct((ld16){1.5L}, 999);
        sink += case_int128(1, (__int128)5 << 70, 1001, 2, 3, 4, 5) + case_int128_on_stack(1, 2, 3, 4, 5, 6, 1002, 1003);
        sink += case_pair_on_stack(1, 2, 3, 4, 5, (mixed16){6, 7.5}, (sse16){8, 9}, 1004, 1005);
        sink += case_two_words_on_stack(1, 2, 3, 4, 5, (void *)&two, (big24){6, 7, 8}, 1006, 1007);
        sink += case_pair8_result(1, 2).x + case_hidden_result(1008, 1009, "gamma").y + (long)case_sse16_result(1.5, 1010).x;
        sink += case_complex(1 + 2 * I, 3 + 4 * I, 1011, 1012.5) + (long)creal(case_complex_result(1.5, 2.5));
        sink += case_variadic(2, "format", 1013, 1014) + case_const(1015, 1016, "delta", text);
        case_void();
        case_array(&value, "epsilon", matrix);
        sink += case_many('m', 1.5f, "zeta", 2.5, 1017, 3.5f, &value, -1018, "eta", 200, 4.5, true) + case_static(1019, 1020 + turn, "theta");
        sink += (long)case_vector(1021, (four_floats){1, 2, 3, 4}, 5.5f);
    }
    printf("%ld\n", sink);
    return 0;
}
