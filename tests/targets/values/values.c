// Values of C's types, and what this program itself finds them to be.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "says.h"
#include "values.h"

static _Thread_local int per_thread = 7;

__attribute__((noinline)) int handle(int number, char letter)
{
    return number + letter;
}

__attribute__((noinline)) void nothing(void)
{
    __asm__ volatile("");
}

static void say_scalars(void)
{
    struct scalars *s = &scalars;
    s->letter = 'A', s->quote = '"', s->zero = 0, s->high = (char)0xE9, s->small = -7, s->byte = 200, s->half_word = -30000, s->counted = 60000;
    s->number = -2000000000, s->natural = 4000000000u, s->lengthy = -9000000000000000000L, s->most = UINT64_MAX, s->yes = true;
    s->single = 2.5f, s->tenth = 0.1f, s->pi = 3.141592653589793, s->huge = 1e300, s->tiny = 5e-324, s->nothing = 0, s->negative = -0.125;
    s->not_a_number = NAN, s->infinite = INFINITY, s->below = -INFINITY, s->exact = 1.5L, s->inexact = 3.14159265358979323846264338327950288L;
    s->wide = ((__int128)1 << 100) + 12345, s->wide_negative = -((__int128)1 << 90), s->wide_small = -5, s->wide_most = ~(unsigned __int128)0;
    s->imaginary = 1.0f + 2.0f * I, s->imaginary_double = -0.5 - 1.25 * I, s->wide_letter = L'ß', s->utf16 = u'é', s->utf32 = U'😀', s->unpaired = 0xD800;
    s->changing = 3, atomic_store(&s->shared, 4), s->size = sizeof(struct scalars), s->quad = (__float128)1 / 1024;
    GROUP("struct scalars", scalars);
    say("letter", "\"%c\"", s->letter), say("quote", "\"\\%c\"", s->quote), say("zero", "%d", s->zero), say("high", "%d", s->high);
    say("small", "%d", s->small), say("byte", "%d", s->byte), say("half_word", "%d", s->half_word), say("counted", "%d", s->counted);
    say("number", "%d", s->number), say("natural", "%u", s->natural), say("lengthy", "%ld", s->lengthy), say("most", "%llu", s->most);
    say("yes", "%s", s->yes ? "true" : "false"), say("no", "%s", s->no ? "true" : "false");
    say("single", "%s", shortest_float(s->single)), say("tenth", "%s", shortest_float(s->tenth));
    say("pi", "%s", shortest_double(s->pi)), say("huge", "%s", shortest_double(s->huge)), say("tiny", "%s", shortest_double(s->tiny));
    say("nothing", "0.0"), say("negative", "%s", shortest_double(s->negative));
    say("not_a_number", "\"%s\"", isnan(s->not_a_number) ? "nan" : "?"), say("infinite", "\"%s\"", isinf(s->infinite) > 0 ? "inf" : "?");
    say("below", "\"%s\"", isinf(s->below) < 0 ? "-inf" : "?");
    say("exact", "%s", shortest_long_double(s->exact)), say("inexact", "%s", shortest_long_double(s->inexact));
    say("wide", "%s", wide((unsigned __int128)s->wide, 0)), say("wide_negative", "%s", wide((unsigned __int128)-s->wide_negative, 1));
    say("wide_small", "%s", wide((unsigned __int128)-s->wide_small, 1)), say("wide_most", "%s", wide(s->wide_most, 0));
    say("imaginary", "\"%g%+gi\"", (double)crealf(s->imaginary), (double)cimagf(s->imaginary));
    say("imaginary_double", "\"%g%+gi\"", creal(s->imaginary_double), cimag(s->imaginary_double));
    say("wide_letter", "\"\\u%04x\"", (unsigned)s->wide_letter), say("utf16", "\"\\u%04x\"", s->utf16);
    say("utf32", "\"\\u%04x\\u%04x\"", (unsigned)(0xD800 + ((s->utf32 - 0x10000) >> 10)), (unsigned)(0xDC00 + ((s->utf32 - 0x10000) & 0x3FF)));
    say("unpaired", "%u", (unsigned)s->unpaired), say("constant", "%d", s->constant), say("changing", "%d", s->changing);
    say("shared", "%d", atomic_load(&s->shared)), say("size", "%zu", s->size), say("quad", "%s", shortest_double((double)s->quad));
#ifndef __clang__
    s->half = 1.5f16, s->half_tenth = 0.1f16, s->money = 12.50dd, s->small_money = -7.df, s->much_money = 1e40dl;
    say("half", "%g", (double)s->half), say("half_tenth", "0.1"), say("money", "\"12.50\""), say("small_money", "\"-7\"");
    say("much_money", "\"1e+40\"");
#endif
}

