/* The verifier of memory: whether values lie within their owners and owners in
 * the arena, and whether nodes leave memory alone that is being transferred.
 *
 * in      a graph without faults of structure
 * out     faults; or what a graph shows of its layout
 */
#include "ir/verify/checks.h"

enum { ALIGN = 64 };

/* Repeated nodes may take sums of sizes above what layout allows, but nowhere
 * near 2^62. */
static const int64_t most = 4 * GRAPH_BYTES_MAX;

static void
check_laid_out(struct verify *c, const Val *v)
{
	const Graph *g = c->g;
	const Val *owner = v->base ? &g->val[v->base] : v;
	int size = dtype_info[v->dt].nbytes;
	int64_t first, last;

	if (!v->laid_out) {
		bad(c, NULL, v, "has no memory layout");
		return;
	}
	if (owner->base || !owner->laid_out || !is_live(owner)) {
		bad(c, NULL, v, "is a view of %s, which does not own memory",
		    owner->name);
		return;
	}
	if (dtype_info[owner->dt].nbytes != size)
		bad(c, NULL, v, "is a view of %s, which has another element "
		    "size", owner->name);
	if (!v->base && (v->nbytes < 0 || v->nbytes % ALIGN))
		bad(c, NULL, v, "occupies %lld bytes, not a multiple of %d",
		    (long long)v->nbytes, ALIGN);
	if (val_nelem(v) == 0)
		return;
	if (!val_reach(v, &first, &last) || first < 0
	    || last >= owner->nbytes / size)
		bad(c, NULL, v, "elements %lld..%lld are outside %s of %lld "
		    "bytes", (long long)first, (long long)last, owner->name,
		    (long long)owner->nbytes);
}

static bool
overflows(int64_t *total, int64_t nbytes)
{
	return nbytes > 0 && (!add_ok(*total, nbytes, total) || *total > most);
}

/* Sums of sizes are not checked one by one later on. */
static void
check_byte_totals(struct verify *c)
{
	int64_t total = 0, scratch = 0;

	FOR_VALS (v, c->g)
		if (v->laid_out && !v->base && overflows(&total, v->nbytes)) {
			bad(c, NULL, v, "the total size of values exceeds 2^62 "
			    "bytes");
			return;
		}
	FOR_NODES (n, c->g)
		if (overflows(&scratch, n->workspace)) {
			bad(c, n, NULL, "the total size of workspaces "
			    "exceeds 2^62 bytes");
			return;
		}
}

static bool
lies_in_arena(const Val *v)
{
	return v->kind == V_TEMP && v->def && !v->base && !v->resident;
}

/* Values that are read or written, and those that stay for themselves. */
static bool *
used_values(Arena *tmp, const Graph *g)
{
	bool *used = arena_array(tmp, g->nval, sizeof *used);

	FOR_VALS (v, g)
		used[val_id(g, v)] = v->def || v->output;
	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++)
			used[n->in[i]] = true;
	used[0] = false;
	return used;
}

void
verify_layout(struct verify *c)
{
	const bool *used = used_values(c->tmp, c->g);

	FOR_VALS (v, c->g)
		if (used[val_id(c->g, v)] && val_data_bytes(v) >= 0)
			check_laid_out(c, v);
	check_byte_totals(c);
}

/* ---- host memory ---- */

/* Whether transfer n has operand i in host memory: what it fetches, or writes
 * over. */
static bool
wants_host(const Node *n, int i)
{
	return i == 0 && op_info[n->op].flags & (F_FETCH | F_WRITES);
}

/* What updates alone use, or what has been sent there. */
static bool
may_be_host(const Val *v)
{
	return v->kind == V_TEMP || v->kind == V_STATE
		|| (v->kind == V_PARAM && !v->frozen);
}

static void
check_host_operand(struct verify *c, const Node *n, ValId id, bool wanted)
{
	const Val *v = &c->g->val[id];

	if (id && v->host != wanted)
		bad(c, n, v, v->host ? "is in host memory: expected a fetch"
		    : "is in device memory: expected host memory");
}

void
verify_host(struct verify *c)
{
	const Graph *g = c->g;

	FOR_VALS (v, g)
		if (v->host && (v->resident || v->output || !may_be_host(v)))
			bad(c, NULL, v, "cannot be in host memory");
	FOR_NODES (n, g) {
		bool moves = op_info[n->op].flags & F_HOST;
		bool same = op_info[n->op].flags & F_VIEW && n->in[0]
			&& g->val[n->in[0]].host;

		for (int i = 0; i < n->nin; i++)
			check_host_operand(c, n, n->in[i],
			                   moves ? wants_host(n, i)
			                   : same && i == 0);
		for (int i = 0; i < n->nout; i++)
			check_host_operand(c, n, n->out[i],
			                   moves ? op_info[n->op].flags
			                           & F_OFFLOAD : same);
		if (moves && n->out[0] && n->in[n->nin - 1]
		    && g->val[n->out[0]].dt != g->val[n->in[n->nin - 1]].dt)
			bad(c, n, &g->val[n->out[0]], "differs in type from "
			    "what is transferred");
	}
}

static bool
is_place(int64_t at)
{
	return at >= 0 && at % ALIGN == 0 && at <= most;
}

