/* Calls of the kernels that reduce floats. */
#include "codegen/cuda/cuda.h"
#include "codegen/rules/reduce.h"

enum {
	BLOCKS = 1024,                  /* wanted */
	ROW = 8192,                     /* elements in a part, at least */
	COLUMN = 64,                    /* rows in a part, at least */
	TILE = 32,                      /* columns of a block ... */
	PACK = 4,                       /* ... as vectors, if they fit */
	EVEN = 8,                       /* parts of rows are multiples of it */
};

struct reduce_split {
	int64_t part, floats;
};

static int64_t
ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* n in parts of at least `least` so that there are enough blocks. */
static int64_t
part_length(int64_t n, int64_t blocks, int64_t least)
{
	int64_t parts = BLOCKS / blocks;

	parts = parts < n / least ? parts : n / least;
	return parts > 1 ? ceil_div(n, parts) : n;
}

static struct reduce_split
reduce_split_of(const struct reduced *r)
{
	int64_t tile = r->inner % PACK ? TILE : TILE * PACK;
	struct reduce_split c = { r->n, r->lead * r->outer };

	if (r->lead > 1)
		return c;
	if (r->inner == 1) {
		c.part = part_length(r->n, r->outer, ROW);
		if (c.part < r->n)
			c.part = ceil_div(c.part, EVEN) * EVEN;
	} else {
		c.part = part_length(r->n, r->outer * ceil_div(r->inner, tile),
		                     COLUMN);
	}
	c.floats = c.part < r->n
		? r->outer * r->inner * ceil_div(r->n, c.part) : 0;
	return c;
}

/* Sums of parts. */
int64_t
cuda_work_reduce(const Graph *g, const Node *n, int threads)
{
	struct reduced r = reduce_extents(g, n);

	(void)threads;
	return r.fits ? cuda_bytes(reduce_split_of(&r).floats, 4) : 0;
}

bool
cuda_reduce(struct emit *e, const Node *n, const struct reduced *r)
{
	const char *name = r->lead > 1 ? "planes" : r->inner > 1 ? "columns"
	                 : "rows";
	const char *inner = r->inner == 1 ? ""
		: arena_printf(e->arena, "%lld, ", (long long)r->inner);
	const char *lead = r->lead == 1 ? ""
		: arena_printf(e->arena, "%lld, ", (long long)r->lead);
	const char *part = r->lead > 1 ? "" : arena_printf(e->arena, "%lld, ",
		(long long)reduce_split_of(r).part);

	emit_include(e, "reduce");
	emit_line(e, n, "ckr_reduce_%s(%s, $o0, $i0, %s%lld, %lld, "
	          "%s%s%lld.0f, env$,w);", name, reduce_kernel(n->op),
	          lead, (long long)r->outer, (long long)r->n, inner, part,
	          (long long)(n->op == OP_REDUCE_MEAN ? r->lead * r->n : 1));
	return true;
}
