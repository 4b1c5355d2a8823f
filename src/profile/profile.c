/* profile: what one rank does in MPI, or what its processor counts, written down when it finalises.
 *
 *   env LD_PRELOAD=profile.so TARE_PROFILE=mpi|perf TARE_PROFILE_DIR=DIRECTORY PROGRAM …
 *
 * It stands before the MPI library by MPI's profiling interface (PMPI), so no program is changed. Each rank
 * writes DIRECTORY/rank-<n>.json. `mpi`: per call how often, the bytes of the buffers it names, the seconds
 * inside; per rank messaged: messages and bytes of sends, puts and all-to-alls (how the other collectives
 * travel is the MPI library's own choice). `perf`: counters of the whole process from MPI_Init to
 * MPI_Finalize; one that cannot be had is null, with the reason. Not seen: Fortran's bindings, processes
 * started by MPI_Comm_spawn, threads beside the one that calls MPI. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
#define CALLS(X)                                                                                             \
    X(Send)                                                                                                  \
    X(Ssend) X(Bsend) X(Rsend) X(Isend) X(Issend) X(Recv) X(Irecv) X(Sendrecv) X(Sendrecv_replace)           \
    X(Send_init) X(Recv_init) X(Start) X(Startall) X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test)     \
    X(Testall) X(Testany) X(Testsome) X(Probe) X(Iprobe) X(Barrier) X(Bcast) X(Reduce) X(Allreduce)  \
    X(Gather) X(Gatherv) X(Allgather) X(Allgatherv) X(Scatter) X(Scatterv) X(Alltoall)           \
    X(Alltoallv) X(Scan) X(Ibarrier) X(Iallreduce) X(Put) X(Get) X(Accumulate) X(Win_fence)  \
    X(Win_lock) X(Win_unlock) X(Win_flush) X(Win_allocate) X(Win_create) X(Win_free)     \
    X(Comm_dup) X(Comm_split)
/* clang-format on */

#define AS_ENUM(name) call_##name,
#define AS_TEXT(name) "MPI_" #name,
enum { CALLS(AS_ENUM) CALL_COUNT };
static const char *const call_names[] = {CALLS(AS_TEXT)};

struct tally {
    long count;
    double bytes, seconds;
};
struct group {
    MPI_Comm comm;
    int size, *world; /* world rank of each of its ranks */
};
struct persistent {
    MPI_Request request;
    int target; /* world rank, -1: it receives */
    double bytes;
};

static struct tally calls[CALL_COUNT], *sent;
static struct group *groups;
static struct persistent *persistents;
static int group_count, persistent_count, rank, size, profiling, counting;
static double began, init_s;
static struct rusage used_before;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *grown(void *block, size_t bytes) {
    void *larger = realloc(block, bytes);
    if (larger == NULL) {
        fprintf(stderr, "profile: error: no memory for %zu bytes\n", bytes);
        PMPI_Abort(MPI_COMM_WORLD, 2);
    }
    return larger;
}

static void note(int call, double bytes, double begin) {
    if (!profiling)
        return;
    calls[call].count++;
    calls[call].bytes += bytes;
    calls[call].seconds += now() - begin;
}

static double bytes_of(double count, MPI_Datatype type) {
    int each = 0;
    if (profiling && type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &each);
    return count * each;
}

/* World ranks of a communicator's; none between two groups (inter-communicators). */
static struct group *find_group(MPI_Comm comm) {
    for (int i = 0; i < group_count; i++)
        if (groups[i].comm == comm)
            return &groups[i];
    int inter = 0;
    MPI_Group world, own;
    groups = grown(groups, (size_t)(group_count + 1) * sizeof *groups);
    struct group *group = &groups[group_count++];
    *group = (struct group){.comm = comm};
    PMPI_Comm_test_inter(comm, &inter);
    if (inter)
        return group;
    PMPI_Comm_size(comm, &group->size);
    group->world = grown(NULL, (size_t)group->size * sizeof(int));
    int *ranks = grown(NULL, (size_t)group->size * sizeof(int));
    for (int i = 0; i < group->size; i++)
        ranks[i] = i;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &own);
    PMPI_Group_translate_ranks(own, group->size, ranks, world, group->world);
    PMPI_Group_free(&own);
    PMPI_Group_free(&world);
    free(ranks);
    return group;
}

