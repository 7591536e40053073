/* Every pair of processes has one connection, on which what they send each
 * other in all groups lies one behind the other, a head before each.  What
 * comes before it is asked for, from who is ahead, is kept.
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
#include "runtime/team/meet.h"

/* `what`: a group, or that n is a word. */
enum { WORD = LINK_GROUPS };

struct head {
	uint64_t what, n;
};

/* What has come too early. */
struct early {
	struct early *next;
	uint64_t n;
	char data[];
};

/* Bytes on their way. */
struct flow {
	struct head head;
	char *data;
	uint64_t done;                  /* of head and data */
	bool on;
};

struct peer {
	int fd;
	bool gone, deaf;                /* nothing comes; nothing goes */
	struct flow out[LINK_GROUPS + 1], in;
	int now;                        /* of out: -1: none has begun */
	struct early *early[LINK_GROUPS], *filling;
	bool come[LINK_GROUPS];         /* of the group's transfer */
	bool heard;
	uint64_t word;
};

struct lane {
	bool on;
	struct link_side side;          /* to here */
	uint32_t first, by, n;          /* its ranks */
};

static struct {
	uint32_t rank, size;
	struct peer *peer;              /* [size] */
	struct meet_card *card;         /* [size] */
	int *fd;                        /* [size] */
	struct lane lane[LINK_GROUPS];
	atomic_uint *word;              /* this process's, that mates see */
	uint32_t *mate;
	atomic_uint **pulse;
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
find_host(struct meet_card *mine)
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

/* Of another process here; one that cannot be seen beats as this one does. */
static atomic_uint *
open_word(const struct meet_card *c)
{
	atomic_uint *word;
	char path[64];
	int fd;

	if (c->rank == run.rank)
		return run.word;
	snprintf(path, sizeof(path), "/proc/%lld/fd/%d", (long long)c->pid,
	         c->word);
	fd = open(path, O_RDWR | O_CLOEXEC);
	word = fd < 0 ? NULL : map_word(fd);
	if (fd >= 0)
		close(fd);
	return word ? word : run.word;
}

static const char *
find_mates(struct link_place *place)
{
	const struct meet_card *mine = &run.card[run.rank];

	for (uint32_t r = 0; r < run.size; r++) {
		if (strcmp(run.card[r].host, mine->host))
			continue;
		run.mate[place->nmate] = r;
		run.pulse[place->nmate++] = open_word(&run.card[r]);
	}
	place->mate = run.mate;
	place->pulse = run.pulse;
	return NULL;
}

static bool
take_memory(void)
{
	run.peer = calloc(run.size, sizeof(*run.peer));
	run.card = calloc(run.size, sizeof(*run.card));
	run.fd = calloc(run.size, sizeof(*run.fd));
	run.mate = calloc(run.size, sizeof(*run.mate));
	run.pulse = calloc(run.size, sizeof(*run.pulse));
	run.count = calloc(run.size, sizeof(*run.count));
	run.zero = calloc(run.size, sizeof(*run.zero));
	return run.peer && run.card && run.fd && run.mate && run.pulse
	       && run.count && run.zero;
}

static const char *
open_socket(struct link_place *place)
{
	struct launch l = launch_find();
	int word = memfd_create("ckr", MFD_CLOEXEC);
	const char *why;

	run.rank = place->rank = l.rank;
	run.size = place->size = l.size;
	place->nmate = 0;
	if (l.rank >= l.size)
		return "expected a rank below the number of processes";
	if (!take_memory())
		return "out of memory";
	if (word < 0 || ftruncate(word, sizeof(atomic_uint))
	    || !(run.word = map_word(word)))
		return "no memory to share";
	find_host(&run.card[run.rank]);
	run.card[run.rank].pid = getpid();
	run.card[run.rank].word = word;
	why = meet(run.rank, run.size, place->timeout, run.fd, run.card,
	           run.text, sizeof(run.text));
	if (why)
		return why;
	for (uint32_t r = 0; r < run.size; r++) {
		run.peer[r] = (struct peer){ .fd = run.fd[r], .now = -1 };
		if (r != run.rank)
			fcntl(run.fd[r], F_SETFL, O_NONBLOCK);
	}
	run.lane[LINK_ALL] = (struct lane){ .by = 1, .n = run.size };
	return find_mates(place);
}

static const char *
divide(uint32_t tp)
{
	run.lane[LINK_TP] = (struct lane){ .first = run.rank / tp * tp,
		.by = 1, .n = tp };
	run.lane[LINK_DP] = (struct lane){ .first = run.rank % tp, .by = tp,
		.n = run.size / tp };
	return NULL;
}

/* ---- bytes ---- */

static const char *
failed(uint32_t r, const char *what)
{
	run.peer[r].gone = true;
	snprintf(run.text, sizeof(run.text), "rank %u %s", r, what);
	return run.text;
}

/* Of n bytes of head and data as one; whether all are done. */
static bool
move(struct peer *p, struct flow *f, uint64_t n, bool out)
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
			*(out ? &p->deaf : &p->gone) = true;
			return false;
		}
	}
	return true;
}

static uint64_t
length(const struct flow *f)
{
	return sizeof(f->head) + (f->head.what == WORD ? 0 : f->head.n);
}

/* To one that hears no more it is as if sent. */
static void
push_out(struct peer *p)
{
	for (;;) {
		for (int k = 0; k <= WORD && p->now < 0; k++)
			if (p->out[k].on)
				p->now = k;
		if (p->now < 0)
			return;
		if (!p->deaf && !move(p, &p->out[p->now],
		                      length(&p->out[p->now]), true)
		    && !p->deaf)
			return;
		p->out[p->now].on = false;
		p->now = -1;
	}
}

