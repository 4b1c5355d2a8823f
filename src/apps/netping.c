/* netping: ICMP round trips between all pairs of places (nodes, or containers with addresses of their own).
 *
 * A place is an address that MPI's messages use: the one in OMPI_MCA_btl_tcp_if_include's subnet, else the
 * first that is not the loopback's. The first rank of each place pings every later place, `count` times after
 * one untimed echo that fills the neighbour tables; one pair at a time, all other ranks asleep. With one
 * place alone it pings itself. Measures: the network's latency without MPI. Does not measure: bandwidth,
 * load. Needs ICMP sockets for ordinary users: the kernel's net.ipv4.ping_group_range must include the user's
 * group, in the node and in each container's network namespace (Docker opens it in its containers, other
 * sites must say sysctl net.ipv4.ping_group_range="0 2147483647"). Proof: each reply returns its own payload,
 * none is lost.
 */
#include "harness/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <math.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PAYLOAD_BYTES = 56, BINS = 17, LONGEST_WAIT_MS = 2000 };

static int64_t count = 20, interval_us = 1000;

static const struct option options[] = {
    {"count", OPTION_INTEGER, &count, 1, 1e6, "timed round trips of each pair"},
    {"interval_us", OPTION_INTEGER, &interval_us, 0, 1e9, "pause between two, in microseconds"},
};

struct packet {
    struct icmphdr header;
    unsigned char payload[PAYLOAD_BYTES];
};

static struct in_addr *addresses; /* by rank */
static double *round_trip_s;      /* of all pairs that this rank pinged, in their order */
static int64_t done, lost, damaged, pairs;
static int icmp = -1;

_Noreturn static void give_up(const char *what) {
    fprintf(stderr, "netping: error: %s: %s\n", what, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    exit(EXIT_FAILURE);
}

/* ---- places ---- */

/* Whether an address lies in the subnets, or its interface is among the names, that MPI was told to use. */
static bool is_wanted(const char *wanted, const struct ifaddrs *at, struct in_addr address) {
    char words[256];
    snprintf(words, sizeof words, "%s", wanted);
    for (char *rest = words, *word; (word = strsep(&rest, ",")) != NULL;) {
        char *slash = strchr(word, '/');
        struct in_addr subnet;
        if (strcmp(word, at->ifa_name) == 0)
            return true;
        if (slash == NULL)
            continue;
        *slash = '\0';
        int bits = atoi(slash + 1);
        uint32_t mask = bits == 0 ? 0 : htonl(UINT32_MAX << (32 - bits));
        if (inet_pton(AF_INET, word, &subnet) == 1 && ((subnet.s_addr ^ address.s_addr) & mask) == 0)
            return true;
    }
    return false;
}

static struct in_addr own_address(void) {
    const char *wanted = getenv("OMPI_MCA_btl_tcp_if_include");
    struct in_addr found = {htonl(INADDR_LOOPBACK)};
    struct ifaddrs *first;
    if (getifaddrs(&first) != 0)
        give_up("the interfaces cannot be listed");
    for (const struct ifaddrs *at = first; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_UP) == 0)
            continue;
        struct in_addr address = ((struct sockaddr_in *)at->ifa_addr)->sin_addr;
        if (wanted != NULL ? is_wanted(wanted, at, address) : (at->ifa_flags & IFF_LOOPBACK) == 0) {
            found = address;
            break;
        }
    }
    freeifaddrs(first);
    return found;
}

static bool is_first_of_place(int rank) {
    for (int other = 0; other < rank; other++)
        if (addresses[other].s_addr == addresses[rank].s_addr)
            return false;
    return true;
}

static int count_places(int ranks) {
    int places = 0;
    for (int rank = 0; rank < ranks; rank++)
        places += is_first_of_place(rank);
    return places;
}

static void setup(const struct world *world) {
    struct in_addr own = own_address();
    addresses = harness_allocate((size_t)world->size, sizeof *addresses);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, addresses, sizeof own, MPI_BYTE, MPI_COMM_WORLD);
    round_trip_s = harness_allocate((size_t)(world->size * count), sizeof *round_trip_s);
    icmp = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
    if (icmp < 0)
        give_up("no ICMP socket (the site must set net.ipv4.ping_group_range to include this user's group)");
}

/* ---- the timed part ---- */

static void fill(struct packet *packet, uint16_t sequence) {
    memset(packet, 0, sizeof *packet);
    packet->header.type = ICMP_ECHO;
    packet->header.un.echo.sequence = htons(sequence);
    for (int i = 0; i < PAYLOAD_BYTES; i++)
        packet->payload[i] = (unsigned char)(sequence * 31 + i);
}

