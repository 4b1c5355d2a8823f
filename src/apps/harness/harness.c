/* An app's life from MPI_Init to its exit code. */
#include "harness.h"
#include "internal.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void outcome_add_metric(struct outcome *outcome, const char *name, double value) {
    if (outcome->metric_count == sizeof outcome->metrics / sizeof outcome->metrics[0])
        abort();
    struct metric *metric = &outcome->metrics[outcome->metric_count++];
    snprintf(metric->name, sizeof metric->name, "%s", name);
    metric->value = value;
}

/* Why this number of ranks will not do; NULL if it will. */
static const char *refuse_ranks(const struct app *app, const struct world *world) {
    int ranks = world->size - app->extra_processes;
    if (ranks < 1)
        return "no computing rank is left beside the extra process; at least 2 processes are needed";
    if (app->ranks == RANKS_POWER_OF_TWO && (ranks & (ranks - 1)) != 0)
        return "not a power of two; 1, 2, 4, 8, ... are allowed";
    if (app->ranks == RANKS_EXACTLY_TWO && ranks != 2)
        return "not two; exactly 2 ranks are allowed";
    return app->refuse ? app->refuse(world) : NULL;
}

static double run_timed(const struct app *app, const struct world *world) {
    double seconds, longest;
    MPI_Barrier(harness_comm);
    double start = MPI_Wtime();
    app->run(world);
    seconds = MPI_Wtime() - start;
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, harness_comm);
    return longest; /* on rank 0 */
}

/* Not "error > tolerance": a NaN is wrong, too. */
static bool is_right(const struct outcome *outcome) {
    return outcome->error <= outcome->tolerance && outcome->fault[0] == '\0';
}

static void add_answer(struct text *text, const struct outcome *outcome) {
    const char *names[] = {"value", "expected", "error", "tolerance"};
    const double numbers[] = {outcome->value, outcome->expected, outcome->error, outcome->tolerance};
    text_add(text, ",\"answer\":{");
    for (int i = 0; i < 4; i++) {
        text_add(text, "\"%s\":", names[i]);
        text_add_number(text, numbers[i]);
        text_add(text, ",");
    }
    if (outcome->checksum[0] != '\0')
        text_add(text, "\"checksum\":\"%s\",", outcome->checksum);
    text_add(text, "\"ok\":%s}", is_right(outcome) ? "true" : "false");
}

static void add_report(struct text *text, const struct app *app, const struct world *world, double app_s,
                       const struct outcome *outcome) {
    text_add(text, "{\"app\":\"%s\",\"options\":", app->name);
    text_add_options(text, app);
    text_add(text, ",\"ranks\":%d,\"processes\":%d,\"app_s\":%.9f,\"metrics\":{",
             world->size - app->extra_processes, world->size, app_s);
    for (int i = 0; i < outcome->metric_count; i++) {
        text_add(text, "%s\"%s\":", i > 0 ? "," : "", outcome->metrics[i].name);
        text_add_number(text, outcome->metrics[i].value);
    }
    text_add(text, "}");
    add_answer(text, outcome);
}

static void say_what_is_wrong(const struct app *app, const struct outcome *outcome) {
    if (outcome->fault[0] != '\0')
        fprintf(stderr, "%s: error: wrong answer: %s; do not use this run's times\n", app->name,
                outcome->fault);
    else
        fprintf(
            stderr,
            "%s: error: wrong answer: %.17g instead of %.17g, off by %.3g; at most %.3g is allowed; do not "
            "use this run's times\n",
            app->name, outcome->value, outcome->expected, outcome->error, outcome->tolerance);
}

static bool print_result(const struct app *app, const struct world *world, bool osu,
                         const struct text *text) {
    if (osu)
        app->print_osu(world);
    else
        fwrite(text->at, 1, text->length, stdout);
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

struct harness_start harness_start;

double harness_unix_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void finalize(const struct app *app, struct outcome *outcome) {
    double start = harness_unix_s();
    MPI_Comm_free(&harness_comm);
    MPI_Finalize();
    if (app->finalize_metric)
        outcome_add_metric(outcome, app->finalize_metric, harness_unix_s() - start);
}

/* Collective: proof, result, and the exit code that all ranks leave with (or rank 0 alone, once MPI has
 * ended). */
static int report(const struct app *app, const struct world *world, bool osu, double app_s,
                  struct outcome *outcome) {
    struct text proof = {0}, text = {0};
    int code = is_right(outcome) ? EXIT_SUCCESS : EXIT_WRONG_ANSWER;
    proof_add(&proof, world);
    if (app->finalize_metric)
        finalize(app, outcome);
    if (world->rank == 0) {
        add_report(&text, app, world, app_s, outcome);
        text_add(&text, ",\"proof\":[%s]}\n", proof.at);
        if (code != EXIT_SUCCESS)
            say_what_is_wrong(app, outcome);
        if (!print_result(app, world, osu, &text)) {
            fprintf(stderr, "%s: error: the result cannot be written to stdout: %s\n", app->name,
                    strerror(errno));
            code = EXIT_FAILURE;
        }
    }
    free(proof.at);
    free(text.at);
    if (!app->finalize_metric)
        MPI_Bcast(&code, 1, MPI_INT, 0, harness_comm);
    return code;
}

static int run_app(const struct app *app, const struct world *world, struct demand demand) {
    struct outcome outcome = {0};
    if (app->setup)
        app->setup(world);
    double app_s = run_timed(app, world);
    if (demand.spoil)
        app->spoil(world);
    app->check(world, &outcome);
    if (app->finish)
        app->finish(world);
    return report(app, world, demand.osu, app_s, &outcome);
}

int harness_main(const struct app *app, int argc, char **argv) {
    struct world world;
    struct outcome none = {0};
    int code = EXIT_USAGE, ended;
    harness_start.main_unix_s = harness_unix_s();
    struct demand demand = options_parse(app, argc, argv);
    double start = harness_unix_s();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &(int){0}); /* only the first thread calls MPI */
    harness_start.init_s = harness_unix_s() - start;
    MPI_Comm_dup(MPI_COMM_WORLD, &harness_comm);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    const char *reason = refuse_ranks(app, &world);
    if (reason == NULL)
        code = run_app(app, &world, demand);
    else if (world.rank == 0)
        fprintf(stderr, "%s: error: %d %s: %s; start it with another number\n", app->name, world.size,
                world.size == 1 ? "process" : "processes", reason);
    MPI_Finalized(&ended);
    if (!ended)
        finalize(app, &none);
    return code;
}