static void forget_group(MPI_Comm comm) {
    for (int i = 0; i < group_count; i++)
        if (groups[i].comm == comm) {
            free(groups[i].world);
            groups[i] = groups[--group_count];
            return;
        }
}

static int world_rank(MPI_Comm comm, int target) {
    if (target < 0)
        return -1; /* MPI_PROC_NULL */
    struct group *group = find_group(comm);
    return target < group->size ? group->world[target] : -1;
}

static void message_to(int target, double bytes) {
    if (target < 0 || target >= size)
        return;
    sent[target].count++;
    sent[target].bytes += bytes;
}

static void message(MPI_Comm comm, int target, double bytes) {
    if (profiling)
        message_to(world_rank(comm, target), bytes);
}

/* Count what may be counted -------------------------------------------------------------------------------
 */

struct counter {
    const char *name;
    unsigned type;
    unsigned long long config;
    int descriptor, error;
};
#define CACHE(cache) (PERF_COUNT_HW_CACHE_##cache | (PERF_COUNT_HW_CACHE_OP_READ << 8))
#define ACCESS (PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16)
#define MISS (PERF_COUNT_HW_CACHE_RESULT_MISS << 16)
static struct counter counters[] = {
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, -1, 0},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, -1, 0},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, -1, 0},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, -1, 0},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, -1, 0},
    {"LLC-loads", PERF_TYPE_HW_CACHE, CACHE(LL) | ACCESS, -1, 0},
    {"LLC-load-misses", PERF_TYPE_HW_CACHE, CACHE(LL) | MISS, -1, 0},
    {"node-loads", PERF_TYPE_HW_CACHE, CACHE(NODE) | ACCESS, -1, 0},
    {"node-load-misses", PERF_TYPE_HW_CACHE, CACHE(NODE) | MISS, -1, 0},
};
enum { COUNTER_COUNT = sizeof counters / sizeof counters[0] };
static int user_only;

