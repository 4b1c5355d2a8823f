/* What the apps and the library that is loaded into packaged programs (src/launch/proof.c) both need. */
#include "internal.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

MPI_Comm harness_comm;

void *harness_allocate(size_t count, size_t bytes_each) {
    void *memory = calloc(count > 0 ? count : 1, bytes_each);
    if (memory == NULL) {
        fprintf(stderr, "%s: error: no memory for %zu x %zu bytes; choose smaller sizes or more ranks\n",
                program_invocation_short_name, count, bytes_each);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return memory;
}
