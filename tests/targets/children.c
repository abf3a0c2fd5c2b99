/* Children of every kind: `children WAY [N]`. Each prints what it is, and ends with a status of its own that its parent prints. A new image is this same
 * program with the way `leaf`, or the one that CHILD names. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
extern char **environ;
static char self[2000];

APART int leaf_work(int number)
{
    printf("leaf %d\n", number);
    fflush(stdout);
    return number;
}

APART int forked_work(int number)
{
    printf("forked %d\n", number);
    fflush(stdout);
    return number;
}

APART void die(volatile int *nowhere) { *nowhere = 1; }

APART int told(pid_t pid)
{
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        printf("no child: %s\n", strerror(errno));
    else if (WIFSIGNALED(status))
        printf("ended by signal %d\n", WTERMSIG(status));
    else
        printf("ended with %d\n", WEXITSTATUS(status));
    fflush(stdout);
    return status;
}

APART int fork_one(int number)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(forked_work(number) & 63);
    return told(pid);
}

static char **leaf_arguments(const char *number)
{
    static char *arguments[] = {self, (char *)"leaf", NULL, NULL};
    arguments[2] = (char *)number;
    return arguments;
}

APART int exec_one(const char *number, int with_vfork)
{
    char **arguments = leaf_arguments(number);
    fflush(stdout);
    pid_t pid = with_vfork ? vfork() : fork();
    if (pid == 0) {
        execv(getenv("CHILD") ? getenv("CHILD") : self, arguments);
        _exit(127);
    }
    return told(pid);
}

APART int spawn_one(const char *number)
{
    pid_t pid = -1;
    int error = posix_spawn(&pid, self, NULL, NULL, leaf_arguments(number), environ);
    return error ? error : told(pid);
}

APART int search_one(const char *number) /* execvp looks in every folder of PATH */
{
    char **arguments = leaf_arguments(number);
    char *slash = strrchr(self, '/');
    char path[8192];
    snprintf(path, sizeof path, "/nowhere:/etc:%.*s:/usr/bin", (int)(slash - self), self);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("PATH", path, 1);
        execvp("not-there-at-all", arguments);
        execvp(slash + 1, arguments);
        _exit(127);
    }
    return told(pid);
}

APART int by_shell(const char *number)
{
    char command[8192];
    snprintf(command, sizeof command, "%s leaf %s; %s leaf 1%s", self, number, self, number);
    int status = system(command);
    printf("system said %d\n", status);
    snprintf(command, sizeof command, "%s leaf %s", self, number);
    fflush(stdout);
    FILE *pipe = popen(command, "r");
    char line[256];
    while (pipe && fgets(line, sizeof line, pipe))
        printf("through the pipe: %s", line);
    printf("pclose said %d\n", pipe ? pclose(pipe) : -1);
    fflush(stdout);
    return 0;
}

APART void level(int depth)
{
    printf("level %d\n", depth);
    fflush(stdout);
    if (depth == 0)
        _exit(leaf_work(3));
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", depth - 1);
        execl(self, self, "level", number, (char *)NULL);
        _exit(127);
    }
    _exit(10 * depth + WEXITSTATUS(told(pid)) % 10);
}

APART void pause_ms(int milliseconds)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (nanosleep(&left, &left)) {
    }
}

APART int tick_work(int number)
{
    pause_ms(5);
    return number + 1;
}

static void tick(int times)
{
    for (int i = 0; i < times;)
        i = tick_work(i);
}

/* Three processes that go on for a while: this one, one that is merely forked, and one that became another program. */
APART void keep_going(const char *times)
{
    pid_t forked = fork();
    if (forked == 0) {
        tick(atoi(times));
        _exit(1);
    }
    pid_t other = fork();
    if (other == 0) {
        execl(self, self, "tick", times, (char *)NULL);
        _exit(127);
    }
    tick(atoi(times));
    told(forked);
    told(other);
}

/* A daemon: double fork, a session of its own, no standard files; it leaves a word in a file. */
APART void daemonise(const char *file)
{
    pid_t first = fork();
    if (first == 0) {
        setsid();
        if (fork() == 0) {
            for (int standard = 0; standard < 3; standard++)
                close(standard);
            int null = open("/dev/null", O_RDWR);
            dup(null);
            dup(null);
            pause_ms(100);
            int number = forked_work(5);
            int out = open(file, O_CREAT | O_WRONLY, 0600);
            dprintf(out, "the daemon did %d", number);
            close(out);
            execl(self, self, "leaf", "6", (char *)NULL);
        }
        _exit(0);
    }
    told(first);
}

