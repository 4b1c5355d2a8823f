/* pinned: bind this process to one core of those it may use, then become the command.
 *
 *   pinned COMMAND [ARGUMENT ...]
 *
 * The n-th rank of a node (PMIX or Open MPI says which it is: OMPI_COMM_WORLD_LOCAL_RANK) gets the n-th core:
 * all hardware threads of it that the process may use. The launcher's own binding is not used, because it
 * takes the first node's CPU numbers for every node's, and nodes that are parts of one machine have different
 * ones. Exit code: the command's; 2 when the rank is unknown or there are fewer cores than ranks; 127 when it
 * cannot be started. */
#include <errno.h>
#include <sched.h>
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

/* Fill `core` with the wanted-th core among the allowed CPUs; return how many cores there are. */
static long find_core(const cpu_set_t *allowed, long wanted, cpu_set_t *core) {
    int leader[CPU_SETSIZE];
    long cores = 0;
    CPU_ZERO(core);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed))
            continue;
        int sibling = first_sibling(cpu);
        long index = 0;
        while (index < cores && leader[index] != sibling)
            index++;
        if (index == cores)
            leader[cores++] = sibling;
        if (index == wanted)
            CPU_SET(cpu, core);
    }
    return cores;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "pinned: error: no command; usage: pinned COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    long rank = local_rank();
    cpu_set_t allowed, core;
    if (rank < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        fprintf(stderr,
                "pinned: error: OMPI_COMM_WORLD_LOCAL_RANK is not set to a number; start it by mpirun\n");
        return 2;
    }
    long cores = find_core(&allowed, rank, &core);
    if (rank >= cores) {
        fprintf(stderr, "pinned: error: rank %ld of this node needs a core of its own; it has %ld\n", rank,
                cores);
        return 2;
    }
    if (sched_setaffinity(0, sizeof core, &core) != 0) {
        fprintf(stderr, "pinned: error: cannot bind to a core: %s\n", strerror(errno));
        return 2;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "pinned: error: cannot start '%s': %s\n", argv[1], strerror(errno));
    return 127;
}
