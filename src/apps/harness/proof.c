/* What each rank really was: where it ran, in which namespaces, on which CPUs, from which binary, over which
 * connections. A record whose proof contradicts its label is an error, so nothing here is taken from the
 * caller but TARE_CONTAINER. */
#include "internal.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

static const char *const namespaces[] = {"net", "mnt", "uts", "pid", "user"};
enum { NAMESPACE_COUNT = sizeof namespaces / sizeof namespaces[0], WORD_BYTES = 256 };

/* Plain bytes, so that the ranks' proofs travel in one gather. */
struct proof {
    int rank, size, pid, has_container;
    char hostname[WORD_BYTES], container[WORD_BYTES], namespace_inode[NAMESPACE_COUNT][24];
    char cpus_allowed[WORD_BYTES], mems_allowed[WORD_BYTES], libc[WORD_BYTES], mpi[WORD_BYTES];
    char digest[SHA256_TEXT_BYTES];
    double cpu_s;
};

/* "net:[4026531840]" -> "4026531840" */
static void read_namespace(const char *name, char inode[static 24]) {
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    const char *bracket = strchr(target, '[');
    snprintf(inode, 24, "%.*s", bracket ? (int)strcspn(bracket + 1, "]") : 0, bracket ? bracket + 1 : "");
}

static void read_status(const char *key, char value[static WORD_BYTES]) {
    char line[1024];
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), ":%255s", value);
    if (file != NULL)
        fclose(file);
}

/* "Open MPI v5.0.7, package: …" -> "Open MPI v5.0.7" */
static void read_mpi_version(char version[static WORD_BYTES]) {
    char whole[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(whole, &length);
    snprintf(version, WORD_BYTES, "%.*s", (int)strcspn(whole, ",\n"), whole);
}

static void read_libc(char libc[static WORD_BYTES]) {
#ifdef __GLIBC__
    snprintf(libc, WORD_BYTES, "glibc %s", gnu_get_libc_version());
#else
    snprintf(libc, WORD_BYTES, "musl");
#endif
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static struct proof read_proof(const struct world *world) {
    struct proof proof = {.rank = world->rank, .size = world->size, .pid = (int)getpid()};
    const char *container = getenv("TARE_CONTAINER");
    proof.has_container = container != NULL;
    snprintf(proof.container, WORD_BYTES, "%s", container ? container : "");
    gethostname(proof.hostname, WORD_BYTES - 1);
    for (int i = 0; i < NAMESPACE_COUNT; i++)
        read_namespace(namespaces[i], proof.namespace_inode[i]);
    read_status("Cpus_allowed_list", proof.cpus_allowed);
    read_status("Mems_allowed_list", proof.mems_allowed);
    read_libc(proof.libc);
    read_mpi_version(proof.mpi);
    if (!sha256_file("/proc/self/exe", proof.digest))
        proof.digest[0] = '\0';
    proof.cpu_s = cpu_seconds();
    return proof;
}

/* Open MPI connects when two ranks first talk: a message around the ring opens every rank's connections. */
static void pass_around_ring(const struct world *world) {
    int sent = world->rank, received;
    MPI_Sendrecv(&sent, 1, MPI_INT, (world->rank + 1) % world->size, 0, &received, 1, MPI_INT,
                 (world->rank + world->size - 1) % world->size, 0, harness_comm, MPI_STATUS_IGNORE);
    MPI_Barrier(harness_comm);
}

static void add_word(struct text *text, const char *key, const char *value) {
    text_add(text, ",\"%s\":", key);
    text_add_string(text, value);
}

static void add_proof(struct text *text, const struct proof *proof) {
    text_add(text, "{\"rank\":%d,\"size\":%d,\"pid\":%d", proof->rank, proof->size, proof->pid);
    add_word(text, "hostname", proof->hostname);
    text_add(text, ",\"ns\":{");
    for (int i = 0; i < NAMESPACE_COUNT; i++)
        text_add(text, "%s\"%s\":\"%s\"", i > 0 ? "," : "", namespaces[i], proof->namespace_inode[i]);
    text_add(text, "}");
    if (proof->has_container)
        add_word(text, "container", proof->container);
    else
        text_add(text, ",\"container\":null");
    add_word(text, "cpus_allowed", proof->cpus_allowed);
    add_word(text, "mems_allowed", proof->mems_allowed);
    add_word(text, "libc", proof->libc);
    add_word(text, "mpi", proof->mpi);
    add_word(text, "binary_sha256", proof->digest);
    text_add(text, ",\"cpu_s\":%.6f,\"links\":", proof->cpu_s);
}

void proof_add(struct text *text, const struct world *world) {
    pass_around_ring(world);
    struct links links = links_gather(world);
    struct proof own = read_proof(world);
    struct proof *proofs = harness_allocate((size_t)world->size, sizeof own);
    MPI_Gather(&own, (int)sizeof own, MPI_BYTE, proofs, (int)sizeof own, MPI_BYTE, 0, harness_comm);
    for (int rank = 0; world->rank == 0 && rank < world->size; rank++) {
        text_add(text, rank > 0 ? "," : "");
        add_proof(text, &proofs[rank]);
        links_add(text, &links, rank);
        text_add(text, "}");
    }
    free(proofs);
    links_free(&links);
}