/* ---- what comes ---- */

static uint32_t
place_in(const struct lane *l, uint32_t rank)
{
	return (rank - l->first) / l->by;
}

/* Where it goes; NULL: no memory, or too much of it. */
static char *
find_room(struct peer *p, uint32_t r)
{
	struct early **at, *e;
	const struct head *h = &p->in.head;
	struct lane *l;

	if (h->what >= LINK_GROUPS || h->n > INT32_MAX)
		return NULL;
	l = &run.lane[h->what];
	at = &p->early[h->what];
	if (l->on && !p->come[h->what] && !*at) {
		uint32_t k = place_in(l, r);

		return (uint64_t)l->side.count[k] == h->n
		       ? (char *)l->side.base + l->side.at[k] : NULL;
	}
	e = malloc(sizeof(*e) + h->n);
	if (!e)
		return NULL;
	*e = (struct early){ .n = h->n };
	while (*at)
		at = &(*at)->next;
	*at = p->filling = e;
	return e->data;
}

static void
end_in(struct peer *p)
{
	if (p->in.head.what == WORD) {
		p->word = p->in.head.n;
		p->heard = true;
	} else if (!p->filling)
		p->come[p->in.head.what] = true;
	p->filling = NULL;
	p->in = (struct flow){ .on = false };
}

/* The head, then what it says; on: that is known. */
static const char *
pull_in(uint32_t r)
{
	struct peer *p = &run.peer[r];
	struct flow *f = &p->in;

	while (move(p, f, sizeof(f->head), false)) {
		if (!f->on && f->head.what != WORD) {
			f->data = find_room(p, r);
			if (!f->data)
				return failed(r, "sends what was not to come");
		}
		f->on = true;
		if (!move(p, f, length(f), false))
			return NULL;
		end_in(p);
	}
	return NULL;
}

/* ---- transfers ---- */

static void
take_early(struct peer *p, enum link_group g, uint32_t k)
{
	const struct link_side *to = &run.lane[g].side;
	struct early *e = p->early[g];

	/* the rest of it is still to come: what is there is not enough */
	if (!e || p->come[g] || e == p->filling
	    || e->n != (uint64_t)to->count[k])
		return;
	memcpy((char *)to->base + to->at[k], e->data, e->n);
	p->come[g] = true;
	p->early[g] = e->next;
	free(e);
}

static const char *
begin(enum link_group g, const struct link_side *from,
      const struct link_side *to)
{
	struct lane *l = &run.lane[g];

	l->side = *to;
	l->on = true;
	for (uint32_t k = 0; k < l->n; k++) {
		uint32_t r = l->first + k * l->by;
		struct peer *p = &run.peer[r];
		char *data = (char *)from->base + from->at[k];
		uint64_t n = (uint64_t)from->count[k];

		p->come[g] = to->count[k] == 0 || r == run.rank;
		if (r == run.rank && n)
			memmove((char *)to->base + to->at[k], data, n);
		else if (n)
			p->out[g] = (struct flow){ .head = { g, n },
				.data = data, .on = true };
	}
	return NULL;
}

static const char *
gather(enum link_group g, const void *from, int n, const struct link_side *to)
{
	struct link_side side = { (void *)(uintptr_t)from, run.count,
		run.zero };

	for (uint32_t k = 0; k < run.lane[g].n; k++)
		run.count[k] = n;
	return begin(g, &side, to);
}

static const char *
move_all(void)
{
	const char *why = NULL;

	for (uint32_t r = 0; r < run.size && !why; r++) {
		if (r == run.rank || run.peer[r].gone)
			continue;
		push_out(&run.peer[r]);
		why = pull_in(r);
	}
	return why;
}

static const char *
test(enum link_group g, bool *done)
{
	struct lane *l = &run.lane[g];
	const char *why;

	*done = !l->on;
	if (!l->on)
		return NULL;
	why = move_all();
	*done = true;
	for (uint32_t k = 0; k < l->n && !why; k++) {
		struct peer *p = &run.peer[l->first + k * l->by];

		take_early(p, g, k);
		if (p->come[g] && !p->out[g].on)
			continue;
		*done = false;
		if (p->gone)
			return failed(l->first + k * l->by,
			              "has left the run");
	}
	l->on = !*done || why;
	return why;
}

/* ---- words ---- */

static void
tell(uint64_t word)
{
	for (uint32_t r = 0; r < run.size; r++)
		if (r != run.rank && !run.peer[r].out[WORD].on)
			run.peer[r].out[WORD] = (struct flow){
				.head = { WORD, word }, .on = true };
	move_all();
}

static bool
hear(uint32_t *from, uint64_t *word)
{
	for (uint32_t r = 0; r < run.size; r++)
		if (run.peer[r].heard) {
			run.peer[r].heard = false;
			*from = r;
			*word = run.peer[r].word;
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
	struct link_side to = { &bye, run.count, run.zero };
	bool done = false;

	gather(LINK_ALL, &from, 1, &to);
	while (!done && !test(LINK_ALL, &done))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	for (uint32_t r = 0; r < run.size; r++)
		if (r != run.rank)
			close(run.fd[r]);
	free(run.peer);
	free(run.card);
	free(run.fd);
	free(run.mate);
	free(run.pulse);
	free(run.count);
	free(run.zero);
}

const struct ckr_link socket_link = {
	.version = CKR_LINK_VERSION, .name = "the run",
	.open = open_socket, .divide = divide, .gather = gather,
	.exchange = begin, .test = test, .tell = tell, .hear = hear,
	.abort = abort_socket, .close = close_socket,
};
