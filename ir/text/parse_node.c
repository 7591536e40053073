/* The textual form of a graph: nodes, and the bodies of loops. */
#include "ir/text/parser.h"
#include "ir/infer/infer.h"

#include <stdlib.h>
#include <string.h>

enum { ARG_MAX = 1 << 20 };

/* Spellings of earlier versions. */
static const struct renamed {
	const char *old, *now;
} renamed_op[] = {
	{ "part", "split" }, { "whole", "batch_total" }, { NULL, NULL },
}, renamed_attr[] = {
	{ "lead", "first_axis" }, { "shared", "replication" },
	{ "part", "segment" }, { "part", "whole_extent" },
	{ "to_lead", "to_first_axis" }, { "to_shared", "to_replication" },
	{ "to_part", "to_segment" }, { "dealt", "batch_segments" },
	{ NULL, NULL },
};

static Op
find_op(const char *name)
{
	Op op = op_find(name);

	for (const struct renamed *r = renamed_op; !op && r->old; r++)
		if (strcmp(r->old, name) == 0)
			op = op_find(r->now);
	return op;
}

/* n: there is none. */
static int
find_attr(const struct attr_info *a, int n, const char *name)
{
	int i = 0;

	while (i < n && strcmp(a[i].name, name) != 0)
		i++;
	for (const struct renamed *r = renamed_attr; i == n && r->old; r++)
		if (strcmp(r->old, name) == 0)
			for (i = 0; i < n && strcmp(a[i].name, r->now) != 0; )
				i++;
	return i;
}

static bool
read_op(struct parser *p, Op *op)
{
	if (p->tok != T_WORD)
		return tok_expected(p, "an op");
	*op = find_op(p->text);
	if (*op == OP_NONE)
		return tok_fault(p, "unknown op '%s'", p->text);
	tok_next(p);
	return true;
}

static bool
read_attr_value(struct parser *p, const struct attr_info *a, void *to)
{
	char *rest;
	double x;

	if (a->type == AT_LIST)
		return tok_list(p, INT64_MIN, to);
	if (a->type == AT_INT) {
		if (p->tok == T_WORD && parse_find_type(p->text)) {
			*(int64_t *)to = parse_find_type(p->text);
			tok_next(p);
			return true;
		}
		return tok_int(p, INT64_MIN, "an integer", to);
	}
	if (p->tok != T_WORD)
		return tok_expected(p, "a number");
	x = strtod(p->text, &rest);
	if (*rest)
		return tok_expected(p, "a number");
	memcpy(to, &x, sizeof x);
	tok_next(p);
	return true;
}

/* {name=value, ...}, which may be absent. */
static bool
read_attrs(struct parser *p, Op op, Attr *attr)
{
	int n;
	const struct attr_info *a = op_attrs(op, &n);

	if (!tok_accept(p, '{'))
		return true;
	for (bool first = true; !tok_is(p, '}'); first = false) {
		int i;

		if (!first && !tok_expect(p, ','))
			return false;
		if (p->tok != T_WORD)
			return tok_expected(p, "an attribute");
		i = find_attr(a, n, p->text);
		if (i == n)
			return tok_fault(p, "%s has no attribute '%s'",
			                 op_info[op].text, p->text);
		tok_next(p);
		if (!tok_expect(p, '=')
		    || !read_attr_value(p, &a[i], (char *)attr + a[i].offset))
			return false;
	}
	return tok_expect(p, '}');
}

/* What is read of a node before it is appended. */
struct draft {
	Node n;
	size_t in_cap, out_cap, origin_cap, inlined_cap;
	size_t again;                   /* mention that is this node's, + 1 */
	int line;
};

/* An id more in a list of the draft. */
static void
push_id(struct parser *p, uint32_t **list, int *n, size_t *cap, uint32_t id)
{
	*list = arena_grow(p->g->arena, *list, (size_t)*n, cap,
	                   (size_t)*n + 1, sizeof **list);
	(*list)[(*n)++] = id;
}

static bool
read_outputs(struct parser *p, struct draft *t)
{
	do {
		ValId v = 0;

		if (!tok_word(p, "_")) {
			v = parse_decl(p, V_TEMP);
			if (!v)
				return false;
		}
		push_id(p, &t->n.out, &t->n.nout, &t->out_cap, v);
	} while (tok_accept(p, ','));
	return tok_expect(p, '=');
}

