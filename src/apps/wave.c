/* wave: seismic waves by finite differences in three dimensions, in the manner of Ondes3D.
 *
 * Velocity and stress on a staggered grid, fourth order in space and second in time (A. Levander, Geophysics
 * 53 (1988) 1425), a point force in the middle, absorbing layers on all six sides (convolutional PML:
 * D. Komatitsch, R. Martin, Geophysics 72 (2007) SM155) whose cells cost more, so that ranks at the boundary
 * have more to do. The grid, layers included, is cut into cuboids; after each half of a step every field goes
 * to its neighbours in a message of its own, 36 per inner rank and step, none blocking. The default is small;
 * --grid 400x400x200 is of the size of a regional earthquake at 100 m. Measures: memory bandwidth with many
 * arrays, many messages of small and medium size, a mild imbalance. Does not measure: overlap of messages and
 * arithmetic, real rock (the medium is homogeneous), output.
 *
 * Proof: two seismograms, one where the force sends only P waves and one where S waves rule, are compared
 * with the exact solution in an endless medium (Stokes; K. Aki, P. Richards, Quantitative Seismology, 4.23),
 * near field included: 2 % of its peak are allowed for the numerical dispersion at 12 cells per wavelength
 * (0.8 % are seen 30 cells away). The peaks, if they fall into the run, arrive when the wave speeds say,
 * within one step. And `checksum`, over the bits of both seismograms and of all velocities at the end, is the
 * same whatever the ranks.
 */
#include "cuboid.h"
#include "harness/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum field { VX, VY, VZ, SXX, SYY, SZZ, SXY, SXZ, SYZ, FIELDS, NONE };
enum { HALO = 2, TERMS = 9, TARGETS = 3, MESSAGES_PER_HALF = 3 * AXES * SIDES * 2 };
enum { FARTHEST_RECEIVER = 30 };
enum { P_WAVE, S_WAVE, RECEIVERS };

static int64_t grid[AXES] = {64, 64, 64}, steps = 300, layer = 10;

static const struct option options[] = {
    {"grid", OPTION_SIZES, grid, 16, 100000, "cells in each direction, inside the absorbing layers"},
    {"steps", OPTION_INTEGER, &steps, 1, 1e6, "time steps"},
    {"layer", OPTION_INTEGER, &layer, 4, 100, "cells of an absorbing layer across"},
};

/* SI units. The force is a Gaussian pulse whose spectrum falls to 1/e at `frequency`. */
static const double cell_m = 100.0, p_speed = 3464.0, s_speed = 2000.0, density = 2500.0, force_N = 1e14;
static const double pi = 3.14159265358979323846;
#define frequency (s_speed / (12.0 * cell_m))
#define time_step (0.4 * cell_m / p_speed)
#define pulse_centre_s (1.2 / frequency)

static struct cuboid cuboid; /* of the grid with its layers */
static int64_t whole[AXES], row, plane;
static double *fields[FIELDS];
static double *seismogram[RECEIVERS]; /* vz at each step; of all ranks on rank 0 */
static MPI_Datatype wall[AXES][SIDES], ghost[AXES][SIDES];

/* ---- the equations ---- */

/* What a derivative is multiplied with before it is added to a field. */
enum weight { BUOYANCY, STIFFNESS, LAME, SHEAR, WEIGHTS };
static double weights[WEIGHTS];

/* One derivative and where it goes: `forward` ones lie half a cell behind the source's place. */
struct term {
    int axis;
    bool forward;
    enum field source, targets[TARGETS];
    enum weight weights[TARGETS];
};

static const struct term velocity_terms[TERMS] = {
    {X, true, SXX, {VX, NONE, NONE}, {BUOYANCY}},  {X, false, SXY, {VY, NONE, NONE}, {BUOYANCY}},
    {X, false, SXZ, {VZ, NONE, NONE}, {BUOYANCY}}, {Y, false, SXY, {VX, NONE, NONE}, {BUOYANCY}},
    {Y, true, SYY, {VY, NONE, NONE}, {BUOYANCY}},  {Y, false, SYZ, {VZ, NONE, NONE}, {BUOYANCY}},
    {Z, false, SXZ, {VX, NONE, NONE}, {BUOYANCY}}, {Z, false, SYZ, {VY, NONE, NONE}, {BUOYANCY}},
    {Z, true, SZZ, {VZ, NONE, NONE}, {BUOYANCY}},
};

