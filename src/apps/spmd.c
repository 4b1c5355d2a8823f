/* spmd: a three-dimensional iterative stencil, cut into cuboids, neighbours exchange their walls every step.
 *
 * A cell has a value v and a retain coefficient r. One application is v <- r v + (1 - r) (mean of its six
 * neighbours of the step before); a step does it `coefficient` times, each on the result of the one before,
 * so that the work grows with the coefficient and no compiler may leave any of it out. The cells around the
 * grid keep their values. Cuboids: of all ways to cut the grid for this number of ranks, the one with the
 * least exchanged area. Walls go as MPI derived datatypes: contiguous planes (YZ), rows (XZ) and single cells
 * (XY). Measures: memory bandwidth at coefficient 1, arithmetic at 100, six messages of medium size per rank
 * and step; with --overlap 1 the inner cells are updated while the walls are under way. Does not measure:
 * small messages, imbalance beyond a layer of cells.
 *
 * Proof: with one r for all cells, a linear field (which the mean leaves alone) plus the grid's slowest sine
 * mode (which a step multiplies by one number) is an exact solution: every cell is compared with it, within
 * the bound of the rounding errors. No value leaves the range of the initial and boundary values (the
 * discrete maximum principle). And as no cell's arithmetic depends on the cuboids, nor (built with
 * -ffp-contract=off) on the flags, `checksum`, taken over the bits and places of all values, is the same
 * whatever the ranks, the threads (OpenMP's: OMP_NUM_THREADS) and the overlap, bit for bit. All values lie
 * between 1 and 3: nothing decays to denormal numbers.
 */
#include "cuboid.h"
#include "harness/harness.h"

#include <float.h>
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t grid[AXES] = {200, 400, 600}, steps = 300, coefficient = 1, overlap = 0;
static double retain = 0.99;

static const struct option options[] = {
    {"grid", OPTION_SIZES, grid, 1, 100000, "cells in each direction"},
    {"steps", OPTION_INTEGER, &steps, 0, 1e9, "steps"},
    {"coefficient", OPTION_INTEGER, &coefficient, 1, 1e6, "applications per step"},
    {"retain", OPTION_NUMBER, &retain, 0, 1, "retain coefficient of the cells"},
    {"overlap", OPTION_INTEGER, &overlap, 0, 1, "1: update the inner cells while the walls are under way"},
};

/* This rank's cuboid. Arrays hold it and one layer around it: index 1..size along each axis, z runs fastest.
 */
static struct cuboid cuboid;
static int64_t row, plane;                                 /* from a cell to its neighbour in y and in x */
static MPI_Datatype wall[AXES][SIDES], ghost[AXES][SIDES]; /* what is sent, and where the neighbour's goes */

static double *present, *next, *retained, *mean_row;
static double *sine[AXES], *slope[AXES]; /* the exact solution's factors and terms, by local index */
static double initial_range[2];          /* minimum, maximum */
static const double amplitude = 0.25;

/* ---- partition ---- */

static const char *refuse(const struct world *world) {
    return cuboid_choose_parts(&cuboid, grid, world->size)
               ? NULL
               : "too many for the grid: some cuboid would have no cell";
}