static int open_counter(struct counter *counter, int without_kernel) {
    struct perf_event_attr wanted = {.size = sizeof wanted,
                                     .type = counter->type,
                                     .config = counter->config,
                                     .exclude_kernel = (unsigned)without_kernel & 1,
                                     .exclude_hv = (unsigned)without_kernel & 1,
                                     .inherit = 1,
                                     .read_format =
                                         PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING};
    return (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* What happens in the kernel only (a migration) is never counted in user mode: a 0 there would be a lie. */
static void start_counters(void) {
    const char *kind = getenv("TARE_PROFILE");
    getrusage(RUSAGE_SELF, &used_before);
    counting = kind != NULL && strcmp(kind, "perf") == 0;
    if (!counting)
        return;
    for (int i = 0; i < COUNTER_COUNT; i++) {
        struct counter *counter = &counters[i];
        counter->descriptor = open_counter(counter, 0);
        int refused = counter->descriptor < 0 && (errno == EACCES || errno == EPERM);
        counter->error = counter->descriptor < 0 ? errno : 0;
        if (refused && counter->type != PERF_TYPE_SOFTWARE) {
            counter->descriptor = open_counter(counter, 1);
            counter->error = counter->descriptor < 0 ? errno : 0;
            user_only |= counter->descriptor >= 0;
        }
    }
}

static const char *why_not(int error) {
    switch (error) {
    case 0:
        return "the counter never ran";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        return "this machine has no such counter";
    case EACCES:
    case EPERM:
        return "not permitted (perf_event_paranoid, or the container's seccomp profile)";
    default:
        return strerror(error);
    }
}

static void write_value(FILE *file, const char *name, double value) {
    fprintf(file, "\"%s\":{\"value\":%.9g}", name, value);
}

static void write_counter(FILE *file, struct counter *counter) {
    unsigned long long read_out[3]; /* value, time enabled, time running */
    fprintf(file, ",");
    if (counter->descriptor >= 0 && read(counter->descriptor, read_out, sizeof read_out) == sizeof read_out &&
        read_out[2] > 0)
        write_value(file, counter->name, (double)read_out[0] * (double)read_out[1] / (double)read_out[2]);
    else
        fprintf(file, "\"%s\":{\"value\":null,\"reason\":\"perf_event_open: %s\"}", counter->name,
                why_not(counter->error));
}

static double seconds_of(struct timeval after, struct timeval before) {
    return (double)(after.tv_sec - before.tv_sec) + 1e-6 * (double)(after.tv_usec - before.tv_usec);
}

static void write_counters(FILE *file, const struct rusage *used) {
    double cpu_s =
        seconds_of(used->ru_utime, used_before.ru_utime) + seconds_of(used->ru_stime, used_before.ru_stime);
    fprintf(file, ",\"user_only\":%s,\"counters\":{", user_only ? "true" : "false");
    write_value(file, "task-clock", cpu_s * 1e3);
    fprintf(file, ",");
    write_value(file, "context-switches",
                (double)(used->ru_nvcsw + used->ru_nivcsw - used_before.ru_nvcsw - used_before.ru_nivcsw));
    fprintf(file, ",");
    write_value(file, "page-faults",
                (double)(used->ru_minflt + used->ru_majflt - used_before.ru_minflt - used_before.ru_majflt));
    for (int i = 0; i < COUNTER_COUNT; i++)
        write_counter(file, &counters[i]);
    fprintf(file, "}");
}

/* The report of one rank ----------------------------------------------------------------------------------
 */

static void write_calls(FILE *file) {
    int written = 0;
    fprintf(file, ",\"calls\":{");
    for (int i = 0; i < CALL_COUNT; i++)
        if (calls[i].count > 0)
            fprintf(file, "%s\"%s\":{\"count\":%ld,\"bytes\":%.17g,\"seconds\":%.9f}", written++ ? "," : "",
                    call_names[i], calls[i].count, calls[i].bytes, calls[i].seconds);
    fprintf(file, "},\"to\":[");
    written = 0;
    for (int i = 0; i < size; i++)
        if (sent[i].count > 0)
            fprintf(file, "%s[%d,%ld,%.17g]", written++ ? "," : "", i, sent[i].count, sent[i].bytes);
    fprintf(file, "]");
}

static void write_report(double span_s, double finalize_s, const struct rusage *used) {
    char path[4096];
    snprintf(path, sizeof path, "%s/rank-%d.json", getenv("TARE_PROFILE_DIR"), rank);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "profile: error: TARE_PROFILE_DIR: cannot write '%s': %s\n", path, strerror(errno));
        return;
    }
    fprintf(file, "{\"rank\":%d,\"size\":%d,\"span_s\":%.9f,\"init_s\":%.9f,\"finalize_s\":%.9f", rank, size,
            span_s, init_s, finalize_s);
    fprintf(file, ",\"user_s\":%.6f,\"sys_s\":%.6f", seconds_of(used->ru_utime, used_before.ru_utime),
            seconds_of(used->ru_stime, used_before.ru_stime));
    if (counting)
        write_counters(file, used);
    else
        write_calls(file);
    fprintf(file, "}\n");
    if (fclose(file) != 0)
        fprintf(stderr, "profile: error: TARE_PROFILE_DIR: cannot write '%s': %s\n", path, strerror(errno));
}

static void start(double begin) {
    const char *kind = getenv("TARE_PROFILE");
    MPI_Comm parent;
    PMPI_Comm_get_parent(&parent);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    init_s = now() - begin;
    if (kind == NULL || getenv("TARE_PROFILE_DIR") == NULL || parent != MPI_COMM_NULL) {
        counting = 0;
        return;
    }
    sent = grown(NULL, (size_t)size * sizeof *sent);
    memset(sent, 0, (size_t)size * sizeof *sent);
    began = begin;
    profiling = !counting;
}

/* The next library's: the proof of a packaged program (src/launch/proof.c) may be loaded behind this one. */
static void *following(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL) {
        fprintf(stderr, "profile: error: no MPI library behind this one has %s\n", name);
        exit(2);
    }
    return function;
}

