/* cg: preconditioned conjugate gradient on a 27-point stencil with a 4-level multigrid, in HPCG's manner.
 *
 * The matrix has 26 on the diagonal and -1 for each neighbour in a grid that is cut into cuboids; its values
 * are kept in memory, 27 for each row, as a sparse matrix's would be. Preconditioner: a V-cycle over four
 * grids, each half as fine in every direction, by injection, with one symmetric Gauss-Seidel sweep before
 * and after, and one on the coarsest. Unlike HPCG's, the sweep takes the cells in eight colours (by the
 * parities of their places) with an exchange of walls after each, so that it is the same sweep whatever the
 * ranks; and sums over the ranks are made in twice the precision, so that their order does not show.
 *
 * Measures: memory bandwidth (the matrix), many small and medium messages between neighbours, two reductions
 * per iteration. Does not measure: HPCG's score (other sweep, no column indices, strong scaling), large
 * messages. Proof: the right-hand side belongs to the solution of ones, and every unknown is within the bound
 * that the residual gives (discrete maximum principle: |x - 1| <= |r| (n + 1)^2 / 72 for n cells in the
 * shortest direction); matrix and preconditioner are symmetric on two pseudo-random vectors, to
 * 1e-11; and `iterations` and `checksum`, over the bits of all unknowns, do not depend on the ranks.
 */
#include "cuboid.h"
#include "harness/harness.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEVELS = 4, POINTS = 27, CENTRE = 13, COLOURS = 8, MOST_ITERATIONS = 500, LANES = 8 };

static int64_t coarse_grid[AXES] = {13, 13, 13}, solves = 1;
static double residual = 1e-10;

static const struct option options[] = {
    {"coarse_grid", OPTION_SIZES, coarse_grid, 1, 100000,
     "cells of the coarsest of four grids; the finest has 8 times as many in each direction"},
    {"residual", OPTION_NUMBER, &residual, 1e-12, 1e-8, "stop at this part of the first residual"},
    {"solves", OPTION_INTEGER, &solves, 1, 1e6, "how often it is solved, from zero each time"},
};

/* One grid: this rank's cells and a layer around them, z runs fastest. Level 0 is the finest. */
static struct level {
    struct cuboid cuboid;
    int64_t row, plane, cells; /* to the neighbour in y and in x; all, with the layer */
    double *matrix;            /* of each inner cell its 27 values */
    double *x, *r, *ax;        /* the cycle's own vectors */
    MPI_Datatype wall[AXES][SIDES], ghost[AXES][SIDES];
} levels[LEVELS];

static struct level *const fine = &levels[0];
static double *solution, *right_side, *rest, *direction, *product, *corrected;
static double first_residual;
static int64_t iterations;
static double seconds;

static const char *refuse(const struct world *world) {
    return cuboid_choose_parts(&levels[0].cuboid, coarse_grid, world->size)
               ? NULL
               : "too many for the coarsest grid: some cuboid would have no cell";
}

/* ---- the grids ---- */