static bool
read_operand(struct parser *p, struct draft *t)
{
	ValId v = 0;

	if (!tok_word(p, "_")) {
		if (p->tok != T_VAL)
			return tok_expected(p, "a value");
		v = val_find(p->g, p->text);
		if (!v || v >= p->fresh)
			return tok_fault(p, "'%s' is not defined here",
			                 p->text);
		tok_next(p);
	}
	push_id(p, &t->n.in, &t->n.nin, &t->in_cap, v);
	return true;
}

static bool
read_operands(struct parser *p, struct draft *t)
{
	if (p->tok != T_VAL && !tok_is_word(p, "_"))
		return true;
	do {
		if (!read_operand(p, t))
			return false;
	} while (tok_accept(p, ','));
	return true;
}

static bool
read_origins(struct parser *p, Node *n)
{
	do {
		struct origin o;
		uint32_t id;
		char *name;

		if (!tok_text(p, T_STRING, "an origin's name", &name))
			return false;
		if (p->tok != T_WORD && p->tok != T_STRING)
			return tok_expected(p, "an origin's op");
		o = (struct origin){ name, p->text };
		id = origin_find(&p->origins, &o);
		if (!id)
			id = origin_add(&p->origins,
			                origin_new(p->g, o.name, o.op));
		tok_next(p);
		node_add_origin(p->g, n, &id, 1);
	} while (tok_accept(p, ','));
	return true;
}

/* a3 or t3 */
static bool
read_arg(struct parser *p, const char *letters, int *arg)
{
	int64_t i;

	if (p->tok != T_WORD || !*p->text || !strchr(letters, *p->text)
	    || !tok_number(p->text + 1, &i) || i < 0 || i > ARG_MAX)
		return tok_expected(p, strchr(letters, 'a') ? "aN or tN"
		                    : "tN");
	*arg = *p->text == 't' ? ~(int)i : (int)i;
	tok_next(p);
	return true;
}

static bool
read_scalar_op(struct parser *p, struct body *b, size_t *cap)
{
	struct scalar_op m = { .dt = DT_NONE };
	int number;

	if (!read_arg(p, "t", &number))
		return false;
	if (~number != b->nop)
		return tok_fault(p, "expected t%d, found t%d", b->nop,
		                 ~number);
	if ((tok_accept(p, ':') && !parse_dtype(p, &m.dt))
	    || !tok_expect(p, '=') || !read_op(p, &m.op))
		return false;
	m.attr = attr_default(m.op);
	while (p->tok == T_WORD) {
		if (m.narg == 3)
			return tok_fault(p, "expected at most 3 operands");
		if (!read_arg(p, "at", &m.arg[m.narg]))
			return false;
		m.narg++;
		if (!tok_accept(p, ','))
			break;
	}
	if (!read_attrs(p, m.op, &m.attr))
		return false;
	b->op = arena_grow(p->g->arena, b->op, (size_t)b->nop, cap,
	                      (size_t)b->nop + 1, sizeof *b->op);
	b->op[b->nop++] = m;
	return true;
}

static bool
read_loop_results(struct parser *p, Node *n)
{
	n->body->result = arena_array(p->g->arena, (size_t)n->nout + 1,
	                              sizeof *n->body->result);
	for (int i = 0; i < n->nout; i++) {
		int arg;

		if ((i && !tok_expect(p, ',')) || !read_arg(p, "t", &arg))
			return false;
		n->body->result[i] = ~arg;
	}
	return true;
}

/* [t0 = OP ARGS; ... give t0], separated by ; or line ends. */
static bool
read_body(struct parser *p, Node *n)
{
	size_t cap = 0;

	if (n->op != OP_LOOP || n->body)
		return tok_fault(p, "only a loop can have a body, and only "
		                 "one");
	n->body = arena_alloc(p->g->arena, sizeof *n->body);
	for (;;) {
		while (p->tok == T_LINE || tok_is(p, ';'))
			tok_next(p);
		if (tok_word(p, "give")) {
			if (!read_loop_results(p, n))
				return false;
			break;
		}
		if (!read_scalar_op(p, n->body, &cap))
			return false;
		if (p->tok != T_LINE && !tok_is(p, ';'))
			return tok_expected(p, "end of line");
	}
	tok_skip_lines(p);
	return tok_expect(p, ']');
}

