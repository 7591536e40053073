/* Fuse: fewer passes over memory, and kernels that end a training graph.
 *
 * First the rewrites of fuse_ends.c (classifier, packed attention gradients,
 * accumulators).  Then every element-wise node joins a loop: one pass over an
 * output shape with a list of small ops.
 *
 * Loops are grown greedily in node order.  Each unit (a loop or any other
 * node) has a slot, the position of one of its members; slots obey all
 * dependences at all times, so that no cycle can arise.  A node joins the
 * loops that compute its operands, and loops beside it that read the same
 * values, if a slot exists that suits the union.  Only equal shapes and phases
 * join: a forward value that backward needs leaves its loop as an output.
 *
 * Joining moves work, and work that moves makes values live longer.  Where
 * heavy nodes lie between, a loop sinks only if what it keeps alive is no more
 * than what disappears, and a consumer rises only if the values between vanish
 * for it.
 *
 * Views (reshape, ...) are looked through and in the end placed before their
 * first reader.  Loops whose result is transposed for a reshape write it
 * transposed (fuse_turn.c).
 *
 * needs  P_STATIC; canon's forms for the rewrites     gives  P_FUSED
 * cost   nodes * (members of a loop + readers of a value, 128 at most)
 * refuses  nothing
 */
#include "passes/fuse/fuse.h"
#include "passes/fuse/inline.h"

#include <string.h>

enum { OUTPUTS_MAX = 8, VIEWS_MAX = 64 };
/* Readers of one value that are tried beside each other, counted backwards: a
 * value with thousands of readers would cost their square. */
enum { BESIDE_MAX = 4 * LOOP_MICROS_MAX };

struct fuse {
	Pass *p;
	Graph *g;
	struct uses uses;
	NodeId *unit;                   /* node -> unit, named by a member */
	NodeId *slot;                   /* of a unit */
	int *size;                      /* members of a unit */
	NodeId *next;                   /* ring of a unit's members */
	uint32_t *heavy;                /* heavy nodes up to this one */
	NodeId *writer;                 /* by value: who overwrites it; 0 */
	/* scratch of one question */
	NodeId *stack;
	/* emission */
	bool *placed;
	NodeId *order;
	uint32_t norder;
};

static bool
is_view(const Node *n)
{
	return op_info[n->op].flags & F_VIEW;
}

static bool
is_ew(const Node *n)
{
	return op_fuses(n->op) && n->nin <= 3;
}


static bool
wanted_outside(const Graph *g, ValId v)
{
	const Val *x = &g->val[v];

	return x->output || x->resident || g->loss == v || x->param;
}

/* The value that v is, or is a view of. */
static ValId
root_of(const Graph *g, ValId v)
{
	NodeId id = g->val[v].def;

	while (id && is_view(&g->node[id])) {
		v = g->node[id].in[0];
		id = g->val[v].def;
	}
	return v;
}

/* The node that computes v, looking through views. */
static NodeId
producer(const Graph *g, ValId v)
{
	return g->val[root_of(g, v)].def;
}

/* ---- units ---- */

/* In what the union of units a and b would be at slot `at`. */
struct joint {
	struct fuse *f;
	NodeId a, b, at;
	ValId in[LOOP_INPUTS_MAX + 1];
	int nin, nout;
};

static bool
inside(const struct joint *j, NodeId id)
{
	return j->f->unit[id] == j->a || j->f->unit[id] == j->b;
}

static bool
add_input(struct joint *j, ValId v)
{
	for (int i = 0; i < j->nin; i++)
		if (j->in[i] == v)
			return true;
	if (j->nin == LOOP_INPUTS_MAX)
		return false;
	j->in[j->nin++] = v;
	return true;
}

