/* The least cost of any plan of a small graph, for each of several budgets.
 *
 *     optimum <PROBLEM
 *
 * in      how many nodes; of each node its bytes, its cost, how many operands
 *         and which; then budgets.  All numbers, apart by white space.
 * out     a line for each budget: the least cost, or none
 * method  A* over (ran, held).  A first run is free, as no plan saves it; what
 *         is counted is what runs again.  A step is a run: what stands in its
 *         way leaves memory before it, in each way of which no part would do.
 *         Shares no code with the planner that it is the measure of.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 24 };

struct place {
	uint32_t ran, held;             /* held UINT32_MAX: no place */
	double paid, least;             /* for what ran again; and will */
};

static struct {
	struct place *at;               /* hash table */
	size_t n, cap;
	/* to go on from: by least in a heap; on a stack those with no more
	 * than `now`, which was the heap's least */
	struct place *heap, *level;
	size_t nheap, heap_cap, nlevel, level_cap;
	double now;
} t;

static int n;
static int64_t ram[NODES];
static double cpu[NODES];
static uint32_t reads[NODES], above[NODES];     /* operands; and theirs */
static int by_size[NODES];                      /* nodes, the largest first */

static void *
grown(void *p, size_t count, size_t size)
{
	p = realloc(p, count * size);
	if (!p) {
		fputs("optimum: out of memory\n", stderr);
		exit(2);
	}
	return p;
}

/* ---- places ---- */

static struct place *
find_place(uint32_t ran, uint32_t held)
{
	uint64_t x = ((uint64_t)held << NODES | ran) * 0xd6e8feb86659fd93u;
	size_t k = (size_t)(x ^ x >> 32) & (t.cap - 1);

	while (t.at[k].held != UINT32_MAX
	       && (t.at[k].ran != ran || t.at[k].held != held))
		k = (k + 1) & (t.cap - 1);
	return &t.at[k];
}

static void
widen(void)
{
	struct place *old = t.at;
	size_t cap = t.cap;

	t.cap = cap ? 2 * cap : 1024;
	t.at = grown(NULL, t.cap, sizeof *t.at);
	memset(t.at, 0xff, t.cap * sizeof *t.at);
	for (size_t k = 0; k < cap; k++)
		if (old[k].held != UINT32_MAX)
			*find_place(old[k].ran, old[k].held) = old[k];
	free(old);
}

static void
push(struct place p)
{
	size_t k = t.nheap;

	if (p.least <= t.now) {
		if (t.nlevel == t.level_cap) {
			t.level_cap = 2 * t.level_cap + 64;
			t.level = grown(t.level, t.level_cap, sizeof p);
		}
		t.level[t.nlevel++] = p;
		return;
	}
	if (t.nheap == t.heap_cap) {
		t.heap_cap = 2 * t.heap_cap + 64;
		t.heap = grown(t.heap, t.heap_cap, sizeof p);
	}
	for (t.nheap++; k && t.heap[(k - 1) / 2].least > p.least;
	     k = (k - 1) / 2)
		t.heap[k] = t.heap[(k - 1) / 2];
	t.heap[k] = p;
}

static bool
pop(struct place *p)
{
	struct place last;
	size_t k = 0, c;

	if (t.nlevel) {
		*p = t.level[--t.nlevel];
		return true;
	}
	if (!t.nheap)
		return false;
	*p = t.heap[0];
	last = t.heap[--t.nheap];
	while ((c = 2 * k + 1) < t.nheap) {
		if (c + 1 < t.nheap && t.heap[c + 1].least < t.heap[c].least)
			c++;
		if (t.heap[c].least >= last.least)
			break;
		t.heap[k] = t.heap[c];
		k = c;
	}
	t.heap[k] = last;
	t.now = p->least;
	return true;
}

/* What is certain to run again: what is gone and read by a node still to run,
 * and what those runs read that is gone. */
static double
due(uint32_t ran, uint32_t held)
{
	uint32_t runs = ~ran;
	double sum = 0;

	for (int v = n - 1; v >= 0; v--)
		if (runs >> v & 1) {
			runs |= reads[v] & ~held;
			sum += ran >> v & 1 ? cpu[v] : 0;
		}
	return sum;
}

