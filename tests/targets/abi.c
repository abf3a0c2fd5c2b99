/* What a hook must not disturb: every way to pass and return values, registers that -fipa-ra callers count on, flags, vectors, tail calls, varargs, alloca, x87. */
#include <complex.h>
#include <emmintrin.h>
#include <fenv.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline))

struct small { int a; double b; };
struct large { long v[9]; };
struct floats { float x, y, z; };
typedef long wide __attribute__((vector_size(16)));

KEEP static struct small make_small(int a, double b) { return (struct small){a + 1, b * 2}; }
KEEP static struct large make_large(long seed) { struct large r; for (int i = 0; i < 9; i++) r.v[i] = seed * i; return r; }
KEEP static struct floats make_floats(float x) { return (struct floats){x, x + 1, x + 2}; }
KEEP static long double extended(long double a, int b) { return a / 3 + b; }
KEEP static __int128 both(__int128 a, long b) { return a * b + 1; }
KEEP static double complex turn(double complex z) { return z * I + 1; }
KEEP static __m128d vector(__m128d a, __m128d b) { return _mm_add_pd(_mm_mul_pd(a, b), a); }
KEEP static long many(long a, int b, short c, char d, long e, long f, long g, double h, long i, float j, long k) { return a + b + c + d + e * 2 + f * 3 + g * 5 + (long)h + i * 7 + (long)j + k * 11; }
KEEP static double ten(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j) { return a - b + c - d + e - f + g - h + i * j; }
KEEP static long by_value(struct large s, struct small t) { return s.v[8] + s.v[1] + t.a + (long)t.b; }

KEEP static long variadic(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += i % 2 ? va_arg(list, double) : (double)va_arg(list, long);
    va_end(list);
    return (long)(sum * 4);
}

KEEP static long on_stack(int n) {
    char *room = __builtin_alloca((size_t)n + 1);
    memset(room, n & 0x7f, (size_t)n);
    long sum = 0;
    for (int i = 0; i < n; i++) sum += room[i];
    return sum;
}

KEEP static int tiny(int x) { return x + 1; }
KEEP static int tail_c(int x) { return tiny(x ^ 3); }
KEEP static int tail_b(int x) { return tail_c(x * 2); }
KEEP static int tail_a(int x) { return tail_b(x + 5); }
KEEP static int even_steps(unsigned n, int acc);
KEEP static int odd_steps(unsigned n, int acc) { return n == 0 ? -acc : even_steps(n - 1, acc + 1); }
KEEP static int even_steps(unsigned n, int acc) { return n == 0 ? acc : odd_steps(n - 1, acc + 2); }

KEEP static void nothing(void) { __asm__ volatile(""); }
KEEP static int compare(const void *a, const void *b) { int x = *(const int *)a, y = *(const int *)b; return (x > y) - (x < y); }

/* Callers of `tiny` and `nothing` under -fipa-ra keep values in scratch registers that these leave alone. */
KEEP static long pressure(long a, long b, long c, long d, long e, long f) {
    long sum = 0;
    double x = 1.5, y = 2.5;
    for (int i = 0; i < 1000; i++) {
        nothing();
        sum += a * i + b; a ^= c; b += d; c -= e; d ^= f; e += sum; f ^= i;
        sum += tiny(i);
        x += (double)(sum & 7); y -= x / 3;
    }
    return sum ^ a ^ b ^ c ^ d ^ e ^ f ^ (long)y;
}

KEEP static wide spread(wide a) { return a * a + 3; }
KEEP static _Bool truth(int x) { return x > 3; }
KEEP static signed char narrow(int x) { return (signed char)x; }
static int (*pointers[])(int) = {tiny, tail_a, tail_b, tail_c};

int main(void) {
    struct small s = make_small(4, 1.25);
    struct large l = make_large(12);
    struct floats f = make_floats(0.5f);
    printf("%d %.2f %ld %.1f %.1f\n", s.a, s.b, l.v[8], f.y, f.z);
    printf("%.15Lf\n", extended(10.0L, 2));
    __int128 product = both((__int128)1 << 70, 3);
    printf("%llx %llx\n", (unsigned long long)(product >> 64), (unsigned long long)product);
    double complex z = turn(2 + 3 * I);
    printf("%.1f %.1f\n", creal(z), cimag(z));
    double pair[2];
    _mm_storeu_pd(pair, vector(_mm_set_pd(1.5, 2.5), _mm_set_pd(4, 8)));
    printf("%.2f %.2f\n", pair[0], pair[1]);
    printf("%ld\n", many(1, -2, 3, -4, 5, 6, 7, 8.5, 9, 10.5f, 11));
    printf("%.3f\n", ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10.125));
    printf("%ld\n", by_value(l, s));
    printf("%ld\n", variadic(6, 1L, 2.5, 3L, 4.5, 5L, 6.25));
    printf("%ld\n", on_stack(3000));
    int chained = 0;
    for (int i = 0; i < 5000; i++) chained += pointers[i % 4](i) ^ i;
    printf("%d %d %d\n", chained, even_steps(100001, 0), even_steps(100000, 0));
    printf("%ld\n", pressure(1, 2, 3, 4, 5, 6));
    wide w = spread((wide){1, 2});
    printf("%ld %ld %d %d\n", w[0], w[1], truth(4), narrow(200));
    int numbers[500];
    for (int i = 0; i < 500; i++) numbers[i] = (i * 7919) % 1009;
    qsort(numbers, 500, sizeof *numbers, compare);
    long order = 0;
    for (int i = 0; i < 500; i++) order = order * 3 + numbers[i];
    fesetround(FE_UPWARD);
    volatile double third = 1.0 / 3.0;
    nothing();
    int rounding = fegetround() == FE_UPWARD;
    fesetround(FE_TONEAREST);
    printf("%ld %d %.17f\n", order, rounding, third);
    return 0;
}
