/* The first process listens at MASTER_ADDR:MASTER_PORT, or at one of the next
 * ports if another program uses that.  The others connect to it, each with a
 * port of its own, and get the list of all.  Then each connects to those
 * between the first and itself. */
#include "runtime/team/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/support/now.h"
#include "runtime/support/number.h"

enum { MAGIC = 0x636b7231, PORTS = 8, LAST_PORT = 65535 - PORTS, REPLY = 2,
       NAP = 100000, RETRIES = 4 };

struct rendezvous {
	const char *address;
	uint64_t port;                  /* the first that is tried */
	uint32_t rank, size, arrived;   /* arrived: of the others */
	double end;                     /* time by the clock */
	char *buf;
	size_t nbuf;
};

static const char *
set_error(struct rendezvous *d, const char *what)
{
	snprintf(d->buf, d->nbuf, "rank %u of %u, first process at %s, port "
	         "%llu (MASTER_ADDR, MASTER_PORT): %s", d->rank, d->size,
	         d->address, (unsigned long long)d->port, what);
	return d->buf;
}

static const char *
set_errno_error(struct rendezvous *d, const char *what)
{
	char text[160];

	snprintf(text, sizeof(text), "%s: %s", what, strerror(errno));
	return set_error(d, text);
}

/* ---- bytes ---- */

/* Until the clock shows `end`. */
static bool
wait_for(int fd, short what, double end)
{
	struct pollfd p = { .fd = fd, .events = what };
	double left = end - now_sec();

	return left > 0 && poll(&p, 1, (int)(left * 1000) + 1) > 0;
}

static bool
send_all(int fd, const void *data, size_t n, double end)
{
	for (const char *p = data; n;) {
		ssize_t k = wait_for(fd, POLLOUT, end)
		            ? send(fd, p, n, MSG_NOSIGNAL) : -1;

		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

static bool
receive_all(int fd, void *data, size_t n, double end)
{
	for (char *p = data; n;) {
		ssize_t k = wait_for(fd, POLLIN, end) ? recv(fd, p, n, 0) : -1;

		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

/* ---- addresses ---- */

/* Both kinds of addresses come to it. */
static int
listen_at(uint64_t port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)port),
		.sin6_addr = in6addr_any };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	int off = 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (!bind(fd, (struct sockaddr *)&a, sizeof(a))
	    && !listen(fd, SOMAXCONN))
		return fd;
	close(fd);
	return -1;
}

static uint32_t
port_of(int fd)
{
	struct sockaddr_in6 a = { .sin6_port = 0 };
	socklen_t n = sizeof(a);

	getsockname(fd, (struct sockaddr *)&a, &n);
	return ntohs(a.sin6_port);
}

static int
connect_to(const struct sockaddr *a, socklen_t n)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, a, n)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int
connect_card(const struct rendezvous_card *c)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)c->port) };

	memcpy(&a.sin6_addr, c->address, sizeof(c->address));
	return connect_to((struct sockaddr *)&a, sizeof(a));
}

/* ---- the first process ---- */

static bool
is_of_this_run(const struct rendezvous_card *c, const struct rendezvous *d)
{
	return c->magic == MAGIC && c->size == d->size && c->rank < d->size
	       && c->rank != d->rank;
}

/* Whether it answers: one that had to wait too long has left by now, and comes
 * again. */
static bool
welcome(int fd)
{
	const double end = now_sec() + REPLY;
	uint32_t word = MAGIC;

	return send_all(fd, &word, sizeof(word), end)
	       && receive_all(fd, &word, sizeof(word), end) && word == MAGIC;
}

/* Who comes and is none of the run is sent away. */
static void
accept_peer(struct rendezvous *d, int at, int *fd, struct rendezvous_card *card)
{
	struct sockaddr_in6 a;
	socklen_t n = sizeof(a);
	struct rendezvous_card c;
	int one = accept4(at, (struct sockaddr *)&a, &n, SOCK_CLOEXEC);

	if (one < 0)
		return;
	if (!receive_all(one, &c, sizeof(c), now_sec() + REPLY)
	    || !is_of_this_run(&c, d) || !welcome(one)) {
		close(one);
		return;
	}
	memcpy(c.address, &a.sin6_addr, sizeof(c.address));
	card[c.rank] = c;
	if (fd[c.rank] >= 0)
		close(fd[c.rank]);
	else
		d->arrived++;
	fd[c.rank] = one;
}

static const char *
wait_for_all(struct rendezvous *d, int at, uint32_t wanted, int *fd,
             struct rendezvous_card *card)
{
	char text[120];

	while (d->arrived < wanted && wait_for(at, POLLIN, d->end))
		accept_peer(d, at, fd, card);
	if (d->arrived == wanted)
		return NULL;
	snprintf(text, sizeof(text), "only %u of %u other processes have "
	         "joined in time", d->arrived, wanted);
	return set_error(d, text);
}

