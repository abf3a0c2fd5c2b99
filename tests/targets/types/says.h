// Lines in which a program tells about its own types; tests/harness/type_facts.py reads them.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void says_bits(const char *type, const char *field, const unsigned char *bytes, size_t size)
{
    size_t first = 0, count = 0;
    for (size_t bit = 0; bit < size * 8; bit++)
        if (bytes[bit / 8] >> (bit % 8) & 1) {
            if (!count)
                first = bit;
            count++;
        }
    printf("bits|%s|%s|%zu|%zu\n", type, field, first, count);
}

#define SIZE(T) printf("size|%s|%zu\n", #T, sizeof(T))
#define FIELD(T, F) printf("field|%s|%s|%zu|%zu\n", #T, #F, offsetof(T, F), sizeof(((T *)8)->F))
#define BITS(T, F)                                                                \
    do {                                                                          \
        T value;                                                                  \
        memset((void *)&value, 0, sizeof value);                                  \
        value.F = -1;                                                             \
        says_bits(#T, #F, (const unsigned char *)&value, sizeof value);           \
    } while (0)
#define ENUM(T, E) printf("enum|%s|%s|%lld\n", #T, #E, (long long)(E))
#define EXTENT(T, F, D, E) printf("extent|%s|%s|%d|%zu\n", #T, #F, D, sizeof(((T *)8)->F) / sizeof(((T *)8)->F E))
#define VALUE(N, V) printf("value|%s|%lld\n", N, (long long)(V))
#define ADDRESS(N, P) printf("address|%s|%llu\n", N, (unsigned long long)(size_t)(P))
