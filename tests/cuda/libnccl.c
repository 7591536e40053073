/* NCCL between processes of this machine: what a rank sends is a file that the
 * others read, in a folder that the group's name is.  Sums are taken in the
 * order of ranks, of 16-bit floats in float32 and rounded once.  Built as
 * libnccl.so.2.
 *
 * Calls are given to a stream of the emulated GPU and carried out whenever
 * somebody calls its driver.
 *
 * A GPU has room for one call at a time: calls of other communicators wait for
 * the one that has begun, so ranks that begin calls in different orders hang.
 *
 * CKR_FAKE_NCCL=late: what is sent is read some calls later, and what is
 * received is there some calls after it has come; until then it is NaN.  How
 * many calls differs between ranks.
 * A message is over on both sides or on none: a rank that sends waits for the
 * one that receives, as NCCL may do.
 *
 * CKR_FAKE_NCCL=old: version 2.8.4.  CKR_FAKE_NCCL=error:N, hang:N: this rank's
 * collective N (from 0) fails, or never comes; message:N: its message N fails;
 * absent: it never joins.
 * CKR_FAKE_NCCL_DIR is where folders are made (/dev/shm).
 */
#include "runtime/device/nccl_api.h"
#include "tests/cuda/stream.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/support/half.h"

#define EXPORT __attribute__((visibility("default")))

enum { MOST = 64, ROOM = 256, REMOTE = 6, USAGE = 5 };

struct nccl_comm {
	char folder[100];
	int rank, size;
	uint64_t next;                  /* collectives so far */
	uint64_t sent[MOST], received[MOST];    /* messages, by rank */
	int error, aborted;
	int working;                    /* calls that have not ended */
};

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, SEND,
	RECEIVE };

struct call {
	enum kind kind;
	const void *x;
	void *y;
	size_t n;
	int type, op, peer;             /* peer: or root */
	uint64_t number;                /* of its kind of message */
	nccl_comm comm;
	struct fake_stream *stream;
};

/* What a stream is given: calls that are carried out together. */
struct group {
	struct call call[ROOM];
	int n;
	int sent, calls, wait;
};

static struct group open_group;
static const struct group *running;     /* occupies the GPU; NULL: none */
static int depth;
static uint64_t collectives, messages;

static int
wants(const char *what)
{
	const char *s = getenv("CKR_FAKE_NCCL");
	size_t n = strlen(what);

	return s && !strncmp(s, what, n) && (s[n] == '\0' || s[n] == ':');
}

/* "what:N" */
static int
wants_at(const char *what, uint64_t n)
{
	const char *s = getenv("CKR_FAKE_NCCL");

	return wants(what) && strchr(s, ':')
	       && strtoull(strchr(s, ':') + 1, NULL, 10) == n;
}

static size_t
size_of(int type)
{
	return type <= NCCL_U8 ? 1 : type == NCCL_F16 || type == NCCL_BF16 ? 2
	       : type <= NCCL_U32 || type == NCCL_F32 ? 4 : 8;
}

/* ---- files ---- */

static int
is_message(const struct call *c)
{
	return c->kind == SEND || c->kind == RECEIVE;
}

/* Of what rank `from` sends. */
static void
name_file(char *path, size_t n, const struct call *c, int from)
{
	if (is_message(c))
		snprintf(path, n, "%s/p%d.%d.%llu", c->comm->folder, from,
		         c->kind == SEND ? c->peer : c->comm->rank,
		         (unsigned long long)c->number);
	else
		snprintf(path, n, "%s/c%llu.%d", c->comm->folder,
		         (unsigned long long)c->number, from);
}

/* What who receives a message tells who sends it: it has come to that. */
static void
name_answer(char *path, size_t n, const struct call *c)
{
	int mine = c->comm->rank;

	snprintf(path, n, "%s/q%d.%d.%llu", c->comm->folder,
	         c->kind == SEND ? mine : c->peer,
	         c->kind == SEND ? c->peer : mine,
	         (unsigned long long)c->number);
}

