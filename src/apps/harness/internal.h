/* What the harness's own files share; apps include harness.h only. */
#ifndef TARE_HARNESS_INTERNAL_H
#define TARE_HARNESS_INTERNAL_H

#include "harness.h"

#include <mpi.h>

/* What the command line asks of the harness itself. */
struct demand {
    bool spoil; /* --inject_wrong_answer */
    bool osu;   /* --osu */
};

/* options.c: before MPI_Init, so that a mistake costs one clear line. */
struct demand options_parse(const struct app *app, int argc, char **argv);

/* text.c: a growing piece of JSON. */
struct text {
    char *at;
    size_t length, capacity;
};
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_string(struct text *text, const char *string);
void text_add_number(struct text *text, double number);
void text_add_options(struct text *text, const struct app *app);

/* The harness's own communicator. A rank whose run is over may be in the harness's messages while another
 * still takes whatever comes to it in the app's: they must never meet. */
extern MPI_Comm harness_comm;

/* links.c: collective; the TCP connections between the ranks, on rank 0. */
struct links {
    struct link *at; /* all ranks' in the order of the ranks */
    int *start;      /* each rank's first one, and the end: size + 1 */
};
struct links links_gather(const struct world *world);
void links_add(struct text *text, const struct links *links, int rank);
void links_free(struct links *links);

/* sha256.c: of a file, as 64 hexadecimal digits; false if it cannot be read. */
enum { SHA256_TEXT_BYTES = 65 };
bool sha256_file(const char *path, char digest[static SHA256_TEXT_BYTES]);

/* proof.c: collective; rank 0 adds one object for each rank. */
void proof_add(struct text *text, const struct world *world);

#endif