void
verify_placed(struct verify *c)
{
	FOR_VALS (v, c->g)
		if (lies_in_arena(v) && !is_place(v->offset))
			bad(c, NULL, v, "invalid offset %lld",
			    (long long)v->offset);
	FOR_NODES (n, c->g)
		if (n->workspace > 0 && !is_place(n->workspace_at))
			bad(c, n, NULL, "invalid offset %lld of the workspace",
			    (long long)n->workspace_at);
}

uint32_t
verify_memory_props(const Graph *g)
{
	Arena *tmp = arena_new();
	const bool *used = used_values(tmp, g);
	uint32_t props = g->nnode > 1 ? P_LAYOUT | P_PLACED : 0;

	FOR_VALS (v, g) {
		if (used[val_id(g, v)] && !v->laid_out)
			props = 0;
		if (lies_in_arena(v) && v->offset < 0)
			props &= ~(uint32_t)P_PLACED;
	}
	FOR_NODES (n, g)
		if (n->workspace > 0 && n->workspace_at < 0)
			props &= ~(uint32_t)P_PLACED;
	arena_free(tmp);
	return props;
}

/* ---- collectives that begin at one node and end behind a later one ----
 *
 * What is sent stays as it is, and alive, until the end; what is received
 * nobody touches before that, a view of it neither.  Nor does the end come
 * behind the first update if the beginning does not: whether a step counts is
 * decided there, over all gradients.  The same holds for the end of a
 * micro-batch.  Of transfers in one message none ends before all have begun.
 */

/* The first node that applies a gradient, and the one that ends what runs once
 * for every micro-batch: nothing but updates follows. */
struct borders {
	NodeId apply, update, backward, weight;
};

static struct borders
find_borders(const Graph *g)
{
	struct borders b = { g->nnode, g->nnode, graph_boundary(g) + 1,
		graph_weight_boundary(g) + 1 };

	for (NodeId i = g->nnode - 1; i > 0; i--) {
		const Node *n = &g->node[i];

		if (n->phase == PH_UPDATE && b.update == i + 1)
			b.update = i;
		if (op_info[n->op].flags & F_UPDATE)
			b.apply = i;
	}
	return b;
}

static bool
waits_across(NodeId id, const Node *n, NodeId border)
{
	return id < border && n->wait >= border;
}

/* Whether two values have an owner in common, and once they are laid out
 * bytes. */
static bool
shares(const Graph *g, ValId v, ValId with)
{
	const Val *a = &g->val[v], *b = &g->val[with];
	int64_t a0, a1, b0, b1;

	if (!v || val_owner(g, v) != val_owner(g, with))
		return false;
	return !(a->base && a->laid_out && b->base && b->laid_out
	         && val_nelem(a) > 0 && val_nelem(b) > 0
	         && val_reach(a, &a0, &a1) && val_reach(b, &b0, &b1)
	         && (a1 < b0 || b1 < a0));
}

/* Whether a node's effect is that it writes over operand i. */
static bool
writes_over(const Node *n, int i)
{
	return op_info[n->op].flags & F_WRITES && i != 1 && i < 4;
}

/* Node n works between a transfer's beginning and its end. */
static void
check_in_transfer(struct verify *c, const Node *n, const Node *from)
{
	const Graph *g = c->g;
	ValId x = node_sent(from), y = from->out[0];
	bool view = op_info[n->op].flags & F_VIEW;

	for (int i = 0; i < n->nin + n->nout; i++) {
		bool out = i >= n->nin;
		ValId v = out ? n->out[i - n->nin] : n->in[i];

		if (shares(g, v, y))
			bad(c, n, &g->val[v], "accesses memory that node %u "
			    "receives into until node %u has run", node_id(g,
			    from),
			    from->wait);
		else if ((out ? !view : writes_over(n, i))
		         && shares(g, v, x))
			bad(c, n, &g->val[v], "overwrites memory that node %u "
			    "sends until node %u has run", node_id(g, from),
			    from->wait);
	}
}

void
verify_waits(struct verify *c)
{
	const Graph *g = c->g;
	struct borders b = find_borders(g);

	FOR_NODES (n, g) {
		NodeId id = node_id(g, n);

		if (!n->wait)
			continue;
		if (!(op_info[n->op].flags & F_SENDS) || n->wait <= id
		    || n->wait >= g->nnode) {
			bad(c, n, NULL, "the transfer cannot end after node %u",
			    n->wait);
			continue;
		}
		if (n->count_pass != g->node[n->wait].count_pass)
			bad(c, n, NULL, "the transfer ends after node %u, in "
			    "another count pass", n->wait);
		if (!(op_info[n->op].flags & F_HOST)    /* no agreement */
		    && (waits_across(id, n, b.apply)
		        || (n->phase != PH_UPDATE
		            && waits_across(id, n, b.update))))
			bad(c, n, NULL, "the transfer ends after node %u, when "
			    "updates have begun", n->wait);
		if (g->stages && (waits_across(id, n, b.backward)
		                  || waits_across(id, n, b.weight)))
			bad(c, n, NULL, "the transfer ends after node %u, in "
			    "another turn of the stage", n->wait);
		if (n->wait < message_last(g, id))
			bad(c, n, NULL, "the transfer ends after node %u, "
			    "before node %u, the last of its message, begins",
			    n->wait, message_last(g, id));
		for (NodeId k = id + 1; k <= n->wait; k++)
			check_in_transfer(c, &g->node[k], n);
	}
}