static void
answer(const struct call *c)
{
	char path[200];
	FILE *f;

	name_answer(path, sizeof path, c);
	f = fopen(path, "w");
	if (!f || fclose(f)) {
		fprintf(stderr, "emulated NCCL: cannot write %s\n", path);
		abort();
	}
}

static int
has_answer(const struct call *c)
{
	char path[200];

	name_answer(path, sizeof path, c);
	return !access(path, F_OK);
}

static void
remove_answer(const struct call *c)
{
	char path[200];

	name_answer(path, sizeof path, c);
	unlink(path);
}

/* What all of them must agree in stands before what is sent. */
struct head {
	int kind, type, op, root;
	size_t n;
};

static void
write_file(const struct call *c, const void *data, size_t n)
{
	struct head h = { c->kind, c->type, c->op,
		is_message(c) ? 0 : c->peer, c->n };
	char path[200], ready[200];
	FILE *f;

	if (c->kind == SEND)
		h.kind = RECEIVE;
	name_file(ready, sizeof ready, c, c->comm->rank);
	snprintf(path, sizeof path, "%s/new%d", c->comm->folder, getpid());
	f = fopen(path, "w");
	if (!f || fwrite(&h, sizeof h, 1, f) != 1
	    || (n && fwrite(data, n, 1, f) != 1) || fclose(f)
	    || rename(path, ready)) {
		fprintf(stderr, "emulated NCCL: cannot write %s\n", ready);
		abort();
	}
}

/* NULL: not there yet, or not what was to come. */
static char *
read_file(const struct call *c, int from, size_t n)
{
	struct head h;
	char path[200], *data;
	FILE *f;

	name_file(path, sizeof path, c, from);
	f = fopen(path, "r");
	if (!f)
		return NULL;
	data = malloc(n + 1);
	if (fread(&h, sizeof h, 1, f) != 1 || h.kind != (int)c->kind
	    || h.type != c->type || h.op != c->op || h.n != c->n
	    || (!is_message(c) && h.root != c->peer)
	    || (n && fread(data, n, 1, f) != 1)) {
		fprintf(stderr, "emulated NCCL: ranks %d and %d call for "
		        "different things\n", from, c->comm->rank);
		c->comm->error = USAGE;
		free(data);
		data = NULL;
	}
	fclose(f);
	return data;
}

static int
has_come(const struct call *c, int from)
{
	char path[200];

	name_file(path, sizeof path, c, from);
	return !access(path, F_OK);
}

static void
remove_file(const struct call *c, int from)
{
	char path[200];

	name_file(path, sizeof path, c, from);
	unlink(path);
}

/* ---- sums ---- */

static float
widen(uint16_t x, int type)
{
	return type == NCCL_F16 ? half_to_float(x) : bf16_to_float(x);
}

#define REDUCE_AS(t) do { \
	t *to = y; \
	for (size_t i = 0; i < n; i++) { \
		t sum = ((const t *)x[0])[i]; \
		for (int r = 1; r < ranks; r++) { \
			t b = ((const t *)x[r])[i]; \
			sum = op == NCCL_SUM ? sum + b : sum > b ? sum : b; \
		} \
		to[i] = sum; \
	} \
} while (0)

static void
reduce16(char *const *x, int ranks, size_t n, int type, int op, uint16_t *y)
{
	for (size_t i = 0; i < n; i++) {
		float sum = widen(((const uint16_t *)x[0])[i], type);

		for (int r = 1; r < ranks; r++) {
			float b = widen(((const uint16_t *)x[r])[i], type);

			sum = op == NCCL_SUM ? sum + b : sum > b ? sum : b;
		}
		y[i] = type == NCCL_F16 ? float_to_half(sum)
		       : float_to_bf16(sum);
	}
}