static const struct term stress_terms[TERMS] = {
    {X, false, VX, {SXX, SYY, SZZ}, {STIFFNESS, LAME, LAME}},
    {X, true, VY, {SXY, NONE, NONE}, {SHEAR}},
    {X, true, VZ, {SXZ, NONE, NONE}, {SHEAR}},
    {Y, true, VX, {SXY, NONE, NONE}, {SHEAR}},
    {Y, false, VY, {SYY, SXX, SZZ}, {STIFFNESS, LAME, LAME}},
    {Y, true, VZ, {SYZ, NONE, NONE}, {SHEAR}},
    {Z, true, VX, {SXZ, NONE, NONE}, {SHEAR}},
    {Z, true, VY, {SYZ, NONE, NONE}, {SHEAR}},
    {Z, false, VZ, {SZZ, SXX, SYY}, {STIFFNESS, LAME, LAME}},
};

static double *memory[2][TERMS][SIDES];        /* of the layers: what a derivative there was before */
static double *gain[AXES][2], *decay[AXES][2]; /* by place along the axis; of backward and forward ones */

static inline double forward(const double *f, int64_t stride) {
    return 9.0 / 8.0 * (f[stride] - f[0]) - 1.0 / 24.0 * (f[2 * stride] - f[-stride]);
}

static inline double backward(const double *f, int64_t stride) {
    return 9.0 / 8.0 * (f[0] - f[-stride]) - 1.0 / 24.0 * (f[stride] - f[-2 * stride]);
}

static int64_t cell_at(int64_t x, int64_t y, int64_t z) {
    return (x + HALO) * plane + (y + HALO) * row + z + HALO;
}

static int64_t stride_of(int axis) { return axis == X ? plane : axis == Y ? row : 1; }

/* ---- setup ---- */

static const char *refuse(const struct world *world) {
    int64_t halved[AXES]; /* no cuboid may be narrower than what its neighbour wants of it */
    for (int axis = 0; axis < AXES; axis++) {
        whole[axis] = grid[axis] + 2 * layer;
        halved[axis] = whole[axis] / HALO;
    }
    return cuboid_choose_parts(&cuboid, halved, world->size)
               ? NULL
               : "too many for the grid: some cuboid would be less than two cells wide";
}