/* One layer of cells across an axis, without the edges. */
static MPI_Datatype layer_type(int axis, int64_t layer) {
    int whole[AXES], part[AXES], start[AXES];
    MPI_Datatype type;
    for (int i = 0; i < AXES; i++) {
        whole[i] = (int)cuboid.size[i] + 2;
        part[i] = i == axis ? 1 : (int)cuboid.size[i];
        start[i] = i == axis ? (int)layer : 1;
    }
    MPI_Type_create_subarray(AXES, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void make_types(void) {
    for (int axis = 0; axis < AXES; axis++) {
        wall[axis][LOW] = layer_type(axis, 1);
        wall[axis][HIGH] = layer_type(axis, cuboid.size[axis]);
        ghost[axis][LOW] = layer_type(axis, 0);
        ghost[axis][HIGH] = layer_type(axis, cuboid.size[axis] + 1);
    }
}

/* ---- the exact solution ---- */

/* sin(pi p/q), 0 <= p <= q, by its series: libm's differs in the last bit between C libraries, and the
 * initial values shall not. */
static double sine_of(int64_t p, int64_t q) {
    double x = acos(-1.0) * (double)(2 * p < q ? p : q - p) / (double)q, sum = 1.0;
    for (int n = 23; n >= 3; n -= 2)
        sum = 1.0 - x * x / (double)(n * (n - 1)) * sum;
    return x * sum;
}

static void make_factors(int axis) {
    const double weight[AXES] = {0.5, 0.25, 0.125};
    size_t count = (size_t)cuboid.size[axis] + 2;
    sine[axis] = harness_allocate(count, sizeof(double));
    slope[axis] = harness_allocate(count, sizeof(double));
    for (size_t i = 0; i < count; i++) {
        int64_t at = cuboid.first[axis] + (int64_t)i;
        sine[axis][i] = sine_of(at, grid[axis] + 1);
        slope[axis][i] = weight[axis] * ((double)at / (double)(grid[axis] + 1));
    }
}

static double exact(int64_t x, int64_t y, int64_t z, double mode) {
    return 1.0 + (slope[X][x] + slope[Y][y] + slope[Z][z]) + mode * (sine[X][x] * sine[Y][y] * sine[Z][z]);
}

/* What is left of the sine mode after all steps. Its mean over six neighbours is itself times the mean
 * cosine. */
static double final_mode(void) {
    double kept = pow(retain, (double)coefficient), cosines = 0;
    for (int axis = 0; axis < AXES; axis++)
        cosines += cos(acos(-1.0) / (double)(grid[axis] + 1));
    return amplitude * pow(kept + (1.0 - kept) * cosines / 3.0, (double)steps);
}

/* ---- setup ---- */

static void note_range(double range[static 2], double value) {
    range[0] = value < range[0] ? value : range[0];
    range[1] = value > range[1] ? value : range[1];
}

static void join_ranges(double range[static 2]) {
    MPI_Allreduce(MPI_IN_PLACE, &range[0], 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &range[1], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static void fill(void) {
    initial_range[0] = INFINITY;
    initial_range[1] = -INFINITY;
    for (int64_t x = 0; x < cuboid.size[X] + 2; x++)
        for (int64_t y = 0; y < cuboid.size[Y] + 2; y++)
            for (int64_t z = 0; z < cuboid.size[Z] + 2; z++) {
                int64_t cell = x * plane + y * row + z;
                present[cell] = next[cell] = exact(x, y, z, amplitude);
                retained[cell] = retain;
                note_range(initial_range, present[cell]);
            }
    join_ranges(initial_range);
}

static void setup(const struct world *world) {
    cuboid_find(&cuboid, grid, world->rank);
    row = cuboid.size[Z] + 2;
    plane = (cuboid.size[Y] + 2) * row;
    make_types();
    size_t cells = (size_t)((cuboid.size[X] + 2) * plane);
    present = harness_allocate(cells, sizeof(double));
    next = harness_allocate(cells, sizeof(double));
    retained = harness_allocate(cells, sizeof(double));
    mean_row = harness_allocate((size_t)(row * omp_get_max_threads()), sizeof(double));
    for (int axis = 0; axis < AXES; axis++)
        make_factors(axis);
    fill();
}

/* ---- the timed part ---- */

enum { MESSAGES = 2 * AXES * SIDES };

static void start_exchange(double *values, MPI_Request requests[static MESSAGES]) {
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < SIDES; side++) {
            int neighbour = cuboid.neighbour[axis][side], opposite = SIDES - 1 - side;
            MPI_Irecv(values, 1, ghost[axis][side], neighbour, SIDES * axis + opposite, MPI_COMM_WORLD,
                      requests++);
            MPI_Isend(values, 1, wall[axis][side], neighbour, SIDES * axis + side, MPI_COMM_WORLD,
                      requests++);
        }
}

/* One row of cells along z. The loops run over cells inside and over applications outside: every application
 * of a cell waits for the one before, those of its neighbours do not. */
static void update_row(int64_t cell, int64_t cells) {
    double *restrict out = next + cell, *restrict mean = mean_row + row * omp_get_thread_num();
    const double *restrict in = present + cell, *restrict r = retained + cell;
    const double *left = in - plane, *right = in + plane, *front = in - row, *back = in + row;
    for (int64_t z = 0; z < cells; z++) {
        mean[z] = ((left[z] + right[z]) + (front[z] + back[z]) + (in[z - 1] + in[z + 1])) * (1.0 / 6.0);
        out[z] = r[z] * in[z] + (1.0 - r[z]) * mean[z];
    }
    for (int64_t application = 1; application < coefficient; application++)
        for (int64_t z = 0; z < cells; z++)
            out[z] = r[z] * out[z] + (1.0 - r[z]) * mean[z];
}

/* Cells from..to along each axis, both included. */
struct box {
    int64_t from[AXES], to[AXES];
};

static void update_plane(const struct box *box, int64_t x) {
#pragma omp parallel for
    for (int64_t y = box->from[Y]; y <= box->to[Y]; y++)
        update_row(x * plane + y * row + box->from[Z], box->to[Z] - box->from[Z] + 1);
}

static void update_box(const struct box *box) {
    for (int64_t x = box->from[X]; x <= box->to[X]; x++)
        update_plane(box, x);
}

/* MPI moves long messages only while it is called: once per plane. */
static void update_box_and_test(const struct box *box, MPI_Request requests[static MESSAGES]) {
    for (int64_t x = box->from[X]; x <= box->to[X]; x++) {
        int done;
        update_plane(box, x);
        MPI_Testall(MESSAGES, requests, &done, MPI_STATUSES_IGNORE);
    }
}

static struct box whole_box(void) {
    return (struct box){{1, 1, 1}, {cuboid.size[X], cuboid.size[Y], cuboid.size[Z]}};
}

/* The cells that need no neighbour's wall first, the outermost layer once the walls are there. Each axis
 * takes its two layers off what is left, so that no cell is updated twice. */
static void step_with_overlap(void) {
    MPI_Request requests[MESSAGES];
    struct box left = whole_box(), inner = left;
    for (int axis = 0; axis < AXES; axis++) {
        inner.from[axis]++;
        inner.to[axis]--;
    }
    start_exchange(present, requests);
    update_box_and_test(&inner, requests);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int axis = 0; axis < AXES; axis++) {
        struct box low = left, high = left;
        low.to[axis] = low.from[axis];
        high.from[axis] = high.to[axis];
        update_box(&low);
        if (left.from[axis] < left.to[axis])
            update_box(&high);
        left.from[axis]++;
        left.to[axis]--;
    }
}

static void step_after_exchange(void) {
    MPI_Request requests[MESSAGES];
    const struct box whole = whole_box();
    start_exchange(present, requests);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    update_box(&whole);
}

static void run(const struct world *world) {
    (void)world;
    for (int64_t step = 0; step < steps; step++) {
        if (overlap)
            step_with_overlap();
        else
            step_after_exchange();
        double *old = present;
        present = next;
        next = old;
    }
}

/* ---- proof ---- */

/* Damages the last cell of the last cuboid by a millionth. */
static void spoil(const struct world *world) {
    if (world->rank == world->size - 1)
        present[cuboid.size[X] * plane + cuboid.size[Y] * row + cuboid.size[Z]] *= 1.000001;
}

struct findings {
    struct {
        double value, expected, error;
    } worst; /* the cell that is farthest from the exact solution */
    double range[2];
    uint64_t checksum;
};

/* splitmix64's finalizer (G. Steele et al., OOPSLA 2014) */
static uint64_t mix(uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

/* A sum, so that the order of the cells does not matter; each term knows its place. */
static uint64_t checksum_term(int64_t x, int64_t y, int64_t z, double value) {
    uint64_t bits,
        place = (uint64_t)(((cuboid.first[X] + x) * (grid[Y] + 2) + cuboid.first[Y] + y) * (grid[Z] + 2) +
                           cuboid.first[Z] + z);
    memcpy(&bits, &value, sizeof bits);
    return mix(bits ^ mix(place));
}

static void examine_cell(struct findings *findings, int64_t x, int64_t y, int64_t z, double mode) {
    double value = present[x * plane + y * row + z], expected = exact(x, y, z, mode);
    double error = fabs(value - expected);
    note_range(findings->range, value);
    findings->checksum += checksum_term(x, y, z, value);
    if (error <= findings->worst.error) /* false for a NaN, which is then kept as the worst */
        return;
    findings->worst.value = value;
    findings->worst.expected = expected;
    findings->worst.error = isnan(error) ? INFINITY : error;
}

static struct findings examine(void) {
    struct findings findings = {.worst.error = -1.0, .range = {INFINITY, -INFINITY}};
    double mode = final_mode();
    for (int64_t x = 1; x <= cuboid.size[X]; x++)
        for (int64_t y = 1; y <= cuboid.size[Y]; y++)
            for (int64_t z = 1; z <= cuboid.size[Z]; z++)
                examine_cell(&findings, x, y, z, mode);
    return findings;
}

static void join_findings(const struct world *world, struct findings *findings) {
    struct {
        double error;
        int rank;
    } farthest = {findings->worst.error, world->rank};
    MPI_Allreduce(MPI_IN_PLACE, &farthest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(&findings->worst, 3, MPI_DOUBLE, farthest.rank, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &findings->checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    join_ranges(findings->range);
}

/* One application rounds at most nine times, each by half an epsilon of the largest value, and passes on no
 * more error than it got (its weights are positive and add up to 1); the initial values add a few. */
static double rounding_bound(void) {
    return (9.0 * (double)steps * (double)coefficient + 32.0) * 0.5 * DBL_EPSILON * initial_range[1];
}

static void check(const struct world *world, struct outcome *outcome) {
    struct findings findings = examine();
    join_findings(world, &findings);
    outcome->value = findings.worst.value;
    outcome->expected = findings.worst.expected;
    outcome->error = findings.worst.error;
    outcome->tolerance = rounding_bound();
    snprintf(outcome->checksum, sizeof outcome->checksum, "%016" PRIx64, findings.checksum);
    if (findings.range[0] < initial_range[0] - rounding_bound() ||
        findings.range[1] > initial_range[1] + rounding_bound())
        snprintf(outcome->fault, sizeof outcome->fault,
                 "values from %.9g to %.9g, but it began with %.9g to %.9g", findings.range[0],
                 findings.range[1], initial_range[0], initial_range[1]);
    outcome_add_metric(outcome, "threads", (double)omp_get_max_threads());
    outcome_add_metric(outcome, "parts_x", (double)cuboid.parts[X]);
    outcome_add_metric(outcome, "parts_y", (double)cuboid.parts[Y]);
    outcome_add_metric(outcome, "parts_z", (double)cuboid.parts[Z]);
    outcome_add_metric(outcome, "exchanged_area_cells", cuboid_exchanged_area(grid, cuboid.parts));
    outcome_add_metric(outcome, "minimum", findings.range[0]);
    outcome_add_metric(outcome, "maximum", findings.range[1]);
}

static void finish(const struct world *world) {
    (void)world;
    for (int axis = 0; axis < AXES; axis++) {
        free(sine[axis]);
        free(slope[axis]);
        for (int side = 0; side < SIDES; side++) {
            MPI_Type_free(&wall[axis][side]);
            MPI_Type_free(&ghost[axis][side]);
        }
    }
    free(present);
    free(next);
    free(retained);
    free(mean_row);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "spmd",
        .title = "A three-dimensional stencil on cuboids that exchange their walls every step.",
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
