/* pingpong: one message goes to and fro between two ranks; half a round trip is its time one way.
 *
 * Every sample is the mean over `iterations` round trips; the median and the minimum over the samples are
 * printed, for one size or for all from message_bytes, doubled, up to last_message_bytes. A sample's worth of
 * round trips of each size warms up the connection first, untimed. Two ways: blocking send and receive, or
 * MPI_Put into the other's window (memory that MPI_Win_allocate gave: shared between ranks of one node, where
 * MPI can), each closed by a fence. Measures: latency (small messages) and bandwidth
 * (large ones: bytes over half a round trip) of one path, one message at a time. Does not measure: several
 * pairs at once, overlap, messages in both directions. Proof: rank 0 numbers every message and counts the
 * replies that carry another number; rank 1 sends back what it received, and after each size's timed round
 * trips one message of pseudo-random bytes must come back whole.
 */
#include "sweep.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_PING = 1, TAG_PONG = 2 };
enum { TWO_SIDED, PUT };

static int64_t message_bytes = 8, last_message_bytes = 0, iterations = 100, samples = 100;
static const char *const mode_names[] = {"two-sided", "put", NULL};
static struct choice mode = {mode_names, TWO_SIDED};

static const struct option options[] = {
    {"message_bytes", OPTION_INTEGER, &message_bytes, 1, 1073741824, "size of the message"},
    {"last_message_bytes", OPTION_INTEGER, &last_message_bytes, 0, 1073741824,
     "double the size up to this one; 0: only message_bytes"},
    {"mode", OPTION_CHOICE, &mode, 0, 0, "send and receive, or MPI_Put and fence"},
    {"iterations", OPTION_INTEGER, &iterations, 1, 1e9, "round trips per sample"},
    {"samples", OPTION_INTEGER, &samples, 1, 1e6, "timed samples"},
};

static unsigned char *sent, *received;
static MPI_Win window; /* received, open to the other rank */
static double *half_round_trip_s, median_s[SWEEP_SIZES], minimum_s[SWEEP_SIZES];
static int64_t serial_number, wrong_replies, wrong_bytes;
static int size_count;

static int64_t bytes_of(int number) { return sweep_bytes(message_bytes, number); }

static void send_and_receive(int bytes) {
    MPI_Send(sent, bytes, MPI_BYTE, 1, TAG_PING, MPI_COMM_WORLD);
    MPI_Recv(received, bytes, MPI_BYTE, 1, TAG_PONG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_and_send(int bytes) {
    MPI_Recv(received, bytes, MPI_BYTE, 0, TAG_PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(received, bytes, MPI_BYTE, 0, TAG_PONG, MPI_COMM_WORLD);
}

static void put_and_wait(int bytes) {
    MPI_Put(sent, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    MPI_Win_fence(0, window);
}

static void wait_and_put(int bytes) {
    MPI_Win_fence(0, window);
    MPI_Put(received, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, window);
    MPI_Win_fence(0, window);
}

static void (*const go_and_return[])(int) = {[TWO_SIDED] = send_and_receive, [PUT] = put_and_wait};
static void (*const echo[])(int) = {[TWO_SIDED] = receive_and_send, [PUT] = wait_and_put};

static void number_and_go(int bytes) {
    size_t marked = bytes < (int)sizeof serial_number ? (size_t)bytes : sizeof serial_number;
    serial_number++;
    memcpy(sent, &serial_number, marked);
    go_and_return[mode.chosen](bytes);
    wrong_replies += memcmp(sent, received, marked) != 0;
}

/* Seconds for one way, mean over the round trips. */
static double take_sample(const struct world *world, int bytes) {
    double start = MPI_Wtime();
    for (int64_t i = 0; i < iterations; i++) {
        if (world->rank == 0)
            number_and_go(bytes);
        else
            echo[mode.chosen](bytes);
    }
    return (MPI_Wtime() - start) / (double)(2 * iterations);
}

static void setup(const struct world *world) {
    size_count = sweep_count(message_bytes, last_message_bytes);
    size_t most = (size_t)bytes_of(size_count - 1);
    sent = harness_allocate(most, 1);
    half_round_trip_s = harness_allocate((size_t)samples, sizeof *half_round_trip_s);
    if (mode.chosen == PUT) {
        MPI_Win_allocate((MPI_Aint)most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &received, &window);
        MPI_Win_fence(0, window);
    } else {
        received = harness_allocate(most, 1);
    }
    for (int number = 0; number < size_count; number++)
        take_sample(world, (int)bytes_of(number));
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void send_random_bytes(const struct world *world, int bytes) {
    if (world->rank == 0) {
        sweep_fill(sent, bytes, 0);
        go_and_return[mode.chosen](bytes);
    } else {
        echo[mode.chosen](bytes);
    }
    wrong_bytes += sweep_wrong_bytes(received, bytes, 0);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody puts anything before the other has looked */
}

static void measure(const struct world *world, int number) {
    int bytes = (int)bytes_of(number);
    for (int64_t i = 0; i < samples; i++)
        half_round_trip_s[i] = take_sample(world, bytes);
    median_s[number] = median(half_round_trip_s, samples);
    minimum_s[number] = half_round_trip_s[0];
    send_random_bytes(world, bytes);
}

static void run(const struct world *world) {
    for (int number = 0; number < size_count; number++)
        measure(world, number);
}

/* Damages one byte of the last message and looks at it again. */
static void spoil(const struct world *world) {
    (void)world;
    int64_t last = bytes_of(size_count - 1);
    received[last - 1] ^= 1;
    wrong_bytes += sweep_wrong_bytes(received, last, 0);
}

static void check(const struct world *world, struct outcome *outcome) {
    (void)world;
    MPI_Allreduce(MPI_IN_PLACE, &wrong_bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    outcome->value = outcome->error = (double)(wrong_replies + wrong_bytes);
    outcome_add_metric(outcome, "half_round_trip_s", median_s[0]);
    outcome_add_metric(outcome, "half_round_trip_min_s", minimum_s[0]);
    for (int number = 0; size_count > 1 && number < size_count; number++) {
        double bytes = (double)bytes_of(number);
        sweep_add_metric(outcome, "half_round_trip", bytes_of(number), "s", median_s[number]);
        sweep_add_metric(outcome, "bandwidth", bytes_of(number), "MB_per_s", bytes / median_s[number] * 1e-6);
    }
}

static void finish(const struct world *world) {
    (void)world;
    if (mode.chosen == PUT)
        MPI_Win_free(&window);
    else
        free(received);
    free(sent);
    free(half_round_trip_s);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "pingpong",
        .title = "Half the round trip of messages between two ranks.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_EXACTLY_TWO,
        .setup = setup,
        .run = run,
        .spoil = spoil,
        .check = check,
        .finish = finish,
    };
    return harness_main(&app, argc, argv);
}