static void
reduce(char *const *x, int ranks, size_t n, int type, int op, void *y)
{
	switch (type) {
	case NCCL_F32: REDUCE_AS(float); break;
	case NCCL_F64: REDUCE_AS(double); break;
	case NCCL_I32: REDUCE_AS(int32_t); break;
	case NCCL_I64: REDUCE_AS(int64_t); break;
	default: reduce16(x, ranks, n, type, op, y);
	}
}

/* ---- carrying out ---- */

/* Bytes that it sends, and receives. */
static size_t
bytes_out(const struct call *c)
{
	size_t n = c->n * size_of(c->type);

	if (c->kind == RECEIVE || (c->kind == BROADCAST
	                           && c->peer != c->comm->rank))
		return 0;
	return c->kind == REDUCE_SCATTER ? n * (size_t)c->comm->size : n;
}

static size_t
bytes_in(const struct call *c)
{
	size_t n = c->n * size_of(c->type);

	if (c->kind == SEND || (c->kind == REDUCE
	                        && c->peer != c->comm->rank))
		return 0;
	return c->kind == ALL_GATHER ? n * (size_t)c->comm->size : n;
}

static int
overlap(const struct call *c)
{
	const char *x = c->x, *y = c->y;

	return x && y && x < y + bytes_in(c) && y < x + bytes_out(c);
}

static void
spoil(const struct group *g)
{
	for (int i = 0; i < g->n; i++)
		if (!overlap(&g->call[i]))
			memset(g->call[i].y, 0xff, bytes_in(&g->call[i]));
}

static int
all_have_come(const struct call *c)
{
	if (c->kind == SEND)
		return has_answer(c);
	if (c->kind == RECEIVE)
		return has_come(c, c->peer);
	for (int r = 0; r < c->comm->size; r++)
		if (!has_come(c, r))
			return 0;
	return 1;
}

static void
receive(const struct call *c)
{
	size_t n = c->n * size_of(c->type);
	char *x[MOST] = { NULL };
	int ranks = c->comm->size;
	int first = c->kind == RECEIVE || c->kind == BROADCAST ? c->peer : 0;
	int end = c->kind == RECEIVE || c->kind == BROADCAST ? first + 1
	          : ranks, ok = 1;

	for (int r = first; r < end; r++) {
		x[r] = read_file(c, r, c->kind == REDUCE_SCATTER
		                 ? n * (size_t)ranks : n);
		ok &= x[r] != NULL;
	}
	for (int r = 0; r < end && ok && c->kind == REDUCE_SCATTER; r++)
		memmove(x[r], x[r] + (size_t)c->comm->rank * n, n);
	if (ok && c->kind == ALL_GATHER)
		for (int r = 0; r < end; r++)
			memcpy((char *)c->y + (size_t)r * n, x[r], n);
	else if (ok && (c->kind == RECEIVE || c->kind == BROADCAST))
		memcpy(c->y, x[first], n);
	else if (ok && bytes_in(c))
		reduce(x, ranks, c->n, c->type, c->op, c->y);
	for (int r = first; r < end; r++)
		free(x[r]);
	if (c->kind == RECEIVE)
		remove_file(c, c->peer);
}

/* Who has begun the next ones is through with these. */
static void
clean(const struct call *c, uint64_t before)
{
	struct call old = *c;

	while (old.number > 0 && old.number > before)
		old.number--;
	while (old.number-- > 0 && has_come(&old, c->comm->rank))
		remove_file(&old, c->comm->rank);
}

static int
begin(struct group *g)
{
	for (int i = 0; i < g->n; i++) {
		const struct call *c = &g->call[i];

		if (is_message(c) && wants_at("message", messages++)) {
			c->comm->error = REMOTE;
			return 0;
		}
		if (is_message(c))
			continue;
		if (wants_at("hang", collectives))
			return 0;
		if (wants_at("error", collectives)) {
			c->comm->error = REMOTE;
			return 0;
		}
		collectives++;
	}
	g->call[0].stream->enter();
	for (int i = 0; i < g->n; i++)
		if (g->call[i].kind != RECEIVE)
			write_file(&g->call[i], g->call[i].x,
			           bytes_out(&g->call[i]));
		else
			answer(&g->call[i]);
	if (wants("late"))
		spoil(g);
	g->call[0].stream->leave();
	g->sent = 1;
	return 1;
}

