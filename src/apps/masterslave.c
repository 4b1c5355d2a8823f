/* masterslave: a master hands out packets one at a time, integrating 1/(1+x) over [1, 100].
 *
 * The interval is cut into 100 x packets_multiplier packets of equal width. Rank 0, the master, computes
 * nothing: it gives a packet to whoever asks and takes the result back with the next request. The other ranks
 * are the slaves. Measures: a divider-bound loop, many small messages to one place, dynamic balance. Does not
 * measure: bandwidth, messages between slaves. Proof: the integral against ln(101/2), within the error bound
 * of the trapezoid rule and of the additions; at the published 2.87e11 trapezoids a single lost one is seen.
 * Results are kept by packet and added up in the packets' order: the same bits whoever computed which.
 */
#include "harness/harness.h"
#include "reciprocal.h"

#include <mpi.h>
#include <stdlib.h>

enum {
    MASTER = 0,
    TAG_READY = 1,
    TAG_RESULT = 2,
    TAG_PACKET = 3,
    NO_PACKET = -1,
    PACKETS_PER_MULTIPLIER = 100
};

static const double lower = 1.0, upper = 100.0;
static int64_t packets_multiplier = 7, trapezoids = 410000000;
static double *results;          /* of each packet; master only */
static int64_t *packets_done;    /* by each rank; master only */
static struct compensated total; /* master only */

static const struct option options[] = {
    {"packets_multiplier", OPTION_INTEGER, &packets_multiplier, 1, 1e6, "hundreds of packets"},
    {"trapezoids", OPTION_INTEGER, &trapezoids, 1, 1e12, "trapezoids per packet"},
};

static int64_t packet_count(void) { return PACKETS_PER_MULTIPLIER * packets_multiplier; }

static double width(void) { return (upper - lower) / (double)trapezoids / (double)packet_count(); }

/* The point where two trapezoids meet counts half in each: the sum over the left ends, half of the first
 * given back and half of the last end added. */
static double integrate(int64_t packet) {
    double first = (double)packet * (double)trapezoids;
    double left = 1.0 / (1.0 + lower + width() * first);
    double right = 1.0 / (1.0 + lower + width() * (first + (double)trapezoids));
    return width() * (reciprocal_sum(lower, width(), first, trapezoids) + (right - left) / 2);
}

static void serve(const struct world *world) {
    int64_t next = 0, *given = harness_allocate((size_t)world->size, sizeof *given);
    for (int working = world->size - 1; working > 0;) {
        double result;
        MPI_Status status;
        MPI_Recv(&result, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == TAG_RESULT) {
            results[given[status.MPI_SOURCE]] = result;
            packets_done[status.MPI_SOURCE]++;
        }
        given[status.MPI_SOURCE] = next < packet_count() ? next++ : NO_PACKET;
        if (given[status.MPI_SOURCE] == NO_PACKET)
            working--;
        MPI_Send(&given[status.MPI_SOURCE], 1, MPI_INT64_T, status.MPI_SOURCE, TAG_PACKET, MPI_COMM_WORLD);
    }
    free(given);
}

static void work(void) {
    double result = 0;
    int64_t packet;
    for (int tag = TAG_READY;; tag = TAG_RESULT) {
        MPI_Send(&result, 1, MPI_DOUBLE, MASTER, tag, MPI_COMM_WORLD);
        MPI_Recv(&packet, 1, MPI_INT64_T, MASTER, TAG_PACKET, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (packet == NO_PACKET)
            return;
        result = integrate(packet);
    }
}

static void setup(const struct world *world) {
    if (world->rank != MASTER)
        return;
    results = harness_allocate((size_t)packet_count(), sizeof *results);
    packets_done = harness_allocate((size_t)world->size, sizeof *packets_done);
}

static void run(const struct world *world) {
    if (world->rank != MASTER) {
        work();
        return;
    }
    serve(world);
    for (int64_t packet = 0; packet < packet_count(); packet++)
        compensated_add(&total, results[packet]);
}

/* Loses the last trapezoid. */
static void spoil(const struct world *world) {
    (void)world;
    total.sum -= width() / (1.0 + upper - width() / 2);
}

static void add_packet_metrics(const struct world *world, struct outcome *outcome) {
    int64_t least = packet_count(), most = 0;
    for (int rank = 1; rank < world->size; rank++) {
        least = packets_done[rank] < least ? packets_done[rank] : least;
        most = packets_done[rank] > most ? packets_done[rank] : most;
    }
    outcome_add_metric(outcome, "packets", (double)packet_count());
    outcome_add_metric(outcome, "packets_of_least_busy_rank", (double)least);
    outcome_add_metric(outcome, "packets_of_busiest_rank", (double)most);
}

static void check(const struct world *world, struct outcome *outcome) {
    if (world->rank != MASTER)
        return;
    outcome->value = total.sum + total.correction;
    outcome->expected = log1p((upper - lower) / (1.0 + lower));
    outcome->error = fabs(outcome->value - outcome->expected);
    outcome->tolerance = width() * width() / 12.0 * reciprocal_slope_rise(lower, upper) +
                         RECIPROCAL_SUM_RELATIVE_ERROR * outcome->expected;
    add_packet_metrics(world, outcome);
}

static void finish(const struct world *world) {
    (void)world;
    free(results);
    free(packets_done);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "masterslave",
        .title = "A master hands out packets of work: the integral of 1/(1+x) over [1, 100].",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_ANY,
        .extra_processes = 1,
        .setup = setup,
        .run = run,
        .spoil = spoil,
        .check = check,
        .finish = finish,
    };
    return harness_main(&app, argc, argv);
}
