/* Waits for other processes and for the world, by name. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char byte;
static void up(void) { puts("up"); fflush(stdout); }

/* Each reads what the other would write next. */
static void talk(int mine[2], int theirs[2]) {
    if (fork() == 0) { close(theirs[0]); close(mine[1]); (void)!read(mine[0], &byte, 1); (void)!write(theirs[1], &byte, 1); _exit(0); }
    close(mine[0]); close(theirs[1]);
    up();
    (void)!read(theirs[0], &byte, 1);
    (void)!write(mine[1], &byte, 1);
}
/* The child fills the pipe that the parent reads only after the child's end. */
static void full(void) {
    int ends[2];
    static char lots[1 << 20];
    (void)!pipe(ends);
    pid_t child = fork();
    if (child == 0) { close(ends[0]); (void)!write(ends[1], lots, sizeof lots); _exit(0); }
    close(ends[1]);
    up();
    waitpid(child, NULL, 0);
    (void)!read(ends[0], lots, sizeof lots);
}
static void unix_pair(void) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (fork() == 0) { close(ends[0]); (void)!recv(ends[1], &byte, 1, 0); _exit(0); }
    close(ends[1]);
    up();
    (void)!recv(ends[0], &byte, 1, 0);
}
static int listener(struct sockaddr_in *at) {
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(at, 0, sizeof *at);
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd, (struct sockaddr *)at, size);
    listen(fd, 4);
    getsockname(fd, (struct sockaddr *)at, &size);
    return fd;
}
static void tcp(void) {
    struct sockaddr_in at;
    int server = listener(&at), client = socket(AF_INET, SOCK_STREAM, 0);
    connect(client, (struct sockaddr *)&at, sizeof at);
    int taken = accept(server, NULL, NULL);
    close(server);
    if (fork() == 0) { close(client); (void)!recv(taken, &byte, 1, 0); _exit(0); }
    close(taken);
    up();
    (void)!recv(client, &byte, 1, 0);
}

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    int mine[2], theirs[2];
    struct sockaddr_in at;
    if (!strcmp(wanted, "pipes")) { (void)!pipe(mine); (void)!pipe(theirs); talk(mine, theirs); }
    else if (!strcmp(wanted, "full")) full();
    else if (!strcmp(wanted, "unix")) unix_pair();
    else if (!strcmp(wanted, "tcp")) tcp();
    else if (!strcmp(wanted, "stdin")) { up(); (void)!read(0, &byte, 1); }
    else if (!strcmp(wanted, "sleep")) { up(); sleep(60); }
    else if (!strcmp(wanted, "child")) { if (fork() == 0) { sleep(60); _exit(0); } up(); wait(NULL); }
    else if (!strcmp(wanted, "accept")) { int fd = listener(&at); up(); accept(fd, NULL, NULL); }
    else if (!strcmp(wanted, "epoll")) { int fd = listener(&at), set = epoll_create1(0); struct epoll_event event = {.events = EPOLLIN}; epoll_ctl(set, EPOLL_CTL_ADD, fd, &event); up(); epoll_wait(set, &event, 1, -1); }
    else if (!strcmp(wanted, "poll")) { struct pollfd one = {0, POLLIN, 0}; up(); poll(&one, 1, 60000); }
    else if (!strcmp(wanted, "pause")) { up(); pause(); }
    else return 2;
    return 0;
}