int MPI_Init(int *argc, char ***argv) {
    double begin = now();
    start_counters();
    int (*next)(int *, char ***) = (int (*)(int *, char ***))following("MPI_Init");
    int code = next(argc, argv);
    start(begin);
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    double begin = now();
    start_counters();
    int (*next)(int *, char ***, int, int *) =
        (int (*)(int *, char ***, int, int *))following("MPI_Init_thread");
    int code = next(argc, argv, required, provided);
    start(begin);
    return code;
}

int MPI_Finalize(void) {
    double begin = now();
    int active = profiling || counting;
    profiling = 0;
    int (*next)(void) = (int (*)(void))following("MPI_Finalize");
    int code = next();
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    if (active)
        write_report(now() - began, now() - begin, &used);
    return code;
}

/* The calls -----------------------------------------------------------------------------------------------
 */

#define MEASURED(name, bytes, call)                                                                          \
    double volume = (bytes), begin = now();                                                                  \
    int code = (call);                                                                                       \
    note(call_##name, volume, begin);                                                                        \
    return code;

#define SEND(name)                                                                                           \
    int MPI_##name(const void *buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm) {   \
        message(comm, target, bytes_of(count, type));                                                        \
        MEASURED(name, bytes_of(count, type), PMPI_##name(buffer, count, type, target, tag, comm))           \
    }
SEND(Send)
SEND(Ssend)
SEND(Bsend)
SEND(Rsend)

#define ISEND(name)                                                                                          \
    int MPI_##name(const void *buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,     \
                   MPI_Request *request) {                                                                   \
        message(comm, target, bytes_of(count, type));                                                        \
        MEASURED(name, bytes_of(count, type), PMPI_##name(buffer, count, type, target, tag, comm, request))  \
    }
ISEND(Isend)
ISEND(Issend)

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status) {
    MEASURED(Recv, bytes_of(count, type), PMPI_Recv(buffer, count, type, source, tag, comm, status))
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request) {
    MEASURED(Irecv, bytes_of(count, type), PMPI_Irecv(buffer, count, type, source, tag, comm, request))
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int target, int out_tag, void *in,
                 int in_count, MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm,
                 MPI_Status *status) {
    message(comm, target, bytes_of(out_count, out_type));
    MEASURED(Sendrecv, bytes_of(out_count, out_type),
             PMPI_Sendrecv(out, out_count, out_type, target, out_tag, in, in_count, in_type, source, in_tag,
                           comm, status))
}

int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int target, int out_tag, int source,
                         int in_tag, MPI_Comm comm, MPI_Status *status) {
    message(comm, target, bytes_of(count, type));
    MEASURED(Sendrecv_replace, bytes_of(count, type),
             PMPI_Sendrecv_replace(buffer, count, type, target, out_tag, source, in_tag, comm, status))
}

static void remember(MPI_Request request, int target, double bytes) {
    persistents = grown(persistents, (size_t)(persistent_count + 1) * sizeof *persistents);
    persistents[persistent_count++] = (struct persistent){request, target, bytes};
}

/* A started persistent send is a message; returns the bytes of its buffer. */
static double started(MPI_Request request) {
    for (int i = persistent_count - 1; profiling && i >= 0; i--)
        if (persistents[i].request == request) {
            message_to(persistents[i].target, persistents[i].bytes);
            return persistents[i].bytes;
        }
    return 0.0;
}

int MPI_Send_init(const void *buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                  MPI_Request *request) {
    double begin = now();
    int code = PMPI_Send_init(buffer, count, type, target, tag, comm, request);
    if (profiling)
        remember(*request, world_rank(comm, target), bytes_of(count, type));
    note(call_Send_init, 0.0, begin);
    return code;
}

int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                  MPI_Request *request) {
    double begin = now();
    int code = PMPI_Recv_init(buffer, count, type, source, tag, comm, request);
    if (profiling)
        remember(*request, -1, bytes_of(count, type));
    note(call_Recv_init, 0.0, begin);
    return code;
}

