/* proof.so: loaded before a packaged program's libraries (LD_PRELOAD), it reports what our own programs
 * report.
 *
 * It stands between the program and MPI_Init and MPI_Finalize (MPI's profiling interface) and, when a rank
 * comes to MPI_Finalize, gathers the same proof with the same code as the apps' harness. Rank 0 writes one
 * JSON object to the file that TARE_PROOF names: the longest time from the end of MPI_Init to the begin of
 * MPI_Finalize over the ranks, and the proof. Nothing is added between the two, and stdout stays the
 * program's.
 *
 * A program without MPI is asked when it exits (TARE_PROOF_WITHOUT_MPI=1): MPI then starts and ends only for
 * the proof, and the time is the process's, from loading to exit.
 *
 * Fortran's mpi_init and mpi_finalize do not go through C's MPI_Init, so they are here too; a program that
 * uses the mpi_f08 module's own entry points is not seen and leaves no proof, which is a failed repeat. */
#include "../apps/harness/internal.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double begin_s;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void begin(void) {
    PMPI_Comm_dup(MPI_COMM_WORLD, &harness_comm);
    begin_s = now();
}

static void write_report(const struct text *text) {
    const char *path = getenv("TARE_PROOF");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file == NULL || fwrite(text->at, 1, text->length, file) != text->length || fclose(file) != 0)
        fprintf(stderr, "proof.so: error: TARE_PROOF: '%s' cannot be written: %s\n", path != NULL ? path : "",
                strerror(errno));
}

/* Collective. */
static void report(double end_s) {
    struct world world;
    struct text text = {0};
    double seconds = end_s - begin_s, longest = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world.size);
    PMPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, harness_comm);
    text_add(&text, "{\"app_s\":%.9f,\"proof\":[", longest);
    proof_add(&text, &world);
    text_add(&text, "]}\n");
    if (world.rank == 0)
        write_report(&text);
    free(text.at);
    PMPI_Comm_free(&harness_comm);
}

int MPI_Init(int *argc, char ***argv) {
    int code = PMPI_Init(argc, argv);
    begin();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, required, provided);
    begin();
    return code;
}

int MPI_Finalize(void) {
    report(now());
    return PMPI_Finalize();
}

void mpi_init_(MPI_Fint *code);
void mpi_init_(MPI_Fint *code) { *code = MPI_Init(NULL, NULL); }

void mpi_init_thread_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *code);
void mpi_init_thread_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *code) {
    *code = MPI_Init_thread(NULL, NULL, *required, provided);
}

void mpi_finalize_(MPI_Fint *code);
void mpi_finalize_(MPI_Fint *code) { *code = MPI_Finalize(); }

static void prove_without_mpi(void) {
    double end_s = now();
    PMPI_Init(NULL, NULL);
    PMPI_Comm_dup(MPI_COMM_WORLD, &harness_comm);
    report(end_s);
    PMPI_Finalize();
}

__attribute__((constructor)) static void loaded(void) {
    const char *without = getenv("TARE_PROOF_WITHOUT_MPI");
    begin_s = now();
    if (without != NULL && strcmp(without, "1") == 0)
        atexit(prove_without_mpi);
}
