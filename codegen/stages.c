/* The stages of a pipeline as one program: order of tensors, instructions,
 * messages and turns. */
#include "codegen/stages.h"

#include <inttypes.h>
#include <string.h>

/* The parts of a stage's plan. */
enum part { FORWARD, BACKWARD, WEIGHT, NORM, UPDATE, PARTS };

struct stage_parts {
	int64_t end[PARTS];             /* steps */
};

static const Node *
node_of_step(const struct emitted_program *p, int64_t i)
{
	return &p->g->node[p->plan->step[i].gnode];
}

/* ---- parts ---- */

static bool
joins_stages(const Node *n)
{
	return op_info[n->op].flags & F_SENDS && !node_is_message(n)
		&& node_group(n) == GROUP_STAGES;
}

/* Updates wait for the norm of the gradients of all stages. */
static struct stage_parts
find_parts(const struct emitted_program *p)
{
	struct stage_parts parts = { { 0 } };
	int64_t i = 0, n = p->plan->nstep, norm = -1;

	while (i < n && p->plan->step[i].phase == PH_FORWARD)
		i++;
	parts.end[FORWARD] = i;
	parts.end[BACKWARD] = parts.end[FORWARD];
	for (; i < n && p->plan->step[i].phase != PH_UPDATE; i++)
		if (!p->plan->weight_slots
		    || p->plan->step[i].phase == PH_BACKWARD)
			parts.end[BACKWARD] = i + 1;
	parts.end[WEIGHT] = i;
	for (int64_t k = n; k-- > i;)
		if (joins_stages(node_of_step(p, k)))
			norm = k;
	parts.end[NORM] = norm < 0 ? i : norm;
	parts.end[UPDATE] = n;
	return parts;
}

/* Phases follow each other. */
static bool
check_parts(const struct emitted_program *p, const struct stage_parts *parts,
            Diag *d)
{
	bool ok = true;

	for (int64_t i = parts->end[FORWARD]; i < p->plan->nstep; i++) {
		Phase phase = p->plan->step[i].phase;

		ok &= i < parts->end[BACKWARD]
			? phase == PH_BACKWARD || phase == PH_RECOMPUTE
			: i < parts->end[WEIGHT]
			? phase == PH_WEIGHT || phase == PH_RECOMPUTE
			: phase == PH_UPDATE;
	}
	return ok || diag_internal(d, "codegen: steps of stage %u are not in "
	                           "the order of phases", p->number);
}

static void
add_part(struct emitted_stages *s, struct emitted_program *p, int64_t first,
         int64_t end)
{
	s->part[s->npart++] = (struct emitted_part){ p, first, end };
	for (int64_t i = first; i < end; i++)
		p->instr[i] = s->ninstr++;
}

/* Forward or backward of a stage, under both plans. */
static void
add_turns(struct emitted_stages *s, int k, enum part part)
{
	struct emitted_program *p[2] = { &s->program[k], &s->second[k] };

	for (int i = 0; i < 2; i++) {
		struct stage_parts parts;

		if (!p[i]->plan)
			continue;
		parts = find_parts(p[i]);
		add_part(s, p[i], part ? parts.end[part - 1] : 0,
		         parts.end[part]);
	}
}

static void
order_parts(struct emitted_stages *s, const struct stage_parts *parts)
{
	for (int k = 0; k < s->n; k++)
		add_turns(s, k, FORWARD);
	for (int part = BACKWARD; part <= WEIGHT; part++)
		for (int k = s->n; k-- > 0;)
			add_turns(s, k, part);
	s->update = s->ninstr;
	for (int part = NORM; part <= UPDATE; part++)
		for (int k = 0; k < s->n; k++)
			add_part(s, &s->program[k], parts[k].end[part - 1],
			         parts[k].end[part]);
}

/* How many micro-batches it takes until one has the slots of the first in all
 * pools, or how many there are. */
static int64_t
count_sets(const struct codegen_stage *of, const struct codegen_schedules *c)
{
	const Plan *p = of->plan;
	int64_t n = of->slots > 1 ? of->slots : 1, all = n;

	while (p->weight_slots && all < c->nmicro
	       && (all % n || all % p->through_slots || all % p->weight_slots))
		all++;
	return all;
}