/* What a program may see of how it was started. */
APART void show_start(void)
{
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int signo = 1; signo < 65; signo++) {
        struct sigaction action;
        if (signo == 32 || signo == 33 || sigaction(signo, NULL, &action))
            continue;
        if (sigismember(&mask, signo) || action.sa_handler != SIG_DFL)
            printf("signal %d blocked %d ignored %d\n", signo, sigismember(&mask, signo), action.sa_handler == SIG_IGN);
    }
    for (int file = 0; file < 64; file++)
        if (fcntl(file, F_GETFD) >= 0)
            printf("file %d open\n", file);
    printf("preloaded %d\n", getenv("LD_PRELOAD") != NULL);
    fflush(stdout);
}

APART int started_oddly(void)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTRAP);
    sigaddset(&mask, SIGUSR1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &mask, NULL);
        signal(SIGUSR2, SIG_IGN);
        execl(self, self, "start", (char *)NULL);
        _exit(127);
    }
    return told(pid);
}

static void *exec_in_thread(void *number)
{
    execv(self, leaf_arguments(number));
    return NULL;
}

APART int thread_exec(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exec_in_thread, (void *)"9");
        pthread_join(thread, NULL);
        _exit(126);
    }
    return told(pid);
}

static volatile sig_atomic_t stops;
static void on_child(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)context;
    stops += info->si_code == CLD_STOPPED || info->si_code == CLD_CONTINUED || info->si_code == CLD_TRAPPED;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "fork";
    int count = argc > 2 ? atoi(argv[2]) : 1;
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    char number[16];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 99;
    for (int i = 0; i < count || i == 0; i++) {
        snprintf(number, sizeof number, "%d", argc > 2 ? i % 50 : 4);
        if (!strcmp(way, "leaf"))
            return leaf_work(count);
        else if (!strcmp(way, "level"))
            level(count);
        else if (!strcmp(way, "tick")) {
            tick(count);
            return 2;
        } else if (!strcmp(way, "keep")) {
            keep_going(argv[2]);
            break;
        } else if (!strcmp(way, "start"))
            show_start();
        else if (!strcmp(way, "slow"))
            pause_ms(count), _exit(leaf_work(2));
        else if (!strcmp(way, "fork"))
            fork_one(i);
        else if (!strcmp(way, "exec"))
            exec_one(number, 0);
        else if (!strcmp(way, "vfork"))
            exec_one(number, 1);
        else if (!strcmp(way, "spawn"))
            spawn_one(number);
        else if (!strcmp(way, "search"))
            search_one(number);
        else if (!strcmp(way, "shell"))
            by_shell(number);
        else if (!strcmp(way, "self-tick"))
            execl(self, self, "tick", argv[2], (char *)NULL);
        else if (!strcmp(way, "odd"))
            started_oddly();
        else if (!strcmp(way, "thread"))
            thread_exec();
        else if (!strcmp(way, "self")) {
            printf("before\n");
            fflush(stdout);
            execv(self, leaf_arguments("11"));
        } else if (!strcmp(way, "crash")) {
            pid_t pid = fork();
            if (pid == 0)
                die(NULL);
            told(pid);
        } else if (!strcmp(way, "exec-crash")) {
            pid_t pid = fork();
            if (pid == 0) {
                execl(self, self, "fall", (char *)NULL);
                _exit(127);
            }
            told(pid);
        } else if (!strcmp(way, "both-crash")) {
            pid_t pid = fork();
            if (pid == 0)
                die(NULL);
            told(pid);
            die(NULL);
        } else if (!strcmp(way, "fall"))
            die(NULL);
        else if (!strcmp(way, "killed")) {
            pid_t pid = fork();
            if (pid == 0)
                raise(i % 2 ? SIGTERM : SIGKILL);
            told(pid);
        } else if (!strcmp(way, "outlive")) {
            if (fork() == 0) {
                pause_ms(200);
                _exit(forked_work(8));
            }
            printf("parent goes\n");
            fflush(stdout);
            _exit(3);
        } else if (!strcmp(way, "daemon")) {
            daemonise(argv[3]);
            break;
        }
    }
    if (stops)
        printf("%d children were seen to stop\n", (int)stops);
    return 7;
}