int MPI_Start(MPI_Request *request) { MEASURED(Start, started(*request), PMPI_Start(request)) }

int MPI_Startall(int count, MPI_Request requests[]) {
    double bytes = 0.0;
    for (int i = 0; i < count; i++)
        bytes += started(requests[i]);
    MEASURED(Startall, bytes, PMPI_Startall(count, requests))
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) { MEASURED(Wait, 0.0, PMPI_Wait(request, status)) }

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    MEASURED(Waitall, 0.0, PMPI_Waitall(count, requests, statuses))
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
    MEASURED(Waitany, 0.0, PMPI_Waitany(count, requests, index, status))
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
    MEASURED(Waitsome, 0.0, PMPI_Waitsome(count, requests, done, indices, statuses))
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    MEASURED(Test, 0.0, PMPI_Test(request, flag, status))
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    MEASURED(Testall, 0.0, PMPI_Testall(count, requests, flag, statuses))
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    MEASURED(Testany, 0.0, PMPI_Testany(count, requests, index, flag, status))
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
    MEASURED(Testsome, 0.0, PMPI_Testsome(count, requests, done, indices, statuses))
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status) {
    MEASURED(Probe, 0.0, PMPI_Probe(source, tag, comm, status))
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    MEASURED(Iprobe, 0.0, PMPI_Iprobe(source, tag, comm, flag, status))
}

int MPI_Barrier(MPI_Comm comm) { MEASURED(Barrier, 0.0, PMPI_Barrier(comm)) }

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) {
    MEASURED(Ibarrier, 0.0, PMPI_Ibarrier(comm, request))
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    MEASURED(Bcast, bytes_of(count, type), PMPI_Bcast(buffer, count, type, root, comm))
}

int MPI_Reduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    MEASURED(Reduce, bytes_of(count, type), PMPI_Reduce(out, in, count, type, op, root, comm))
}

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    MEASURED(Allreduce, bytes_of(count, type), PMPI_Allreduce(out, in, count, type, op, comm))
}

int MPI_Iallreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request) {
    MEASURED(Iallreduce, bytes_of(count, type), PMPI_Iallreduce(out, in, count, type, op, comm, request))
}

int MPI_Scan(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    MEASURED(Scan, bytes_of(count, type), PMPI_Scan(out, in, count, type, op, comm))
}

/* A rank that sends from where it receives (MPI_IN_PLACE) names its bytes by the receiving arguments. */
static double contribution(const void *out, int out_count, MPI_Datatype out_type, int in_count,
                           MPI_Datatype in_type) {
    return out == MPI_IN_PLACE ? bytes_of(in_count, in_type) : bytes_of(out_count, out_type);
}

int MPI_Gather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
               MPI_Datatype in_type, int root, MPI_Comm comm) {
    MEASURED(Gather, contribution(out, out_count, out_type, in_count, in_type),
             PMPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm))
}

int MPI_Gatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                const int places[], MPI_Datatype in_type, int root, MPI_Comm comm) {
    MEASURED(Gatherv, out == MPI_IN_PLACE ? 0.0 : bytes_of(out_count, out_type),
             PMPI_Gatherv(out, out_count, out_type, in, in_counts, places, in_type, root, comm))
}

int MPI_Allgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                  MPI_Datatype in_type, MPI_Comm comm) {
    MEASURED(Allgather, contribution(out, out_count, out_type, in_count, in_type),
             PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm))
}

int MPI_Allgatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                   const int places[], MPI_Datatype in_type, MPI_Comm comm) {
    MEASURED(Allgatherv, out == MPI_IN_PLACE ? 0.0 : bytes_of(out_count, out_type),
             PMPI_Allgatherv(out, out_count, out_type, in, in_counts, places, in_type, comm))
}

int MPI_Scatter(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm) {
    MEASURED(Scatter, in == MPI_IN_PLACE ? bytes_of(out_count, out_type) : bytes_of(in_count, in_type),
             PMPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm))
}

