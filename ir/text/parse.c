/* The textual form of a graph: nodes and statements.  ir/text/text.c describes
 * the form.
 *
 * A recursive descent over tokens; a fault ends its line and reading goes on
 * with the next, so that several are reported.  Values may be mentioned in
 * marks before they are declared (`of`, `in`), never as operands.  Shapes are
 * inferred node by node, so that text may leave types of results out.
 */
#include "ir/text/parser.h"
#include "ir/text/text.h"

#include <stdlib.h>
#include <string.h>

enum { FAULTS_MAX = 20, ARG_MAX = 1 << 20 };

/* ---- nodes ---- */

static bool
read_op(struct parser *p, Op *op)
{
	if (p->tok != T_WORD)
		return tok_expected(p, "an op");
	*op = op_find(p->text);
	if (*op == OP_NONE)
		return tok_fault(p, "there is no op '%s'", p->text);
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
		int i = 0;

		if (!first && !tok_expect(p, ','))
			return false;
		if (p->tok != T_WORD)
			return tok_expected(p, "an attribute");
		while (i < n && strcmp(a[i].name, p->text) != 0)
			i++;
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

static void
push(struct parser *p, ValId **list, int *n, size_t *cap, ValId v)
{
	*list = arena_grow(p->g->arena, *list, (size_t)*n, cap,
	                   (size_t)*n + 1, sizeof **list);
	(*list)[(*n)++] = v;
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
		push(p, &t->n.out, &t->n.nout, &t->out_cap, v);
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
	push(p, &t->n.in, &t->n.nin, &t->in_cap, v);
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

/* The slot of an origin in the table, or the free one where it belongs. */
static uint32_t *
origin_slot(struct parser *p, const char *name, const char *op)
{
	const struct origin *o = p->g->origin;
	uint64_t h = 0xcbf29ce484222325u;       /* FNV-1a */
	uint32_t i;

	for (const char *s = name; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	for (const char *s = op; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	i = (uint32_t)(h ^ h >> 32) & (p->norigin - 1);
	while (p->origin[i] && (strcmp(o[p->origin[i]].name, name) != 0
	                        || strcmp(o[p->origin[i]].op, op) != 0))
		i = (i + 1) & (p->norigin - 1);
	return &p->origin[i];
}

static uint32_t
intern_origin(struct parser *p, const char *name, const char *op)
{
	Graph *g = p->g;
	uint32_t *slot;

	if (2 * (uint64_t)g->norigin >= p->norigin) {
		p->norigin = p->norigin ? 2 * p->norigin : 256;
		p->origin = arena_array(p->tmp, p->norigin,
		                        sizeof *p->origin);
		for (uint32_t i = 1; i < g->norigin; i++)
			*origin_slot(p, g->origin[i].name, g->origin[i].op) =
				i;
	}
	slot = origin_slot(p, name, op);
	if (!*slot)
		*slot = origin_new(g, name, op);
	return *slot;
}

static bool
read_origins(struct parser *p, Node *n)
{
	do {
		char *name;
		uint32_t o;

		if (!tok_text(p, T_STRING, "an origin's name", &name))
			return false;
		if (p->tok != T_WORD && p->tok != T_STRING)
			return tok_expected(p, "an origin's op");
		o = intern_origin(p, name, p->text);
		tok_next(p);
		node_add_origin(p->g, n, &o, 1);
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
read_micro(struct parser *p, struct body *b, size_t *cap)
{
	struct micro m = { .dt = DT_NONE };
	int number;

	if (!read_arg(p, "t", &number))
		return false;
	if (~number != b->nmicro)
		return tok_fault(p, "expected t%d, found t%d", b->nmicro,
		                 ~number);
	if ((tok_accept(p, ':') && !parse_dtype(p, &m.dt))
	    || !tok_expect(p, '=') || !read_op(p, &m.op))
		return false;
	m.attr = attr_default(m.op);
	while (p->tok == T_WORD) {
		if (m.narg == 3)
			return tok_fault(p, "more than 3 operands");
		if (!read_arg(p, "at", &m.arg[m.narg]))
			return false;
		m.narg++;
		if (!tok_accept(p, ','))
			break;
	}
	if (!read_attrs(p, m.op, &m.attr))
		return false;
	b->micro = arena_grow(p->g->arena, b->micro, (size_t)b->nmicro, cap,
	                      (size_t)b->nmicro + 1, sizeof *b->micro);
	b->micro[b->nmicro++] = m;
	return true;
}

static bool
read_give(struct parser *p, Node *n)
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
		return tok_fault(p, "only a loop has a body, and only one");
	n->body = arena_alloc(p->g->arena, sizeof *n->body);
	for (;;) {
		while (p->tok == T_LINE || tok_is(p, ';'))
			tok_next(p);
		if (tok_word(p, "give")) {
			if (!read_give(p, n))
				return false;
			break;
		}
		if (!read_micro(p, n->body, &cap))
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
	return tok_fault(p, "there is no phase '%s'", p->text);
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
			return tok_fault(p, "no loop before writes '%s'", name);
		n->inlined = arena_grow(g->arena, n->inlined,
			(size_t)n->ninlined, &t->inlined_cap,
			(size_t)n->ninlined + 1, sizeof *n->inlined);
		n->inlined[n->ninlined++] = def;
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
		} else if (tok_word(p, "again")) {
			ok = parse_mention(p, 0, 0, M_AGAIN);
			t->again = p->nmention;
		} else if (tok_word(p, "inlines")) {
			ok = read_inlined(p, t);
		} else if (tok_word(p, "stream")) {
			ok = tok_int(p, 0, "a stream", &x);
			if (ok && x > ARG_MAX)
				ok = tok_fault(p, "stream %lld", (long long)x);
			n->stream = ok ? (int)x : 0;
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
		return tok_fault_at(p, t->line, "%s has %d outputs, found %d",
		                    op_info[n->op].text, want, n->nout);
	while (n->nout < want)
		push(p, &n->out, &n->nout, &t->out_cap, 0);
	return true;
}

/* Append the node; node_new would name outputs itself. */
static bool
append(struct parser *p, struct draft *t)
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
			g->val[n->out[i]].slot = i;
		}
	if (t->again)
		p->mention[t->again - 1].node = node_id(g, n);
	tok_locate(p, t->line);
	if (shape_infer(g, p->d, n))
		return true;
	p->faults++;
	return false;
}

static bool
read_node(struct parser *p)
{
	struct draft t = { .line = p->line };

	p->fresh = p->g->nval;
	if (!read_outputs(p, &t) || !read_op(p, &t.n.op))
		return false;
	t.n.attr = attr_default(t.n.op);
	t.n.workspace_at = -1;
	return read_operands(p, &t) && read_attrs(p, t.n.op, &t.n.attr)
	       && read_tail(p, &t) && check_draft(p, &t) && append(p, &t);
}

/* ---- statements ---- */

static bool
read_props(struct parser *p)
{
	while (p->tok == T_WORD) {
		int i = 0;

		while (text_prop[i] && strcmp(text_prop[i], p->text) != 0)
			i++;
		if (!text_prop[i])
			return tok_fault(p, "there is no property '%s'",
			                 p->text);
		p->g->props |= 1u << i;
		tok_next(p);
	}
	return true;
}

static bool
read_value(struct parser *p, ValKind kind)
{
	ValId v = parse_decl(p, kind);

	if (!v)
		return false;
	return !tok_accept(p, '=') || parse_contents(p, &p->g->val[v]);
}

static bool
read_statement(struct parser *p)
{
	if (p->tok == T_VAL || tok_is_word(p, "_"))
		return read_node(p);
	for (int k = 0; k < V_KIND_COUNT; k++)
		if (tok_word(p, text_kind[k]))
			return read_value(p, (ValKind)k);
	if (tok_word(p, "loss"))
		return parse_mention(p, 0, 0, M_LOSS);
	if (tok_word(p, "props"))
		return read_props(p);
	if (tok_word(p, "streams"))
		return tok_int(p, 0, "streams", &p->g->nstream);
	return tok_expected(p, "a statement");
}

/* Go to the end of a line that has a fault, or of the loop around it. */
static void
recover(struct parser *p)
{
	while (p->tok != T_END
	       && (p->in_body ? !tok_is(p, ']') : p->tok != T_LINE))
		tok_next(p);
	if (p->in_body && p->tok != T_END)
		tok_next(p);
	p->in_body = false;
}

static void
read_graph(struct parser *p)
{
	char *name;

	tok_skip_lines(p);
	if (!tok_word(p, "graph")) {
		tok_expected(p, "graph @NAME {");
		return;
	}
	if (!tok_text(p, T_AT, "@NAME", &name) || !tok_expect(p, '{'))
		return;
	p->g->name = arena_str(p->g->arena, name);
	for (;;) {
		tok_skip_lines(p);
		if (tok_is(p, '}') || p->tok == T_END
		    || p->faults >= FAULTS_MAX)
			break;
		bool ok = read_statement(p);

		if (ok && p->tok != T_LINE && p->tok != T_END
		    && !tok_is(p, '}'))
			ok = tok_expected(p, "end of line");
		if (!ok)
			recover(p);
	}
	if (p->faults)
		return;
	if (!tok_expect(p, '}'))
		return;
	tok_skip_lines(p);
	if (p->tok != T_END)
		tok_expected(p, "nothing more");
}

static void
settle_mention(struct parser *p, const struct mention *m)
{
	Graph *g = p->g;
	ValId to = val_find(g, m->name);
	Val *v = &g->val[m->val];
	NodeId def = g->val[to].def;

	if (!to) {
		tok_fault_at(p, m->line, "'%s' is not declared", m->name);
		return;
	}
	switch (m->field) {
	case M_OF:      v->of = to; break;
	case M_PARAM:   v->param = to; break;
	case M_ADJOINT: v->grad_of = to; break;
	case M_IN:      v->base = to; break;
	case M_LOSS:    g->loss = to; break;
	case M_AGAIN:
		if (!def || def >= m->node)
			tok_fault_at(p, m->line, "no node before writes '%s'",
			             m->name);
		else
			g->node[m->node].of = def;
	}
}

Graph *
text_parse(const char *path, const char *text, size_t n, Diag *d)
{
	struct parser p = {
		.g = graph_new("?"), .d = d, .tmp = arena_new(), .path = path,
		.at = text, .end = text + n, .line = 1, .tok = T_BAD,
	};

	tok_next(&p);
	read_graph(&p);
	for (size_t i = 0; i < p.nmention && !p.faults; i++)
		settle_mention(&p, &p.mention[i]);
	diag_file(d, path);
	arena_free(p.tmp);
	if (!p.faults)
		return p.g;
	graph_free(p.g);
	return NULL;
}