static void say_enums(void)
{
    enums = (struct enums){RED, BLUE, (enum color)3, READ, READ | WRITE, ALL, (enum access)(WRITE | 0x50), (enum access)0, LOW, HIGH, LARGE, SECOND};
    GROUP("struct enums", enums);
    say("red", "\"RED\""), say("blue", "\"BLUE\""), say("none", "%d", enums.none), say("read", "\"READ\""), say("both", "\"READ|WRITE\"");
    say("all", "\"ALL\""), say("strange", "\"WRITE|%#x\"", (unsigned)enums.strange & ~7u), say("empty", "%d", enums.empty), say("low", "\"LOW\"");
    say("high", "\"HIGH\""), say("large", "\"LARGE\""), say("second", "\"SECOND\"");
}

static void say_records(void)
{
    struct records *r = &records;
    r->bits = (struct bits){5, -6, true, BLUE, -(1LL << 45), 100};
    r->packed = (struct packed){'p', -77, (1ULL << 36) + 9, 99, -5};
    r->point = (struct point){3, -4}, r->either.real = 1.5f, r->anonymous.tag = 1, r->anonymous.both = 0x00050004;
    r->anonymous.inner = (struct point){7, 8}, r->aligned = (struct aligned){'1', 2}, r->unnamed.inside = 9, r->unnamed.deep.x = 10;
    GROUP("struct records", records);
    say("bits", "{\"first\": %d, \"negative\": %d, \"yes\": %s, \"color\": \"%s\", \"crossing\": %lld, \"tail\": %d}", r->bits.first, r->bits.negative,
        r->bits.yes ? "true" : "false", r->bits.color == BLUE ? "BLUE" : "?", (long long)r->bits.crossing, r->bits.tail);
    say("packed", "{\"mark\": \"%c\", \"number\": %d, \"bits\": %llu, \"more\": %llu, \"last\": %d}", r->packed.mark, r->packed.number,
        (unsigned long long)r->packed.bits, (unsigned long long)r->packed.more, r->packed.last);
    say("point", "{\"x\": %d, \"y\": %d}", r->point.x, r->point.y);
    say("either", "{\"whole\": %d, \"bytes\": [%d, %d, %d, %d], \"real\": %s}", r->either.whole, r->either.bytes[0], r->either.bytes[1],
        r->either.bytes[2], r->either.bytes[3], shortest_float(r->either.real));
    say("anonymous", "{\"tag\": %d, \"low\": %d, \"high\": %d, \"both\": %d, \"inner\": {\"x\": %d, \"y\": %d}}", r->anonymous.tag, r->anonymous.low,
        r->anonymous.high, r->anonymous.both, r->anonymous.inner.x, r->anonymous.inner.y);
    say("aligned", "{\"one\": \"%c\", \"two\": %ld}", r->aligned.one, r->aligned.two), say("empty", "{}");
    say("unnamed", "{\"inside\": %d, \"deep\": {\"x\": %d, \"y\": %d}}", r->unnamed.inside, r->unnamed.deep.x, r->unnamed.deep.y);
}

