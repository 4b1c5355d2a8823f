/* The merge sort of dac: 64-bit keys, halves that differ by one key at most, one spare array.
 *
 * Two things make it fast. Merging runs from both ends at once, two chains of comparisons that do not wait
 * for each other; and what a comparison decides is a number to add, not a branch to guess. As neither half
 * is shorter than half of the whole (rounded down), that many steps from either end cannot leave it. */
#ifndef TARE_MERGESORT_H
#define TARE_MERGESORT_H

#include <stdint.h>
#include <string.h>

enum { INSERTION_KEYS = 24 };

/* Merges two sorted halves that lie one behind the other, of count/2 and count - count/2 keys. */
static inline void merge_halves(const uint64_t *restrict in, uint64_t *restrict out, int64_t count) {
    int64_t half = count / 2;
    const uint64_t *low_left = in, *low_right = in + half;
    const uint64_t *high_left = in + half - 1, *high_right = in + count - 1;
    for (int64_t i = 0; i < half; i++) {
        uint64_t left = *low_left, right = *low_right;
        int64_t takes_right = right < left;
        out[i] = takes_right ? right : left;
        low_right += takes_right;
        low_left += 1 - takes_right;
        left = *high_left;
        right = *high_right;
        int64_t takes_left = right < left;
        out[count - 1 - i] = takes_left ? left : right;
        high_left -= takes_left;
        high_right -= 1 - takes_left;
    }
    if (count % 2 != 0)
        out[half] = low_left <= high_left ? *low_left : *low_right;
}

static inline void insertion_sort(uint64_t *keys, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        int64_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Sorts what both arrays hold, the same keys in each, into the first. */
static inline void sort_twin(uint64_t *keys, uint64_t *twin, int64_t count) {
    if (count <= INSERTION_KEYS) {
        insertion_sort(keys, count);
        return;
    }
    sort_twin(twin, keys, count / 2);
    sort_twin(twin + count / 2, keys + count / 2, count - count / 2);
    merge_halves(twin, keys, count);
}

/* Sorts keys; spare is as long, what is in it is lost. */
static inline void merge_sort(uint64_t *keys, uint64_t *spare, int64_t count) {
    memcpy(spare, keys, (size_t)count * sizeof *keys);
    sort_twin(keys, spare, count);
}

#endif
