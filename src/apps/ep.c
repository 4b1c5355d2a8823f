/* ep: the embarrassingly parallel kernel of the NAS Parallel Benchmarks (D. Bailey et al., RNR-94-007, 2.2).
 *
 * Pairs of uniform deviates in (-1, 1) come from the specified generator, x <- 5^13 x mod 2^46 from
 * 271828183; those inside the unit circle become pairs of Gaussian deviates (the polar method), which are
 * added up and counted in ten square rings. Every rank takes a run of the 2^16-pair batches (more ranks than
 * batches: some rest) and jumps to its place in the sequence; at the end three small sums are made over the
 * ranks. Measures: logarithms, square roots, integer multiplications, all in cache. Does not measure: memory,
 * messages, imbalance. Proof: both sums against the specification's for the class, within its relative 1e-8,
 * and the number of accepted pairs, which is exact. Mop/s as NAS counts them: uniform deviates per second.
 */
#include "harness/harness.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { BATCH_LOG2 = 16, BATCH_PAIRS = 1 << BATCH_LOG2, RINGS = 10 };

/* The specification's verification sums; the counts as the reference implementation prints them. */
static const struct {
    int pairs_log2;
    double sum_x, sum_y;
    int64_t accepted;
} classes[] = {
    {24, -3.247834652034740e3, -6.958407078382297e3, 13176389},
    {25, -2.863319731645753e3, -6.320053679109499e3, 26354769},
    {28, -4.295875165629892e3, -1.580732573678431e4, 210832767},
    {30, 4.033815542441498e4, -2.660669192809235e4, 843345606},
    {32, 4.764367927995374e4, -8.084072988043731e4, 3373275903},
};
static const char *const class_names[] = {"S", "W", "A", "B", "C", NULL};
static struct choice class = {class_names, 3};

static const struct option options[] = {
    {"class", OPTION_CHOICE, &class, 0, 0, "size: 2^24, 2^25, 2^28, 2^30 or 2^32 pairs"},
};

static const uint64_t multiplier = 1220703125, seed = 271828183, modulus_mask = (UINT64_C(1) << 46) - 1;
static struct {
    double x, y;
    int64_t rings[RINGS];
} sums; /* on rank 0, of all ranks */
static double seconds;

/* A product modulo 2^64 has the right lowest 46 bits. */
static uint64_t multiply(uint64_t a, uint64_t b) { return a * b & modulus_mask; }

static uint64_t power(uint64_t base, uint64_t exponent) {
    uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1, base = multiply(base, base))
        if (exponent & 1)
            result = multiply(result, base);
    return result;
}

/* The next deviate, in (-1, 1); exact, as 46 bits fit into a double. */
static double draw(uint64_t *state) {
    *state = multiply(*state, multiplier);
    return (double)(int64_t)*state * 0x1p-45 - 1.0;
}

/* Separate loops let the compiler vectorise what has no branch. */
static void tally_batch(uint64_t state) {
    static double x[BATCH_PAIRS], y[BATCH_PAIRS], square[BATCH_PAIRS];
    for (int i = 0; i < BATCH_PAIRS; i++) {
        x[i] = draw(&state);
        y[i] = draw(&state);
        square[i] = x[i] * x[i] + y[i] * y[i];
    }
    for (int i = 0; i < BATCH_PAIRS; i++) {
        if (square[i] > 1.0)
            continue;
        double scale = sqrt(-2.0 * log(square[i]) / square[i]);
        double gauss_x = x[i] * scale, gauss_y = y[i] * scale;
        sums.x += gauss_x;
        sums.y += gauss_y;
        sums.rings[(int)fmax(fabs(gauss_x), fabs(gauss_y))]++;
    }
}

static void run(const struct world *world) {
    double start = MPI_Wtime(), both[2];
    int64_t batches = INT64_C(1) << (classes[class.chosen].pairs_log2 - BATCH_LOG2);
    int64_t first = batches * world->rank / world->size, end = batches * (world->rank + 1) / world->size;
    uint64_t jump = power(multiplier, 2 * BATCH_PAIRS);
    uint64_t state = multiply(seed, power(jump, (uint64_t)first));
    for (int64_t batch = first; batch < end; batch++, state = multiply(state, jump))
        tally_batch(state);
    MPI_Reduce((double[]){sums.x, sums.y}, both, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(world->rank == 0 ? MPI_IN_PLACE : sums.rings, sums.rings, RINGS, MPI_INT64_T, MPI_SUM, 0,
               MPI_COMM_WORLD);
    if (world->rank == 0) {
        sums.x = both[0];
        sums.y = both[1];
    }
    seconds = MPI_Wtime() - start;
}

/* Loses one accepted pair, with deviates of a usual size. */
static void spoil(const struct world *world) {
    (void)world;
    sums.x -= 0.5;
    sums.rings[0]--;
}

static double relative_error(double value, double expected) { return fabs((value - expected) / expected); }

static void check(const struct world *world, struct outcome *outcome) {
    (void)world;
    int64_t accepted = 0;
    for (int ring = 0; ring < RINGS; ring++)
        accepted += sums.rings[ring];
    outcome->value = sums.x;
    outcome->expected = classes[class.chosen].sum_x;
    outcome->error = fmax(relative_error(sums.x, classes[class.chosen].sum_x),
                          relative_error(sums.y, classes[class.chosen].sum_y));
    outcome->tolerance = 1e-8;
    if (accepted != classes[class.chosen].accepted)
        snprintf(outcome->fault, sizeof outcome->fault, "%lld pairs accepted instead of %lld",
                 (long long)accepted, (long long)classes[class.chosen].accepted);
    outcome_add_metric(outcome, "sum_x", sums.x);
    outcome_add_metric(outcome, "sum_y", sums.y);
    outcome_add_metric(outcome, "accepted_pairs", (double)accepted);
    outcome_add_metric(outcome, "rate_Mop_per_s",
                       ldexp(1.0, classes[class.chosen].pairs_log2 + 1) / seconds * 1e-6);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "ep",
        .title = "The NAS benchmarks' embarrassingly parallel kernel: sums and counts of Gaussian deviates.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_ANY,
        .run = run,
        .spoil = spoil,
        .check = check,
    };
    return harness_main(&app, argc, argv);
}
