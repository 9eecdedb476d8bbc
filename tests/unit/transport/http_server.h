/* A server on loopback that does what a test says, byte for byte. Each connection has a thread of
 * its own, which reads requests and calls `serve` for each.
 *
 *   server_start -> serve... -> server_stop */
#ifndef TESTS_UNIT_TRANSPORT_HTTP_SERVER_H
#define TESTS_UNIT_TRANSPORT_HTTP_SERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"

#define SERVER_PEERS 256
#define SERVER_REQUESTS 1024
#define SERVER_REQUEST 16384 /* bytes of one, its body included */

struct server;

/* A connection. */
struct peer {
    struct server *server;
    pthread_t thread;
    int fd;
    bool gone;           /* the client has closed, or we have */
    uint64_t written_ns; /* when bytes were last taken */
    uint64_t gone_ns;    /* when a write or a read first found the client gone */
};

/* Answers the request, which is the nth of the server, counted from 0. */
typedef void serve_fn(struct server *s, struct peer *p, unsigned nth, const char *request);

struct server {
    serve_fn *serve;
    const void *ctx;
    bool raw; /* calls serve at once, with an empty request, and then closes */
    int fd;
    unsigned port;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows, and of each peer's fd */
    bool stopping;
    struct peer peers[SERVER_PEERS];
    unsigned n_peers, n_requests;
    unsigned at_once, most_at_once;  /* requests under way */
    char *requests[SERVER_REQUESTS]; /* owned */
};

static inline void peer_gone(struct peer *p)
{
    if (!p->gone)
        p->gone_ns = sbx_clock_now();
    p->gone = true;
}

/* Sends all of it, however long that takes; false once the client is gone. */
static inline bool peer_send(struct peer *p, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n > 0 && !p->gone) {
        struct pollfd room = {.fd = p->fd, .events = POLLOUT};
        /* A write that blocks would tell only at its end what it wrote at its beginning. */
        ssize_t sent = send(p->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EAGAIN) {
            (void)poll(&room, 1, -1);
            continue;
        }
        if (sent <= 0) {
            peer_gone(p);
            break;
        }
        p->written_ns = sbx_clock_now();
        at += sent;
        n -= (size_t)sent;
    }
    return !p->gone;
}

static inline bool peer_text(struct peer *p, const char *text)
{
    return peer_send(p, text, strlen(text));
}

static inline bool peer_fill(struct peer *p, char c, size_t n)
{
    char block[65536];

    memset(block, c, sizeof(block));
    for (; n > 0 && !p->gone; n -= n < sizeof(block) ? n : sizeof(block))
        (void)peer_send(p, block, n < sizeof(block) ? n : sizeof(block));
    return !p->gone;
}

/* Waits until the client closes; returns how long that took. */
static inline double peer_wait_gone(struct peer *p)
{
    uint64_t began = sbx_clock_now();
    char c;

    while (!p->gone)
        if (recv(p->fd, &c, 1, 0) <= 0)
            peer_gone(p);
    return (double)(p->gone_ns - began) / 1e9;
}

static inline void peer_close(struct peer *p)
{
    peer_gone(p);
}

