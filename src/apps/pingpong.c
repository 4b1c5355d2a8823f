/* pingpong: one message goes to and fro between two ranks; half a round trip is its time one way.
 *
 * Every sample is the mean over `iterations` round trips; the median and the minimum over the samples are
 * printed. A sample's worth of round trips warms up the connection first, untimed. Measures: latency (small
 * messages) or bandwidth (large ones) of one path, blocking calls, one message at a time. Does not measure:
 * several pairs at once, overlap, one-sided communication. Proof: rank 0 numbers every message and counts the
 * replies that carry another number; rank 1 sends back what it received, and after the timed round trips one
 * message of pseudo-random bytes must come back whole.
 */
#include "harness/harness.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_PING = 1, TAG_PONG = 2 };

static int64_t message_bytes = 8, iterations = 100, samples = 100;
static unsigned char *sent, *received;
static double *half_round_trip_s;
static int64_t serial_number, wrong_replies;

static const struct option options[] = {
    {"message_bytes", OPTION_INTEGER, &message_bytes, 1, 1073741824, "size of the message"},
    {"iterations", OPTION_INTEGER, &iterations, 1, 1e9, "round trips per sample"},
    {"samples", OPTION_INTEGER, &samples, 1, 1e6, "timed samples"},
};

static void go_and_return(void) {
    MPI_Send(sent, (int)message_bytes, MPI_BYTE, 1, TAG_PING, MPI_COMM_WORLD);
    MPI_Recv(received, (int)message_bytes, MPI_BYTE, 1, TAG_PONG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void echo(void) {
    MPI_Recv(received, (int)message_bytes, MPI_BYTE, 0, TAG_PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(received, (int)message_bytes, MPI_BYTE, 0, TAG_PONG, MPI_COMM_WORLD);
}

static void number_and_go(void) {
    size_t bytes =
        message_bytes < (int64_t)sizeof serial_number ? (size_t)message_bytes : sizeof serial_number;
    serial_number++;
    memcpy(sent, &serial_number, bytes);
    go_and_return();
    wrong_replies += memcmp(sent, received, bytes) != 0;
}

/* Seconds for one way, mean over the round trips. */
static double take_sample(const struct world *world) {
    double start = MPI_Wtime();
    for (int64_t i = 0; i < iterations; i++) {
        if (world->rank == 0)
            number_and_go();
        else
            echo();
    }
    return (MPI_Wtime() - start) / (double)(2 * iterations);
}

static void setup(const struct world *world) {
    sent = harness_allocate((size_t)message_bytes, 1);
    received = harness_allocate((size_t)message_bytes, 1);
    half_round_trip_s = harness_allocate((size_t)samples, sizeof *half_round_trip_s);
    take_sample(world);
}

/* Knuth's MMIX generator; its high byte is random enough to show a byte in the wrong place. */
static void fill(unsigned char *bytes) {
    uint64_t state = 1;
    for (int64_t i = 0; i < message_bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (unsigned char)(state >> 56);
    }
}

static void run(const struct world *world) {
    for (int64_t i = 0; i < samples; i++)
        half_round_trip_s[i] = take_sample(world);
    fill(sent);
    if (world->rank == 0)
        go_and_return();
    else
        echo();
}

static void spoil(const struct world *world) {
    (void)world;
    received[message_bytes - 1] ^= 1;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void check(const struct world *world, struct outcome *outcome) {
    (void)world;
    int64_t wrong_bytes = 0;
    for (int64_t i = 0; i < message_bytes; i++)
        wrong_bytes += sent[i] != received[i];
    outcome->value = outcome->error = (double)(wrong_replies + wrong_bytes);
    outcome_add_metric(outcome, "half_round_trip_s", median(half_round_trip_s, samples));
    outcome_add_metric(outcome, "half_round_trip_min_s", half_round_trip_s[0]);
}

static void finish(const struct world *world) {
    (void)world;
    free(sent);
    free(received);
    free(half_round_trip_s);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "pingpong",
        .title = "Half the round trip of one message between two ranks.",
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
