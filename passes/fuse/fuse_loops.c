/* Fuse: fewer passes over memory, and kernels that end a training graph.
 *
 * First the rewrites of fuse_packed.c (classifier, packed attention gradients,
 * accumulators).  Then every element-wise node joins a loop: one pass over an
 * output shape with a list of small ops.
 *
 * Loops are grown greedily in node order.  Each unit (a loop or any other
 * node) has a slot, the position of one of its members; slots obey all
 * dependences at all times, so that no cycle can arise.  A node joins loops
 * that compute its operands, or beside it read the same values, if a slot suits
 * both.  Only equal shapes, cuts and phases join: what backward needs leaves
 * its loop as an output.
 *
 * Joining moves work, and work that moves makes values live longer.  Where
 * heavy nodes lie between, a loop sinks only if what it keeps alive is no more
 * than what disappears, and a consumer rises only if the values between vanish
 * for it.
 *
 * Views (reshape, ...) are looked through and end up before their first reader.
 * Loops whose result is transposed for a reshape write it so
 * (fuse_transposed.c).
 *
 * needs  P_STATIC; canon's forms for the rewrites     gives  P_FUSED
 * cost   nodes * (members of a loop + readers of a value, 128 at most)
 * refuses  nothing
 */
#include "passes/fuse/fuse.h"
#include "ir/loop.h"
#include "ir/placement.h"

#include <string.h>

enum { OUTPUTS_MAX = 8, VIEWS_MAX = 64 };
/* Readers of one value tried beside each other: thousands cost their square. */
enum { BESIDE_MAX = 4 * LOOP_OPS_MAX };

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
};

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

/* The members of a unit, from the one that names it on. */
#define FOR_MEMBERS(id, f, unit) \
	for (NodeId id = (unit), went = 0; !went || id != (unit); \
	     id = (f)->next[id], went = 1)

/* ---- units ---- */

/* In what the union of units a and b would be at slot `at`. */
struct joint {
	struct fuse *f;
	NodeId a, b, at;
	ValId in[LOOP_INPUTS_MAX + 1];
	int nin, nout;
};

static bool
is_member(const struct joint *j, NodeId id)
{
	return j->f->unit[id] == j->a || j->f->unit[id] == j->b;
}

