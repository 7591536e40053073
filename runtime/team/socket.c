/* Every pair of processes has one connection, which carries the messages of all
 * groups in order, each after a head.  A message that arrives before it is
 * requested is kept.
 *
 * Nothing waits: bytes move while somebody tests a transfer.
 */
#include "runtime/team/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "runtime/team/launch.h"
#include "runtime/team/rendezvous.h"

/* `what`: a group, or OOB: n is an out-of-band message, or MESSAGE and its tag.
 */
enum { OOB = COMM_GROUPS, MESSAGE };

struct message_head {
	uint64_t what, n;
};

/* What has come too early. */
struct early_message {
	struct early_message *next;
	uint64_t what, n;
	char data[];
};

/* Bytes on their way. */
struct socket_message {
	struct message_head head;
	char *data;
	uint64_t done;                  /* of head and data */
	bool on;
};

struct peer {
	int fd;
	bool recv_closed, send_closed;  /* nothing comes; nothing goes */
	struct socket_message out[MESSAGE + 1], in;
	int now;                        /* of out: -1: none has begun */
	struct transport_message *send; /* that out[MESSAGE] sends, and those
	                                 * after it */
	struct transport_message *receive;      /* wanted */
	struct transport_message *arriving;     /* of these, now */
	struct early_message *early[COMM_GROUPS], *filling;
	struct early_message *early_message;    /* of all tags */
	bool received[COMM_GROUPS];     /* of the group's transfer */
	bool has_oob;
	uint64_t oob_word;
};

struct socket_group {
	bool on;
	struct transport_side side;          /* to here */
	uint32_t first, by, n;          /* its ranks */
};

static struct {
	uint32_t rank, size;
	struct peer *peer;              /* [size] */
	struct rendezvous_card *card;   /* [size] */
	struct socket_group group[COMM_GROUPS];
	atomic_uint *beat;              /* heartbeat of this process */
	uint32_t *local;
	atomic_uint **heartbeat;
	int *count, *zero;              /* [size] */
	char text[400];
} run;

/* ---- coming ---- */

