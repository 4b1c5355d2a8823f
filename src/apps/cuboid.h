/* A three-dimensional grid cut into cuboids, one for each rank: of all ways to cut it for this number of
 * ranks, the one with the least exchanged area. */
#ifndef TARE_CUBOID_H
#define TARE_CUBOID_H

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { X, Y, Z, AXES };
enum { LOW, HIGH, SIDES };

struct cuboid {
    int64_t parts[AXES];        /* cuboids along each axis */
    int64_t first[AXES];        /* cells before this one */
    int64_t size[AXES];         /* its cells */
    int neighbour[AXES][SIDES]; /* ranks; MPI_PROC_NULL beyond the grid */
};

/* Cells on both sides of all cuts, counted once: half of what one step exchanges. */
static inline double cuboid_exchanged_area(const int64_t grid[static AXES],
                                           const int64_t parts[static AXES]) {
    double area = 0;
    for (int axis = 0; axis < AXES; axis++)
        area += (double)(parts[axis] - 1) * (double)grid[(axis + 1) % AXES] * (double)grid[(axis + 2) % AXES];
    return area;
}

/* Of equally good ones the one with most cuts in x, whose walls are contiguous; false if there is none. */
static inline bool cuboid_choose_parts(struct cuboid *cuboid, const int64_t grid[static AXES],
                                       int64_t ranks) {
    double least = INFINITY;
    for (int64_t x = ranks; x >= 1; x--) {
        for (int64_t y = ranks / x; ranks % x == 0 && y >= 1; y--) {
            int64_t parts[AXES] = {x, y, ranks / x / y};
            bool fits = ranks / x % y == 0 && x <= grid[X] && y <= grid[Y] && parts[Z] <= grid[Z];
            if (fits && cuboid_exchanged_area(grid, parts) < least) {
                least = cuboid_exchanged_area(grid, parts);
                memcpy(cuboid->parts, parts, sizeof parts);
            }
        }
    }
    return isfinite(least);
}

static inline int cuboid_rank_at(const struct cuboid *cuboid, const int64_t place[static AXES]) {
    for (int axis = 0; axis < AXES; axis++)
        if (place[axis] < 0 || place[axis] >= cuboid->parts[axis])
            return MPI_PROC_NULL;
    return (int)((place[X] * cuboid->parts[Y] + place[Y]) * cuboid->parts[Z] + place[Z]);
}

/* Needs parts; fills in the rest. */
static inline void cuboid_find(struct cuboid *cuboid, const int64_t grid[static AXES], int64_t rank) {
    const int64_t *parts = cuboid->parts;
    int64_t place[AXES] = {rank / parts[Z] / parts[Y], rank / parts[Z] % parts[Y], rank % parts[Z]};
    for (int axis = 0; axis < AXES; axis++) {
        cuboid->first[axis] = grid[axis] * place[axis] / parts[axis];
        cuboid->size[axis] = grid[axis] * (place[axis] + 1) / parts[axis] - cuboid->first[axis];
        for (int side = 0; side < SIDES; side++) {
            int64_t beside[AXES] = {place[X], place[Y], place[Z]};
            beside[axis] += side == LOW ? -1 : 1;
            cuboid->neighbour[axis][side] = cuboid_rank_at(cuboid, beside);
        }
    }
}

#endif