static bool
add_joint_input(struct joint *j, ValId v)
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
		NodeId writer = j->f->writer[fuse_root(g, v)];
		if (writer && j->f->slot[writer] <= j->at)
			return false;
		NodeId from = fuse_producer(g, v);
		if (!from || !is_member(j, from)) {
			if (!add_joint_input(j, v)
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
		FOR_USES (i, &f->uses, u) {
			NodeId id = f->uses.node[i];
			if (fuse_is_view(&g->node[id])) {
				*outside = true;
				if (n == VIEWS_MAX)
					return false;
				stack[n++] = g->node[id].out[0];
				continue;
			}
			if (is_member(j, id))
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
	FOR_MEMBERS (id, j->f, unit)
		if (!member_allows(j, id))
			return false;
	return true;
}

static bool
can_join(struct fuse *f, NodeId a, NodeId b, NodeId at, struct joint *j)
{
	*j = (struct joint){ .f = f, .a = a, .b = b, .at = at };
	return f->size[a] + f->size[b] <= LOOP_OPS_MAX && unit_allows(j, a)
	       && unit_allows(j, b) && j->nout <= OUTPUTS_MAX;
}

static void
join_units(struct fuse *f, NodeId a, NodeId b, NodeId at)
{
	NodeId t = f->next[a];

	FOR_MEMBERS (id, f, b)
		f->unit[id] = a;
	f->next[a] = f->next[b];
	f->next[b] = t;
	f->size[a] += f->size[b];
	f->slot[a] = at;
}

/* ---- lifetimes ---- */

/* Does someone read v (or a view of it) at slot `at` or later anyway? */
static bool
lives_until(const struct fuse *f, ValId v, NodeId at, int depth)
{
	const Graph *g = f->g;

	if (g->val[v].kind != V_TEMP || wanted_outside(g, v))
		return true;
	FOR_USES (i, &f->uses, v) {
		NodeId id = f->uses.node[i];
		if (fuse_is_view(&g->node[id]) && depth < 8) {
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

	FOR_MEMBERS (id, f, a) {
		const Node *n = &g->node[id];
		for (int k = 0; k < n->nin; k++) {
			NodeId from = n->in[k] ? fuse_producer(g, n->in[k]) : 0;
			if (from && f->unit[from] != a
			    && !lives_until(f, n->in[k], at, 0))
				sum += val_data_bytes(&g->val[n->in[k]]);
		}
	}
	return sum;
}

/* Bytes of results that unit b would bring up early. */
static int64_t
bytes_made(const struct fuse *f, NodeId b)
{
	const Graph *g = f->g;
	int64_t sum = 0;

	FOR_MEMBERS (id, f, b) {
		ValId y = g->node[id].out[0];
		bool outside = wanted_outside(g, y);
		FOR_USES (i, &f->uses, y)
			outside |= f->unit[f->uses.node[i]] != b;
		if (outside)
			sum += val_data_bytes(&g->val[y]);
	}
	return sum;
}

/* Bytes of a's results that only b reads. */
static int64_t
bytes_between(const struct fuse *f, NodeId a, NodeId b)
{
	const Graph *g = f->g;
	int64_t sum = 0;

	FOR_MEMBERS (id, f, a) {
		ValId y = g->node[id].out[0];
		bool reads = false, others = wanted_outside(g, y);
		FOR_USES (i, &f->uses, y) {
			NodeId u = f->unit[f->uses.node[i]];
			reads |= u == b;
			others |= u != b && u != a;
		}
		if (reads && !others)
			sum += val_data_bytes(&g->val[y]);
	}
	return sum;
}

/* ---- growing ---- */

static bool
may_share_loop(const Graph *g, const Node *a, const Node *b)
{
	const Val *x = &g->val[a->out[0]], *y = &g->val[b->out[0]];
	return a->phase == b->phase && a->count_pass == b->count_pass
	       && shape_eq(&x->shape, &y->shape)
	       && placement_alike(&x->placement, &y->placement);
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
	if (((!far || bytes_held(f, a, late) <= between)
	     && can_join(f, a, b, late, &j))
	    || ((!far || bytes_made(f, b) <= between)
	        && can_join(f, a, b, early, &j)))
		join_units(f, a, b, j.at);
}

/* Units a and b read the same value. */
static void
try_beside(struct fuse *f, NodeId a, NodeId b)
{
	NodeId early = f->slot[a], late = f->slot[b];
	struct joint j;

	if (a == b || f->heavy[early] != f->heavy[late])
		return;
	if (can_join(f, a, b, early > late ? early : late, &j)
	    || can_join(f, a, b, early > late ? late : early, &j))
		join_units(f, a, b, j.at);
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
absorb_producers(struct fuse *f, NodeId id)
{
	const Graph *g = f->g;
	const Node *n = &g->node[id];

	for (int k = 0; k < n->nin; k++) {
		NodeId from = n->in[k] ? g->val[n->in[k]].def : 0;
		if (from && is_ew(&g->node[from])
		    && may_share_loop(g, n, &g->node[from]))
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
			    && may_share_loop(g, n, &g->node[other]))
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
list_members(const struct fuse *f, NodeId unit, NodeId *list)
{
	int n = 0;

	FOR_MEMBERS (id, f, unit) {
		int i = n++;
		for (; i > 0 && list[i - 1] > id; i--)
			list[i] = list[i - 1];
		list[i] = id;
	}
	return n;
}

static bool
read_outside(const struct fuse *f, NodeId id)
{
	ValId y = f->g->node[id].out[0];

	FOR_USES (i, &f->uses, y)
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
	NodeId list[LOOP_OPS_MAX];
	int n = list_members(f, unit, list);
	struct body *b = arena_alloc(g->arena, sizeof *b);
	Node loop = g->node[unit];

	b->op = arena_array(g->arena, (size_t)n, sizeof *b->op);
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
		struct scalar_op *u = &b->op[b->nop++];
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
	f.writer = fuse_writers(g, p->scratch);
	for (NodeId id = 1; id < n; id++) {
		const Node *node = &g->node[id];

		f.unit[id] = f.slot[id] = f.next[id] = id;
		f.size[id] = 1;
		f.heavy[id] = f.heavy[id - 1]
		              + (!fuse_is_view(node) && !is_ew(node));
	}
	for (NodeId id = 1; id < n; id++)
		if (is_ew(&g->node[id]))
			absorb_producers(&f, id);
	/* inputs of loops are looked up by their definitions: order first,
	 * build in any order, because members keep their ids until then */
	for (NodeId id = 1; id < n; id++)
		if (is_ew(&g->node[id]) && f.unit[id] == id
		    && !build_loop(&f, id))
			return false;
	fuse_order(g, f.unit, f.slot, p->scratch);
	return true;
}

bool
pass_fuse(Pass *p, Graph *g)
{
	unsigned has = p->target->fuses;

	if ((has & FUSE_CLASSIFIER && !fuse_classifier(p, g))
	    || (has & FUSE_PACKED && !fuse_packed(p, g))
	    || (has & FUSE_ACCUMULATE && !fuse_accumulators(p, g))
	    || (has & FUSE_FROZEN && !fuse_frozen(p, g))
	    || (has & FUSE_EPILOGUES && !fuse_epilogues(p, g)))
		return false;
	graph_dce(g);
	return fuse_loops(p, g) && fuse_transposed_stores(p, g)
		&& (!(has & FUSE_PRETRANSPOSED) || fuse_pretransposed(p, g));
}