static int
ready(void *arg)
{
	struct group *g = arg;
	nccl_comm comm = g->call[0].comm;

	if (comm->aborted)
		return 1;
	if (comm->error || (wants("late") && g->calls++ < g->wait))
		return 0;
	if (!g->sent && (running || !begin(g)))
		return 0;
	running = g;
	for (int i = 0; i < g->n; i++)
		if (!all_have_come(&g->call[i]))
			return 0;
	if (wants("late") && g->calls++ < 2 * g->wait)
		return 0;
	g->call[0].stream->enter();
	for (int i = 0; i < g->n; i++)
		if (g->call[i].kind != SEND)
			receive(&g->call[i]);
		else
			remove_answer(&g->call[i]);
	g->call[0].stream->leave();
	if (comm->error)
		return 0;
	for (int i = 0; i < g->n; i++)
		if (!is_message(&g->call[i])) {
			clean(&g->call[i], g->call[i].number);
			break;
		}
	return 1;
}

static void
drop(void *arg)
{
	struct group *g = arg;

	g->call[0].comm->working--;
	if (running == g)
		running = NULL;
	free(g);
}

/* On the streams of its calls, which are one. */
static int
give(void)
{
	static unsigned state;
	struct group *g;

	if (open_group.n == 0)
		return 0;
	g = malloc(sizeof *g);
	*g = open_group;
	open_group.n = 0;
	state = (state ? state : (unsigned)getpid()) * 1664525u + 1013904223u;
	g->wait = (int)(state >> 8) % 40;
	for (int i = 0; i < g->n; i++) {
		struct call *c = &g->call[i];

		if (c->comm != g->call[0].comm
		    || c->stream != g->call[0].stream)
			return 4;
		c->number = c->kind == SEND ? c->comm->sent[c->peer]++
		            : c->kind == RECEIVE ? c->comm->received[c->peer]++
		            : c->comm->next++;
	}
	g->call[0].comm->working++;
	g->call[0].stream->keep_until(g->call[0].stream, ready, drop, g);
	return 0;
}

static int
add(struct call call, cu_stream stream)
{
	call.stream = (struct fake_stream *)stream;
	if (call.stream->capturing || call.comm->aborted
	    || open_group.n == ROOM || call.peer >= call.comm->size
	    || (is_message(&call) && call.peer == call.comm->rank))
		return 4;
	open_group.call[open_group.n++] = call;
	return depth ? 0 : give();
}

/* ---- what is called ---- */

EXPORT nccl_result
ncclGetVersion(int *version)
{
	*version = wants("old") ? 2804 : 22809;
	return 0;
}

EXPORT const char *
ncclGetErrorString(nccl_result r)
{
	return r == REMOTE ? "remote process exited or there was a network "
	                     "error"
	       : r == USAGE ? "invalid usage" : "invalid argument";
}

EXPORT nccl_result
ncclGetUniqueId(struct nccl_id *id)
{
	const char *where = getenv("CKR_FAKE_NCCL_DIR");

	snprintf(id->bytes, 90, "%s/fake_nccl_XXXXXX",
	         where ? where : "/dev/shm");
	return mkdtemp(id->bytes) ? 0 : 2;
}

/* Waits for the others. */
EXPORT nccl_result
ncclCommInitRank(nccl_comm *comm, int n, struct nccl_id id, int rank)
{
	struct call hello = { .kind = BROADCAST };

	while (wants("absent"))
		usleep(1000);
	if (n > MOST || rank < 0 || rank >= n)
		return 4;
	*comm = calloc(1, sizeof **comm);
	snprintf((*comm)->folder, sizeof (*comm)->folder, "%.90s", id.bytes);
	(*comm)->rank = rank;
	(*comm)->size = n;
	hello.comm = *comm;
	(*comm)->next = 1;
	write_file(&hello, NULL, 0);
	while (!all_have_come(&hello))
		usleep(1000);
	return 0;
}

