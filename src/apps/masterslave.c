/* masterslave: a master hands out packets one at a time, integrating 1/(1+x) over [1, 100].
 *
 * The interval is cut into 100 x packets_multiplier packets of equal width. Rank 0, the master, computes
 * nothing: it gives a packet to whoever asks and takes the result back with the next request. The other ranks
 * are the slaves. Measures: a divider-bound loop, many small messages to one place, dynamic balance. Does not
 * measure: bandwidth, messages between slaves. Proof: the integral against ln(101/2), within the error bound
 * of the trapezoid rule and of the additions; at the published 2.87e11 trapezoids a single lost one is seen.
 * Results are kept by packet and added up in the packets' order: the same bits whoever computed which, with
 * or without --overlap, where a slave asks for its next packet before it has done the one at hand, and
 * however many threads (OpenMP's: OMP_NUM_THREADS) share a packet.
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
    PACKETS_PER_MULTIPLIER = 100,
    MOST_UNDER_WAY = 2
};

static const double lower = 1.0, upper = 100.0;
static int64_t packets_multiplier = 7, trapezoids = 410000000, overlap = 0;
static double *results;          /* of each packet; master only */
static int64_t *packets_done;    /* by each rank; master only */
static struct compensated total; /* master only */

static const struct option options[] = {
    {"packets_multiplier", OPTION_INTEGER, &packets_multiplier, 1, 1e6, "hundreds of packets"},
    {"trapezoids", OPTION_INTEGER, &trapezoids, 1, 1e12, "trapezoids per packet"},
    {"overlap", OPTION_INTEGER, &overlap, 0, 1, "1: ask for the next packet before the present one is done"},
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

/* Packets that a slave may hold or have asked for. */
static int under_way(void) { return overlap ? MOST_UNDER_WAY : 1; }

/* A slave's packets come back in the order in which it got them. */
struct slave {
    int64_t packets[MOST_UNDER_WAY], handed, returned;
};

static void note_result(struct slave *slave, int64_t *done, double result) {
    results[slave->packets[slave->returned++ % under_way()]] = result;
    (*done)++;
}

static void serve(const struct world *world) {
    struct slave *slaves = harness_allocate((size_t)world->size, sizeof *slaves);
    int64_t next = 0;
    for (int asking = (world->size - 1) * under_way(); asking > 0;) {
        double result;
        MPI_Status status;
        MPI_Recv(&result, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        struct slave *slave = &slaves[status.MPI_SOURCE];
        if (status.MPI_TAG == TAG_RESULT)
            note_result(slave, &packets_done[status.MPI_SOURCE], result);
        int64_t packet = next < packet_count() ? next++ : NO_PACKET;
        asking -= packet == NO_PACKET;
        slave->packets[slave->handed++ % under_way()] = packet;
        MPI_Send(&packet, 1, MPI_INT64_T, status.MPI_SOURCE, TAG_PACKET, MPI_COMM_WORLD);
    }
    free(slaves);
}

static void ask(double result, int tag, int64_t *packet, MPI_Request *request) {
    MPI_Irecv(packet, 1, MPI_INT64_T, MASTER, TAG_PACKET, MPI_COMM_WORLD, request);
    MPI_Send(&result, 1, MPI_DOUBLE, MASTER, tag, MPI_COMM_WORLD);
}

/* When the first of the packets under way is none, those asked for later are none either. */
static void work(void) {
    int64_t packets[MOST_UNDER_WAY];
    MPI_Request requests[MOST_UNDER_WAY];
    for (int i = 0; i < under_way(); i++)
        ask(0.0, TAG_READY, &packets[i], &requests[i]);
    for (int i = 0;; i = (i + 1) % under_way()) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        if (packets[i] == NO_PACKET)
            break;
        ask(integrate(packets[i]), TAG_RESULT, &packets[i], &requests[i]);
    }
    MPI_Waitall(under_way(), requests, MPI_STATUSES_IGNORE);
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
