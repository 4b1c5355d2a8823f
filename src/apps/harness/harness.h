/* What all apps share: options, MPI's start and end, the clock, the proof, one JSON line, exit codes.
 *
 * An app is a table of options and five small functions (struct app); its main calls harness_main. The
 * harness runs setup, a barrier, run (the only timed part; app_s is the maximum over the ranks), check, and
 * prints. Exit codes: 0 right answer, 2 usage, 3 wrong answer (the JSON line is printed all the same, with
 * "ok":false). Nothing goes to stderr when all is well.
 *
 * All apps are built with -ffp-contract=off: no fused multiply-add, so that every flag set, compiler and
 * userland computes the same bits, and a difference between two runs' answers is a fault and not a rounding.
 */
#ifndef TARE_HARNESS_H
#define TARE_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_USAGE = 2, EXIT_WRONG_ANSWER = 3 };

enum option_kind {
    OPTION_INTEGER, /* value is an int64_t * */
    OPTION_NUMBER,  /* value is a double * */
    OPTION_SIZES,   /* value is an int64_t[3], written as 200x400x600 */
    OPTION_CHOICE,  /* value is a struct choice *; minimum and maximum mean nothing */
};

struct choice {
    const char *const *names; /* ended by NULL */
    int chosen;
};

struct option {
    const char *name; /* the manifest's key, without the leading dashes */
    enum option_kind kind;
    void *value; /* holds the default until the command line says otherwise */
    double minimum, maximum;
    const char *help;
};

enum rank_rule { RANKS_ANY, RANKS_POWER_OF_TWO, RANKS_EXACTLY_TWO };

struct world {
    int rank, size; /* in MPI_COMM_WORLD */
};

/* What check found; only rank 0's is printed. The answer is right if error <= tolerance and fault is empty.
 */
struct outcome {
    double value, expected, error, tolerance;
    char fault[160];   /* what else is wrong with the answer, in words */
    char checksum[20]; /* of all bits of the answer, where an app has one */
    struct metric {
        char name[48]; /* with its unit, and its message size where there are several */
        double value;
    } metrics[96];
    int metric_count;
};

struct app {
    const char *name, *title;
    const struct option *options;
    int option_count;
    enum rank_rule ranks; /* of the computing ranks, without the extra processes */
    int extra_processes;
    const char *(*refuse)(
        const struct world *world);           /* optional: why this number of ranks will not do, or NULL */
    void (*setup)(const struct world *world); /* optional */
    void (*run)(const struct world *world);
    void (*spoil)(const struct world *world); /* --inject_wrong_answer: damages the data before the check */
    void (*check)(const struct world *world, struct outcome *outcome);
    /* optional: prints rank 0's numbers in the OSU Micro-Benchmarks' layout; makes --osu known, which prints
     * this instead of the JSON line */
    void (*print_osu)(const struct world *world);
    void (*finish)(const struct world *world); /* optional: frees what setup made */
    /* optional: a metric for the seconds that rank 0 spends in MPI_Finalize, which then comes before the
     * result is printed */
    const char *finalize_metric;
};

/* This rank's beginning: main by the kernel's CLOCK_REALTIME, and the seconds that MPI_Init took. */
struct harness_start {
    double main_unix_s, init_s;
};
extern struct harness_start harness_start;
double harness_unix_s(void);

int harness_main(const struct app *app, int argc, char **argv);

/* Memory or the end: a message and MPI_Abort when there is none. */
void *harness_allocate(size_t count, size_t bytes_each);

void outcome_add_metric(struct outcome *outcome, const char *name, double value);

#endif