/* Files of its last calls others may not have read. */
static void
leave(nccl_comm comm)
{
	struct call last = { .kind = BROADCAST, .comm = comm,
		.number = comm->next };

	write_file(&last, NULL, 0);
	for (int tries = 0; tries < 2000 && !all_have_come(&last)
	     && !comm->aborted; tries++)
		usleep(1000);
	clean(&last, last.number);
	last.number++;
	write_file(&last, NULL, 0);
	for (int tries = 0; tries < 2000 && comm->rank == 0
	     && !all_have_come(&last) && !comm->aborted; tries++)
		usleep(1000);
	if (comm->rank)
		return;
	for (uint64_t i = 0; i < 2; i++, last.number--)
		for (int r = 0; r < comm->size; r++)
			remove_file(&last, r);
	rmdir(comm->folder);
}

EXPORT nccl_result
ncclCommDestroy(nccl_comm comm)
{
	if (comm->working)
		fprintf(stderr, "emulated NCCL: %d calls have not ended\n",
		        comm->working);
	leave(comm);
	free(comm);
	return 0;
}

/* It is known to what its streams keep. */
EXPORT nccl_result
ncclCommAbort(nccl_comm comm)
{
	comm->aborted = 1;
	return 0;
}

EXPORT nccl_result
ncclCommGetAsyncError(nccl_comm comm, nccl_result *r)
{
	*r = comm->error;
	return 0;
}

EXPORT nccl_result
ncclGroupStart(void)
{
	depth++;
	return 0;
}

EXPORT nccl_result
ncclGroupEnd(void)
{
	return --depth ? 0 : give();
}

EXPORT nccl_result
ncclAllReduce(const void *x, void *y, size_t n, int type, int op,
              nccl_comm comm, cu_stream s)
{
	return add((struct call){ .kind = ALL_REDUCE, .x = x, .y = y, .n = n,
	           .type = type, .op = op, .comm = comm }, s);
}

EXPORT nccl_result
ncclAllGather(const void *x, void *y, size_t n, int type, nccl_comm comm,
              cu_stream s)
{
	return add((struct call){ .kind = ALL_GATHER, .x = x, .y = y, .n = n,
	           .type = type, .comm = comm }, s);
}

EXPORT nccl_result
ncclReduceScatter(const void *x, void *y, size_t n, int type, int op,
                  nccl_comm comm, cu_stream s)
{
	return add((struct call){ .kind = REDUCE_SCATTER, .x = x, .y = y,
	           .n = n, .type = type, .op = op, .comm = comm }, s);
}

EXPORT nccl_result
ncclBroadcast(const void *x, void *y, size_t n, int type, int root,
              nccl_comm comm, cu_stream s)
{
	return add((struct call){ .kind = BROADCAST, .x = x, .y = y, .n = n,
	           .type = type, .peer = root, .comm = comm }, s);
}

EXPORT nccl_result
ncclReduce(const void *x, void *y, size_t n, int type, int op, int root,
           nccl_comm comm, cu_stream s)
{
	return add((struct call){ .kind = REDUCE, .x = x, .y = y, .n = n,
	           .type = type, .op = op, .peer = root, .comm = comm }, s);
}

EXPORT nccl_result
ncclSend(const void *x, size_t n, int type, int to, nccl_comm comm,
         cu_stream s)
{
	return add((struct call){ .kind = SEND, .x = x, .n = n, .type = type,
	           .peer = to, .comm = comm }, s);
}

EXPORT nccl_result
ncclRecv(void *y, size_t n, int type, int from, nccl_comm comm, cu_stream s)
{
	return add((struct call){ .kind = RECEIVE, .y = y, .n = n,
	           .type = type, .peer = from, .comm = comm }, s);
}
