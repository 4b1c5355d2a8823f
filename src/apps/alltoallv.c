/* alltoallv: MPI_Alltoallv with blocks of equal size, from 1 B to 1 MiB per pair of ranks.
 *
 * Sizes, warm-up and iteration counts and the number's definition are those of the OSU Micro-Benchmarks'
 * osu_alltoallv: a rank's latency is the mean time of one call, each followed by an untimed barrier; printed
 * are mean, minimum and maximum over the ranks (--osu: a table of the mean). The main number is the mean at
 * the last size. Measures: how MPI's collective moves n (n - 1) blocks at once over one network. Does not
 * measure: unequal blocks, overlap, arithmetic. Proof: every block holds pseudo-random bytes that depend on
 * sender, receiver and size, and after each size every rank compares every byte it got.
 */
#include "alltoall.h"

static int *counts, *offsets;

static void prepare(const struct world *world, int bytes) {
    if (counts == NULL) {
        counts = harness_allocate((size_t)world->size, sizeof *counts);
        offsets = harness_allocate((size_t)world->size, sizeof *offsets);
    }
    for (int rank = 0; rank < world->size; rank++) {
        counts[rank] = bytes;
        offsets[rank] = rank * bytes;
    }
}

static void exchange(const struct world *world, int bytes) {
    (void)world;
    (void)bytes;
    MPI_Alltoallv(sent, counts, offsets, MPI_CHAR, received, counts, offsets, MPI_CHAR, MPI_COMM_WORLD);
}

/* The offsets are ints. */
static const char *refuse(const struct world *world) {
    return osu_bytes(&osu, osu_size_count(&osu) - 1) * world->size <= INT32_MAX
               ? NULL
               : "too many for these message sizes: all blocks of a rank must fit into 2 GiB";
}

static void print_osu(const struct world *world) {
    (void)world;
    osu_print(&osu, "MPI_Alltoallv, OSU's sizes and columns", "Avg Latency(us)", mean_us);
}

static void release(const struct world *world) {
    free(counts);
    free(offsets);
    finish(world);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "alltoallv",
        .title = "MPI_Alltoallv from 1 B to 1 MiB, as osu_alltoallv measures it.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_ANY,
        .refuse = refuse,
        .setup = setup,
        .run = run,
        .spoil = spoil,
        .check = check,
        .print_osu = print_osu,
        .finish = release,
    };
    return harness_main(&app, argc, argv);
}
