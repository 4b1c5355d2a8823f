/* pinned: bind this process to cores of its own among those it may use, then become the command.
 *
 *   pinned [--threads] [--cores N] COMMAND [ARGUMENT ...]
 *
 * The n-th rank of a node (PMIX or Open MPI says which it is: OMPI_COMM_WORLD_LOCAL_RANK) gets the n-th core,
 * or the n-th N cores: all hardware threads of them that the process may use; with --threads each hardware
 * thread counts as a core. The launcher's own binding is not used, because it takes the first node's CPU
 * numbers for every node's, and nodes that are parts of one machine have different ones. Exit code: the
 * command's; 2 when the rank is unknown or there are fewer cores than ranks; 127 when it cannot be started.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int first_sibling(int cpu) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return cpu;
    int sibling = cpu;
    if (fscanf(file, "%d", &sibling) != 1)
        sibling = cpu;
    fclose(file);
    return sibling;
}

static long local_rank(void) {
    const char *text = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    char *end = NULL;
    long rank = text == NULL ? -1 : strtol(text, &end, 10);
    return text == NULL || end == text || *end != '\0' ? -1 : rank;
}

/* Fill `own` with `count` cores among the allowed CPUs, from the first-th on; return how many cores there
 * are.
 */
static long find_cores(const cpu_set_t *allowed, bool threads, long first, long count, cpu_set_t *own) {
    int leader[CPU_SETSIZE];
    long cores = 0;
    CPU_ZERO(own);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed))
            continue;
        int sibling = threads ? cpu : first_sibling(cpu);
        long index = 0;
        while (index < cores && leader[index] != sibling)
            index++;
        if (index == cores)
            leader[cores++] = sibling;
        if (index >= first && index < first + count)
            CPU_SET(cpu, own);
    }
    return cores;
}

/* N of --cores N, or 0 where that is no number from 1 on. */
static long number_of_cores(const char *text) {
    char *end = NULL;
    long count = text == NULL ? 0 : strtol(text, &end, 10);
    return end == NULL || *end != '\0' || count < 1 || count > CPU_SETSIZE ? 0 : count;
}

int main(int argc, char **argv) {
    bool threads = argc > 1 && strcmp(argv[1], "--threads") == 0;
    char **command = argv + (threads ? 2 : 1);
    bool several = command < argv + argc && strcmp(command[0], "--cores") == 0;
    long each = several ? number_of_cores(command[1]) : 1;
    command += several ? 2 : 0;
    if (each == 0) {
        fprintf(stderr, "pinned: error: --cores: needs a number from 1 on\n");
        return 2;
    }
    if (command >= argv + argc) {
        fprintf(stderr,
                "pinned: error: no command; usage: pinned [--threads] [--cores N] COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    long rank = local_rank();
    cpu_set_t allowed, own;
    if (rank < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        fprintf(stderr,
                "pinned: error: OMPI_COMM_WORLD_LOCAL_RANK is not set to a number; start it by mpirun\n");
        return 2;
    }
    long cores = find_cores(&allowed, threads, rank * each, each, &own);
    if ((rank + 1) * each > cores) {
        fprintf(stderr,
                "pinned: error: rank %ld of this node cannot have %ld core%s of its own; the node has %ld\n",
                rank, each, each > 1 ? "s" : "", cores);
        return 2;
    }
    if (sched_setaffinity(0, sizeof own, &own) != 0) {
        fprintf(stderr, "pinned: error: cannot bind to cores: %s\n", strerror(errno));
        return 2;
    }
    execvp(command[0], command);
    fprintf(stderr, "pinned: error: cannot start '%s': %s\n", command[0], strerror(errno));
    return 127;
}
