/* Variables of all kinds for debug_memory. Prints "ready", then lives until its standard input ends; SIGUSR1 makes it exit with 5.
 * `ticking` rises all the time by steps of its own thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

enum color { RED, GREEN = 5, BLUE = -2 };
enum access { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_RUN = 4 };
typedef struct item { int id; const char *name; double price; } item;
struct node { int value; struct node *next; };
struct flags { unsigned ready : 1; unsigned level : 5; int delta : 4; enum color shade : 4; _Bool sure : 1; };
struct order { long number; item items[3]; struct node *list; enum color color; union { int whole; float part; } amount; char label[12]; };

int gTempo = 120;
unsigned char gByte = 200;
char gLetter = 'q';
_Bool gOn = 1;
float gRatio = 1.5f;
double gTotal = -4.25;
long double gLong = 2.5L;
uint64_t gBig = 18446744073709551615ULL;
enum color gColor = GREEN;
enum access gAccess = ACCESS_READ | ACCESS_RUN;
struct flags gFlags = {1, 17, -3, BLUE, 0};
char gLabel[16] = "hello";
const char *gText = "a text in read-only memory";
const int gConst = 42;
int gGrid[2][3] = {{1, 2, 3}, {4, 5, 6}};
int *gNumbers;
int gCount = 10;
void *gNothing;
int (*gHandler)(const char *) = puts;
_Atomic int gAtomic = 7;
static long fileStatic = 99;
struct order gOrder = {77, {{1, "bolt", 0.5}, {2, "nut", 0.25}, {3, "screw", 0.125}}, NULL, RED, {5}, "box"};
struct order *gOrders;
struct node *gRing;
char *gBroken = (char *)0x10;
volatile unsigned long ticking;
_Thread_local int gLocal = 1000;
static _Thread_local struct node tNode = {31, NULL};
int workerTid, mainTid;

static int counted(void) {
    static int calls = 3;
    return ++calls;
}

static void *worker(void *unused) {
    (void)unused;
    gLocal = 2000;
    tNode.value = 62;
    workerTid = (int)syscall(SYS_gettid);
    for (;;) {
        ticking++;
        usleep(1000);
    }
    return NULL;
}

int main(void) {
    mainTid = (int)getpid();
    gNumbers = malloc(10 * sizeof *gNumbers);
    for (int i = 0; i < 10; i++)
        gNumbers[i] = i * i;
    struct node *second = malloc(sizeof *second), *first = malloc(sizeof *first);
    *second = (struct node){2, first};
    *first = (struct node){1, second};
    gRing = first;
    gOrder.list = first;
    gOrders = calloc(4, sizeof *gOrders);
    gOrders[3] = gOrder;
    counted();
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    while (!workerTid)
        usleep(100);
    printf("ready %p %d %ld\n", (void *)&gTempo, tNode.value, fileStatic);
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "exit", 4))
            return 5;
        printf("gTempo %d gRatio %g gLabel %s level %u delta %d total %g color %d grid %d on %d long %Lg calls %d local %d\n", gTempo, gRatio, gLabel, gFlags.level,
               gFlags.delta, gTotal, gColor, gGrid[1][2], gOn, gLong, counted(), gLocal);
        fflush(stdout);
    }
    return 0;
}