static const char *
accept_all_peers(struct rendezvous *d, int *fd, struct rendezvous_card *card)
{
	const char *why;
	int at = -1;

	for (uint64_t p = d->port; p < d->port + PORTS && at < 0; p++)
		at = listen_at(p);
	if (at < 0)
		return set_errno_error(d, "cannot listen on this port");
	why = wait_for_all(d, at, d->size - 1, fd, card);
	close(at);
	for (uint32_t r = 1; r < d->size && !why; r++)
		if (!send_all(fd[r], card, d->size * sizeof(*card), d->end))
			why = set_errno_error(d, "a process has disconnected");
	return why;
}

/* ---- the others ---- */

/* Send the card, receive the magic number of the run, and confirm; else the
 * connection is closed. */
static bool
shake_hands(int fd, const struct rendezvous_card *mine)
{
	double end = now_sec() + REPLY;
	uint32_t word = 0;

	if (fd < 0)
		return false;
	if (send_all(fd, mine, sizeof(*mine), end)
	    && receive_all(fd, &word, sizeof(word), end) && word == MAGIC
	    && send_all(fd, &word, sizeof(word), end))
		return true;
	close(fd);
	return false;
}

/* A connection to the first process, if it listens there. */
static int
try_port(const struct rendezvous *d, uint64_t port,
         const struct rendezvous_card *mine)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	char text[8];
	int fd = -1;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)port);
	if (getaddrinfo(d->address, text, &hints, &list))
		return -1;
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = connect_to(a->ai_addr, a->ai_addrlen);
	freeaddrinfo(list);
	return shake_hands(fd, mine) ? fd : -1;
}

/* The list of all comes when they all have. */
static const char *
join_first(struct rendezvous *d, int *fd, struct rendezvous_card *card)
{
	const struct rendezvous_card mine = card[d->rank];

	for (uint64_t k = 0; fd[0] < 0; k++) {
		if (now_sec() > d->end)
			return set_error(d, "no answer in time");
		fd[0] = try_port(d, d->port + k % PORTS, &mine);
		if (fd[0] < 0)
			usleep(NAP);
	}
	if (!receive_all(fd[0], card, d->size * sizeof(*card), d->end))
		return set_error(d, "not all processes have joined in time");
	return NULL;
}

/* Connect to all lower ranks; higher ranks connect to this one. */
static const char *
connect_lower_ranks(struct rendezvous *d, int at, int *fd,
                    struct rendezvous_card *card)
{
	const struct rendezvous_card mine = card[d->rank];

	for (uint32_t r = 1; r < d->rank; r++) {
		while (fd[r] < 0 && now_sec() < d->end) {
			int one = connect_card(&card[r]);

			fd[r] = shake_hands(one, &mine) ? one : -1;
		}
		if (fd[r] < 0)
			return set_errno_error(d,
			                       "cannot reach another process");
	}
	return wait_for_all(d, at, d->size - 1 - d->rank, fd, card);
}

/* ---- all ---- */

static bool
read_address(struct rendezvous *d)
{
	const char *port = getenv("MASTER_PORT");
	const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE");

	d->address = getenv("MASTER_ADDR");
	if (!d->address || !port || !number_whole(port, LAST_PORT, &d->port)
	    || !d->port)
		return false;
	/* torchrun listens there itself */
	d->port += store && !strcmp(store, "True");
	return true;
}

/* Whether the first process's address is one: a name that nobody knows will be
 * no better known later.  One that cannot be asked about now may be. */
static const char *
check_address(struct rendezvous *d)
{
	struct addrinfo *list = NULL;
	char text[160];
	int is = EAI_AGAIN;

	for (int k = 0; k < RETRIES && is == EAI_AGAIN; k++) {
		if (k)
			sleep(1);
		is = getaddrinfo(d->address, NULL, NULL, &list);
	}
	if (!is) {
		freeaddrinfo(list);
		return NULL;
	}
	snprintf(text, sizeof(text), "cannot resolve the address: %s",
	         gai_strerror(is));
	return set_error(d, text);
}

const char *
rendezvous(uint32_t rank, uint32_t size, double timeout, int *fd,
           struct rendezvous_card *card, char *buf, size_t nbuf)
{
	struct rendezvous d = { .rank = rank, .size = size, .buf = buf,
		.nbuf = nbuf, .end = now_sec() + timeout };
	struct rendezvous_card *mine = &card[rank];
	const char *why;
	int at = -1, on = 1;

	if (!read_address(&d))
		return "expected MASTER_ADDR, and a port from 1 to 65527 in "
		       "MASTER_PORT; the ports after it may be used too";
	for (uint32_t r = 0; r < size; r++)
		fd[r] = -1;
	why = check_address(&d);
	if (why)
		return why;
	mine->magic = MAGIC;
	mine->rank = rank;
	mine->size = size;
	if (rank == 0)
		why = accept_all_peers(&d, fd, card);
	else {
		at = listen_at(0);
		if (at < 0)
			return set_errno_error(&d, "cannot listen");
		mine->port = port_of(at);
		why = join_first(&d, fd, card);
		if (!why)
			why = connect_lower_ranks(&d, at, fd, card);
		close(at);
	}
	for (uint32_t r = 0; r < size && !why; r++)
		if (r != rank)
			setsockopt(fd[r], IPPROTO_TCP, TCP_NODELAY, &on,
			           sizeof(on));
	return why;
}