static void say_arrays(void)
{
    struct arrays *a = &arrays;
    for (int i = 0; i < 150; i++)
        a->many[i] = i * i;
    for (int i = 0; i < 8; i++)
        (&a->cube[0][0][0])[i] = i;
    memcpy(a->five, (int[]){1, -2, 3, -4, 5}, sizeof a->five), memcpy(a->matrix, (int[]){1, 2, 3, 4, 5, 6}, sizeof a->matrix);
    strcpy(a->text, "hello"), strcpy(a->lines[0], "one"), strcpy(a->lines[1], "two"), memcpy(a->full, "full", 4);
    wcscpy(a->wide, L"wide"), memcpy(a->utf16, u"utf16", sizeof u"utf16"), memcpy(a->bytes, "\1\2\3\xff", 4);
    a->points[1] = (struct point){5, 6}, a->flags[1] = true, a->colors[0] = GREEN, a->colors[1] = (enum color)9;
    a->names[0] = "first", a->names[2] = "third", a->vector = (vector){1, -2, 3, -4};
    for (int i = 0; i < 8; i++)
        a->floats[i] = (float)i / 2;
    a->counted = calloc(1, sizeof(struct counted) + 3 * sizeof(struct item)), a->counted->count = 3;
    for (int i = 0; i < 3; i++)
        a->counted->items[i] = (struct item){i, i / 4.0};
    a->at_end = calloc(1, sizeof(struct text_at_end) + 8), a->at_end->length = 4, memcpy(a->at_end->text, "tail", 4);
    a->unknown = calloc(1, sizeof(struct unknown_end) + 8), a->unknown->other = 1;
    GROUP("struct arrays", arrays);
    say("five", "[%d, %d, %d, %d, %d]", a->five[0], a->five[1], a->five[2], a->five[3], a->five[4]);
    say("matrix", "[[%d, %d, %d], [%d, %d, %d]]", a->matrix[0][0], a->matrix[0][1], a->matrix[0][2], a->matrix[1][0], a->matrix[1][1], a->matrix[1][2]);
    say("cube", "[[[%d, %d], [%d, %d]], [[%d, %d], [%d, %d]]]", a->cube[0][0][0], a->cube[0][0][1], a->cube[0][1][0], a->cube[0][1][1], a->cube[1][0][0],
        a->cube[1][0][1], a->cube[1][1][0], a->cube[1][1][1]);
    say("text", "\"%s\"", a->text), say("lines", "[\"%s\", \"%s\"]", a->lines[0], a->lines[1]), say("full", "\"%.4s\"", a->full), say("zeros", "\"\"");
    say("wide", "\"%ls\"", a->wide), say("utf16", "\"%c%c%c%c%c\"", a->utf16[0], a->utf16[1], a->utf16[2], a->utf16[3], a->utf16[4]);
    say("bytes", "[%d, %d, %d, %d]", a->bytes[0], a->bytes[1], a->bytes[2], a->bytes[3]);
    say("points", "[{\"x\": %d, \"y\": %d}, {\"x\": %d, \"y\": %d}]", a->points[0].x, a->points[0].y, a->points[1].x, a->points[1].y);
    printf("expect|many|[");
    for (int i = 0; i < 100; i++)
        printf("%d, ", a->many[i]);
    printf("\"… %zu more\"]\n", sizeof a->many / sizeof *a->many - 100);
    say("flags", "[%s, %s, %s]", a->flags[0] ? "true" : "false", a->flags[1] ? "true" : "false", a->flags[2] ? "true" : "false");
    say("colors", "[\"GREEN\", %d]", a->colors[1]), say("names", "[\"%s\", null, \"%s\"]", a->names[0], a->names[2]);
    say("vector", "[%d, %d, %d, %d]", a->vector[0], a->vector[1], a->vector[2], a->vector[3]);
    say("floats", "[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]");
    say("counted", "{\"@\": \"%p\", \"count\": %d, \"items\": [{\"key\": %d, \"value\": 0.0}, {\"key\": %d, \"value\": 0.25}, {\"key\": %d, \"value\": 0.5}]}",
        (void *)a->counted, a->counted->count, a->counted->items[0].key, a->counted->items[1].key, a->counted->items[2].key);
    say("at_end", "{\"@\": \"%p\", \"length\": %u, \"text\": \"%.4s\"}", (void *)a->at_end, a->at_end->length, a->at_end->text);
    say("unknown", "{\"@\": \"%p\", \"other\": %d, \"tail\": \"<int[]>\"}", (void *)a->unknown, a->unknown->other);
}

static void say_texts(struct pointers *p)
{
    static char long_text[3000], cut_character[1100];
    memset(long_text, 'x', sizeof long_text - 1), memset(cut_character, 'y', sizeof cut_character - 1);
    memcpy(cut_character + 1023, "€", 3);
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + page, page);
    strcpy(pages + page - 5, "last"), memcpy(pages + page - 20, "unended", 7), memset(pages + page - 13, '.', 8);
    p->text = "some text \"quoted\"", p->null_text = NULL, p->empty_text = "", p->text_at = &p->text, p->wide_text = L"Straße", p->utf16_text = u"été 😀";
    p->utf8 = "naïve – 日本", p->not_text = "\xff\xfe", p->long_text = long_text, p->cut_character = cut_character;
    p->page_end = pages + page - 5;
    char *unended = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(unended + page, page);
    memcpy(unended + page - 7, "unended", 7), p->unended = unended + page - 7;
    p->half = (struct point *)(unended + page - 4), memcpy(&p->half->x, "\1\0\0\0", 4), memcpy(unended + page - 7, "une", 3);
    say("text", "\"some text \\\"quoted\\\"\""), say("null_text", "null"), say("empty_text", "\"%s\"", p->empty_text);
    say("text_at", "{\"@\": \"%p\", \"*\": \"some text \\\"quoted\\\"\"}", (void *)p->text_at), say("wide_text", "\"Stra\\u00dfe\"");
    say("utf16_text", "\"\\u00e9t\\u00e9 \\ud83d\\ude00\""), say("utf8", "\"%s\"", p->utf8), say("not_text", "\"base64://4=\"");
    say("long_text", "\"%.1024s…\"", p->long_text), say("cut_character", "\"%.1023s…\"", p->cut_character), say("page_end", "\"%s\"", p->page_end);
    say("half", "{\"@\": \"%p\", \"x\": %d, \"…\": \"<unreadable %p>\"}", (void *)p->half, p->half->x, (void *)(unended + page));
}

