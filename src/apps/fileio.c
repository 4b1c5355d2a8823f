/* fileio: one file read and written, in sequence and at random, by fio under an MPI program.
 *
 * Each rank runs fio (Debian's, inside the container) on a file of its own, all at once; their bandwidths are
 * added up. --place tmp: the directory for temporary files (TMPDIR, else /tmp): in a Docker container its own
 * file system, under Singularity the node's /tmp, bound into it. --place shared: the directory of this
 * program, which is a bind mount of the site's shared file system in every container. Buffered, as programs
 * write; writes end with fsync, and each job asks the kernel to drop the file from its cache first (a tmpfs
 * has nothing to drop). Does not measure: metadata, many files, direct I/O. Proof: fio reports no error and
 * all bytes; the last job writes blocks with checksums, which fio reads back and verifies.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TMP, SHARED };
enum { RANDOM_WRITE, RANDOM_READ, SEQUENTIAL_READ, SEQUENTIAL_WRITE, JOBS };

static int64_t size_MiB = 64, block_KiB = 1024, random_block_KiB = 4;
static const char *const place_names[] = {"tmp", "shared", NULL};
static struct choice place = {place_names, TMP};

static const struct option options[] = {
    {"place", OPTION_CHOICE, &place, 0, 0, "where the file is"},
    {"size_MiB", OPTION_INTEGER, &size_MiB, 1, 1048576, "size of the file"},
    {"block_KiB", OPTION_INTEGER, &block_KiB, 1, 1024, "block of the sequential jobs"},
    {"random_block_KiB", OPTION_INTEGER, &random_block_KiB, 1, 1024, "block of the random jobs"},
};

static const struct job {
    const char *metric, *how; /* fio's words */
    bool random, writes;
} jobs[JOBS] = {
    [RANDOM_WRITE] = {"random_write_MB_per_s", "--rw=randwrite --end_fsync=1", true, true},
    [RANDOM_READ] = {"random_read_MB_per_s", "--rw=randread", true, false},
    [SEQUENTIAL_READ] = {"sequential_read_MB_per_s", "--rw=read", false, false},
    [SEQUENTIAL_WRITE] = {"sequential_write_MB_per_s",
                          "--rw=write --end_fsync=1 --verify=crc32c --do_verify=0", false, true},
};

static char path[PATH_MAX];
static double bandwidth_MB_per_s[JOBS];
static int64_t faults;

/* ---- fio ---- */

/* fio's numbers in its terse format, version 3 (fio(1), "Terse output"): fields counted from 1. */
enum { ERROR_FIELD = 5, READ_KIB_FIELD = 6, READ_BANDWIDTH_FIELD = 7, WRITE_KIB_FIELD = 47 };

static double field(const char *line, int number) {
    for (int at = 1; at < number && line != NULL; at++) {
        line = strchr(line, ';');
        line = line == NULL ? NULL : line + 1;
    }
    return line == NULL ? -1.0 : strtod(line, NULL);
}

/* Runs fio on the file; false when it fails. The line gets what it says. */
static bool run_fio(const char *how, int64_t KiB, char *line, int bytes) {
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command,
             "fio --name=tare --filename='%s' --size=%lldm --bs=%lldk --ioengine=psync --invalidate=1 "
             "--randseed=1 --verify_state_save=0 --output-format=terse --terse-version=3 %s 2>/dev/null",
             path, (long long)size_MiB, (long long)KiB, how);
    FILE *pipe = popen(command, "r");
    line[0] = '\0';
    while (pipe != NULL && fgets(line, bytes, pipe) != NULL && line[0] != '3')
        continue;
    return pipe != NULL && pclose(pipe) == 0 && field(line, ERROR_FIELD) == 0.0;
}

static void run_job(int number) {
    const struct job *job = &jobs[number];
    char line[8192];
    int first = job->writes ? WRITE_KIB_FIELD : READ_KIB_FIELD;
    bool right = run_fio(job->how, job->random ? random_block_KiB : block_KiB, line, sizeof line);
    faults += !right || field(line, first) != (double)(size_MiB * 1024);
    bandwidth_MB_per_s[number] = field(line, first + READ_BANDWIDTH_FIELD - READ_KIB_FIELD) * 1024e-6;
}

/* ---- setup ---- */

static void give_up(const char *what) {
    fprintf(stderr, "fileio: error: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void choose_path(int rank) {
    char program[PATH_MAX] = "";
    const char *tmp = getenv("TMPDIR");
    const char *directory = tmp != NULL ? tmp : "/tmp";
    if (place.chosen == SHARED && readlink("/proc/self/exe", program, sizeof program - 1) > 0)
        directory = dirname(program);
    snprintf(path, sizeof path, "%.3000s/tare-fileio-%ld-%d", directory, (long)getpid(), rank);
}

static void setup(const struct world *world) {
    choose_path(world->rank);
    if (system("fio --version >/dev/null 2>&1") != 0)
        give_up("fio cannot be run here; add Debian's package fio to the node or the image");
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0)
        give_up("the file cannot be made in this --place");
    close(file);
}

static void run(const struct world *world) {
    (void)world;
    for (int number = 0; number < JOBS; number++) {
        MPI_Barrier(MPI_COMM_WORLD);
        run_job(number);
    }
}

/* ---- proof ---- */

/* Damages a byte in the middle of the file. */
static void spoil(const struct world *world) {
    (void)world;
    unsigned char byte;
    off_t middle = (off_t)size_MiB * 512 * 1024 + 100;
    int file = open(path, O_RDWR);
    if (file < 0 || pread(file, &byte, 1, middle) != 1)
        give_up("the file cannot be damaged");
    byte ^= 1;
    if (pwrite(file, &byte, 1, middle) != 1 || close(file) != 0)
        give_up("the file cannot be damaged");
}

static void check(const struct world *world, struct outcome *outcome) {
    (void)world;
    char line[8192];
    faults += !run_fio("--rw=write --verify=crc32c --verify_only", block_KiB, line, sizeof line);
    MPI_Allreduce(MPI_IN_PLACE, &faults, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, bandwidth_MB_per_s, JOBS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    outcome->value = outcome->error = (double)faults;
    for (int number = 0; number < JOBS; number++)
        outcome_add_metric(outcome, jobs[number].metric, bandwidth_MB_per_s[number]);
}

static void finish(const struct world *world) {
    (void)world;
    unlink(path);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "fileio",
        .title = "One file read and written by fio, in sequence and at random.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .ranks = RANKS_ANY,
        .setup = setup,
        .run = run,
        .spoil = spoil,
        .check = check,
        .finish = finish,
    };
    return harness_main(&app, argc, argv);
}
