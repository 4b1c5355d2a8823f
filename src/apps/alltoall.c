/* alltoall: MPI_Alltoall, from 1 B to 1 MiB per pair of ranks.
 *
 * Sizes, warm-up and iteration counts and the number's definition are those of the OSU Micro-Benchmarks'
 * osu_alltoall: a rank's latency is the mean time of one call, each followed by an untimed barrier; printed
 * are mean, minimum and maximum over the ranks (--osu: a table of the mean). The main number is the mean at
 * the last size. Measures: how MPI's collective moves n (n - 1) blocks at once over one network; MPI may
 * choose another algorithm than for alltoallv, as it knows that all blocks are equal. Does not measure:
 * overlap, arithmetic. Proof: every block holds pseudo-random bytes that depend on sender, receiver and size,
 * and after each size every rank compares every byte it got.
 */
#include "alltoall.h"

static void prepare(const struct world *world, int bytes) {
    (void)world;
    (void)bytes;
}

static void exchange(const struct world *world, int bytes) {
    (void)world;
    MPI_Alltoall(sent, bytes, MPI_CHAR, received, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void print_osu(const struct world *world) {
    (void)world;
    osu_print(&osu, "MPI_Alltoall, OSU's sizes and columns", "Avg Latency(us)", mean_us);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "alltoall",
        .title = "MPI_Alltoall from 1 B to 1 MiB, as osu_alltoall measures it.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_ANY,
        .setup = setup,
        .run = run,
        .spoil = spoil,
        .check = check,
        .print_osu = print_osu,
        .finish = finish,
    };
    return harness_main(&app, argc, argv);
}