static void say_pointers(void)
{
    static int number = 42, matrix[3] = {1, 2, 3};
    static int *at_number = &number;
    static struct point point = {1, 2};
    static struct node nodes[5], ring[2];
    static char text_array[8] = "array", unaligned[8];
    static struct holder holder = {.id = 5};
    static unsigned char bytes[] = {7, 8};
    static struct aligned aligned = {'a', 1};
    static void (*functions[2])(void) = {nothing, nothing};
    struct pointers *p = &pointers;
    for (int i = 0; i < 5; i++)
        nodes[i] = (struct node){i, i < 4 ? &nodes[i + 1] : NULL};
    ring[0] = (struct node){1, &ring[1]}, ring[1] = (struct node){2, &ring[0]};
    holder.chain = (struct link){&holder.chain, &holder.chain}, memcpy(unaligned + 1, &number, sizeof number);
    p->number = &number, p->twice = &at_number, p->plain = &number, p->point = &point, p->place = &point, p->array = &matrix, p->text_array = &text_array;
    p->opaque = (struct opaque *)&number, p->handler = handle, p->operations = (struct operations){handle, NULL}, p->operations_at = &p->operations;
    p->list = nodes, p->ring = ring, p->holder = &holder, p->bad = (struct point *)16, p->bad_text = (char *)0xdead0000, p->unaligned = (int *)(unaligned + 1);
    p->bytes = bytes, p->aligned = &aligned, p->table = functions;
    GROUP("struct pointers", pointers);
    say_texts(p);
    say("number", "{\"@\": \"%p\", \"*\": %d}", (void *)p->number, *p->number);
    say("twice", "{\"@\": \"%p\", \"*\": {\"@\": \"%p\", \"*\": %d}}", (void *)p->twice, (void *)*p->twice, **p->twice);
    say("plain", "\"%p\"", p->plain), say("null", "null"), say("null_point", "null");
    say("point", "{\"@\": \"%p\", \"x\": %d, \"y\": %d}", (void *)p->point, p->point->x, p->point->y);
    say("place", "{\"@\": \"%p\", \"x\": %d, \"y\": %d}", (void *)p->place, p->place->x, p->place->y);
    say("array", "{\"@\": \"%p\", \"*\": [%d, %d, %d]}", (void *)p->array, (*p->array)[0], (*p->array)[1], (*p->array)[2]);
    say("text_array", "{\"@\": \"%p\", \"*\": \"%s\"}", (void *)p->text_array, *p->text_array), say("opaque", "\"%p\"", (void *)p->opaque);
    say("handler", "\"%p <handle>\"", (void *)(uintptr_t)p->handler);
    say("operations", "{\"handle\": \"%p <handle>\", \"none\": null}", (void *)(uintptr_t)p->operations.handle);
    say("operations_at", "{\"@\": \"%p\", \"handle\": \"%p <handle>\", \"none\": null}", (void *)p->operations_at, (void *)(uintptr_t)p->operations_at->handle);
    struct node *n = p->list, *r = p->ring;
    say("list",
        "{\"@\": \"%p\", \"value\": %d, \"next\": {\"@\": \"%p\", \"value\": %d, \"next\": {\"@\": \"%p\", \"value\": %d, \"next\": \"<struct node at %p>\"}}}",
        (void *)n, n->value, (void *)n->next, n->next->value, (void *)n->next->next, n->next->next->value, (void *)n->next->next->next);
    say("ring", "{\"@\": \"%p\", \"value\": %d, \"next\": {\"@\": \"%p\", \"value\": %d, \"next\": \"<circular ref to %p>\"}}", (void *)r, r->value,
        (void *)r->next, r->next->value, (void *)r->next->next);
    say("holder", "{\"@\": \"%p\", \"chain\": {\"next\": \"<circular ref to %p>\", \"before\": \"<circular ref to %p>\"}, \"id\": %d}", (void *)p->holder,
        (void *)p->holder->chain.next, (void *)p->holder->chain.before, p->holder->id);
    say("bad", "\"<unreadable %p>\"", (void *)p->bad), say("bad_text", "\"<unreadable %p>\"", (void *)p->bad_text);
    say("unaligned", "{\"@\": \"%p\", \"*\": %d}", (void *)p->unaligned, number);
    say("bytes", "{\"@\": \"%p\", \"*\": %d}", (void *)p->bytes, p->bytes[0]);
    say("aligned", "{\"@\": \"%p\", \"one\": \"%c\", \"two\": %ld}", (void *)p->aligned, p->aligned->one, p->aligned->two);
    say("table", "{\"@\": \"%p\", \"*\": \"%p <nothing>\"}", (void *)p->table, (void *)(uintptr_t)*p->table);
}

int main(void)
{
    say_scalars();
    say_enums();
    say_records();
    say_arrays();
    say_pointers();
    ready();
    return handle(per_thread, 'x') == 0;
}