/* Wait for the reply to this packet; late ones of earlier packets are passed over. */
static bool receive(const struct packet *sent) {
    struct packet reply;
    struct pollfd readable = {.fd = icmp, .events = POLLIN};
    while (poll(&readable, 1, LONGEST_WAIT_MS) > 0) {
        ssize_t bytes = recv(icmp, &reply, sizeof reply, 0);
        if (bytes < (ssize_t)sizeof reply.header || reply.header.type != ICMP_ECHOREPLY ||
            reply.header.un.echo.sequence != sent->header.un.echo.sequence)
            continue;
        damaged += bytes != sizeof reply || memcmp(reply.payload, sent->payload, PAYLOAD_BYTES) != 0;
        return true;
    }
    return false;
}

/* Seconds, or NAN for a packet that was lost. */
static double round_trip(struct in_addr to, uint16_t sequence) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = to};
    struct packet packet;
    fill(&packet, sequence);
    double start = MPI_Wtime();
    if (sendto(icmp, &packet, sizeof packet, 0, (struct sockaddr *)&address, sizeof address) < 0)
        give_up("an echo request cannot be sent");
    return receive(&packet) ? MPI_Wtime() - start : NAN;
}

static void rest(int64_t microseconds) {
    struct timespec pause = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static void ping(struct in_addr to) {
    round_trip(to, 0);
    for (int64_t i = 0; i < count; i++) {
        rest(interval_us);
        double seconds = round_trip(to, (uint16_t)(i + 1));
        if (isnan(seconds))
            lost++;
        else
            round_trip_s[done++] = seconds;
    }
    pairs++;
}

/* MPI_Barrier would keep every waiting rank's CPU busy beside the one that measures. */
static void wait_asleep(void) {
    MPI_Request request;
    int all_here = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &all_here, MPI_STATUS_IGNORE); !all_here;
         MPI_Test(&request, &all_here, MPI_STATUS_IGNORE))
        rest(100);
}

static void run(const struct world *world) {
    bool alone = count_places(world->size) == 1;
    for (int from = 0; from < world->size; from++) {
        if (!is_first_of_place(from))
            continue;
        for (int to = alone ? from : from + 1; to < (alone ? from + 1 : world->size); to++) {
            if (is_first_of_place(to) && world->rank == from)
                ping(addresses[to]);
            wait_asleep();
        }
    }
}

/* ---- proof and numbers ---- */

static void spoil(const struct world *world) {
    (void)world;
    damaged++;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Counts by powers of two of a microsecond; the first and the last take all that is shorter or longer. */
static void add_histogram(struct outcome *outcome, const double *sorted, int64_t trips) {
    int64_t at = 0;
    for (int bin = 0; bin < BINS; bin++) {
        char name[48];
        int64_t before = at;
        while (at < trips && (bin == BINS - 1 || sorted[at] * 1e6 < ldexp(1.0, bin + 1)))
            at++;
        snprintf(name, sizeof name, "round_trips_%d_to_%d_us", bin == 0 ? 0 : 1 << bin, 1 << (bin + 1));
        if (at > before)
            outcome_add_metric(outcome, name, (double)(at - before));
    }
}

static void add_numbers(struct outcome *outcome, double *trips_s, int64_t trips) {
    qsort(trips_s, (size_t)trips, sizeof *trips_s, compare_doubles);
    double median = (trips_s[(trips - 1) / 2] + trips_s[trips / 2]) / 2;
    outcome_add_metric(outcome, "round_trip_min_us", trips_s[0] * 1e6);
    outcome_add_metric(outcome, "round_trip_median_us", median * 1e6);
    outcome_add_metric(outcome, "round_trip_max_us", trips_s[trips - 1] * 1e6);
    add_histogram(outcome, trips_s, trips);
}

/* All ranks' round trips on rank 0. */
static void gather(const struct world *world, struct outcome *outcome) {
    int own = (int)done, total = 0;
    int *counts = harness_allocate((size_t)world->size, sizeof *counts);
    int *starts = harness_allocate((size_t)world->size, sizeof *starts);
    MPI_Gather(&own, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int rank = 0; rank < world->size; rank++) {
        starts[rank] = total;
        total += counts[rank];
    }
    double *all = harness_allocate((size_t)total, sizeof *all);
    MPI_Gatherv(round_trip_s, own, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (total > 0)
        add_numbers(outcome, all, total);
    free(all);
    free(starts);
    free(counts);
}

static void check(const struct world *world, struct outcome *outcome) {
    int64_t sums[] = {lost, damaged, pairs};
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    outcome->value = outcome->error = (double)(sums[0] + sums[1]);
    if (sums[0] > 0)
        snprintf(outcome->fault, sizeof outcome->fault, "%lld of %lld replies did not come within %d ms",
                 (long long)sums[0], (long long)(sums[2] * count), LONGEST_WAIT_MS);
    outcome_add_metric(outcome, "places", count_places(world->size));
    outcome_add_metric(outcome, "pairs", (double)sums[2]);
    gather(world, outcome);
}

static void finish(const struct world *world) {
    (void)world;
    close(icmp);
    free(round_trip_s);
    free(addresses);
}

int main(int argc, char **argv) {
    const struct app app = {
        .name = "netping",
        .title = "ICMP round trips between all pairs of nodes or containers.",
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