/* May the union stand at its slot as far as the operands of id say? */
static bool
operands_allow(struct joint *j, NodeId id)
{
	const Graph *g = j->f->g;
	const Node *n = &g->node[id];

	for (int k = 0; k < n->nin; k++) {
		ValId v = n->in[k];
		if (!v)
			continue;
		/* an update in place must not come first */
		NodeId writer = j->f->writer[root_of(g, v)];
		if (writer && j->f->slot[writer] <= j->at)
			return false;
		NodeId from = producer(g, v);
		if (!from || !inside(j, from)) {
			if (!add_input(j, v)
			    || (from && j->f->slot[j->f->unit[from]] >= j->at))
				return false;
			continue;
		}
		/* behind a view the elements stand elsewhere */
		if (g->val[v].def != from)
			return false;
	}
	return true;
}

/* The readers of v, through views: all outside ones must come later.  Sets
 * *outside if there are any. */
static bool
readers_allow(struct joint *j, ValId v, bool *outside)
{
	const struct fuse *f = j->f;
	const Graph *g = f->g;
	ValId stack[VIEWS_MAX];
	int n = 0;

	stack[n++] = v;
	while (n > 0) {
		ValId u = stack[--n];
		for (uint32_t i = f->uses.first[u]; i < f->uses.first[u + 1];
		     i++) {
			NodeId id = f->uses.node[i];
			if (is_view(&g->node[id])) {
				*outside = true;
				if (n == VIEWS_MAX)
					return false;
				stack[n++] = g->node[id].out[0];
				continue;
			}
			if (inside(j, id))
				continue;
			*outside = true;
			if (f->slot[f->unit[id]] <= j->at)
				return false;
		}
	}
	return true;
}

static bool
member_allows(struct joint *j, NodeId id)
{
	const Graph *g = j->f->g;
	ValId y = g->node[id].out[0];
	bool outside = wanted_outside(g, y);

	if (!operands_allow(j, id) || !readers_allow(j, y, &outside))
		return false;
	if (outside)
		j->nout++;
	return true;
}

static bool
unit_allows(struct joint *j, NodeId unit)
{
	NodeId id = unit;

	do {
		if (!member_allows(j, id))
			return false;
		id = j->f->next[id];
	} while (id != unit);
	return true;
}

static bool
can_join(struct fuse *f, NodeId a, NodeId b, NodeId at, struct joint *j)
{
	*j = (struct joint){ .f = f, .a = a, .b = b, .at = at };
	return f->size[a] + f->size[b] <= LOOP_MICROS_MAX && unit_allows(j, a)
	       && unit_allows(j, b) && j->nout <= OUTPUTS_MAX;
}

static void
join(struct fuse *f, NodeId a, NodeId b, NodeId at)
{
	NodeId id = b, t = f->next[a];

	do {
		f->unit[id] = a;
		id = f->next[id];
	} while (id != b);
	f->next[a] = f->next[b];
	f->next[b] = t;
	f->size[a] += f->size[b];
	f->slot[a] = at;
	f->p->changed = true;
}

/* ---- lifetimes ---- */

/* Does someone read v (or a view of it) at slot `at` or later anyway? */
static bool
lives_until(const struct fuse *f, ValId v, NodeId at, int depth)
{
	const Graph *g = f->g;

	if (g->val[v].kind != V_TEMP || wanted_outside(g, v))
		return true;
	for (uint32_t i = f->uses.first[v]; i < f->uses.first[v + 1]; i++) {
		NodeId id = f->uses.node[i];
		if (is_view(&g->node[id]) && depth < 8) {
			if (lives_until(f, g->node[id].out[0], at, depth + 1))
				return true;
		} else if (f->slot[f->unit[id]] >= at) {
			return true;
		}
	}
	return false;
}

