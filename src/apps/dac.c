/* dac: divide and conquer over a balanced binary tree of ranks.
 *
 * The root holds the whole problem. At every level of the tree a rank keeps the left half of what it holds
 * and hands the right half to another rank; a leaf solves its part; the results are merged back up the same
 * tree. Two works:
 *
 * integrate: 1/(1+x) over [100, 200]. Measures: a divider-bound loop with next to no memory traffic, two
 * small messages per edge of the tree. Does not measure: bandwidth, imbalance (all leaves do the same), many
 * small messages. Proof: the integral against ln(201/101), within the error bound of the midpoint rule and of
 * the additions; at the published 5e11 rectangles a single lost one is seen.
 *
 * mergesort: 64-bit pseudo-random keys. Measures: few large messages (half of all keys leave the root and
 * come back), memory, merging that fewer and fewer ranks do. Does not measure: a sort that is fast on many
 * ranks; the root merges all keys alone. Proof: the result is in order, and the same multiset as the keys
 * generated anew, by a sum of their hashes; `checksum` knows the places, too.
 */
#include "harness/harness.h"
#include "mergesort.h"
#include "reciprocal.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG_PIECE = 1, TAG_RESULT = 2 };
enum { INTEGRATE, MERGESORT };

static const double lower = 100.0, upper = 200.0;
static int64_t rectangles = 500000000000, keys = 50000000;
static const char *const work_names[] = {"integrate", "mergesort", NULL};
static struct choice work = {work_names, INTEGRATE};
static double integral; /* on rank 0 */
static double seconds;

static const struct option options[] = {
    {"work", OPTION_CHOICE, &work, 0, 0, "what is divided and conquered"},
    {"rectangles", OPTION_INTEGER, &rectangles, 1, 1e15, "rectangles in all (integrate)"},
    {"keys", OPTION_INTEGER, &keys, 1, 1e11, "keys in all (mergesort)"},
};

/* A rank's lowest set bit is the number of ranks below it in the tree, itself included, and its distance from
 * the rank that hands it its piece. */
static int span_of(const struct world *world) {
    return world->rank == 0 ? world->size : world->rank & -world->rank;
}

/* ---- integrate ---- */

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

