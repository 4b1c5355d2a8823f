/* dac: divide and conquer over a balanced binary tree of ranks, integrating 1/(1+x) over [100, 200].
 *
 * The root holds all rectangles. At every level of the tree a rank keeps the left half of what it holds and
 * hands the right half to another rank; a leaf adds up its rectangles; the results are merged back up the
 * same tree. Measures: a divider-bound loop with next to no memory traffic, two small messages per edge of
 * the tree. Does not measure: bandwidth, imbalance (all leaves do the same), many small messages. Proof: the
 * integral against ln(201/101), within the error bound of the midpoint rule and of the additions; at the
 * published 5e11 rectangles a single lost one is seen.
 */
#include "harness/harness.h"
#include "reciprocal.h"

#include <mpi.h>

enum { TAG_PIECE = 1, TAG_RESULT = 2 };

static const double lower = 100.0, upper = 200.0;
static int64_t rectangles = 500000000000;
static double integral; /* on rank 0 */

static const struct option options[] = {
    {"rectangles", OPTION_INTEGER, &rectangles, 1, 1e15, "rectangles in all"},
};

struct piece {
    int64_t first, count;
};

static double width(void) { return (upper - lower) / (double)rectangles; }

static double conquer(struct piece piece) {
    return width() * reciprocal_sum(lower, width(), (double)piece.first + 0.5, piece.count);
}

/* Solves a piece with this rank and the span - 1 ranks behind it. */
static double divide(const struct world *world, struct piece piece, int span) {
    if (span == 1)
        return conquer(piece);
    int helper = world->rank + span / 2;
    struct piece left = {piece.first, piece.count / 2};
    struct piece right = {piece.first + left.count, piece.count - left.count};
    MPI_Send(&right, 2, MPI_INT64_T, helper, TAG_PIECE, MPI_COMM_WORLD);
    double from_left = divide(world, left, span / 2), from_right;
    MPI_Recv(&from_right, 1, MPI_DOUBLE, helper, TAG_RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return from_left + from_right;
}

/* A rank's lowest set bit is the number of ranks below it in the tree, itself included, and its distance from
 * the rank that hands it its piece. */
static void run(const struct world *world) {
    struct piece piece = {0, rectangles};
    int span = world->rank & -world->rank;
    if (world->rank == 0) {
        integral = divide(world, piece, world->size);
        return;
    }
    MPI_Recv(&piece, 2, MPI_INT64_T, world->rank - span, TAG_PIECE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double result = divide(world, piece, span);
    MPI_Send(&result, 1, MPI_DOUBLE, world->rank - span, TAG_RESULT, MPI_COMM_WORLD);
}

/* Loses the last rectangle. */
static void spoil(const struct world *world) {
    (void)world;
    integral -= width() / (1.0 + upper - width() / 2);
}

static void check(const struct world *world, struct outcome *outcome) {
    outcome->value = integral;
    outcome->expected = log1p((upper - lower) / (1.0 + lower));
    outcome->error = fabs(outcome->value - outcome->expected);
    outcome->tolerance = width() * width() / 24.0 * reciprocal_slope_rise(lower, upper) +
                         RECIPROCAL_SUM_RELATIVE_ERROR * outcome->expected;
    outcome_add_metric(outcome, "tree_levels", log2(world->size));
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "dac",
        .title = "Divide and conquer over a balanced binary tree: the integral of 1/(1+x) over [100, 200].",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_POWER_OF_TWO,
        .run = run,
        .spoil = spoil,
        .check = check,
    };
    return harness_main(&app, argc, argv);
}