/* A layer across an axis; the axes before it with their ghosts, so that edges and corners travel on. */
static MPI_Datatype layer_type(const struct level *level, int axis, int64_t layer) {
    int whole[AXES], part[AXES], start[AXES];
    MPI_Datatype type;
    for (int i = 0; i < AXES; i++) {
        whole[i] = (int)level->cuboid.size[i] + 2;
        part[i] = i < axis ? whole[i] : i == axis ? 1 : (int)level->cuboid.size[i];
        start[i] = i < axis ? 0 : i == axis ? (int)layer : 1;
    }
    MPI_Type_create_subarray(AXES, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static double *make_vector(const struct level *level) {
    return harness_allocate((size_t)level->cells, sizeof(double));
}

static int64_t cell_at(const struct level *level, int64_t x, int64_t y, int64_t z) {
    return x * level->plane + y * level->row + z;
}

/* Along z the odd places come first, then the even ones: a colour's values lie one behind the other. */
static double *row_of_matrix(const struct level *level, int64_t x, int64_t y, int64_t z) {
    const int64_t *size = level->cuboid.size;
    int64_t order = z % 2 != 0 ? z / 2 : (size[Z] + 1) / 2 + z / 2 - 1;
    return level->matrix + (((x - 1) * size[Y] + y - 1) * size[Z] + order) * POINTS;
}

static void fill_matrix(struct level *level) {
    const int64_t *size = level->cuboid.size;
    level->matrix = harness_allocate((size_t)(size[X] * size[Y] * size[Z]), POINTS * sizeof(double));
    for (int64_t i = 0; i < size[X] * size[Y] * size[Z] * POINTS; i++)
        level->matrix[i] = i % POINTS == CENTRE ? 26.0 : -1.0;
}

/* The cuts of the finer grids are those of the coarsest, so that a coarse cell and its fine one share a rank.
 */
static void make_level(struct level *level, int64_t rank) {
    int64_t fineness = INT64_C(1) << (LEVELS - 1 - (level - levels));
    memcpy(level->cuboid.parts, levels[0].cuboid.parts, sizeof level->cuboid.parts);
    cuboid_find(&level->cuboid, coarse_grid, rank);
    for (int axis = 0; axis < AXES; axis++) {
        level->cuboid.first[axis] *= fineness;
        level->cuboid.size[axis] *= fineness;
    }
    level->row = level->cuboid.size[Z] + 2;
    level->plane = (level->cuboid.size[Y] + 2) * level->row;
    level->cells = (level->cuboid.size[X] + 2) * level->plane;
    for (int axis = 0; axis < AXES; axis++) {
        level->wall[axis][LOW] = layer_type(level, axis, 1);
        level->wall[axis][HIGH] = layer_type(level, axis, level->cuboid.size[axis]);
        level->ghost[axis][LOW] = layer_type(level, axis, 0);
        level->ghost[axis][HIGH] = layer_type(level, axis, level->cuboid.size[axis] + 1);
    }
    fill_matrix(level);
    level->x = make_vector(level);
    level->r = make_vector(level);
    level->ax = make_vector(level);
}

/* ---- exchange ---- */

enum { ALL_COLOURS = -1 };

/* Whether the layer at this place along the axis holds cells of the colour: bit `axis` is their parity. */
static bool has_colour(int64_t place, int axis, int colour) {
    return colour == ALL_COLOURS || (place & 1) == (colour >> axis & 1);
}

/* Axis by axis; what holds no cell of the colour stays at home. */
static void exchange(const struct level *level, double *v, int colour) {
    for (int axis = 0; axis < AXES; axis++) {
        MPI_Request requests[2 * SIDES];
        int count = 0;
        for (int side = 0; side < SIDES; side++) {
            int neighbour = level->cuboid.neighbour[axis][side];
            int64_t first = level->cuboid.first[axis], last = first + level->cuboid.size[axis] - 1;
            if (has_colour(side == LOW ? first - 1 : last + 1, axis, colour))
                MPI_Irecv(v, 1, level->ghost[axis][side], neighbour, SIDES - 1 - side, MPI_COMM_WORLD,
                          &requests[count++]);
            if (has_colour(side == LOW ? first : last, axis, colour))
                MPI_Isend(v, 1, level->wall[axis][side], neighbour, side, MPI_COMM_WORLD, &requests[count++]);
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
}

/* ---- sums in twice the precision ---- */

struct wide {
    double high, low;
};

/* D. Knuth's exact sum of two doubles, the remainders collected. */
static inline struct wide wide_add(struct wide a, double high, double low) {
    double sum = a.high + high, b = sum - a.high;
    return (struct wide){sum, a.low + low + ((a.high - (sum - b)) + (high - b))};
}

static void add_wides(void *in, void *inout, int *count, MPI_Datatype *type) {
    const struct wide *from = in;
    struct wide *to = inout;
    (void)type;
    for (int i = 0; i < *count; i++)
        to[i] = wide_add(to[i], from[i].high, from[i].low);
}

static MPI_Op wide_sum;
static MPI_Datatype wide_type;

/* Over the inner cells of all ranks. Lanes, so that one addition need not wait for the one before. */
static double dot(const double *a, const double *b) {
    struct wide lanes[LANES] = {{0, 0}}, own = {0, 0}, all;
    const int64_t *size = fine->cuboid.size;
    for (int64_t x = 1; x <= size[X]; x++)
        for (int64_t y = 1; y <= size[Y]; y++) {
            const double *row_a = a + cell_at(fine, x, y, 1), *row_b = b + cell_at(fine, x, y, 1);
            for (int64_t z = 0; z < size[Z]; z += LANES) /* the finest sizes are multiples of 8 */
                for (int lane = 0; lane < LANES; lane++)
                    lanes[lane] = wide_add(lanes[lane], row_a[z + lane] * row_b[z + lane], 0.0);
        }
    for (int lane = 0; lane < LANES; lane++)
        own = wide_add(own, lanes[lane].high, lanes[lane].low);
    MPI_Allreduce(&own, &all, 1, wide_type, wide_sum, MPI_COMM_WORLD);
    return all.high + all.low;
}

/* ---- matrix, smoother, cycle ---- */

static inline double three(const double *a, const double *v) {
    return a[0] * v[-1] + a[1] * v[0] + a[2] * v[1];
}

static inline double nine(const struct level *level, const double *a, const double *v) {
    return (three(a, v - level->row) + three(a + 3, v)) + three(a + 6, v + level->row);
}

/* A row of the matrix times the vector at this cell, always added up in this order. */
static inline double multiply_row(const struct level *level, const double *a, const double *v) {
    return (nine(level, a, v - level->plane) + nine(level, a + 9, v)) + nine(level, a + 18, v + level->plane);
}

static void multiply(const struct level *level, double *out, double *v) {
    const int64_t *size = level->cuboid.size;
    exchange(level, v, ALL_COLOURS);
    for (int64_t x = 1; x <= size[X]; x++)
        for (int64_t y = 1; y <= size[Y]; y++) {
            const double *a = row_of_matrix(level, x, y, 1);
            int64_t cell = cell_at(level, x, y, 0);
            for (int64_t z = 1; z <= size[Z]; z += 2, a += POINTS)
                out[cell + z] = multiply_row(level, a, v + cell + z);
            for (int64_t z = 2; z <= size[Z]; z += 2, a += POINTS)
                out[cell + z] = multiply_row(level, a, v + cell + z);
        }
}

/* The first inner index along an axis whose place in the whole grid has the colour's parity. */
static int64_t first_of(const struct level *level, int axis, int colour) {
    return 1 + ((level->cuboid.first[axis] ^ colour >> axis) & 1);
}

static void smooth_row(const struct level *level, double *v, const double *r, int64_t x, int64_t y,
                       int64_t first) {
    const double *a = row_of_matrix(level, x, y, first);
    int64_t cell = cell_at(level, x, y, 0);
    for (int64_t z = first; z <= level->cuboid.size[Z]; z += 2, a += POINTS)
        v[cell + z] += (r[cell + z] - multiply_row(level, a, v + cell + z)) / a[CENTRE];
}

static void smooth_colour(const struct level *level, double *v, const double *r, int colour) {
    const int64_t *size = level->cuboid.size;
    for (int64_t x = first_of(level, X, colour); x <= size[X]; x += 2)
        for (int64_t y = first_of(level, Y, colour); y <= size[Y]; y += 2)
            smooth_row(level, v, r, x, y, first_of(level, Z, colour));
    exchange(level, v, colour);
}

/* Symmetric Gauss-Seidel: the colours forth and back. The last colour, repeated, would change nothing. */
static void smooth(const struct level *level, double *v, const double *r) {
    for (int colour = 0; colour < COLOURS; colour++)
        smooth_colour(level, v, r, colour);
    for (int colour = COLOURS - 2; colour >= 0; colour--)
        smooth_colour(level, v, r, colour);
}

static void cycle(int number, double *v, const double *r);

/* Injection: a coarse cell takes the residual of its fine one, and gives its correction to it. */
static void correct(int number, double *v, const double *r) {
    struct level *level = &levels[number], *coarse = &levels[number + 1];
    const int64_t *size = coarse->cuboid.size;
    multiply(level, level->ax, v);
    for (int64_t x = 1; x <= size[X]; x++)
        for (int64_t y = 1; y <= size[Y]; y++)
            for (int64_t z = 1; z <= size[Z]; z++) {
                int64_t cell = cell_at(level, 2 * x - 1, 2 * y - 1, 2 * z - 1);
                coarse->r[cell_at(coarse, x, y, z)] = r[cell] - level->ax[cell];
            }
    cycle(number + 1, coarse->x, coarse->r);
    for (int64_t x = 1; x <= size[X]; x++)
        for (int64_t y = 1; y <= size[Y]; y++)
            for (int64_t z = 1; z <= size[Z]; z++)
                v[cell_at(level, 2 * x - 1, 2 * y - 1, 2 * z - 1)] += coarse->x[cell_at(coarse, x, y, z)];
    exchange(level, v, 0); /* the fine cells of coarse ones have even places: the first colour */
}

static void cycle(int number, double *v, const double *r) {
    memset(v, 0, (size_t)levels[number].cells * sizeof *v);
    smooth(&levels[number], v, r);
    if (number == LEVELS - 1)
        return;
    correct(number, v, r);
    smooth(&levels[number], v, r);
}

/* ---- conjugate gradient ---- */

/* out <- a + factor b */
static void add_scaled(double *out, const double *a, double factor, const double *b) {
    for (int64_t i = 0; i < fine->cells; i++)
        out[i] = a[i] + factor * b[i];
}

static void solve(void) {
    memset(solution, 0, (size_t)fine->cells * sizeof *solution);
    memset(direction, 0, (size_t)fine->cells * sizeof *direction);
    memcpy(rest, right_side, (size_t)fine->cells * sizeof *rest);
    double norm = sqrt(dot(rest, rest)), descent_before = 0;
    first_residual = norm;
    for (iterations = 0; norm > residual * first_residual && iterations < MOST_ITERATIONS; iterations++) {
        cycle(0, corrected, rest);
        double descent = dot(rest, corrected);
        add_scaled(direction, corrected, iterations > 0 ? descent / descent_before : 0.0, direction);
        multiply(fine, product, direction);
        double step = descent / dot(direction, product);
        add_scaled(solution, solution, step, direction);
        add_scaled(rest, rest, -step, product);
        norm = sqrt(dot(rest, rest));
        descent_before = descent;
    }
}

static void fill_inner(double *v, double (*value)(int64_t x, int64_t y, int64_t z)) {
    const struct cuboid *cuboid = &fine->cuboid;
    for (int64_t x = 1; x <= cuboid->size[X]; x++)
        for (int64_t y = 1; y <= cuboid->size[Y]; y++)
            for (int64_t z = 1; z <= cuboid->size[Z]; z++)
                v[cell_at(fine, x, y, z)] =
                    value(cuboid->first[X] + x, cuboid->first[Y] + y, cuboid->first[Z] + z);
}

static double one(int64_t x, int64_t y, int64_t z) {
    (void)x;
    (void)y;
    (void)z;
    return 1.0;
}

static void setup(const struct world *world) {
    for (int number = 0; number < LEVELS; number++)
        make_level(&levels[number], world->rank);
    double **const vectors[] = {&solution, &right_side, &rest, &direction, &product, &corrected};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        *vectors[i] = make_vector(fine);
    MPI_Type_contiguous(2, MPI_DOUBLE, &wide_type);
    MPI_Type_commit(&wide_type);
    MPI_Op_create(add_wides, true, &wide_sum);
    fill_inner(solution, one);
    multiply(fine, right_side, solution);
}

static void run(const struct world *world) {
    (void)world;
    double start = MPI_Wtime();
    for (int64_t i = 0; i < solves; i++)
        solve();
    seconds = MPI_Wtime() - start;
}

/* ---- proof ---- */

/* Loses one unknown. */
static void spoil(const struct world *world) {
    if (world->rank == world->size - 1)
        solution[cell_at(fine, 1, 1, 1)] -= 1.0;
}

/* splitmix64's finalizer (G. Steele et al., OOPSLA 2014) */
static uint64_t mix(uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static uint64_t place_of(int64_t x, int64_t y, int64_t z) {
    return (uint64_t)((x * 8 * coarse_grid[Y] + y) * 8 * coarse_grid[Z] + z);
}

static double random_one(int64_t x, int64_t y, int64_t z) {
    return (double)(mix(place_of(x, y, z)) >> 11) * 0x1p-53;
}

static double random_two(int64_t x, int64_t y, int64_t z) {
    return (double)(mix(~place_of(x, y, z)) >> 11) * 0x1p-53;
}

static double asymmetry(double forth, double back) {
    return fabs(forth - back) / fmax(fabs(forth), fabs(back));
}

/* How far u'Av is from v'Au, and the same for the preconditioner, relative to them. */
static double find_asymmetry(void) {
    double *u = direction, *v = rest;
    memset(u, 0, (size_t)fine->cells * sizeof *u);
    memset(v, 0, (size_t)fine->cells * sizeof *v);
    fill_inner(u, random_one);
    fill_inner(v, random_two);
    multiply(fine, product, v);
    double forth = dot(u, product);
    multiply(fine, product, u);
    double of_matrix = asymmetry(forth, dot(v, product));
    cycle(0, corrected, v);
    forth = dot(u, corrected);
    cycle(0, corrected, u);
    return fmax(of_matrix, asymmetry(forth, dot(v, corrected)));
}

struct farthest {
    double error, value;
};

static struct farthest examine(uint64_t *checksum) {
    struct farthest farthest = {-1.0, 0.0};
    const struct cuboid *cuboid = &fine->cuboid;
    for (int64_t x = 1; x <= cuboid->size[X]; x++)
        for (int64_t y = 1; y <= cuboid->size[Y]; y++)
            for (int64_t z = 1; z <= cuboid->size[Z]; z++) {
                uint64_t bits;
                double value = solution[cell_at(fine, x, y, z)], error = fabs(value - 1.0);
                memcpy(&bits, &value, sizeof bits);
                *checksum += mix(
                    bits ^ mix(place_of(cuboid->first[X] + x, cuboid->first[Y] + y, cuboid->first[Z] + z)));
                if (!(error <= farthest.error)) /* true for a NaN */
                    farthest = (struct farthest){isnan(error) ? INFINITY : error, value};
            }
    return farthest;
}

/* A wall-to-wall quadratic is mapped to 18 or more, so that no unknown is off by more than its height times
 * the residual; as much again covers the rounding of the residual that the iteration carries along. */
static double error_bound(void) {
    int64_t shortest = coarse_grid[X];
    for (int axis = Y; axis < AXES; axis++)
        shortest = coarse_grid[axis] < shortest ? coarse_grid[axis] : shortest;
    double cells = 8.0 * (double)shortest;
    return (cells + 1.0) * (cells + 1.0) / 72.0 * 2.0 * residual * first_residual;
}

/* As HPCG counts them: two for each value of a matrix that is passed over, two for each element of a dot
 * product or a scaled sum. */
static double operations(void) {
    double total = 0, rows = 1;
    for (int number = 0; number < LEVELS; number++) {
        double values = 1;
        for (int axis = 0; axis < AXES; axis++)
            values *= 3.0 * (double)(coarse_grid[axis] << (LEVELS - 1 - number)) - 2.0;
        total += 2.0 * values * (number == LEVELS - 1 ? 2.0 : 5.0);
        total += number == 0 ? 2.0 * values : 0.0;
    }
    for (int axis = 0; axis < AXES; axis++)
        rows *= 8.0 * (double)coarse_grid[axis];
    return (total + 6.0 * 2.0 * rows) * (double)iterations * (double)solves;
}

static void check(const struct world *world, struct outcome *outcome) {
    uint64_t checksum = 0;
    struct farthest own = examine(&checksum);
    struct {
        double error;
        int rank;
    } farthest = {own.error, world->rank};
    MPI_Allreduce(MPI_IN_PLACE, &farthest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(&own, 2, MPI_DOUBLE, farthest.rank, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    double skew = find_asymmetry();
    outcome->value = own.value;
    outcome->expected = 1.0;
    outcome->error = own.error;
    outcome->tolerance = error_bound();
    snprintf(outcome->checksum, sizeof outcome->checksum, "%016" PRIx64, checksum);
    if (iterations == MOST_ITERATIONS)
        snprintf(outcome->fault, sizeof outcome->fault, "no convergence within %d iterations",
                 MOST_ITERATIONS);
    else if (!(skew <= 1e-11))
        snprintf(outcome->fault, sizeof outcome->fault,
                 "matrix or preconditioner is not symmetric: off by %.3g of it", skew);
    outcome_add_metric(outcome, "iterations", (double)iterations);
    outcome_add_metric(outcome, "asymmetry", skew);
    outcome_add_metric(outcome, "rate_GFLOP_per_s", operations() / seconds * 1e-9);
    outcome_add_metric(outcome, "parts_x", (double)fine->cuboid.parts[X]);
    outcome_add_metric(outcome, "parts_y", (double)fine->cuboid.parts[Y]);
    outcome_add_metric(outcome, "parts_z", (double)fine->cuboid.parts[Z]);
}

static void free_level(struct level *level) {
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < SIDES; side++) {
            MPI_Type_free(&level->wall[axis][side]);
            MPI_Type_free(&level->ghost[axis][side]);
        }
    free(level->matrix);
    free(level->x);
    free(level->r);
    free(level->ax);
}

static void finish(const struct world *world) {
    (void)world;
    for (int number = 0; number < LEVELS; number++)
        free_level(&levels[number]);
    MPI_Op_free(&wide_sum);
    MPI_Type_free(&wide_type);
    double *const vectors[] = {solution, right_side, rest, direction, product, corrected};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        free(vectors[i]);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "cg",
        .title = "Conjugate gradient with a multigrid preconditioner on a 27-point stencil.",
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
