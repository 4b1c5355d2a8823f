/* The TCP connections between the ranks: the socket inodes of /proc/self/fd, looked up in /proc/self/net/tcp
 * and tcp6; the interface is the one that carries the local address. Connections whose other end no rank
 * holds (the launcher's daemon) are left out. */
#include "internal.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATE_ESTABLISHED = 1, BUCKETS = 65536 };

struct link {
    char interface[IF_NAMESIZE];
    char local[INET6_ADDRSTRLEN], peer[INET6_ADDRSTRLEN];
    unsigned local_port, peer_port;
    int has_peer, next; /* the other end is a rank's; the next link in the same bucket, or -1 */
};

static void *grow(void *memory, size_t count, size_t bytes_each) {
    memory = realloc(memory, count * bytes_each);
    if (memory == NULL)
        abort();
    return memory;
}

/* The inodes of this process's sockets, ended by 0. */
static unsigned long *own_sockets(void) {
    unsigned long *inodes = harness_allocate(1, sizeof *inodes);
    char path[300], target[40];
    size_t count = 0;
    struct dirent *entry;
    DIR *directory = opendir("/proc/self/fd");
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (sscanf(target, "socket:[%lu]", &inodes[count]) != 1)
            continue;
        inodes = grow(inodes, ++count + 1, sizeof *inodes);
    }
    inodes[count] = 0;
    if (directory != NULL)
        closedir(directory);
    return inodes;
}

static bool is_among(unsigned long inode, const unsigned long *inodes) {
    while (*inodes != 0 && *inodes != inode)
        inodes++;
    return *inodes != 0;
}

/* /proc prints an address as 32-bit words of the machine's byte order; a v4-mapped IPv6 address is IPv4. */
static void read_address(const char *hex, char text[static INET6_ADDRSTRLEN]) {
    static const unsigned char v4_mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint32_t words[4] = {0};
    size_t count = strlen(hex) / 8;
    for (size_t i = 0; i < count && i < 4; i++)
        sscanf(hex + 8 * i, "%8x", &words[i]);
    if (count == 1)
        inet_ntop(AF_INET, words, text, INET6_ADDRSTRLEN);
    else if (memcmp(words, v4_mapped, sizeof v4_mapped) == 0)
        inet_ntop(AF_INET, &words[3], text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, words, text, INET6_ADDRSTRLEN);
}

static void find_interface(struct link *link, const struct ifaddrs *first) {
    char text[INET6_ADDRSTRLEN];
    for (const struct ifaddrs *at = first; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr == NULL)
            continue;
        if (at->ifa_addr->sa_family == AF_INET)
            inet_ntop(AF_INET, &((struct sockaddr_in *)at->ifa_addr)->sin_addr, text, sizeof text);
        else if (at->ifa_addr->sa_family == AF_INET6)
            inet_ntop(AF_INET6, &((struct sockaddr_in6 *)at->ifa_addr)->sin6_addr, text, sizeof text);
        else
            continue;
        if (strcmp(text, link->local) == 0)
            snprintf(link->interface, sizeof link->interface, "%s", at->ifa_name);
    }
}

/* One line of /proc/self/net/tcp: number: local:port peer:port state queues timer retransmits uid timeout
 * inode */
static bool read_line(const char *line, const unsigned long *sockets, struct link *link) {
    char local[33], peer[33];
    unsigned state;
    unsigned long inode;
    int found = sscanf(line, " %*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*s %*s %*s %*d %*d %lu", local,
                       &link->local_port, peer, &link->peer_port, &state, &inode);
    if (found != 6 || state != STATE_ESTABLISHED || !is_among(inode, sockets))
        return false;
    read_address(local, link->local);
    read_address(peer, link->peer);
    return true;
}

struct collection {
    struct link *links;
    int count;
};