static bool
read_phase(struct parser *p, Phase *phase)
{
	for (int i = 0; i < PH_COUNT; i++)
		if (strcmp(p->text, text_phase[i]) == 0) {
			*phase = (Phase)i;
			tok_next(p);
			return true;
		}
	return tok_fault(p, "unknown phase '%s'", p->text);
}

/* Nodes by one of their outputs. */
static bool
read_inlined(struct parser *p, struct draft *t)
{
	const Graph *g = p->g;
	Node *n = &t->n;

	do {
		char *name;
		NodeId def;

		if (!tok_text(p, T_VAL, "a value", &name))
			return false;
		def = g->val[val_find(g, name)].def;
		if (!def || g->node[def].op != OP_LOOP)
			return tok_fault(p, "no earlier loop writes '%s'",
				name);
		push_id(p, &n->inlined, &n->ninlined, &t->inlined_cap, def);
	} while (tok_accept(p, ','));
	return true;
}

static bool
read_tail(struct parser *p, struct draft *t)
{
	Node *n = &t->n;
	bool ok = true;

	while (ok) {
		int64_t x;

		if (p->tok == T_AT) {
			ok = read_phase(p, &n->phase);
		} else if (tok_word(p, "count_pass")
		           || tok_word(p, "round")) {
			ok = tok_int(p, 1, "a count pass", &x) && x <= ARG_MAX;
			n->count_pass = ok ? (int)x : 0;
		} else if (tok_word(p, "again")) {
			ok = parse_mention(p, 0, 0, M_AGAIN);
			t->again = p->nmention;
		} else if (tok_word(p, "wait")) {
			ok = parse_mention(p, 0, p->g->nnode, M_WAIT);
		} else if (tok_word(p, "inlines")) {
			ok = read_inlined(p, t);
		} else if (tok_word(p, "workspace")) {
			ok = tok_int(p, 0, "bytes", &n->workspace)
			     && (!tok_word(p, "at")
			         || tok_int(p, 0, "an offset",
			                    &n->workspace_at));
		} else if (tok_word(p, "from")) {
			ok = read_origins(p, n);
		} else if (tok_accept(p, '[')) {
			p->in_body = true;
			ok = read_body(p, n);
			p->in_body = !ok;
		} else {
			break;
		}
	}
	return ok;
}

static bool
check_draft(struct parser *p, struct draft *t)
{
	Node *n = &t->n;
	int want = op_info[n->op].nout;

	if (n->op == OP_LOOP && !n->body)
		return tok_fault_at(p, t->line, "a loop needs a body");
	if (want == VARIADIC)
		return true;
	if (n->nout > want)
		return tok_fault_at(p, t->line, "%s: expected %d outputs, "
		                    "found %d",
		                    op_info[n->op].text, want, n->nout);
	while (n->nout < want)
		push_id(p, &n->out, &n->nout, &t->out_cap, 0);
	return true;
}

/* Append the node; node_new would name outputs itself. */
static bool
append_node(struct parser *p, struct draft *t)
{
	Graph *g = p->g;
	Node *n;

	g->node = arena_grow(g->arena, g->node, g->nnode, &g->node_cap,
	                     g->nnode + 1, sizeof *g->node);
	n = &g->node[g->nnode++];
	*n = t->n;
	if (!n->in)
		n->in = arena_array(g->arena, 1, sizeof *n->in);
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			g->val[n->out[i]].def = node_id(g, n);
			g->val[n->out[i]].result_index = i;
		}
	if (t->again)
		p->mention[t->again - 1].node = node_id(g, n);
	tok_locate(p, t->line);
	if (shape_infer(g, p->d, n))
		return true;
	p->faults++;
	return false;
}

bool
parse_node(struct parser *p)
{
	struct draft t = { .line = p->line };

	p->fresh = p->g->nval;
	if (!read_outputs(p, &t) || !read_op(p, &t.n.op))
		return false;
	t.n.attr = attr_default(t.n.op);
	t.n.workspace_at = -1;
	return read_operands(p, &t) && read_attrs(p, t.n.op, &t.n.attr)
	       && read_tail(p, &t) && check_draft(p, &t) && append_node(p, &t);
}