/* ---- messages ---- */

/* Tags are those of the nodes: 0, 1, 2... in the whole model. */
static int64_t
count_messages(const struct emitted_stages *s)
{
	int64_t n = 0;

	for (int k = 0; k < s->n; k++)
		for (int64_t i = 0; i < s->program[k].plan->nstep; i++) {
			const Node *node = node_of_step(&s->program[k], i);

			n += node_is_message(node) && node_message(node).sends;
		}
	return n;
}

static bool
check_tags(const struct emitted_stages *s, int64_t n, Diag *d)
{
	bool ok = true;

	for (int k = 0; k < s->n; k++)
		for (int64_t i = 0; i < s->program[k].plan->nstep; i++) {
			const Node *node = node_of_step(&s->program[k], i);

			ok &= !node_is_message(node)
				|| (uint64_t)node_message(node).tag
				< (uint64_t)n;
		}
	return ok || diag_internal(d, "codegen: a message has a tag of no "
	                           "other");
}

/* ---- the order of turns ---- */

struct order {
	struct emitted_stages *s;
	const struct codegen_schedules *c;
	const struct stage_parts *parts;
	int *next;                      /* by stage: its next turn */
	uint32_t *turn;                 /* by rank of the pipeline: its next
	                                 * turn, the updates' second parts
	                                 * aside */
	int64_t *under_way;             /* by message: sent, not received */
	int norms;                      /* stages before the norm over stages */
};

/* Whether a stage's steps find what they receive sent; moved: carry them out.
 */
static bool
run_steps(struct order *o, const struct emitted_program *p, int64_t first,
          int64_t end, bool moved)
{
	for (int64_t i = first; i < end; i++) {
		const Node *n = node_of_step(p, i);
		struct node_message m;

		if (!node_is_message(n))
			continue;
		m = node_message(n);
		if (!m.sends && !o->under_way[m.tag])
			return false;
		if (moved)
			o->under_way[m.tag] += m.sends ? 1 : -1;
	}
	return true;
}

/* Part of a turn, if its turn has come. */
static bool
take_part(struct order *o, int k, enum part part, const struct turn *t)
{
	static const char *const kind[PARTS] = { "CKR_TURN_FORWARD",
		"CKR_TURN_BACKWARD", "CKR_TURN_WEIGHT", "CKR_TURN_NORM",
		"CKR_TURN_UPDATE" };
	const struct codegen_stage *stage = &o->c->stage[k];
	int64_t set = t->micro % o->s->sets[k];
	bool second = part <= BACKWARD && stage->second
		&& stage->has_second[set];
	const struct emitted_program *p = second ? &o->s->second[k]
		: &o->s->program[k];
	struct stage_parts parts = second ? find_parts(p) : o->parts[k];
	int64_t first = part ? parts.end[part - 1] : 0, end = parts.end[part];

	if (!run_steps(o, p, first, end, false))
		return false;
	run_steps(o, p, first, end, true);
	if (first < end)
		o->s->turn[o->s->nturn++] = (struct emitted_turn){ kind[part],
			p->instr[first], p->instr[end - 1] + 1, k, set,
			t->micro };
	return true;
}

/* The next turn of stage k.  The update is two: all stages wait for the norm
 * in between. */
static bool
take_turn(struct order *o, int k)
{
	const struct codegen_stage *stage = &o->c->stage[k];
	int last = stage->nturn - 1, next = o->next[k];
	const struct turn *t = &stage->turn[next < last ? next : last];
	enum part part = t->kind == TURN_FORWARD ? FORWARD
		: t->kind == TURN_BACKWARD ? BACKWARD
		: t->kind == TURN_WEIGHT ? WEIGHT
		: next == last ? NORM : UPDATE;
	uint32_t *turn = &o->turn[k % o->c->nrank];
	bool done = next <= last + 1
		&& (part == UPDATE ? !o->norms : t->order == *turn)
		&& take_part(o, k, part, t);

	o->norms -= done && part == NORM;
	o->next[k] += done;
	*turn += done && part != UPDATE;
	return done;
}