static atomic_uint *
map_word(int fd)
{
	void *p = mmap(NULL, sizeof(atomic_uint), PROT_READ | PROT_WRITE,
	               MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* This machine, as it is since it was started. */
static void
find_host(struct rendezvous_card *mine)
{
	struct utsname name = { .nodename = "" };
	char boot[40] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (f) {
		if (!fgets(boot, sizeof(boot), f))
			*boot = '\0';
		fclose(f);
	}
	uname(&name);
	snprintf(mine->host, sizeof(mine->host), "%.36s %.50s", boot,
	         name.nodename);
}

/* Map the heartbeat of another local process; if that fails, use this one's, so
 * that it never looks stopped. */
static atomic_uint *
open_word(const struct rendezvous_card *c)
{
	atomic_uint *word;
	char path[64];
	int fd;

	if (c->rank == run.rank)
		return run.beat;
	snprintf(path, sizeof(path), "/proc/%lld/fd/%d", (long long)c->pid,
	         c->heartbeat_fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	word = fd < 0 ? NULL : map_word(fd);
	if (fd >= 0)
		close(fd);
	return word ? word : run.beat;
}

static const char *
map_heartbeats(struct transport_place *place)
{
	const struct rendezvous_card *mine = &run.card[run.rank];

	for (uint32_t r = 0; r < run.size; r++) {
		if (strcmp(run.card[r].host, mine->host))
			continue;
		run.local[place->nlocal] = r;
		run.heartbeat[place->nlocal++] = open_word(&run.card[r]);
	}
	place->local = run.local;
	place->heartbeat = run.heartbeat;
	return NULL;
}

static bool
alloc_peers(uint32_t size)
{
	run.peer = calloc(size, sizeof(*run.peer));
	run.card = calloc(size, sizeof(*run.card));
	run.local = calloc(size, sizeof(*run.local));
	run.heartbeat = calloc(size, sizeof(*run.heartbeat));
	run.count = calloc(size, sizeof(*run.count));
	run.zero = calloc(size, sizeof(*run.zero));
	return run.peer && run.card && run.local && run.heartbeat && run.count
	       && run.zero;
}

/* The next rank is process r of the launcher. */
static void
add_rank(const struct launch *l, uint32_t r, const struct rendezvous_card *card,
         const int *fd)
{
	uint32_t n = run.size++;

	run.peer[n] = (struct peer){ .fd = fd[r], .now = -1 };
	run.card[n] = card[r];
	run.card[n].rank = n;
	if (r == l->rank)
		run.rank = n;
	else
		fcntl(fd[r], F_SETFL, O_NONBLOCK);
}

static bool
is_first_of_machine(const struct rendezvous_card *card, uint32_t r)
{
	for (uint32_t k = 0; k < r; k++)
		if (!strcmp(card[k].host, card[r].host))
			return false;
	return true;
}

/* Ranks of a machine are neighbours, however the launcher numbers them. */
static void
order_ranks(const struct launch *l, const struct rendezvous_card *card,
            const int *fd)
{
	for (uint32_t first = 0; first < l->size; first++) {
		if (!is_first_of_machine(card, first))
			continue;
		for (uint32_t r = first; r < l->size; r++)
			if (!strcmp(card[r].host, card[first].host))
				add_rank(l, r, card, fd);
	}
}

/* fd, card: [l->size], by the launcher's numbers. */
static const char *
meet(const struct launch *l, double timeout, int *fd,
     struct rendezvous_card *card)
{
	int word = memfd_create("ckr", MFD_CLOEXEC);
	const char *why;

	if (!fd || !card)
		return "out of memory";
	if (word < 0 || ftruncate(word, sizeof(atomic_uint))
	    || !(run.beat = map_word(word)))
		return "cannot create shared memory";
	find_host(&card[l->rank]);
	card[l->rank].pid = getpid();
	card[l->rank].heartbeat_fd = word;
	why = rendezvous(l->rank, l->size, timeout, fd, card, run.text,
	                 sizeof(run.text));
	if (!why)
		order_ranks(l, card, fd);
	return why;
}

static const char *
open_socket(struct transport_place *place)
{
	struct launch l = launch_find();
	struct rendezvous_card *card;
	const char *why;
	int *fd;

	*place = (struct transport_place){ .rank = l.rank, .size = l.size,
		.timeout = place->timeout };
	if (l.rank >= l.size)
		return "expected a rank below the number of processes";
	if (!alloc_peers(l.size))
		return "out of memory";
	card = calloc(l.size, sizeof(*card));
	fd = calloc(l.size, sizeof(*fd));
	why = meet(&l, place->timeout, fd, card);
	free(card);
	free(fd);
	if (why)
		return why;
	place->rank = run.rank;
	run.group[COMM_ALL] = (struct socket_group){ .by = 1, .n = run.size };
	return map_heartbeats(place);
}

static const char *
split_groups(const struct comm_mesh *mesh)
{
	for (int g = COMM_TP; g < COMM_GROUPS; g++) {
		struct comm_ranks r = comm_ranks_of(mesh, (enum comm_group)g,
		                                    run.rank);

		run.group[g] = (struct socket_group){ .first = r.first,
			.by = r.by, .n = r.n };
	}
	return NULL;
}

/* ---- bytes ---- */

static const char *
peer_error(uint32_t r, const char *what)
{
	run.peer[r].recv_closed = true;
	snprintf(run.text, sizeof(run.text), "rank %u %s", r, what);
	return run.text;
}

/* Send or receive n bytes, head and data together; true: all are done. */
static bool
move_bytes(struct peer *p, struct socket_message *f, uint64_t n, bool out)
{
	while (f->done < n) {
		bool head = f->done < sizeof(f->head);
		uint64_t left = (head ? sizeof(f->head) : n) - f->done;
		char *at = head ? (char *)&f->head + f->done
		           : f->data + (f->done - sizeof(f->head));
		ssize_t k = out ? send(p->fd, at, left, MSG_NOSIGNAL)
		            : recv(p->fd, at, left, 0);

		if (k > 0)
			f->done += (uint64_t)k;
		else if (k < 0 && errno == EINTR)
			continue;
		else if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		else {
			*(out ? &p->send_closed : &p->recv_closed) = true;
			return false;
		}
	}
	return true;
}

/* The first message to the peer that has not begun. */
static void
queue_message(struct peer *p)
{
	struct transport_message *m = p->send;

	if (m && !p->out[MESSAGE].on)
		p->out[MESSAGE] = (struct socket_message){
			.head = { MESSAGE + m->tag, (uint64_t)m->n },
			.data = m->data, .on = true };
}

static uint64_t
message_length(const struct socket_message *f)
{
	return sizeof(f->head) + (f->head.what == OOB ? 0 : f->head.n);
}

/* To a closed connection it is as if sent. */
static void
push_out(struct peer *p)
{
	for (;;) {
		queue_message(p);
		for (int k = 0; k <= MESSAGE && p->now < 0; k++)
			if (p->out[k].on)
				p->now = k;
		if (p->now < 0)
			return;
		if (!p->send_closed
		    && !move_bytes(p, &p->out[p->now],
		                   message_length(&p->out[p->now]), true)
		    && !p->send_closed)
			return;
		p->out[p->now].on = false;
		if (p->now == MESSAGE) {
			p->send->done = true;
			p->send = p->send->next;
		}
		p->now = -1;
	}
}

/* ---- what comes ---- */

static uint32_t
index_in_group(const struct socket_group *l, uint32_t rank)
{
	return (rank - l->first) / l->by;
}

/* Behind others in a list; NULL: no memory. */
static char *
keep_early(struct peer *p, struct early_message **at)
{
	const struct message_head *h = &p->in.head;
	struct early_message *e = malloc(sizeof(*e) + h->n);

	if (!e)
		return NULL;
	*e = (struct early_message){ .what = h->what, .n = h->n };
	while (*at)
		at = &(*at)->next;
	*at = p->filling = e;
	return e->data;
}

/* The place in the list of the first message of a tag; or the list's end. */
static struct early_message **
find_early(struct peer *p, uint64_t what)
{
	struct early_message **at = &p->early_message;

	while (*at && (*at)->what != what)
		at = &(*at)->next;
	return at;
}

/* For a message of one rank to another. */
static char *
find_message_buffer(struct peer *p)
{
	const struct message_head *h = &p->in.head;
	struct transport_message **at = &p->receive, *m;

	while (*at && (*at)->tag != h->what - MESSAGE)
		at = &(*at)->next;
	m = *at;
	if (!m || *find_early(p, h->what))
		return keep_early(p, &p->early_message);
	if ((uint64_t)m->n != h->n)
		return NULL;
	*at = m->next;
	p->arriving = m;
	return m->data;
}

/* The buffer for an arriving message; NULL: no memory, or an invalid length. */
static char *
find_buffer(struct peer *p, uint32_t r)
{
	struct early_message **at;
	const struct message_head *h = &p->in.head;
	struct socket_group *l;

	if (h->what >= MESSAGE + CKR_MESSAGE_TAGS || h->n > INT32_MAX)
		return NULL;
	if (h->what >= MESSAGE)
		return find_message_buffer(p);
	l = &run.group[h->what];
	at = &p->early[h->what];
	if (l->on && !p->received[h->what] && !*at) {
		uint32_t k = index_in_group(l, r);

		return (uint64_t)l->side.count[k] == h->n
		       ? (char *)l->side.base + l->side.at[k] : NULL;
	}
	return keep_early(p, at);
}

static void
finish_message(struct peer *p)
{
	if (p->in.head.what == OOB) {
		p->oob_word = p->in.head.n;
		p->has_oob = true;
	} else if (p->arriving) {
		p->arriving->done = true;
	} else if (!p->filling) {
		p->received[p->in.head.what] = true;
	}
	p->arriving = NULL;
	p->filling = NULL;
	p->in = (struct socket_message){ .on = false };
}

/* The head, then what it says; on: that is known. */
static const char *
pull_in(uint32_t r)
{
	struct peer *p = &run.peer[r];
	struct socket_message *f = &p->in;

	while (move_bytes(p, f, sizeof(f->head), false)) {
		if (!f->on && f->head.what != OOB) {
			f->data = find_buffer(p, r);
			if (!f->data)
				return peer_error(r,
				                  "sent an unexpected message");
		}
		f->on = true;
		if (!move_bytes(p, f, message_length(f), false))
			return NULL;
		finish_message(p);
	}
	return NULL;
}

/* ---- transfers ---- */

static void
consume_early(struct peer *p, enum comm_group g, uint32_t k)
{
	const struct transport_side *to = &run.group[g].side;
	struct early_message *e = p->early[g];

	/* the rest of it is still to come: what is there is not enough */
	if (!e || p->received[g] || e == p->filling
	    || e->n != (uint64_t)to->count[k])
		return;
	memcpy((char *)to->base + to->at[k], e->data, e->n);
	p->received[g] = true;
	p->early[g] = e->next;
	free(e);
}

static const char *
begin_socket_alltoall(enum comm_group g, const struct transport_side *from,
                      const struct transport_side *to)
{
	struct socket_group *l = &run.group[g];

	l->side = *to;
	l->on = true;
	for (uint32_t k = 0; k < l->n; k++) {
		uint32_t r = l->first + k * l->by;
		struct peer *p = &run.peer[r];
		char *data = (char *)from->base + from->at[k];
		uint64_t n = (uint64_t)from->count[k];

		p->received[g] = to->count[k] == 0 || r == run.rank;
		if (r == run.rank && n)
			memmove((char *)to->base + to->at[k], data, n);
		else if (n)
			p->out[g] = (struct socket_message){ .head = { g, n },
				.data = data, .on = true };
	}
	return NULL;
}

static const char *
begin_socket_allgather(enum comm_group g, const void *from, int n,
                       const struct transport_side *to)
{
	struct transport_side side = { (void *)(uintptr_t)from, run.count,
		                       run.zero };

	for (uint32_t k = 0; k < run.group[g].n; k++)
		run.count[k] = n;
	return begin_socket_alltoall(g, &side, to);
}

static const char *
move_all_peers(void)
{
	const char *why = NULL;

	for (uint32_t r = 0; r < run.size && !why; r++) {
		if (r == run.rank || run.peer[r].recv_closed)
			continue;
		push_out(&run.peer[r]);
		why = pull_in(r);
	}
	return why;
}

static const char *
test_socket(enum comm_group g, bool *done)
{
	struct socket_group *l = &run.group[g];
	const char *why;

	*done = !l->on;
	if (!l->on)
		return NULL;
	why = move_all_peers();
	*done = true;
	for (uint32_t k = 0; k < l->n && !why; k++) {
		struct peer *p = &run.peer[l->first + k * l->by];

		consume_early(p, g, k);
		if (p->received[g] && !p->out[g].on)
			continue;
		*done = false;
		if (p->recv_closed)
			return peer_error(l->first + k * l->by,
			                  "has left the run");
	}
	l->on = !*done || why;
	return why;
}

/* ---- messages ---- */

/* What has come already; it may not be whole. */
static bool
take_early_message(struct transport_message *m)
{
	struct peer *p = &run.peer[m->rank];
	struct early_message **at = find_early(p, MESSAGE + m->tag), *e = *at;

	if (!e || e == p->filling || e->n != (uint64_t)m->n)
		return false;
	memcpy(m->data, e->data, e->n);
	*at = e->next;
	free(e);
	m->done = true;
	return true;
}

static const char *
begin_socket_message(struct transport_message *m)
{
	struct peer *p = &run.peer[m->rank];
	struct transport_message **at = m->out ? &p->send : &p->receive;

	m->done = false;
	m->next = NULL;
	if (!m->out && take_early_message(m))
		return NULL;
	while (*at)
		at = &(*at)->next;
	*at = m;
	return NULL;
}

/* No longer wanted. */
static void
remove_wanted(struct transport_message *m)
{
	struct transport_message **at = &run.peer[m->rank].receive;

	while (*at && *at != m)
		at = &(*at)->next;
	if (*at)
		*at = m->next;
}

static const char *
test_socket_message(struct transport_message *m)
{
	const char *why = m->done ? NULL : move_all_peers();

	if (why || m->done)
		return why;
	if (!m->out && take_early_message(m))
		remove_wanted(m);
	else if (run.peer[m->rank].recv_closed)
		return peer_error(m->rank, "has left the run");
	return NULL;
}

/* ---- out-of-band messages ---- */

static void
send_socket_oob(uint64_t word)
{
	for (uint32_t r = 0; r < run.size; r++)
		if (r != run.rank && !run.peer[r].out[OOB].on)
			run.peer[r].out[OOB] = (struct socket_message){
				.head = { OOB, word }, .on = true };
	move_all_peers();
}

static bool
receive_socket_oob(uint32_t *from, uint64_t *word)
{
	for (uint32_t r = 0; r < run.size; r++)
		if (run.peer[r].has_oob) {
			run.peer[r].has_oob = false;
			*from = r;
			*word = run.peer[r].oob_word;
			return true;
		}
	return false;
}

/* ---- leaving ---- */

/* Who is left alone ends, too. */
static void
abort_socket(int status)
{
	_exit(status);
}

/* All have come here, or are gone. */
static void
close_socket(void)
{
	char from = 0, bye;
	struct transport_side to = { &bye, run.count, run.zero };
	bool done = false;

	begin_socket_allgather(COMM_ALL, &from, 1, &to);
	while (!done && !test_socket(COMM_ALL, &done))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	for (uint32_t r = 0; r < run.size; r++)
		if (r != run.rank)
			close(run.peer[r].fd);
	free(run.peer);
	free(run.card);
	free(run.local);
	free(run.heartbeat);
	free(run.count);
	free(run.zero);
}

const struct ckr_transport socket_transport = {
	.version = CKR_TRANSPORT_VERSION, .name = "the run",
	.open = open_socket, .split = split_groups,
	.allgather = begin_socket_allgather,
	.alltoall = begin_socket_alltoall, .test = test_socket,
	.begin_message = begin_socket_message,
	.test_message = test_socket_message,
	.send_oob = send_socket_oob, .receive_oob = receive_socket_oob,
	.abort = abort_socket, .close = close_socket,
};