static void collect_from(const char *path, const struct ifaddrs *interfaces, const unsigned long *sockets,
                         struct collection *found) {
    char line[512];
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        struct link link = {0};
        if (!read_line(line, sockets, &link))
            continue;
        find_interface(&link, interfaces);
        found->links = grow(found->links, (size_t)found->count + 1, sizeof link);
        found->links[found->count++] = link;
    }
    if (file != NULL)
        fclose(file);
}

static struct collection collect(void) {
    struct collection found = {0};
    struct ifaddrs *interfaces = NULL;
    unsigned long *sockets = own_sockets();
    if (getifaddrs(&interfaces) != 0)
        interfaces = NULL;
    collect_from("/proc/self/net/tcp", interfaces, sockets, &found);
    collect_from("/proc/self/net/tcp6", interfaces, sockets, &found);
    freeifaddrs(interfaces);
    free(sockets);
    return found;
}

/* Masquerading (Docker's, for its bridge) may rewrite the address of one end, not of both. */
static bool are_two_ends(const struct link *a, const struct link *b) {
    return a->local_port == b->peer_port && a->peer_port == b->local_port &&
           (strcmp(a->local, b->peer) == 0 || strcmp(a->peer, b->local) == 0);
}

/* The two ends of a connection have the same two ports and so share a bucket. */
static void match_ends(struct link *links, int count) {
    int *first = harness_allocate(BUCKETS, sizeof *first);
    for (int i = 0; i < BUCKETS; i++)
        first[i] = -1;
    for (int i = 0; i < count; i++) {
        int bucket = (links[i].local_port ^ links[i].peer_port) % BUCKETS;
        for (int other = first[bucket]; other >= 0; other = links[other].next)
            if (are_two_ends(&links[i], &links[other]))
                links[i].has_peer = links[other].has_peer = true;
        links[i].next = first[bucket];
        first[bucket] = i;
    }
    free(first);
}

struct links links_gather(const struct world *world) {
    const int bytes_each = (int)sizeof(struct link);
    struct links all = {0};
    struct collection own = collect();
    int *bytes = harness_allocate((size_t)world->size, sizeof *bytes);
    int *offsets = harness_allocate((size_t)world->size, sizeof *offsets);
    all.start = harness_allocate((size_t)world->size + 1, sizeof *all.start);
    MPI_Gather(&own.count, 1, MPI_INT, all.start + 1, 1, MPI_INT, 0, harness_comm);
    for (int rank = 0; rank < world->size; rank++) {
        bytes[rank] = all.start[rank + 1] * bytes_each;
        offsets[rank] = all.start[rank] * bytes_each;
        all.start[rank + 1] += all.start[rank];
    }
    all.at = harness_allocate((size_t)all.start[world->size], sizeof *all.at);
    MPI_Gatherv(own.links, own.count * bytes_each, MPI_BYTE, all.at, bytes, offsets, MPI_BYTE, 0,
                harness_comm);
    match_ends(all.at, all.start[world->size]);
    free(own.links);
    free(bytes);
    free(offsets);
    return all;
}

/* Open MPI may hold several connections between the same two addresses: one entry says it. */
static bool is_listed(const struct link *first, const struct link *link) {
    for (const struct link *earlier = first; earlier < link; earlier++)
        if (earlier->has_peer && strcmp(earlier->local, link->local) == 0 &&
            strcmp(earlier->peer, link->peer) == 0)
            return true;
    return false;
}

void links_add(struct text *text, const struct links *links, int rank) {
    const struct link *first = links->at + links->start[rank];
    const char *separator = "";
    text_add(text, "[");
    for (const struct link *link = first; link < links->at + links->start[rank + 1]; link++) {
        if (!link->has_peer || is_listed(first, link))
            continue;
        text_add(text, "%s{\"interface\":", separator);
        text_add_string(text, link->interface);
        text_add(text, ",\"local\":\"%s\",\"peer\":\"%s\"}", link->local, link->peer);
        separator = ",";
    }
    text_add(text, "]");
}

void links_free(struct links *links) {
    free(links->at);
    free(links->start);
}
