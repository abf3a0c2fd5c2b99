// Lines in which a C program says where its values are and what they should be shown as; tests/harness/live_values.py reads them.
#pragma once
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP(T, G) printf("group|" T "|%llu\n", (unsigned long long)(uintptr_t)&(G))

// SAY(name, "%d", value): `name` is shown as this JSON
__attribute__((format(printf, 2, 3))) static void say(const char *name, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    printf("expect|%s|", name);
    vprintf(format, rest);
    printf("\n");
    va_end(rest);
}

// The shortest digits that mean the same number again, of a float, a double, a long double
static const char *shortest_float(float value)
{
    static char text[8][64];
    static int turn;
    char *here = text[turn++ % 8];
    for (int digits = 1; digits < 10; digits++) {
        snprintf(here, 64, "%.*g", digits, value);
        if (strtof(here, NULL) == value)
            break;
    }
    return here;
}

static const char *shortest_double(double value)
{
    static char text[8][64];
    static int turn;
    char *here = text[turn++ % 8];
    for (int digits = 1; digits < 18; digits++) {
        snprintf(here, 64, "%.*g", digits, value);
        if (strtod(here, NULL) == value)
            break;
    }
    return here;
}

// A text where no double is the same
static const char *shortest_long_double(long double value)
{
    static char text[8][80];
    static int turn;
    char *here = text[turn++ % 8];
    if ((double)value == value) {
        snprintf(here, 80, "%s", shortest_double((double)value));
        return here;
    }
    char digits_of[64];
    for (int digits = 18; digits < 22; digits++) {
        snprintf(digits_of, sizeof digits_of, "%.*Lg", digits, value);
        if (strtold(digits_of, NULL) == value)
            break;
    }
    snprintf(here, 80, "\"%s\"", digits_of);
    return here;
}

// The decimal digits of a number of 128 bits, in quotes where 64 do not hold it
static const char *wide(unsigned __int128 value, int negative)
{
    static char text[4][64];
    static int turn;
    char *here = text[turn++ % 4], *at = here + 60;
    unsigned __int128 whole = value;
    *at = 0;
    do
        *--at = '0' + (char)(whole % 10);
    while (whole /= 10);
    if (negative)
        *--at = '-';
    if (value > (negative ? (unsigned __int128)1 << 63 : (unsigned __int128)UINT64_MAX)) {
        *--at = '"';
        strcpy(here + 60, "\"");
    }
    return at;
}

static void ready(void)
{
    printf("ready\n");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}