static bool
order_turns(struct emitted_stages *s, const struct codegen_schedules *c,
            const struct stage_parts *parts, Arena *a, Diag *d)
{
	struct order o = { s, c, parts, .norms = s->n };
	int64_t messages = count_messages(s);
	size_t n = 0;
	bool moved = true, done = true;

	if (!check_tags(s, messages, d))
		return false;
	o.next = arena_array(a, (size_t)s->n, sizeof *o.next);
	o.turn = arena_array(a, (size_t)c->nrank, sizeof *o.turn);
	o.under_way = arena_array(a, (size_t)messages + 1,
	                          sizeof *o.under_way);
	for (int k = 0; k < s->n; k++)
		n += (size_t)c->stage[k].nturn + 1;
	s->turn = arena_array(a, n, sizeof *s->turn);
	while (moved) {
		moved = false;
		for (int k = 0; k < s->n; k++)
			moved |= take_turn(&o, k);
	}
	for (int k = 0; k < s->n; k++)
		done &= o.next[k] == c->stage[k].nturn + 1;
	for (int64_t i = 0; i < messages; i++)
		done &= !o.under_way[i];
	return done || diag_internal(d, "codegen: stages wait for each other");
}

/* ---- tensors ---- */

static void
number_tensors(struct emitted_stages *s)
{
	for (int k = 0; k < s->n; k++) {
		s->program[k].shared_at = s->nshared;
		s->nshared += s->program[k].nshared;
	}
	s->ntensor = s->nshared;
	for (int k = 0; k < s->n; k++) {
		struct emitted_program *p = &s->program[k];

		p->own_at = s->ntensor;
		s->ntensor += p->ntensor - p->nshared;
		p = &s->second[k];
		p->shared_at = s->program[k].shared_at;
		p->own_at = s->ntensor;
		s->ntensor += p->ntensor - p->nshared;
	}
}

/* Properties of a stage's inputs: those of the whole graph. */
static const unsigned char *
inputs_of_stage(Arena *a, const Graph *g, const Graph *whole,
                const unsigned char *all)
{
	unsigned char *input = arena_array(a, g->nval, 1);

	FOR_VALS (v, g) {
		ValId of = v->kind == V_INPUT ? val_find(whole, v->name) : 0;

		input[val_id(g, v)] = of ? all[of] : 0;
	}
	return input;
}

/* Constants of all stages lie in one file. */
static void
move_data(struct shared_values *s, uint64_t by)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->data[i] += by;
	s->data_bytes += by;
}

/* The program of a stage's second plan; values that both share have the same
 * numbers in both graphs. */
static bool
collect_second(struct emitted_stages *s, int k,
               const struct codegen_stage *from, Arena *a, Diag *d)
{
	struct emitted_program *p = &s->second[k], *first = &s->program[k];

	if (!from->second)
		return true;
	if (!tables_program(p, a, from->second, from->second_plan,
	                    &s->shared[k], NULL, d))
		return false;
	p->number = (uint32_t)k;
	p->second = true;
	p->instr = arena_array(a, (size_t)p->plan->nstep + 1,
	                       sizeof *p->instr);
	memset(p->instr, 0xff, ((size_t)p->plan->nstep + 1)
	       * sizeof *p->instr);
	if (first->arena_bytes < p->arena_bytes)
		first->arena_bytes = p->arena_bytes;
	if (first->peak < p->peak)
		first->peak = p->peak;
	return p->resident_bytes == first->resident_bytes
		|| diag_internal(d, "codegen: the plans of stage %d differ in "
		                 "what outlives a step", k);
}

