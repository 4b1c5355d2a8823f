/* The sum that dac and masterslave integrate with: 1/(1+x) at equidistant points.
 *
 * The inner loop is the plain arithmetic of the published programs: a multiplication, two additions, a
 * division and an addition per point. Two things are done for the answer, neither at a cost that shows. The
 * points go to LANES sums in turn, so that -O3 can vectorise the loop without reordering an addition: every
 * flag set computes the same bits. And the blocks of points are added up with Neumaier's compensation, since
 * 5e11 numbers added one by one to one variable would lose half of its digits. */
#ifndef TARE_RECIPROCAL_H
#define TARE_RECIPROCAL_H

#include <float.h>
#include <math.h>
#include <stdint.h>

enum { LANES = 256, BLOCK_ROWS = 128, BLOCK_POINTS = LANES * BLOCK_ROWS };

/* Bound for the sum: an addition per row and per lane, and a point's own arithmetic, half an epsilon each. */
#define RECIPROCAL_SUM_RELATIVE_ERROR ((BLOCK_ROWS + LANES + 16) * 0.5 * DBL_EPSILON)

/* f'(upper) - f'(lower) of f = 1/(1+x). As the derivatives of f alternate in sign, the first term of the
 * Euler-Maclaurin formula bounds the error of the trapezoid rule, h^2/12 times this, and of the midpoint
 * rule, half of that. */
static inline double reciprocal_slope_rise(double lower, double upper) {
    return 1.0 / ((1.0 + lower) * (1.0 + lower)) - 1.0 / ((1.0 + upper) * (1.0 + upper));
}

struct compensated {
    double sum, correction;
};

/* A. Neumaier, ZAMM 54 (1974) 39: the part of the smaller addend that did not fit is kept. */
static inline void compensated_add(struct compensated *total, double addend) {
    double sum = total->sum + addend;
    if (fabs(total->sum) >= fabs(addend))
        total->correction += (total->sum - sum) + addend;
    else
        total->correction += (addend - sum) + total->sum;
    total->sum = sum;
}

/* lanes[j] += 1/(1+x), x = origin + step * j */
static inline void reciprocal_row(double *lanes, double origin, double step, int points) {
    for (int j = 0; j < points; j++)
        lanes[j] += 1.0 / (1.0 + (origin + step * j));
}

/* Sum of 1/(1+x) over x = origin + step * j, j = 0 .. points-1 < BLOCK_POINTS. */
static inline double reciprocal_block(double origin, double step, int points) {
    double lanes[LANES] = {0}, sum = 0;
    int done = 0;
    for (; done + LANES <= points; done += LANES)
        reciprocal_row(lanes, origin + step * done, step, LANES);
    reciprocal_row(lanes, origin + step * done, step, points - done);
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

/* Sum of 1/(1+x) over x = start + step * (first + j), j = 0 .. points-1; first may be a half. Threads compute
 * blocks; they are added up in their order, whoever computed them. */
static inline double reciprocal_sum(double start, double step, double first, int64_t points) {
    enum { STRIP_BLOCKS = 1024 };
    const int64_t strip_points = (int64_t)STRIP_BLOCKS * BLOCK_POINTS;
    double sums[STRIP_BLOCKS];
    struct compensated total = {0, 0};
    for (int64_t strip = 0; strip < points; strip += strip_points) {
        int64_t left = points - strip < strip_points ? points - strip : strip_points;
        int blocks = (int)((left + BLOCK_POINTS - 1) / BLOCK_POINTS);
#pragma omp parallel for
        for (int i = 0; i < blocks; i++) {
            int64_t done = (int64_t)i * BLOCK_POINTS;
            int block = left - done < BLOCK_POINTS ? (int)(left - done) : BLOCK_POINTS;
            sums[i] = reciprocal_block(start + step * (first + (double)(strip + done)), step, block);
        }
        for (int i = 0; i < blocks; i++)
            compensated_add(&total, sums[i]);
    }
    return total.sum + total.correction;
}

#endif
