/* What alltoall and alltoallv share: everything but the call that is timed. */
#ifndef TARE_ALLTOALL_H
#define TARE_ALLTOALL_H

#include "osu.h"

#include <mpi.h>
#include <stdlib.h>

static struct osu osu = {1, 1048576, 1000, 100, 100, 10};
static const struct option options[] = {OSU_OPTIONS(osu)};

static unsigned char *sent, *received; /* a block for each rank */
static double mean_us[SWEEP_SIZES], least_us[SWEEP_SIZES], most_us[SWEEP_SIZES];
static int64_t wrong_bytes;

/* The app's: one exchange in which each rank sends a block of that size to each. */
static void exchange(const struct world *world, int bytes);
static void prepare(const struct world *world, int bytes);

/* Of the block from one rank to another: no two that could be mistaken for each other have the same key. */
static uint64_t key_of(const struct world *world, int from, int to, int number) {
    return ((uint64_t)from * (uint64_t)world->size + (uint64_t)to) * SWEEP_SIZES + (uint64_t)number;
}

static void setup(const struct world *world) {
    size_t most = (size_t)osu_bytes(&osu, osu_size_count(&osu) - 1);
    sent = harness_allocate((size_t)world->size, most);
    received = harness_allocate((size_t)world->size, most);
}

static void fill_blocks(const struct world *world, int number) {
    int64_t bytes = osu_bytes(&osu, number);
    for (int to = 0; to < world->size; to++)
        sweep_fill(sent + to * bytes, bytes, key_of(world, world->rank, to, number));
}

static void look_at_blocks(const struct world *world, int number) {
    int64_t bytes = osu_bytes(&osu, number);
    for (int from = 0; from < world->size; from++)
        wrong_bytes +=
            sweep_wrong_bytes(received + from * bytes, bytes, key_of(world, from, world->rank, number));
}

/* Each exchange is timed alone, with a barrier behind it that is not: OSU's way. Microseconds, mean over the
 * iterations. */
static double time_exchanges(const struct world *world, int number) {
    double seconds = 0;
    int bytes = (int)osu_bytes(&osu, number);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int64_t i = -osu_warmup(&osu, number); i < osu_iterations(&osu, number); i++) {
        double start = MPI_Wtime();
        exchange(world, bytes);
        seconds += i >= 0 ? MPI_Wtime() - start : 0.0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return seconds / (double)osu_iterations(&osu, number) * 1e6;
}

static void run(const struct world *world) {
    for (int number = 0; number < osu_size_count(&osu); number++) {
        fill_blocks(world, number);
        prepare(world, (int)osu_bytes(&osu, number));
        double own_us = time_exchanges(world, number);
        MPI_Allreduce(&own_us, &least_us[number], 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&own_us, &most_us[number], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&own_us, &mean_us[number], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        mean_us[number] /= world->size;
        look_at_blocks(world, number);
    }
}

/* Damages one byte of the last exchange and looks at it again. */
static void spoil(const struct world *world) {
    int last = osu_size_count(&osu) - 1;
    if (world->rank == 0)
        received[osu_bytes(&osu, last) * world->size - 1] ^= 1;
    look_at_blocks(world, last);
}

static void check(const struct world *world, struct outcome *outcome) {
    (void)world;
    MPI_Allreduce(MPI_IN_PLACE, &wrong_bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    outcome->value = outcome->error = (double)wrong_bytes;
    outcome_add_metric(outcome, "latency_us", mean_us[osu_size_count(&osu) - 1]);
    for (int number = 0; number < osu_size_count(&osu); number++) {
        int64_t bytes = osu_bytes(&osu, number);
        sweep_add_metric(outcome, "latency", bytes, "us", mean_us[number]);
        sweep_add_metric(outcome, "latency_min", bytes, "us", least_us[number]);
        sweep_add_metric(outcome, "latency_max", bytes, "us", most_us[number]);
    }
}

static void finish(const struct world *world) {
    (void)world;
    free(sent);
    free(received);
}

#endif
