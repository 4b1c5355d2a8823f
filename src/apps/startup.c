/* startup: what it takes until an MPI program can begin, and to end it.
 *
 * Measures: from launch (when `timed` starts the launcher; it hands the instant down as TARE_LAUNCHED_S) to
 * main, MPI_Init, from launch until all ranks have met in a first barrier, MPI_Finalize. Does not measure:
 * the start of containers, which a record has under `startup`, nor messages. Clocks: instants are the
 * kernel's CLOCK_REALTIME. Rank 0 runs on the launcher's node, so that launch_to_main_s and launch_to_ready_s
 * (both rank 0's) are differences on one clock; launch_to_last_main_s compares nodes and is as good as their
 * clocks agree. MPI_Finalize's time is rank 0's. Without TARE_LAUNCHED_S (started by hand) what counts from
 * launch is left out. Proof: the ranks add up their numbers, and no instant comes before the one that must
 * precede it.
 */
#include "harness/harness.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t sum;
static double ready_unix_s;

static void run(const struct world *world) {
    sum = world->rank;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    ready_unix_s = harness_unix_s();
}

static void spoil(const struct world *world) {
    (void)world;
    sum++;
}

static double largest(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

/* The launch by rank 0's environment, NAN without one. */
static double launched_unix_s(void) {
    const char *text = getenv("TARE_LAUNCHED_S");
    char *end = NULL;
    double launched = text == NULL ? NAN : strtod(text, &end);
    return text == NULL || end == text || *end != '\0' ? NAN : launched;
}

static void add_since_launch(struct outcome *outcome, double last_main) {
    double launched = launched_unix_s();
    if (isnan(launched))
        return;
    outcome_add_metric(outcome, "launch_to_main_s", harness_start.main_unix_s - launched);
    outcome_add_metric(outcome, "launch_to_last_main_s", last_main - launched);
    outcome_add_metric(outcome, "launch_to_ready_s", ready_unix_s - launched);
    if (launched > harness_start.main_unix_s || harness_start.main_unix_s > ready_unix_s)
        snprintf(outcome->fault, sizeof outcome->fault,
                 "launch %.6f, main %.6f, ready %.6f: not in this order", launched, harness_start.main_unix_s,
                 ready_unix_s);
}

static void check(const struct world *world, struct outcome *outcome) {
    double last_main = largest(harness_start.main_unix_s), init_s = largest(harness_start.init_s);
    outcome->value = (double)sum;
    outcome->expected = (double)world->size * (world->size - 1) / 2;
    outcome->error = fabs(outcome->value - outcome->expected);
    outcome_add_metric(outcome, "mpi_init_s", init_s);
    add_since_launch(outcome, last_main);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "startup",
        .title = "From launch to main, MPI_Init, MPI_Finalize.",
        .ranks = RANKS_ANY,
        .run = run,
        .spoil = spoil,
        .check = check,
        .finalize_metric = "mpi_finalize_s",
    };
    return harness_main(&app, argc, argv);
}