static MPI_Datatype layer_type(int axis, int64_t first) {
    int all[AXES], part[AXES], start[AXES];
    MPI_Datatype type;
    for (int i = 0; i < AXES; i++) {
        all[i] = (int)cuboid.size[i] + 2 * HALO;
        part[i] = i == axis ? HALO : (int)cuboid.size[i];
        start[i] = i == axis ? (int)first : HALO;
    }
    MPI_Type_create_subarray(AXES, all, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Cells along an axis from `from` up to `to` in the layer on that side, as local places. */
static void layer_range(int axis, int side, int64_t *from, int64_t *to) {
    int64_t first = cuboid.first[axis], end = first + cuboid.size[axis];
    int64_t layer_first = side == LOW ? 0 : whole[axis] - layer;
    int64_t layer_end = side == LOW ? layer : whole[axis];
    *from = (layer_first > first ? layer_first : first) - first;
    *to = (layer_end < end ? layer_end : end) - first;
    *to = *to > *from ? *to : *from;
}

/* Cells deep in the layer, 0 at its inner edge, which lies between two cells. */
static double depth_at(int axis, double place) {
    double low = (double)layer - 0.5 - place, high = place - (double)(whole[axis] - layer) + 0.5;
    return fmax(fmax(low, high), 0.0);
}

/* Reflects one part in ten thousand head-on; damping grows with the square of the depth. */
static void make_profile(int axis, bool half) {
    double damping_at_end = 1.5 * p_speed * log(1e4) / ((double)layer * cell_m);
    gain[axis][half] = harness_allocate((size_t)cuboid.size[axis], sizeof(double));
    decay[axis][half] = harness_allocate((size_t)cuboid.size[axis], sizeof(double));
    for (int64_t i = 0; i < cuboid.size[axis]; i++) {
        double part = depth_at(axis, (double)(cuboid.first[axis] + i) + (half ? 0.5 : 0.0)) / (double)layer;
        double damping = damping_at_end * part * part, shift = pi * frequency * fmax(1.0 - part, 0.0);
        decay[axis][half][i] = exp(-(damping + shift) * time_step);
        gain[axis][half][i] = part > 0.0 ? damping / (damping + shift) * (decay[axis][half][i] - 1.0) : 0.0;
    }
}

static int64_t layer_cells(int axis, int side) {
    int64_t from, to;
    layer_range(axis, side, &from, &to);
    return (to - from) * cuboid.size[(axis + 1) % AXES] * cuboid.size[(axis + 2) % AXES];
}

static void make_memory(void) {
    for (int i = 0; i < TERMS; i++)
        for (int side = 0; side < SIDES; side++) {
            memory[0][i][side] =
                harness_allocate((size_t)layer_cells(velocity_terms[i].axis, side), sizeof(double));
            memory[1][i][side] =
                harness_allocate((size_t)layer_cells(stress_terms[i].axis, side), sizeof(double));
        }
}

static void setup(const struct world *world) {
    cuboid_find(&cuboid, whole, world->rank);
    row = cuboid.size[Z] + 2 * HALO;
    plane = (cuboid.size[Y] + 2 * HALO) * row;
    double shear_modulus = density * s_speed * s_speed;
    double lame = density * p_speed * p_speed - 2.0 * shear_modulus;
    weights[BUOYANCY] = time_step / cell_m / density;
    weights[STIFFNESS] = time_step / cell_m * (lame + 2.0 * shear_modulus);
    weights[LAME] = time_step / cell_m * lame;
    weights[SHEAR] = time_step / cell_m * shear_modulus;
    for (int axis = 0; axis < AXES; axis++) {
        wall[axis][LOW] = layer_type(axis, HALO);
        wall[axis][HIGH] = layer_type(axis, cuboid.size[axis]);
        ghost[axis][LOW] = layer_type(axis, 0);
        ghost[axis][HIGH] = layer_type(axis, cuboid.size[axis] + HALO);
        make_profile(axis, false);
        make_profile(axis, true);
    }
    for (int field = 0; field < FIELDS; field++) {
        size_t cells = (size_t)((cuboid.size[X] + 2 * HALO) * plane);
        fields[field] = harness_allocate(cells, sizeof(double));
        memset(fields[field], 0, cells * sizeof(double)); /* the timed part finds its memory there */
    }
    for (int receiver = 0; receiver < RECEIVERS; receiver++)
        seismogram[receiver] = harness_allocate((size_t)steps, sizeof(double));
    make_memory();
}

/* ---- source and receivers ---- */

static double force_at(double t) {
    double phase = pi * frequency * (t - pulse_centre_s);
    return force_N * exp(-phase * phase);
}

/* Of a receiver from the source, in cells: along the force for P waves, across it for S waves. */
static int64_t distance(void) {
    int64_t shortest = grid[X];
    for (int axis = Y; axis < AXES; axis++)
        shortest = grid[axis] < shortest ? grid[axis] : shortest;
    return shortest / 2 - 2 < FARTHEST_RECEIVER ? shortest / 2 - 2 : FARTHEST_RECEIVER;
}

/* A cell by its distance from the source; NULL if it is another rank's. */
static double *vz_beside_source(int64_t x, int64_t z) {
    int64_t place[AXES] = {whole[X] / 2 + x, whole[Y] / 2, whole[Z] / 2 + z};
    for (int axis = 0; axis < AXES; axis++) {
        place[axis] -= cuboid.first[axis];
        if (place[axis] < 0 || place[axis] >= cuboid.size[axis])
            return NULL;
    }
    return fields[VZ] + cell_at(place[X], place[Y], place[Z]);
}

static void push(int64_t step) {
    double *source = vz_beside_source(0, 0);
    if (source != NULL)
        *source += time_step / (density * cell_m * cell_m * cell_m) * force_at((double)step * time_step);
}

static void record(int64_t step) {
    const double *at[RECEIVERS] = {[P_WAVE] = vz_beside_source(0, distance()),
                                   [S_WAVE] = vz_beside_source(distance(), 0)};
    for (int receiver = 0; receiver < RECEIVERS; receiver++)
        if (at[receiver] != NULL)
            seismogram[receiver][step] = *at[receiver];
}

/* ---- one step ---- */

static void update_velocity_row(int64_t cell) {
    double *restrict vx = fields[VX] + cell, *restrict vy = fields[VY] + cell,
                     *restrict vz = fields[VZ] + cell;
    const double *sxx = fields[SXX] + cell, *syy = fields[SYY] + cell, *szz = fields[SZZ] + cell;
    const double *sxy = fields[SXY] + cell, *sxz = fields[SXZ] + cell, *syz = fields[SYZ] + cell;
    double weight = weights[BUOYANCY];
    for (int64_t z = 0; z < cuboid.size[Z]; z++) {
        vx[z] += weight * (forward(sxx + z, plane) + backward(sxy + z, row) + backward(sxz + z, 1));
        vy[z] += weight * (backward(sxy + z, plane) + forward(syy + z, row) + backward(syz + z, 1));
        vz[z] += weight * (backward(sxz + z, plane) + backward(syz + z, row) + forward(szz + z, 1));
    }
}

static void update_stress_row(int64_t cell) {
    const double *vx = fields[VX] + cell, *vy = fields[VY] + cell, *vz = fields[VZ] + cell;
    double *restrict sxx = fields[SXX] + cell, *restrict syy = fields[SYY] + cell;
    double *restrict szz = fields[SZZ] + cell, *restrict sxy = fields[SXY] + cell;
    double *restrict sxz = fields[SXZ] + cell, *restrict syz = fields[SYZ] + cell;
    double stiffness = weights[STIFFNESS], lame = weights[LAME], shear = weights[SHEAR];
    for (int64_t z = 0; z < cuboid.size[Z]; z++) {
        double xx = backward(vx + z, plane), yy = backward(vy + z, row), zz = backward(vz + z, 1);
        sxx[z] += stiffness * xx + lame * (yy + zz);
        syy[z] += stiffness * yy + lame * (xx + zz);
        szz[z] += stiffness * zz + lame * (xx + yy);
        sxy[z] += shear * (forward(vx + z, row) + forward(vy + z, plane));
        sxz[z] += shear * (forward(vx + z, 1) + forward(vz + z, plane));
        syz[z] += shear * (forward(vy + z, 1) + forward(vz + z, row));
    }
}

/* Along z, from a cell: each remembers, and adds what it remembers. Returns the memory behind the row's. */
static double *absorb_row(const struct term *term, double *remembered, int64_t cell, int64_t count,
                          const double *gains, const double *decays, int64_t along) {
    const double *source = fields[term->source] + cell;
    int64_t stride = stride_of(term->axis);
    for (int64_t z = 0; z < count; z++) {
        double slope = term->forward ? forward(source + z, stride) : backward(source + z, stride);
        remembered[z] = decays[z * along] * remembered[z] + gains[z * along] * slope;
    }
    for (int i = 0; i < TARGETS && term->targets[i] != NONE; i++) {
        double *target = fields[term->targets[i]] + cell, weight = weights[term->weights[i]];
        for (int64_t z = 0; z < count; z++)
            target[z] += weight * remembered[z];
    }
    return remembered + count;
}

static void absorb_side(const struct term *term, int side, double *remembered) {
    int64_t from[AXES] = {0, 0, 0}, to[AXES] = {cuboid.size[X], cuboid.size[Y], cuboid.size[Z]};
    int axis = term->axis;
    layer_range(axis, side, &from[axis], &to[axis]);
    for (int64_t x = from[X]; x < to[X]; x++)
        for (int64_t y = from[Y]; y < to[Y]; y++) {
            int64_t place = axis == X ? x : axis == Y ? y : from[Z];
            remembered =
                absorb_row(term, remembered, cell_at(x, y, from[Z]), to[Z] - from[Z],
                           gain[axis][term->forward] + place, decay[axis][term->forward] + place, axis == Z);
        }
}

static void absorb(const struct term *terms, double *remembered[TERMS][SIDES]) {
    for (int i = 0; i < TERMS; i++)
        for (int side = 0; side < SIDES; side++)
            absorb_side(&terms[i], side, remembered[i][side]);
}

/* The next half step takes this axis' derivatives of these fields only. */
static void exchange(const struct term *next_terms) {
    MPI_Request requests[MESSAGES_PER_HALF];
    int count = 0;
    for (int i = 0; i < TERMS; i++) {
        int axis = next_terms[i].axis;
        double *field = fields[next_terms[i].source];
        for (int side = 0; side < SIDES; side++) {
            int neighbour = cuboid.neighbour[axis][side], opposite = SIDES - 1 - side;
            MPI_Irecv(field, 1, ghost[axis][side], neighbour, SIDES * i + opposite, MPI_COMM_WORLD,
                      &requests[count++]);
            MPI_Isend(field, 1, wall[axis][side], neighbour, SIDES * i + side, MPI_COMM_WORLD,
                      &requests[count++]);
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void update(void (*update_row)(int64_t cell)) {
    for (int64_t x = 0; x < cuboid.size[X]; x++)
        for (int64_t y = 0; y < cuboid.size[Y]; y++)
            update_row(cell_at(x, y, 0));
}

static void run(const struct world *world) {
    (void)world;
    for (int64_t step = 0; step < steps; step++) {
        update(update_velocity_row);
        absorb(velocity_terms, memory[0]);
        push(step);
        record(step);
        exchange(stress_terms);
        update(update_stress_row);
        absorb(stress_terms, memory[1]);
        exchange(velocity_terms);
    }
}

/* ---- proof ---- */

/* The time derivative of the force. */
static double force_rate_at(double t) {
    double angular = pi * frequency;
    return -2.0 * angular * angular * (t - pulse_centre_s) * force_at(t);
}

/* The near field's integral of tau F'(t - tau) between the two arrivals, by Simpson's rule. */
static double near_field(double t, double p_time, double s_time) {
    enum { INTERVALS = 200 };
    double width = (s_time - p_time) / INTERVALS, sum = 0;
    for (int i = 0; i <= INTERVALS; i++) {
        double tau = p_time + width * i;
        sum += (i == 0 || i == INTERVALS ? 1.0 : i % 2 != 0 ? 4.0 : 2.0) * tau * force_rate_at(t - tau);
    }
    return sum * width / 3.0;
}

/* Velocity along the force, on its axis (P_WAVE) or across it (S_WAVE). */
static double exact(int receiver, double t) {
    double r = (double)distance() * cell_m, p_time = r / p_speed, s_time = r / s_speed;
    double near = near_field(t, p_time, s_time) / (r * r);
    double sum = receiver == P_WAVE ? 2.0 * near + force_rate_at(t - p_time) / (p_speed * p_speed)
                                    : -near + force_rate_at(t - s_time) / (s_speed * s_speed);
    return sum / (4.0 * pi * density * r);
}

/* Velocities are half a step ahead of stresses and force. */
static double time_of(double step) { return (step + 0.5) * time_step; }

/* The step of the greatest value, between steps by the parabola through three; -1 if it lies at an end. */
static double peak_step(const double *values, int64_t count) {
    int64_t top = 0;
    for (int64_t i = 1; i < count; i++)
        top = values[i] > values[top] ? i : top;
    if (top == 0 || top == count - 1)
        return -1.0;
    double before = values[top - 1], after = values[top + 1];
    return (double)top + 0.5 * (before - after) / (before - 2.0 * values[top] + after);
}

struct comparison {
    double departure;                  /* the largest, as a part of the exact solution's peak */
    double arrival_s, exact_arrival_s; /* of the peaks; negative if it is not within the run */
};

static struct comparison compare(int receiver) {
    struct comparison found = {0.0, -1.0, -1.0};
    double peak = 0, *expected = harness_allocate((size_t)steps, sizeof(double));
    double last = 2.0 * pulse_centre_s + (double)distance() * cell_m / s_speed; /* when all has passed */
    for (double t = 0; t < last; t += time_step)
        peak = fmax(peak, fabs(exact(receiver, t)));
    for (int64_t step = 0; step < steps; step++) {
        expected[step] = exact(receiver, time_of((double)step));
        double departure = fabs(seismogram[receiver][step] - expected[step]) / peak;
        if (!(departure <= found.departure)) /* true for a NaN */
            found.departure = isnan(departure) ? INFINITY : departure;
    }
    double top = peak_step(expected, steps);
    if (top >= 0.0 && time_of((double)steps) > last) {
        found.exact_arrival_s = time_of(top);
        found.arrival_s = time_of(peak_step(seismogram[receiver], steps));
    }
    free(expected);
    return found;
}

/* splitmix64's finalizer (G. Steele et al., OOPSLA 2014) */
static uint64_t mix(uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static uint64_t checksum_term(uint64_t place, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mix(bits ^ mix(place));
}

/* A sum, so that the order of the cells does not matter; each term knows its place. */
static uint64_t velocity_checksum(void) {
    uint64_t sum = 0;
    for (int64_t x = 0; x < cuboid.size[X]; x++)
        for (int64_t y = 0; y < cuboid.size[Y]; y++)
            for (int64_t z = 0; z < cuboid.size[Z]; z++) {
                int64_t place =
                    ((cuboid.first[X] + x) * whole[Y] + cuboid.first[Y] + y) * whole[Z] + cuboid.first[Z] + z;
                for (int field = VX; field <= VZ; field++)
                    sum += checksum_term((uint64_t)(place * 3 + field), fields[field][cell_at(x, y, z)]);
            }
    return sum;
}

static void gather(uint64_t *checksum, const struct world *world) {
    *checksum = velocity_checksum();
    MPI_Allreduce(MPI_IN_PLACE, checksum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int receiver = 0; receiver < RECEIVERS; receiver++) {
        double *values = seismogram[receiver];
        /* zeros where the receiver is another rank's: an exact sum */
        MPI_Reduce(world->rank == 0 ? MPI_IN_PLACE : values, values, (int)steps, MPI_DOUBLE, MPI_SUM, 0,
                   MPI_COMM_WORLD);
        for (int64_t i = 0; i < steps; i++)
            *checksum += checksum_term(~(uint64_t)(RECEIVERS * i + receiver), values[i]);
    }
}

/* Damages the S wave's seismogram by 1 m/s: of the order of its peak. */
static void spoil(const struct world *world) {
    if (world->rank == 0)
        seismogram[S_WAVE][steps - 1] += 1.0;
}

static void judge_arrivals(const struct comparison found[static RECEIVERS], struct outcome *outcome) {
    for (int receiver = 0; receiver < RECEIVERS; receiver++)
        if (fabs(found[receiver].arrival_s - found[receiver].exact_arrival_s) > time_step)
            snprintf(outcome->fault, sizeof outcome->fault,
                     "the %c wave's peak came at %.4f s instead of %.4f s", receiver == P_WAVE ? 'P' : 'S',
                     found[receiver].arrival_s, found[receiver].exact_arrival_s);
}

/* How uneven the layers make the work, in cells of layers, counted once for each layer they are in. */
static void add_layer_metrics(struct outcome *outcome) {
    int64_t own = 0, least, most;
    for (int axis = 0; axis < AXES; axis++)
        own += layer_cells(axis, LOW) + layer_cells(axis, HIGH);
    MPI_Allreduce(&own, &least, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&own, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    outcome_add_metric(outcome, "layer_cells_of_least_busy_rank", (double)least);
    outcome_add_metric(outcome, "layer_cells_of_busiest_rank", (double)most);
}

static void check(const struct world *world, struct outcome *outcome) {
    uint64_t checksum;
    gather(&checksum, world);
    add_layer_metrics(outcome);
    if (world->rank != 0)
        return;
    struct comparison found[RECEIVERS] = {compare(P_WAVE), compare(S_WAVE)};
    outcome->value = outcome->error = fmax(found[P_WAVE].departure, found[S_WAVE].departure);
    outcome->tolerance = 0.02;
    snprintf(outcome->checksum, sizeof outcome->checksum, "%016" PRIx64, checksum);
    judge_arrivals(found, outcome);
    outcome_add_metric(outcome, "p_departure", found[P_WAVE].departure);
    outcome_add_metric(outcome, "s_departure", found[S_WAVE].departure);
    if (found[P_WAVE].arrival_s > 0) {
        outcome_add_metric(outcome, "p_arrival_s", found[P_WAVE].arrival_s);
        outcome_add_metric(outcome, "p_arrival_exact_s", found[P_WAVE].exact_arrival_s);
        outcome_add_metric(outcome, "s_arrival_s", found[S_WAVE].arrival_s);
        outcome_add_metric(outcome, "s_arrival_exact_s", found[S_WAVE].exact_arrival_s);
    }
    for (int axis = 0; axis < AXES; axis++)
        outcome_add_metric(outcome, (const char *[]){"parts_x", "parts_y", "parts_z"}[axis],
                           (double)cuboid.parts[axis]);
}

static void finish(const struct world *world) {
    (void)world;
    for (int axis = 0; axis < AXES; axis++)
        for (int i = 0; i < 2; i++) {
            MPI_Type_free(&wall[axis][i]);
            MPI_Type_free(&ghost[axis][i]);
            free(gain[axis][i]);
            free(decay[axis][i]);
        }
    for (int i = 0; i < TERMS; i++)
        for (int side = 0; side < SIDES; side++) {
            free(memory[0][i][side]);
            free(memory[1][i][side]);
        }
    for (int field = 0; field < FIELDS; field++)
        free(fields[field]);
    for (int receiver = 0; receiver < RECEIVERS; receiver++)
        free(seismogram[receiver]);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "wave",
        .title = "Seismic waves by finite differences, velocity and stress on a staggered grid.",
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
