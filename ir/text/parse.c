/* The textual form of a graph: statements.  ir/text/text.c describes the form.
 *
 * A recursive descent over tokens; a fault ends its line and reading goes on
 * with the next, so that several are reported.  Values may be mentioned in
 * marks before they are declared (`of`, `in`), never as operands.  Shapes are
 * inferred node by node, so that text may leave types of results out.
 */
#include "ir/text/parser.h"

#include <string.h>

enum { FAULTS_MAX = 20 };

static bool
read_props(struct parser *p)
{
	while (p->tok == T_WORD) {
		int i = 0;

		while (text_prop[i] && strcmp(text_prop[i], p->text) != 0)
			i++;
		if (!text_prop[i])
			return tok_fault(p, "unknown property '%s'", p->text);
		p->g->props |= 1u << i;
		tok_next(p);
	}
	return true;
}

static bool
read_value_decl(struct parser *p, ValKind kind)
{
	ValId v = parse_decl(p, kind);

	if (!v)
		return false;
	if (kind == V_CONST && val_data_bytes(&p->g->val[v]) < 0)
		return tok_fault(p, "contents need a known type and shape");
	return !tok_accept(p, '=') || parse_contents(p, &p->g->val[v]);
}

static bool
read_ranks(struct parser *p, const char *what, int64_t *n)
{
	if (!tok_int(p, 1, what, n))
		return false;
	return *n <= GROUP_MAX
		|| tok_fault(p, "expected at most %d %s, found %lld",
		             GROUP_MAX, what, (long long)*n);
}

static bool
read_halves(struct parser *p)
{
	int64_t n;

	if (!tok_int(p, 1, "halves", &n))
		return false;
	p->g->halves = n == 1 ? HALVES_ONE : HALVES_BOTH;
	return n <= 2 || tok_fault(p, "expected halves 1 or 2, found %lld",
	                           (long long)n);
}

/* Slots of stages with turns of weights, after the word. */
static bool
read_weight_slots(struct parser *p)
{
	Graph *g = p->g;
	int64_t least;

	if (!read_ranks(p, "slots", &g->through_slots)
	    || !read_ranks(p, "slots", &g->weight_slots))
		return false;
	least = g->slots > g->weight_slots ? g->slots : g->weight_slots;
	return g->through_slots >= least
		|| tok_fault(p, "expected at least %lld slots up to weight "
		             "turns, found %lld", (long long)least,
		             (long long)g->through_slots);
}

static bool
read_stage(struct parser *p)
{
	Graph *g = p->g;

	return tok_int(p, 0, "stage", &g->stage)
		&& read_ranks(p, "stages", &g->stages)
		&& read_ranks(p, "slots", &g->slots)
		&& (!tok_word(p, "weight") || read_weight_slots(p))
		&& (g->stage < g->stages
		    || tok_fault(p, "expected a stage below %lld, found %lld",
		                 (long long)g->stages, (long long)g->stage));
}

static bool
read_statement(struct parser *p)
{
	if (p->tok == T_VAL || tok_is_word(p, "_"))
		return parse_node(p);
	for (int k = 0; k < V_KIND_COUNT; k++)
		if (tok_word(p, text_kind[k]))
			return read_value_decl(p, (ValKind)k);
	if (tok_word(p, "loss"))
		return parse_mention(p, 0, 0, M_LOSS);
	if (tok_word(p, "props"))
		return read_props(p);
	if (tok_word(p, "streams"))
		return tok_int(p, 0, "streams", &p->g->nstream);
	if (tok_word(p, "ranks"))
		return read_ranks(p, "ranks", &p->g->ranks);
	if (tok_word(p, "zero_group"))
		return read_ranks(p, "replicas", &p->g->zero_group);
	if (tok_word(p, "expert_group"))
		return read_ranks(p, "replicas", &p->g->expert_group);
	if (tok_word(p, "stage"))
		return read_stage(p);
	if (tok_word(p, "other_slots"))
		return tok_int(p, 0, "other_slots", &p->g->other_slots);
	if (tok_word(p, "context")) {
		if (!read_ranks(p, "replicas", &p->g->context))
			return false;
		p->g->zigzag = tok_word(p, "zigzag");
		return true;
	}
	if (tok_word(p, "adds"))
		return p->g->adds = true;
	if (tok_word(p, "halves"))
		return read_halves(p);
	if (tok_word(p, "replicas")) {
		if (!read_ranks(p, "replicas", &p->g->replicas))
			return false;
		p->g->exact = tok_word(p, "exactly");
		return true;
	}
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
read_graph_text(struct parser *p)
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
		tok_expected(p, "end of file");
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
	case M_LOW_PRECISION: v->low_precision_of = to; break;
	case M_PARAM:   v->param = to; break;
	case M_ADJOINT: v->grad_of = to; break;
	case M_IN:      v->base = to; break;
	case M_LOSS:    g->loss = to; break;
	case M_AGAIN:
		if (!def || def >= m->node)
			tok_fault_at(p, m->line, "no earlier node writes '%s'",
			             m->name);
		else
			g->node[m->node].of = def;
		break;
	case M_WAIT:
		if (!def)
			tok_fault_at(p, m->line, "no node writes '%s'",
			             m->name);
		g->node[m->node].wait = def;
	}
}

Graph *
text_parse(const char *path, const char *text, size_t n, Diag *d)
{
	struct parser p = {
		.g = graph_new("?"), .d = d, .tmp = arena_new(), .path = path,
		.at = text, .end = text + n, .line = 1, .tok = T_BAD,
	};

	p.origins = (struct origin_table){ .arena = p.tmp, .g = p.g };
	tok_next(&p);
	read_graph_text(&p);
	for (size_t i = 0; i < p.nmention && !p.faults; i++)
		settle_mention(&p, &p.mention[i]);
	diag_file(d, path);
	arena_free(p.tmp);
	if (!p.faults)
		return p.g;
	graph_free(p.g);
	return NULL;
}
