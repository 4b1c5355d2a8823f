/* timed: run a command and write down how long it took, from launch to exit.
 *
 *   timed --out FILE [--timeout SECONDS] -- COMMAND [ARGUMENT ...]
 *
 * It runs where the command runs (inside the first container of a backend), so that the way into the
 * container is not in the time. FILE gets one JSON object: wall_s, user_s, sys_s (of the command and its
 * waited-for children), exit_code, signal, timed_out, started_unix_s. The command finds the instant of its
 * launch (CLOCK_REALTIME, seconds) in its environment as TARE_LAUNCHED_S. After SECONDS the command's process
 * group gets SIGTERM, five seconds later SIGKILL. SIGTERM and SIGINT are passed on. Exit code: the command's;
 * 128 + signal; 124 after a time-out; 2 on a usage error; 127 when the command cannot be started. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double grace_s = 5.0;
static volatile sig_atomic_t child = 0;

static void usage(const char *problem) {
    fprintf(stderr,
            "timed: error: %s; usage: timed --out FILE [--timeout SECONDS] -- COMMAND [ARGUMENT ...]\n",
            problem);
    exit(2);
}

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void pass_on(int signal_number) {
    if (child > 0)
        kill(-child, signal_number);
}

static double positive_seconds(const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value > 0.0))
        usage("--timeout: needs a number of seconds above 0");
    return value;
}

static pid_t start(char **command) {
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(command[0], command);
    fprintf(stderr, "timed: error: cannot start '%s': %s\n", command[0], strerror(errno));
    _exit(127);
}

/* Wait for the child's exit or the deadline (seconds of the monotonic clock); return 1 when the child has
 * ended. */
static int wait_until(double deadline, int *status, const sigset_t *watched) {
    for (;;) {
        pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child)
            return 1;
        double left = deadline - now(CLOCK_MONOTONIC);
        if (left <= 0.0)
            return 0;
        struct timespec pause = {.tv_sec = (time_t)left,
                                 .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        int caught = sigtimedwait(watched, NULL, &pause);
        if (caught == SIGTERM || caught == SIGINT)
            pass_on(caught);
    }
}

static void hand_down(double launched) {
    char text[32];
    snprintf(text, sizeof text, "%.6f", launched);
    setenv("TARE_LAUNCHED_S", text, 1);
}

static void write_result(const char *path, double wall_s, double started, int status, int timed_out) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "timed: error: --out: cannot write '%s': %s\n", path, strerror(errno));
        exit(2);
    }
    fprintf(file, "{\"wall_s\":%.9f,\"user_s\":%ld.%06ld,\"sys_s\":%ld.%06ld,", wall_s,
            (long)used.ru_utime.tv_sec, (long)used.ru_utime.tv_usec, (long)used.ru_stime.tv_sec,
            (long)used.ru_stime.tv_usec);
    fprintf(file, "\"exit_code\":%d,\"signal\":%d,\"timed_out\":%s,\"started_unix_s\":%.3f}\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
            timed_out ? "true" : "false", started);
    if (fclose(file) != 0) {
        fprintf(stderr, "timed: error: --out: cannot write '%s': %s\n", path, strerror(errno));
        exit(2);
    }
}

int main(int argc, char **argv) {
    const char *out = NULL;
    double timeout_s = 1e9;
    int at = 1;
    for (; at < argc && strcmp(argv[at], "--") != 0; at += 2) {
        if (at + 1 >= argc)
            usage("an option lacks its value");
        if (strcmp(argv[at], "--out") == 0)
            out = argv[at + 1];
        else if (strcmp(argv[at], "--timeout") == 0)
            timeout_s = positive_seconds(argv[at + 1]);
        else
            usage("unknown option");
    }
    if (out == NULL || at + 1 >= argc)
        usage("needs --out, -- and a command");

    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigprocmask(SIG_BLOCK, &watched, NULL);

    double started = now(CLOCK_REALTIME);
    hand_down(started);
    double begin = now(CLOCK_MONOTONIC);
    child = start(argv + at + 1);
    if (child < 0) {
        perror("timed: error: fork");
        return 127;
    }
    int status = 0;
    int timed_out = !wait_until(begin + timeout_s, &status, &watched);
    if (timed_out) {
        pass_on(SIGTERM);
        if (!wait_until(now(CLOCK_MONOTONIC) + grace_s, &status, &watched)) {
            pass_on(SIGKILL);
            waitpid(child, &status, 0);
        }
    }
    write_result(out, now(CLOCK_MONOTONIC) - begin, started, status, timed_out);
    if (timed_out)
        return 124;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