/* Lets what was sent arrive, then resets. */
static inline void peer_reset(struct peer *p)
{
    const struct linger now = {.l_onoff = 1};

    (void)usleep(50000);
    (void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    peer_gone(p);
}

/* Reads one request with its body; false if the client closes before. */
static inline bool peer_read(struct peer *p, char *request)
{
    size_t n = 0, want = 0;

    while (want == 0 || n < want) {
        ssize_t got = recv(p->fd, request + n, SERVER_REQUEST - 1 - n, 0);
        const char *end, *length;

        if (got <= 0)
            return false;
        n += (size_t)got;
        request[n] = '\0';
        end = strstr(request, "\r\n\r\n");
        if (!end)
            continue;
        length = strstr(request, "Content-Length: ");
        want = (size_t)(end + 4 - request);
        if (length && length < end)
            want += strtoul(length + 16, NULL, 10); /* banned-ok: our own client's number */
    }
    return true;
}

static inline unsigned server_note(struct server *s, const char *request)
{
    unsigned nth;

    (void)pthread_mutex_lock(&s->lock);
    nth = s->n_requests++;
    if (nth < SERVER_REQUESTS)
        s->requests[nth] = strdup(request);
    if (++s->at_once > s->most_at_once)
        s->most_at_once = s->at_once;
    (void)pthread_mutex_unlock(&s->lock);
    return nth;
}

static inline void server_noted(struct server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->at_once--;
    (void)pthread_mutex_unlock(&s->lock);
}

static inline void *peer_run(void *ctx)
{
    struct peer *p = ctx;
    struct server *s = p->server;
    char *request = calloc(1, SERVER_REQUEST);

    if (s->raw)
        s->serve(s, p, server_note(s, ""), "");
    while (request && !s->raw && !p->gone && peer_read(p, request)) {
        s->serve(s, p, server_note(s, request), request);
        server_noted(s);
    }
    free(request);
    peer_gone(p);
    (void)pthread_mutex_lock(&s->lock);
    (void)close(p->fd);
    p->fd = -1;
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static inline void *server_run(void *ctx)
{
    struct server *s = ctx;
    int fd;

    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        const int on = 1;
        struct peer *p;

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)pthread_mutex_lock(&s->lock);
        p = s->n_peers < SERVER_PEERS && !s->stopping ? &s->peers[s->n_peers] : NULL;
        if (p) {
            *p = (struct peer){.server = s, .fd = fd};
            if (pthread_create(&p->thread, NULL, peer_run, p))
                abort();
            s->n_peers++;
        } else {
            (void)close(fd);
        }
        (void)pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static inline bool server_start(struct server *s, serve_fn *serve, const void *ctx)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(at);

    s->serve = serve;
    s->ctx = ctx;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&at, n) < 0 || listen(s->fd, 128) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&at, &n) < 0)
        return false;
    s->port = ntohs(at.sin_port);
    return pthread_mutex_init(&s->lock, NULL) == 0 &&
           pthread_create(&s->thread, NULL, server_run, s) == 0;
}

/* Ends all connections. What was noted stays until server_free(). */
static inline void server_stop(struct server *s)
{
    if (s->port == 0 || s->stopping)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->stopping = true;
    for (unsigned i = 0; i < s->n_peers; i++)
        if (s->peers[i].fd >= 0)
            (void)shutdown(s->peers[i].fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&s->lock);
    (void)shutdown(s->fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    for (unsigned i = 0; i < s->n_peers; i++)
        (void)pthread_join(s->peers[i].thread, NULL);
    (void)close(s->fd);
}

static inline void server_free(struct server *s)
{
    server_stop(s);
    for (unsigned i = 0; i < s->n_requests && i < SERVER_REQUESTS; i++)
        free(s->requests[i]);
    if (s->port)
        (void)pthread_mutex_destroy(&s->lock);
    *s = (struct server){.fd = -1};
}

static inline unsigned server_count(struct server *s, const char *part)
{
    unsigned n = 0;

    (void)pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_requests && i < SERVER_REQUESTS; i++)
        n += strstr(s->requests[i], part) != NULL;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

/* How many connections there were. */
static inline unsigned server_peers(struct server *s)
{
    unsigned n;

    (void)pthread_mutex_lock(&s->lock);
    n = s->n_peers;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

/* An answer of a table: its bytes as text, how they are sent, and what then happens. */
enum after {
    AFTER_KEEP = 0, /* the connection stays for more requests */
    AFTER_CLOSE,
    AFTER_RESET,
    AFTER_HANG,  /* nothing more comes */
    AFTER_FLOOD, /* `loop` again and again */
    AFTER_DRIP,  /* the same, slowly */
};

struct answer {
    const char *text;
    size_t fill; /* zero bytes behind it */
    enum after after;
    bool bytewise;
    const char *loop;
};

static inline void peer_answer(struct peer *p, const struct answer *a)
{
    size_t n = strlen(a->text), step = a->bytewise ? 1 : n;

    for (size_t at = 0; at < n; at += step) {
        (void)peer_send(p, a->text + at, step);
        if (a->bytewise)
            (void)usleep(1000);
    }
    (void)peer_fill(p, '\0', a->fill);
    switch (a->after) {
    case AFTER_KEEP:
        break;
    case AFTER_CLOSE:
        peer_close(p);
        break;
    case AFTER_RESET:
        peer_reset(p);
        break;
    case AFTER_HANG:
        (void)peer_wait_gone(p);
        break;
    case AFTER_FLOOD:
    case AFTER_DRIP:
        while (peer_text(p, a->loop))
            if (a->after == AFTER_DRIP)
                (void)usleep(20000);
        break;
    }
}

#endif
