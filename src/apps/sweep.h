/* Message sizes in powers of two: from the first, doubled, up to the last; and bytes that show a fault. */
#ifndef TARE_SWEEP_H
#define TARE_SWEEP_H

#include "harness/harness.h"

#include <inttypes.h>
#include <stdio.h>

/* 1 B to 1 GiB */
enum { SWEEP_SIZES = 31 };

static inline int sweep_count(int64_t first_bytes, int64_t last_bytes) {
    int count = 1;
    for (int64_t bytes = first_bytes; bytes * 2 <= last_bytes; bytes *= 2)
        count++;
    return count;
}

static inline int64_t sweep_bytes(int64_t first_bytes, int number) { return first_bytes << number; }

/* "bandwidth_8B_MB_per_s": what, size and unit in one name. */
static inline void sweep_add_metric(struct outcome *outcome, const char *what, int64_t bytes,
                                    const char *unit, double value) {
    char name[sizeof outcome->metrics[0].name];
    snprintf(name, sizeof name, "%s_%" PRId64 "B_%s", what, bytes, unit);
    outcome_add_metric(outcome, name, value);
}

/* Knuth's MMIX generator; its high byte is random enough to show a byte in the wrong place, and messages with
 * different keys differ. */
static inline uint64_t sweep_next(uint64_t state) {
    return state * 6364136223846793005u + 1442695040888963407u;
}

static inline void sweep_fill(unsigned char *message, int64_t bytes, uint64_t key) {
    uint64_t state = sweep_next(key + 1);
    for (int64_t i = 0; i < bytes; i++) {
        state = sweep_next(state);
        message[i] = (unsigned char)(state >> 56);
    }
}

static inline int64_t sweep_wrong_bytes(const unsigned char *message, int64_t bytes, uint64_t key) {
    uint64_t state = sweep_next(key + 1);
    int64_t wrong = 0;
    for (int64_t i = 0; i < bytes; i++) {
        state = sweep_next(state);
        wrong += message[i] != (unsigned char)(state >> 56);
    }
    return wrong;
}

#endif