static bool
collect_programs(struct emitted_stages *s, const struct codegen_schedules *c,
                 const unsigned char *inputs, Arena *a, Diag *d)
{
	uint64_t data = 0;

	for (int k = 0; k < s->n; k++) {
		const struct codegen_stage *from = &c->stage[k];
		struct emitted_program *p = &s->program[k];

		s->shared[k] = tables_shared(a, from->g, from->plan,
		                             from->second_plan);
		move_data(&s->shared[k], data);
		if (!tables_program(p, a, from->g, from->plan, &s->shared[k],
		                    NULL, d))
			return false;
		data = s->shared[k].data_bytes;
		p->number = (uint32_t)k;
		p->instr = arena_array(a, (size_t)from->plan->nstep + 1,
		                       sizeof *p->instr);
		s->inputs[k] = inputs_of_stage(a, from->g, c->g, inputs);
		if (!collect_second(s, k, from, a, d))
			return false;
	}
	return true;
}

/* ---- evaluation ---- */

static bool
collect_forward(struct emitted_stages *s, const struct codegen_schedules *c,
                Arena *a, Diag *d)
{
	uint64_t data = s->shared[s->n - 1].data_bytes;
	int64_t at = 0;

	if (!c->stage[0].forward)
		return true;
	s->forward = arena_array(a, (size_t)s->n, sizeof *s->forward);
	s->forward_part = arena_array(a, (size_t)s->n,
	                              sizeof *s->forward_part);
	s->nforward = s->nshared;
	for (int k = 0; k < s->n; k++) {
		const struct codegen_stage *from = &c->stage[k];
		struct emitted_program *p = &s->forward[k];
		struct emitted_program *plan = &s->program[k];

		s->shared[k].data_bytes = data;
		if (!tables_program(p, a, from->forward, from->forward_plan,
		                    &s->shared[k], from->g, d))
			return false;
		data = s->shared[k].data_bytes;
		p->number = (uint32_t)k;
		p->shared_at = plan->shared_at;
		p->own_at = s->nforward;
		s->nforward += p->ntensor - p->nshared;
		p->instr = arena_array(a, (size_t)p->plan->nstep + 1,
		                       sizeof *p->instr);
		for (int64_t i = 0; i < p->plan->nstep; i++)
			p->instr[i] = at++;
		s->forward_part[k] = (struct emitted_part){ p, 0,
			p->plan->nstep };
		if (plan->arena_bytes < p->arena_bytes)
			plan->arena_bytes = p->arena_bytes;
	}
	s->shared[s->n - 1].data_bytes = data;
	return true;
}

struct emitted_stages *
stages_collect(Arena *a, const struct codegen_schedules *c,
               const unsigned char *inputs, Diag *d)
{
	struct emitted_stages *s = arena_alloc(a, sizeof *s);
	struct stage_parts *parts;
	size_t n = (size_t)c->nstage;

	s->n = c->nstage;
	s->nrank = c->nrank;
	s->of = c->stage;
	s->program = arena_array(a, n, sizeof *s->program);
	s->second = arena_array(a, n, sizeof *s->second);
	s->shared = arena_array(a, n, sizeof *s->shared);
	s->inputs = arena_array(a, n, sizeof *s->inputs);
	s->part = arena_array(a, 2 * PARTS * n, sizeof *s->part);
	s->sets = arena_array(a, n, sizeof *s->sets);
	parts = arena_array(a, n, sizeof *parts);
	if (!collect_programs(s, c, inputs, a, d))
		return NULL;
	for (int k = 0; k < s->n; k++) {
		parts[k] = find_parts(&s->program[k]);
		s->sets[k] = count_sets(&c->stage[k], c);
		if (!check_parts(&s->program[k], &parts[k], d))
			return NULL;
		if (s->second[k].plan) {
			struct stage_parts second = find_parts(&s->second[k]);

			if (!check_parts(&s->second[k], &second, d))
				return NULL;
		}
	}
	number_tensors(s);
	if (!collect_forward(s, c, a, d))
		return NULL;
	order_parts(s, parts);
	return order_turns(s, c, parts, a, d) ? s : NULL;
}

/* In the programs of all stages; the loss if the name is NULL.  Of copies on
 * several stages the one that is kept as an output, if there is one. */