int MPI_Scatterv(const void *out, const int out_counts[], const int places[], MPI_Datatype out_type, void *in,
                 int in_count, MPI_Datatype in_type, int root, MPI_Comm comm) {
    MEASURED(Scatterv, in == MPI_IN_PLACE ? 0.0 : bytes_of(in_count, in_type),
             PMPI_Scatterv(out, out_counts, places, out_type, in, in_count, in_type, root, comm))
}

int MPI_Alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                 MPI_Datatype in_type, MPI_Comm comm) {
    double bytes = contribution(out, out_count, out_type, in_count, in_type);
    int count = profiling ? find_group(comm)->size : 0;
    for (int target = 0; target < count; target++)
        message(comm, target, bytes);
    MEASURED(Alltoall, bytes * count, PMPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm))
}

int MPI_Alltoallv(const void *out, const int out_counts[], const int out_places[], MPI_Datatype out_type,
                  void *in, const int in_counts[], const int in_places[], MPI_Datatype in_type,
                  MPI_Comm comm) {
    double bytes = 0.0;
    int count = profiling ? find_group(comm)->size : 0;
    for (int target = 0; target < count; target++) {
        double part = out == MPI_IN_PLACE ? bytes_of(in_counts[target], in_type)
                                          : bytes_of(out_counts[target], out_type);
        if (part > 0.0)
            message(comm, target, part);
        bytes += part;
    }
    MEASURED(Alltoallv, bytes,
             PMPI_Alltoallv(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm))
}

/* A window's ranks are those of the communicator that it was made over. */
static void message_through(MPI_Win window, int target, double bytes) {
    if (!profiling || target < 0)
        return;
    MPI_Group world, own;
    int found = -1;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Win_get_group(window, &own);
    PMPI_Group_translate_ranks(own, 1, &target, world, &found);
    PMPI_Group_free(&own);
    PMPI_Group_free(&world);
    message_to(found, bytes);
}

int MPI_Put(const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count,
            MPI_Datatype target_type, MPI_Win window) {
    message_through(window, target, bytes_of(count, type));
    MEASURED(Put, bytes_of(count, type),
             PMPI_Put(buffer, count, type, target, place, target_count, target_type, window))
}

int MPI_Get(void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count,
            MPI_Datatype target_type, MPI_Win window) {
    MEASURED(Get, bytes_of(count, type),
             PMPI_Get(buffer, count, type, target, place, target_count, target_type, window))
}

int MPI_Accumulate(const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place,
                   int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window) {
    message_through(window, target, bytes_of(count, type));
    MEASURED(Accumulate, bytes_of(count, type),
             PMPI_Accumulate(buffer, count, type, target, place, target_count, target_type, op, window))
}

int MPI_Win_fence(int assertion, MPI_Win window) {
    MEASURED(Win_fence, 0.0, PMPI_Win_fence(assertion, window))
}

int MPI_Win_lock(int kind, int target, int assertion, MPI_Win window) {
    MEASURED(Win_lock, 0.0, PMPI_Win_lock(kind, target, assertion, window))
}

int MPI_Win_unlock(int target, MPI_Win window) { MEASURED(Win_unlock, 0.0, PMPI_Win_unlock(target, window)) }

int MPI_Win_flush(int target, MPI_Win window) { MEASURED(Win_flush, 0.0, PMPI_Win_flush(target, window)) }

int MPI_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window) {
    MEASURED(Win_allocate, 0.0, PMPI_Win_allocate(bytes, unit, info, comm, base, window))
}

int MPI_Win_create(void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window) {
    MEASURED(Win_create, 0.0, PMPI_Win_create(base, bytes, unit, info, comm, window))
}

int MPI_Win_free(MPI_Win *window) { MEASURED(Win_free, 0.0, PMPI_Win_free(window)) }

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) { MEASURED(Comm_dup, 0.0, PMPI_Comm_dup(comm, copy)) }

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *part) {
    MEASURED(Comm_split, 0.0, PMPI_Comm_split(comm, colour, key, part))
}

/* A freed communicator's handle may name another one later. */
int MPI_Comm_free(MPI_Comm *comm) {
    forget_group(*comm);
    return PMPI_Comm_free(comm);
}