static void integrate(const struct world *world) {
    struct piece piece = {0, rectangles};
    if (world->rank == 0) {
        integral = divide(world, piece, world->size);
        return;
    }
    int giver = world->rank - span_of(world);
    MPI_Recv(&piece, 2, MPI_INT64_T, giver, TAG_PIECE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double result = divide(world, piece, span_of(world));
    MPI_Send(&result, 1, MPI_DOUBLE, giver, TAG_RESULT, MPI_COMM_WORLD);
}

/* Loses the last rectangle. */
static void spoil_integral(void) { integral -= width() / (1.0 + upper - width() / 2); }

static void check_integral(struct outcome *outcome) {
    outcome->value = integral;
    outcome->expected = log1p((upper - lower) / (1.0 + lower));
    outcome->error = fabs(outcome->value - outcome->expected);
    outcome->tolerance = width() * width() / 24.0 * reciprocal_slope_rise(lower, upper) +
                         RECIPROCAL_SUM_RELATIVE_ERROR * outcome->expected;
}

/* ---- mergesort ---- */

static uint64_t *memory[2]; /* each as long as the piece that this rank holds at most */
static uint64_t *sorted;    /* the one of them that holds the result; on rank 0 */

/* splitmix64's finalizer (G. Steele et al., OOPSLA 2014) */
static uint64_t mix(uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static uint64_t key_at(int64_t i) { return mix((uint64_t)i * 0x9e3779b97f4a7c15u); }

/* The keys that a rank gets, by the way from the root down to it. */
static int64_t keys_of(const struct world *world) {
    int64_t count = keys;
    int at = 0, span = world->size;
    while (at != world->rank || span != span_of(world)) {
        span /= 2;
        if (world->rank >= at + span) {
            at += span;
            count -= count / 2;
        } else {
            count /= 2;
        }
    }
    return count;
}

/* All memory is touched here, so that the timed part finds it there. */
static void setup_keys(const struct world *world) {
    int64_t count = keys_of(world);
    for (int i = 0; i < 2; i++) {
        memory[i] = harness_allocate((size_t)count, sizeof(uint64_t));
        memset(memory[i], 0xff, (size_t)count * sizeof(uint64_t));
    }
    for (int64_t i = 0; world->rank == 0 && i < count; i++)
        memory[0][i] = key_at(i);
}

/* MPI counts with ints: a long piece goes in parts. */
static int part_of(int64_t left) { return left < 1 << 27 ? (int)left : 1 << 27; }

static void send_keys(const uint64_t *from, int64_t count, int rank, int tag) {
    for (; count > 0; from += part_of(count), count -= part_of(count))
        MPI_Send(from, part_of(count), MPI_UINT64_T, rank, tag, MPI_COMM_WORLD);
}

static void receive_keys(uint64_t *to, int64_t count, int rank, int tag) {
    for (; count > 0; to += part_of(count), count -= part_of(count))
        MPI_Recv(to, part_of(count), MPI_UINT64_T, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Sorts a piece with this rank and the span - 1 ranks behind it; returns which of the two arrays holds the
 * result: every level of the tree merges into the other one. */
static uint64_t *sort_piece(const struct world *world, uint64_t *piece, uint64_t *spare, int64_t count,
                            int span) {
    if (span == 1) {
        merge_sort(piece, spare, count);
        return piece;
    }
    int helper = world->rank + span / 2;
    int64_t left = count / 2;
    send_keys(piece + left, count - left, helper, TAG_PIECE);
    uint64_t *halves = sort_piece(world, piece, spare, left, span / 2);
    uint64_t *merged = halves == piece ? spare : piece;
    receive_keys(halves + left, count - left, helper, TAG_RESULT);
    merge_halves(halves, merged, count);
    return merged;
}

static void sort_keys(const struct world *world) {
    int giver = world->rank - span_of(world);
    int64_t count = keys_of(world);
    if (world->rank != 0)
        receive_keys(memory[0], count, giver, TAG_PIECE);
    sorted = sort_piece(world, memory[0], memory[1], count, span_of(world));
    if (world->rank != 0)
        send_keys(sorted, count, giver, TAG_RESULT);
}

/* Damages the last key by one bit, which may leave the order as it is. */
static void spoil_keys(void) { sorted[keys - 1] ^= 1; }

static void check_keys(const struct world *world, struct outcome *outcome) {
    uint64_t expected = 0, found = 0, places = 0;
    int64_t descents = 0;
    if (world->rank != 0)
        return;
    for (int64_t i = 0; i < keys; i++) {
        expected += mix(~key_at(i));
        found += mix(~sorted[i]);
        places += mix(sorted[i] ^ mix((uint64_t)i));
        descents += i > 0 && sorted[i - 1] > sorted[i];
    }
    outcome->value = outcome->error = (double)descents;
    snprintf(outcome->checksum, sizeof outcome->checksum, "%016" PRIx64, places);
    if (found != expected)
        snprintf(outcome->fault, sizeof outcome->fault,
                 "not the keys that it began with: hashes add up to %016" PRIx64 " instead of %016" PRIx64,
                 found, expected);
    outcome_add_metric(outcome, "rate_Mkeys_per_s", (double)keys / seconds * 1e-6);
}

/* ---- either ---- */

static void setup(const struct world *world) {
    if (work.chosen == MERGESORT)
        setup_keys(world);
}

static void run(const struct world *world) {
    double start = MPI_Wtime();
    if (work.chosen == MERGESORT)
        sort_keys(world);
    else
        integrate(world);
    seconds = MPI_Wtime() - start;
}

static void spoil(const struct world *world) {
    if (work.chosen == INTEGRATE)
        spoil_integral();
    else if (world->rank == 0)
        spoil_keys();
}

static void check(const struct world *world, struct outcome *outcome) {
    outcome_add_metric(outcome, "tree_levels", log2(world->size));
    if (work.chosen == MERGESORT)
        check_keys(world, outcome);
    else
        check_integral(outcome);
}

static void finish(const struct world *world) {
    (void)world;
    free(memory[0]);
    free(memory[1]);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "dac",
        .title = "Divide and conquer over a balanced binary tree: an integral or a merge sort.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_POWER_OF_TWO,
        .setup = setup,
        .run = run,
        .spoil = spoil,
        .check = check,
        .finish = finish,
    };
    return harness_main(&app, argc, argv);
}
