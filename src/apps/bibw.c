/* bibw: bandwidth between two ranks that send to each other at the same time.
 *
 * Sizes (1 B to 4 MiB), window, warm-up and iteration counts and the number's definition are those of the OSU
 * Micro-Benchmarks' osu_bibw: in every iteration both ranks post `window` receives and `window` sends, none
 * blocking, and wait for all; the bytes of both directions over the time of all iterations on rank 0 is the
 * bandwidth. As there, all messages of a window share one buffer on either side, which caches like. The main
 * number is the bandwidth at the last size (--osu: a table of all). Measures: what a path carries in both
 * directions with many messages under way. Does not measure: latency, one direction alone, several pairs.
 * Proof: a size's messages all hold the same pseudo-random bytes, other ones for each rank and size, and
 * after each size both ranks compare every byte of their buffer.
 */
#include "osu.h"

#include <mpi.h>
#include <stdlib.h>

enum { TAG = 1 };

static struct osu osu = {1, 4194304, 100, 10, 20, 2};
static int64_t window = 64;
static const struct option options[] = {
    OSU_OPTIONS(osu),
    {"window", OPTION_INTEGER, &window, 1, 100000, "messages under way in each direction"},
};

static unsigned char *sent, *received;
static MPI_Request *sends, *receives;
static double bandwidth_MB_per_s[SWEEP_SIZES]; /* on rank 0 */
static int64_t wrong_bytes;

static uint64_t key_of(int rank, int number) { return (uint64_t)rank * SWEEP_SIZES + (uint64_t)number; }

static void setup(const struct world *world) {
    (void)world;
    size_t most = (size_t)osu_bytes(&osu, osu_size_count(&osu) - 1);
    sent = harness_allocate(most, 1);
    received = harness_allocate(most, 1);
    sends = harness_allocate((size_t)window, sizeof(MPI_Request));
    receives = harness_allocate((size_t)window, sizeof(MPI_Request));
}

static void exchange_window(int partner, int bytes) {
    for (int64_t i = 0; i < window; i++)
        MPI_Irecv(received, bytes, MPI_CHAR, partner, TAG, MPI_COMM_WORLD, &receives[i]);
    for (int64_t i = 0; i < window; i++)
        MPI_Isend(sent, bytes, MPI_CHAR, partner, TAG, MPI_COMM_WORLD, &sends[i]);
    MPI_Waitall((int)window, sends, MPI_STATUSES_IGNORE);
    MPI_Waitall((int)window, receives, MPI_STATUSES_IGNORE);
}

static void measure(const struct world *world, int number) {
    int partner = 1 - world->rank, bytes = (int)osu_bytes(&osu, number);
    sweep_fill(sent, bytes, key_of(world->rank, number));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int64_t i = 0; i < osu_warmup(&osu, number); i++)
        exchange_window(partner, bytes);
    double start = MPI_Wtime();
    for (int64_t i = 0; i < osu_iterations(&osu, number); i++)
        exchange_window(partner, bytes);
    double seconds = MPI_Wtime() - start;
    double messages = 2.0 * (double)window * (double)osu_iterations(&osu, number);
    bandwidth_MB_per_s[number] = (double)bytes * messages / seconds * 1e-6;
    wrong_bytes += sweep_wrong_bytes(received, bytes, key_of(partner, number));
}

static void run(const struct world *world) {
    for (int number = 0; number < osu_size_count(&osu); number++)
        measure(world, number);
}

/* Damages one byte of the last message and looks at it again. */
static void spoil(const struct world *world) {
    int last = osu_size_count(&osu) - 1;
    if (world->rank == 0)
        received[osu_bytes(&osu, last) - 1] ^= 1;
    wrong_bytes += sweep_wrong_bytes(received, osu_bytes(&osu, last), key_of(1 - world->rank, last));
}

static void check(const struct world *world, struct outcome *outcome) {
    (void)world;
    int count = osu_size_count(&osu);
    MPI_Allreduce(MPI_IN_PLACE, &wrong_bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    outcome->value = outcome->error = (double)wrong_bytes;
    outcome_add_metric(outcome, "bandwidth_MB_per_s", bandwidth_MB_per_s[count - 1]);
    for (int number = 0; number < count; number++)
        sweep_add_metric(outcome, "bandwidth", osu_bytes(&osu, number), "MB_per_s",
                         bandwidth_MB_per_s[number]);
}

static void print_osu(const struct world *world) {
    (void)world;
    osu_print(&osu, "bandwidth in both directions, OSU's sizes and columns", "Bandwidth (MB/s)",
              bandwidth_MB_per_s);
}

static void finish(const struct world *world) {
    (void)world;
    free(sent);
    free(received);
    free(sends);
    free(receives);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "bibw",
        .title = "Bandwidth in both directions at once from 1 B to 4 MiB, as osu_bibw measures it.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_EXACTLY_TWO,
        .setup = setup,
        .run = run,
        .spoil = spoil,
        .check = check,
        .print_osu = print_osu,
        .finish = finish,
    };
    return harness_main(&app, argc, argv);
}
