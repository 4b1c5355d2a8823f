/* What alltoall, alltoallv and bibw take from the OSU Micro-Benchmarks so that the numbers compare: sizes in
 * powers of two from 1 B, fewer iterations and warm-ups above 8 KiB, and the columns of the table. */
#ifndef TARE_OSU_H
#define TARE_OSU_H

#include "sweep.h"

#include <stdio.h>

enum { OSU_LARGE_MESSAGE_BYTES = 8192 };

struct osu {
    int64_t first_message_bytes, last_message_bytes;
    int64_t iterations, warmup;             /* of messages up to 8 KiB */
    int64_t large_iterations, large_warmup; /* of longer ones */
};

#define OSU_OPTIONS(osu)                                                                                     \
    {"first_message_bytes", OPTION_INTEGER, &(osu).first_message_bytes, 1, 1073741824, "smallest message"},  \
        {"last_message_bytes",                                                                               \
         OPTION_INTEGER,                                                                                     \
         &(osu).last_message_bytes,                                                                          \
         1,                                                                                                  \
         1073741824,                                                                                         \
         "largest message; the sizes between double"},                                                       \
        {"iterations", OPTION_INTEGER, &(osu).iterations, 1, 1e9, "timed, per size up to 8 KiB"},            \
        {"warmup", OPTION_INTEGER, &(osu).warmup, 0, 1e9, "untimed before them"},                            \
        {"large_iterations", OPTION_INTEGER, &(osu).large_iterations, 1, 1e9, "timed, per larger size"},     \
        {"large_warmup", OPTION_INTEGER, &(osu).large_warmup, 0, 1e9, "untimed before them"}

static inline int osu_size_count(const struct osu *osu) {
    return sweep_count(osu->first_message_bytes, osu->last_message_bytes);
}

static inline int64_t osu_bytes(const struct osu *osu, int number) {
    return sweep_bytes(osu->first_message_bytes, number);
}

static inline bool osu_is_large(const struct osu *osu, int number) {
    return osu_bytes(osu, number) > OSU_LARGE_MESSAGE_BYTES;
}

static inline int64_t osu_iterations(const struct osu *osu, int number) {
    return osu_is_large(osu, number) ? osu->large_iterations : osu->iterations;
}

static inline int64_t osu_warmup(const struct osu *osu, int number) {
    return osu_is_large(osu, number) ? osu->large_warmup : osu->warmup;
}

static inline void osu_print(const struct osu *osu, const char *title, const char *column,
                             const double *values) {
    printf("# Tare: %s\n%-10s%20s\n", title, "# Size", column);
    for (int number = 0; number < osu_size_count(osu); number++)
        printf("%-10" PRId64 "%20.2f\n", osu_bytes(osu, number), values[number]);
}

#endif