/* Bytes of operands that unit a would keep alive by sinking to slot `at`. */
static int64_t
bytes_held(const struct fuse *f, NodeId a, NodeId at)
{
	const Graph *g = f->g;
	int64_t sum = 0;
	NodeId id = a;

	do {
		const Node *n = &g->node[id];
		for (int k = 0; k < n->nin; k++) {
			NodeId from = n->in[k] ? producer(g, n->in[k]) : 0;
			if (from && f->unit[from] != a
			    && !lives_until(f, n->in[k], at, 0))
				sum += val_data_bytes(&g->val[n->in[k]]);
		}
		id = f->next[id];
	} while (id != a);
	return sum;
}

/* Bytes of results that unit b would bring up early. */
static int64_t
bytes_made(const struct fuse *f, NodeId b)
{
	const Graph *g = f->g;
	int64_t sum = 0;
	NodeId id = b;

	do {
		ValId y = g->node[id].out[0];
		bool outside = wanted_outside(g, y);
		for (uint32_t i = f->uses.first[y]; i < f->uses.first[y + 1];
		     i++)
			outside |= f->unit[f->uses.node[i]] != b;
		if (outside)
			sum += val_data_bytes(&g->val[y]);
		id = f->next[id];
	} while (id != b);
	return sum;
}

/* Bytes of a's results that only b reads. */
static int64_t
bytes_between(const struct fuse *f, NodeId a, NodeId b)
{
	const Graph *g = f->g;
	int64_t sum = 0;
	NodeId id = a;

	do {
		ValId y = g->node[id].out[0];
		bool reads = false, others = wanted_outside(g, y);
		for (uint32_t i = f->uses.first[y]; i < f->uses.first[y + 1];
		     i++) {
			NodeId u = f->unit[f->uses.node[i]];
			reads |= u == b;
			others |= u != b && u != a;
		}
		if (reads && !others)
			sum += val_data_bytes(&g->val[y]);
		id = f->next[id];
	} while (id != a);
	return sum;
}

/* ---- growing ---- */

static bool
alike(const Graph *g, const Node *a, const Node *b)
{
	return a->phase == b->phase
	       && shape_eq(&g->val[a->out[0]].shape, &g->val[b->out[0]].shape);
}

/* Unit a computes what unit b reads. */
static void
try_chain(struct fuse *f, NodeId a, NodeId b)
{
	NodeId early = f->slot[a], late = f->slot[b];
	bool far = f->heavy[late] != f->heavy[early];
	struct joint j;

	if (a == b)
		return;
	int64_t between = far ? bytes_between(f, a, b) : 0;
	if ((!far || bytes_held(f, a, late) <= between)
	    && can_join(f, a, b, late, &j))
		join(f, a, b, late);
	else if ((!far || bytes_made(f, b) <= between)
	         && can_join(f, a, b, early, &j))
		join(f, a, b, early);
}

/* Units a and b read the same value. */
static void
try_beside(struct fuse *f, NodeId a, NodeId b)
{
	NodeId early = f->slot[a], late = f->slot[b];
	struct joint j;

	if (a == b || f->heavy[early] != f->heavy[late])
		return;
	if (early > late) {
		NodeId t = early;
		early = late;
		late = t;
	}
	if (can_join(f, a, b, late, &j))
		join(f, a, b, late);
	else if (can_join(f, a, b, early, &j))
		join(f, a, b, early);
}

