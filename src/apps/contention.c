/* contention: all pairs (p, p + n/2) of n ranks exchange messages at the same time.
 *
 * For every size, doubled from the first to the last, the lower rank of a pair sends a message and receives
 * one of the same size, both blocking; after one round trip untimed, `repeats` are timed one by one and a
 * pair's best counts. Its bandwidth is the bytes of both directions over that time; printed are the mean over
 * the pairs and the slowest pair's, and as the main number the mean at the last size. With two ranks it is a
 * ping-pong; with more it shows what the pairs take from each other on shared links, memory and CPUs.
 * Does not measure: latency (the best of few is no estimate of it), messages in both directions at once,
 * patterns other than pairs. Proof: the last message of each size is pseudo-random bytes that depend on the
 * sender and the size, and both ends compare every byte.
 */
#include "sweep.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

enum { TAG_THERE = 1, TAG_BACK = 2 };

static int64_t first_message_bytes = 8, last_message_bytes = 33554432, repeats = 10;
static unsigned char *sent, *received;
static double best_s[SWEEP_SIZES]; /* of this rank's pair */
static int64_t wrong_bytes;
static int size_count;

static const struct option options[] = {
    {"first_message_bytes", OPTION_INTEGER, &first_message_bytes, 1, 1073741824, "smallest message"},
    {"last_message_bytes", OPTION_INTEGER, &last_message_bytes, 1, 1073741824,
     "largest message; the sizes between double"},
    {"repeats", OPTION_INTEGER, &repeats, 1, 1e6, "timed round trips per size; the best counts"},
};

static const char *refuse(const struct world *world) {
    return world->size % 2 == 0 ? NULL : "not even; pairs of ranks are needed: 2, 4, 6, ...";
}

static int64_t bytes_of(int number) { return sweep_bytes(first_message_bytes, number); }

static bool is_lower(const struct world *world) { return world->rank < world->size / 2; }

static int partner_of(const struct world *world) {
    return world->rank + (is_lower(world) ? 1 : -1) * (world->size / 2);
}

/* No two messages that could be mistaken for each other have the same key. */
static uint64_t key_of(int rank, int number) { return (uint64_t)rank * SWEEP_SIZES + (uint64_t)number; }

static void setup(const struct world *world) {
    (void)world;
    size_count = sweep_count(first_message_bytes, last_message_bytes);
    sent = harness_allocate((size_t)bytes_of(size_count - 1), 1);
    received = harness_allocate((size_t)bytes_of(size_count - 1), 1);
}

static void go_and_return(int bytes, int partner) {
    MPI_Send(sent, bytes, MPI_BYTE, partner, TAG_THERE, MPI_COMM_WORLD);
    MPI_Recv(received, bytes, MPI_BYTE, partner, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void answer(int bytes, int partner) {
    MPI_Recv(received, bytes, MPI_BYTE, partner, TAG_THERE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(sent, bytes, MPI_BYTE, partner, TAG_BACK, MPI_COMM_WORLD);
}

static double time_round_trip(const struct world *world, int bytes) {
    double start = MPI_Wtime();
    if (is_lower(world))
        go_and_return(bytes, partner_of(world));
    else
        answer(bytes, partner_of(world));
    return MPI_Wtime() - start;
}

static void measure(const struct world *world, int number) {
    int bytes = (int)bytes_of(number);
    sweep_fill(sent, bytes, key_of(world->rank, number));
    best_s[number] = INFINITY;
    time_round_trip(world, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int64_t i = 0; i < repeats; i++)
        best_s[number] = fmin(best_s[number], time_round_trip(world, bytes));
    wrong_bytes += sweep_wrong_bytes(received, bytes, key_of(partner_of(world), number));
}

static void run(const struct world *world) {
    for (int number = 0; number < size_count; number++)
        measure(world, number);
}

/* Damages one byte of the last message and looks at it again. */
static void spoil(const struct world *world) {
    int last = size_count - 1;
    if (world->rank == 0)
        received[bytes_of(last) - 1] ^= 1;
    wrong_bytes += sweep_wrong_bytes(received, bytes_of(last), key_of(partner_of(world), last));
}

/* Mean and minimum over the pairs; the upper ranks' times are not looked at. */
static void add_bandwidths(const struct world *world, struct outcome *outcome) {
    double sum[SWEEP_SIZES] = {0}, least[SWEEP_SIZES];
    for (int number = 0; number < size_count; number++) {
        double bandwidth = 2.0 * (double)bytes_of(number) / best_s[number] * 1e-6;
        sum[number] = is_lower(world) ? bandwidth : 0.0;
        least[number] = is_lower(world) ? bandwidth : INFINITY;
    }
    MPI_Allreduce(MPI_IN_PLACE, sum, size_count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, least, size_count, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    double pairs = world->size / 2;
    outcome_add_metric(outcome, "bandwidth_MB_per_s", sum[size_count - 1] / pairs);
    for (int number = 0; number < size_count; number++) {
        sweep_add_metric(outcome, "bandwidth", bytes_of(number), "MB_per_s", sum[number] / pairs);
        sweep_add_metric(outcome, "bandwidth_min", bytes_of(number), "MB_per_s", least[number]);
    }
}

static void check(const struct world *world, struct outcome *outcome) {
    MPI_Allreduce(MPI_IN_PLACE, &wrong_bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    outcome->value = outcome->error = (double)wrong_bytes;
    add_bandwidths(world, outcome);
}

static void finish(const struct world *world) {
    (void)world;
    free(sent);
    free(received);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "contention",
        .title = "All pairs of ranks (p, p + n/2) exchange messages at once.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_ANY,
        .refuse = refuse,
        .setup = setup,
        .run = run,
        .spoil = spoil,
        .check = check,
        .finish = finish,
    };
    return harness_main(&app, argc, argv);
}