static int64_t
find_value(const struct emitted_stages *s, const struct emitted_program *all,
           const char *name)
{
	int64_t found = -1;

	for (int k = 0; k < s->n; k++) {
		const struct emitted_program *p = &all[k];
		ValId v = name ? val_find(p->g, name) : p->g->loss;
		int64_t at = v ? p->index_of_val[v] : -1;

		if (at >= 0 && (found < 0 || p->g->val[v].output))
			found = emitted_index(p, at);
	}
	return found;
}

int64_t
stages_find(const struct emitted_stages *s, const char *name)
{
	return find_value(s, s->program, name);
}

int64_t
stages_find_evaluated(const struct emitted_stages *s, const char *name)
{
	return find_value(s, s->forward ? s->forward : s->program, name);
}

/* What every stage computes, or has a copy of its own of, is not tied. */
static bool
is_tied_kind(const Val *v)
{
	return v->kind == V_PARAM || v->kind == V_BUFFER || v->kind == V_INPUT
		|| (v->kind == V_STATE && v->param && v->state
		    && strcmp(v->state, "copy") && strcmp(v->state, "grad"));
}

int64_t
stages_tied(const struct emitted_stages *s, const struct emitted_program *p,
            int64_t i)
{
	const Val *v = &p->g->val[p->val[i]];
	int64_t of;

	if (i >= (int64_t)p->nshared || !is_tied_kind(v))
		return 0;
	of = stages_find(s, v->name);
	return of == emitted_index(p, i) ? 0 : of + 1;
}

/* ---- printing ---- */

/* Which slots have the second plan. */
static const char *
second_slots(struct out *o, const struct emitted_stages *s, int k)
{
	const struct codegen_stage *of = &s->of[k];

	if (!of->second)
		return "NULL";
	out_put(o, "\nstatic const unsigned char second%d[] = {", k);
	for (int i = 0; i < of->slots; i++)
		out_put(o, "%s %d", i ? "," : "", of->has_second[i]);
	out_put(o, " };\n");
	return arena_printf(o->arena, "second%d", k);
}

/* The pools of a stage: what has one slot alone may lie anywhere. */
static void
emit_pools(struct out *o, const struct codegen_stage *of)
{
	const Plan *p = of->plan;
	const int64_t pool[][2] = {
		{ of->slots, p->slot_bytes },
		{ p->through_slots, p->through_bytes },
		{ p->weight_slots, p->weight_bytes },
	};
	int64_t at = 0;

	for (size_t k = 0; k < sizeof pool / sizeof *pool; k++) {
		int64_t n = pool[k][0] > 1 ? pool[k][0] : 1;
		int64_t bytes = n > 1 ? pool[k][1] : 0;

		out_put(o, "{ %" PRId64 ", %" PRId64 ", %" PRId64 " }, ", at,
		        bytes, n);
		at += k ? n * bytes : plan_first_pool_bytes(p);
	}
}

void
stages_emit(struct out *o, const struct emitted_stages *s)
{
	const char **second = arena_array(o->arena, (size_t)s->n,
	                                  sizeof *second);

	for (int k = 0; k < s->n; k++)
		second[k] = second_slots(o, s, k);
	out_put(o, "\nstatic const struct ckr_stage stage[] = {\n");
	for (int k = 0; k < s->n; k++) {
		const struct emitted_program *p = &s->program[k];

		out_put(o, "\t{ %" PRIu64 ", %" PRIu64 ", { ", p->arena_bytes,
		        p->resident_bytes);
		emit_pools(o, &s->of[k]);
		out_put(o, "}, %" PRId64 ", %" PRId64 ", %s },\n", s->sets[k],
		        s->of[k].second ? s->second[k].plan->slot_bytes : 0,
		        second[k]);
	}
	out_put(o, "};\n\nstatic const struct ckr_turn turn[] = {\n");
	for (int i = 0; i < s->nturn; i++) {
		const struct emitted_turn *t = &s->turn[i];

		out_put(o, "\t{ %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %"
		        PRId64 ", %" PRId64 " },\n", t->kind, t->first, t->end,
		        t->stage, t->slot, t->micro);
	}
	out_put(o, "};\n");
}