/* The first of v's readers to be tried with reader id. */
static uint32_t
first_beside(const struct fuse *f, ValId v, NodeId id)
{
	uint32_t low = f->uses.first[v], high = f->uses.first[v + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (f->uses.node[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low - f->uses.first[v] > BESIDE_MAX ? low - BESIDE_MAX
	                                           : f->uses.first[v];
}

static void
grow(struct fuse *f, NodeId id)
{
	const Graph *g = f->g;
	const Node *n = &g->node[id];

	for (int k = 0; k < n->nin; k++) {
		NodeId from = n->in[k] ? g->val[n->in[k]].def : 0;
		if (from && is_ew(&g->node[from])
		    && alike(g, n, &g->node[from]))
			try_chain(f, f->unit[from], f->unit[id]);
	}
	for (int k = 0; k < n->nin; k++) {
		ValId v = n->in[k];
		if (!v || !shape_eq(&g->val[v].shape,
		                    &g->val[n->out[0]].shape))
			continue;
		for (uint32_t i = first_beside(f, v, id);
		     f->uses.node[i] < id; i++) {
			NodeId other = f->uses.node[i];
			if (is_ew(&g->node[other])
			    && alike(g, n, &g->node[other]))
				try_beside(f, f->unit[other], f->unit[id]);
		}
	}
}

/* ---- building ---- */

/* Index of v among the loop's inputs. */
static int
loop_input(Node *loop, ValId v)
{
	for (int i = 0; i < loop->nin; i++)
		if (loop->in[i] == v)
			return i;
	loop->in[loop->nin] = v;
	return loop->nin++;
}

/* Members in node order, which is a topological order. */
static int
members(const struct fuse *f, NodeId unit, NodeId *list)
{
	NodeId id = unit;
	int n = 0;

	do {
		int i = n++;
		for (; i > 0 && list[i - 1] > id; i--)
			list[i] = list[i - 1];
		list[i] = id;
		id = f->next[id];
	} while (id != unit);
	return n;
}

static bool
read_outside(const struct fuse *f, NodeId id)
{
	ValId y = f->g->node[id].out[0];

	for (uint32_t i = f->uses.first[y]; i < f->uses.first[y + 1]; i++)
		if (f->unit[f->uses.node[i]] != f->unit[id])
			return true;
	return wanted_outside(f->g, y);
}

/* A member's node becomes the loop; which one is all the same, because order
 * is given by f->order. */
static bool
build_loop(struct fuse *f, NodeId unit)
{
	Graph *g = f->g;
	NodeId list[LOOP_MICROS_MAX];
	int n = members(f, unit, list);
	struct body *b = arena_alloc(g->arena, sizeof *b);
	Node loop = g->node[unit];

	b->micro = arena_array(g->arena, (size_t)n, sizeof *b->micro);
	b->result = arena_array(g->arena, (size_t)n, sizeof *b->result);
	loop.op = OP_LOOP;
	loop.attr = attr_default(OP_LOOP);
	loop.body = b;
	loop.nin = loop.nout = 0;
	loop.in = arena_array(g->arena, LOOP_INPUTS_MAX, sizeof *loop.in);
	loop.out = arena_array(g->arena, (size_t)n, sizeof *loop.out);
	loop.origin = NULL;
	loop.norigin = 0;
	for (int i = 0; i < n; i++) {
		const Node *m = &g->node[list[i]];
		struct micro *u = &b->micro[b->nmicro++];
		u->op = m->op;
		u->dt = g->val[m->out[0]].dt;
		u->attr = m->attr;
		u->narg = m->nin;
		for (int k = 0; k < m->nin; k++) {
			NodeId from = g->val[m->in[k]].def;
			int at = n;
			for (int l = 0; from && l < i; l++)
				if (list[l] == from)
					at = l;
			u->arg[k] = at < n ? ~at : loop_input(&loop, m->in[k]);
		}
		if (read_outside(f, list[i])) {
			b->result[loop.nout] = i;
			loop.out[loop.nout++] = m->out[0];
		}
		node_add_origin(g, &loop, m->origin, m->norigin);
	}
	g->node[unit] = loop;
	return shape_infer(g, f->p->diag, &g->node[unit]);
}

/* ---- order ---- */

static void place_view(struct fuse *f, NodeId id);

static void
put(struct fuse *f, NodeId id)
{
	Graph *g = f->g;

	for (int k = 0; k < g->node[id].nout; k++)
		if (g->node[id].out[k])
			g->val[g->node[id].out[k]].slot = k;
	f->placed[id] = true;
	f->order[f->norder++] = id;
}

/* Views that node id reads come right before it. */
static void
place_operands(struct fuse *f, NodeId id)
{
	const Node *n = &f->g->node[id];

	for (int k = 0; k < n->nin; k++) {
		NodeId from = n->in[k] ? f->g->val[n->in[k]].def : 0;
		if (from && is_view(&f->g->node[from]))
			place_view(f, from);
	}
}

static void
place_view(struct fuse *f, NodeId id)
{
	if (f->placed[id])
		return;
	place_operands(f, id);
	put(f, id);
}

/* Views whose readers come in a later phase, or that have none. */
static void
flush_views(struct fuse *f, Phase before)
{
	const Graph *g = f->g;

	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *n = &g->node[id];
		if (f->placed[id] || !is_view(n) || n->phase >= before)
			continue;
		NodeId from = producer(g, n->in[0]);
		if (!from || f->placed[f->unit[from]])
			place_view(f, id);
	}
}

/* Units in the order of their slots. */
static void
set_order(struct fuse *f)
{
	Graph *g = f->g;
	NodeId *at = arena_array(f->p->scratch, g->nnode, sizeof *at);
	Phase phase = PH_FORWARD;

	for (NodeId id = 1; id < g->nnode; id++)
		if (f->unit[id] == id && !is_view(&g->node[id]))
			at[f->slot[id]] = id;
	for (NodeId i = 1; i < g->nnode; i++) {
		if (!at[i])
			continue;
		if (g->node[at[i]].phase > phase) {
			phase = g->node[at[i]].phase;
			flush_views(f, phase);
		}
		place_operands(f, at[i]);
		put(f, at[i]);
	}
	flush_views(f, PH_COUNT);
	graph_reorder(g, f->order, f->norder);
}

static bool
fuse_loops(Pass *p, Graph *g)
{
	size_t n = g->nnode;
	struct fuse f = { .p = p, .g = g, .uses = graph_uses(g, p->scratch) };

	f.unit = arena_array(p->scratch, n, sizeof *f.unit);
	f.slot = arena_array(p->scratch, n, sizeof *f.slot);
	f.size = arena_array(p->scratch, n, sizeof *f.size);
	f.next = arena_array(p->scratch, n, sizeof *f.next);
	f.heavy = arena_array(p->scratch, n, sizeof *f.heavy);
	f.placed = arena_array(p->scratch, n, sizeof *f.placed);
	f.order = arena_array(p->scratch, n, sizeof *f.order);
	f.writer = arena_array(p->scratch, g->nval, sizeof *f.writer);
	for (NodeId id = 1; id < n; id++) {
		const Node *node = &g->node[id];

		if (op_info[node->op].flags & F_WRITES)
			f.writer[node->in[0]] = id;
		f.unit[id] = f.slot[id] = f.next[id] = id;
		f.size[id] = 1;
		f.heavy[id] = f.heavy[id - 1]
		              + (!is_view(node) && !is_ew(node));
	}
	for (NodeId id = 1; id < n; id++)
		if (is_ew(&g->node[id]))
			grow(&f, id);
	/* inputs of loops are looked up by their definitions: order first,
	 * build in any order, because members keep their ids until then */
	bool *root = arena_array(p->scratch, n, sizeof *root);
	for (NodeId id = 1; id < n; id++)
		root[id] = is_ew(&g->node[id]) && f.unit[id] == id;
	for (NodeId id = 1; id < n; id++)
		if (root[id] && !build_loop(&f, id))
			return false;
	set_order(&f);
	return true;
}

bool
pass_fuse(Pass *p, Graph *g)
{
	unsigned has = p->target->fuses;

	if ((has & FUSE_CLASSIFIER && !fuse_classifier(p, g))
	    || (has & FUSE_PACKED && !fuse_packed(p, g))
	    || (has & FUSE_ACCUMULATE && !fuse_accumulators(p, g)))
		return false;
	graph_dce(g);
	return fuse_loops(p, g) && fuse_turned(p, g);
}