static void
reach(uint32_t ran, uint32_t held, double paid)
{
	struct place *p;

	if (2 * t.n >= t.cap)
		widen();
	p = find_place(ran, held);
	if (p->held == UINT32_MAX)
		t.n++;
	else if (p->paid <= paid)
		return;
	*p = (struct place){ ran, held, paid, paid + due(ran, held) };
	push(*p);
}

/* ---- steps ---- */

static int64_t
bytes(uint32_t set)
{
	int64_t sum = 0;

	for (int v = 0; v < n; v++)
		sum += set >> v & 1 ? ram[v] : 0;
	return sum;
}

/* All that somebody still to run reads, or may need for it. */
static uint32_t
needed(uint32_t ran)
{
	uint32_t set = 0;

	for (int v = 0; v < n; v++)
		set |= ran >> v & 1 ? 0 : above[v];
	return set;
}

/* Run v once `over` bytes more have left.  Next is the k-th by size, and from
 * there on `most` bytes may leave; the last to leave is the smallest, so each
 * set that is tried needs all of its members. */
static void
make_room(const struct place *p, int v, uint32_t gone, int64_t over, int k,
          int64_t most)
{
	uint32_t ran = p->ran | 1u << v;
	bool again = p->ran >> v & 1;

	if (over <= 0) {
		reach(ran, ((p->held & ~gone) | 1u << v) & needed(ran),
		      p->paid + (again ? cpu[v] : 0));
		return;
	}
	for (; most >= over; k++) {
		int next = by_size[k];

		if (p->held & ~reads[v] & 1u << next) {
			most -= ram[next];
			make_room(p, v, gone | 1u << next, over - ram[next],
			          k + 1, most);
		}
	}
}

/* What runs again for the least that a plan within the budget must; below 0:
 * there is none. */
static double
search(int64_t budget)
{
	const uint32_t all = (uint32_t)((UINT64_C(1) << n) - 1);
	struct place p;

	for (int v = 0; v < n; v++)
		if (ram[v] + bytes(reads[v]) > budget)
			return -1;
	t.n = t.nheap = t.nlevel = 0;
	t.now = 0;
	if (t.cap)
		memset(t.at, 0xff, t.cap * sizeof *t.at);
	reach(0, 0, 0);
	while (pop(&p)) {
		uint32_t of_use;
		int64_t used;

		if (p.ran == all)
			return p.paid;
		if (find_place(p.ran, p.held)->paid < p.paid)
			continue;
		of_use = ~p.ran | needed(p.ran);
		used = bytes(p.held);
		for (int v = 0; v < n; v++)
			if (of_use & ~p.held & 1u << v
			    && !(reads[v] & ~p.held))
				make_room(&p, v, 0, used + ram[v] - budget,
				          0, used - bytes(reads[v]));
	}
	return -1;
}

/* ---- the problem ---- */

static int
larger(const void *a, const void *b)
{
	int64_t x = ram[*(const int *)a], y = ram[*(const int *)b];

	return (x < y) - (x > y);
}

static bool
read_problem(void)
{
	int count, from;

	if (scanf("%d", &n) != 1 || n < 1 || n > NODES)
		return false;
	for (int v = 0; v < n; v++) {
		by_size[v] = v;
		if (scanf("%" SCNd64 " %lf %d", &ram[v], &cpu[v], &count) != 3)
			return false;
		for (; count > 0; count--) {
			if (scanf("%d", &from) != 1 || from < 0 || from >= v)
				return false;
			reads[v] |= 1u << from;
			above[v] |= above[from] | 1u << from;
		}
	}
	qsort(by_size, (size_t)n, sizeof *by_size, larger);
	return true;
}

int
main(void)
{
	int64_t budget;
	double sum = 0;

	if (!read_problem())
		return 2;
	for (int v = 0; v < n; v++)
		sum += cpu[v];
	while (scanf("%" SCNd64, &budget) == 1) {
		double again = search(budget);

		if (again < 0)
			puts("none");
		else
			printf("%.17g\n", sum + again);
		fflush(stdout);
	}
	return 0;
}
