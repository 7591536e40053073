/* Interpret a pipeline's turns. */
#include "tests/ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"

/* A plan of a stage. */
struct form {
	struct run run;
	NodeId first[TURN_KINDS];       /* nodes by enum turn_kind */
	NodeId end[TURN_KINDS];
	double ***slot;                 /* by slot, then rank * nval + value */
};

struct stage {
	const struct pipeline_stage *of;
	struct form form[2];            /* of a stage with one plan the second
	                                 * has no run */
	struct form *now;               /* of the turn */
	int turn;
	NodeId at;                      /* next node; 0: the turn begins */
	int slots;
	int64_t *busy;                  /* by slot: 1 + its micro-batch; 0 */
	int kept[2];                    /* micro-batches between forward and
	                                 * backward, backward and weight turns */
	double loss;
};

struct stages_run {
	struct run *r;
	int n, ranks;
	int nrank;                      /* of the pipeline */
	uint32_t *order;                /* [nrank]: the next turn of each */
	int64_t ntag;
	struct stage *stage;
	struct mail *mail;              /* by rank * ntag + tag */
};

/* ---- contents ---- */

static bool
is_forward_value(const Graph *g, const Val *v)
{
	return v->kind == V_TEMP && v->def
		&& g->node[v->def].phase == PH_FORWARD
		&& !g->node[v->def].count_pass;
}

static bool
is_written_over(const Graph *g, const Val *v)
{
	return op_info[g->node[v->def].op].flags & F_WRITES;
}

static void
each_value(struct form *s, bool forward, bool backward, int slot, bool save)
{
	const Graph *g = s->run.g;

	FOR_VALS (v, g) {
		bool is_forward = is_forward_value(g, v);
		ValId id = val_id(g, v);

		if (v->kind != V_TEMP || !v->def || is_written_over(g, v)
		    || g->node[v->def].count_pass
		    || (is_forward ? !forward : !backward))
			continue;
		for (int r = 0; r < spmd_ranks(s->run.s); r++) {
			double *x = interp_room(spmd_rank(s->run.s, r), id);
			int64_t n = interp_nelem(&v->shape);
			double **kept = slot < 0 ? NULL
				: &s->slot[slot][(size_t)r * g->nval + id];

			if (save) {
				*kept = interp_need(malloc((size_t)n * 8 + 8));
				memcpy(*kept, x, (size_t)n * 8);
			} else if (kept) {
				memcpy(x, *kept, (size_t)n * 8);
				free(*kept);
				*kept = NULL;
			} else {
				for (int64_t i = 0; i < n; i++)
					x[i] = NAN;
			}
		}
	}
}

/* ---- turns ---- */

static const struct turn *
turn_of(const struct stage *s)
{
	return s->turn < s->of->nturn ? &s->of->turn[s->turn] : NULL;
}

/* The next turn of a stage's rank. */
static uint32_t *
order_of(const struct stages_run *p, const struct stage *s)
{
	return &p->order[(s - p->stage) % p->nrank];
}

static bool
complain(const struct stages_run *p, const struct stage *s, const char *what)
{
	const struct turn *t = turn_of(s);

	if (!p->r->quiet)
		fprintf(stderr, "stage %d, turn %d (%s of micro-batch %u, slot "
		        "%d): %s\n", (int)(s - p->stage), s->turn, !t ? "none"
		        : t->kind == TURN_FORWARD ? "forward"
		        : t->kind == TURN_BACKWARD ? "backward"
		        : t->kind == TURN_WEIGHT ? "weight" : "update",
		        t ? t->micro : 0, t ? t->slot : 0, what);
	return false;
}

/* What outlives a turn, from one plan of a stage to the other. */
static void
hand_over(struct form *from, struct form *to)
{
	FOR_VALS (v, to->run.g) {
		ValId same = v->kind == V_TEMP || v->def || v->base ? 0
			: val_counterpart(from->run.g, to->run.g,
			                  val_id(to->run.g, v));

		if (!same || v->kind == V_INPUT || v->kind == V_CONST)
			continue;
		for (int r = 0; r < spmd_ranks(to->run.s); r++)
			interp_set(spmd_rank(to->run.s, r),
			           val_id(to->run.g, v),
			           interp_get(spmd_rank(from->run.s, r), same));
	}
}

static bool
is_second(const struct stage *s, const struct turn *t)
{
	return s->of->second.graph && t->kind < TURN_WEIGHT
		&& s->of->second.has[t->slot];
}

static void
set_micro(struct form *s, uint32_t micro)
{
	s->run.env.micro = micro;
	run_feed(&s->run, micro);
	spmd_set_env(s->run.s, &s->run.env);
}

/* Of slots before it each has the bytes of its plan. */
static int64_t
bytes_before(const struct pipeline_stage *s, int slot)
{
	int64_t sum = 0;

	for (int k = 0; k < slot; k++)
		sum += s->second.has[k] ? s->second.slot_bytes : s->slot_bytes;
	return sum;
}

static void
set_slot(struct stage *s, const struct turn *t)
{
	for (int r = 0; r < spmd_ranks(s->now->run.s); r++) {
		struct interp *it = spmd_rank(s->now->run.s, r);

		it->micro = t->micro;
		it->runs_on = s->turn > 0;
		it->differ = s->of->second.graph;
		it->before = it->differ ? bytes_before(s->of, t->slot) : 0;
	}
}

/* The micro-batch takes a slot of what is behind its turn, or leaves it. */
static bool
change_slots(struct stages_run *p, struct stage *s, const struct turn *t)
{
	bool weight = s->of->weight_slots > 0;

	s->kept[0] += (t->kind == TURN_FORWARD) - (t->kind == TURN_BACKWARD);
	if (weight)
		s->kept[1] += (t->kind == TURN_BACKWARD)
			- (t->kind == TURN_WEIGHT);
	if (s->kept[0] > s->of->slots || s->kept[1] > s->of->weight_slots)
		return complain(p, s, "there is no such slot");
	return true;
}

static bool
begin_turn(struct stages_run *p, struct stage *s, const struct turn *t)
{
	bool first = t->kind == TURN_FORWARD, update = t->kind == TURN_UPDATE;

	if (!update && (t->slot >= s->slots
	                || (t->kind == TURN_WEIGHT && !s->of->weight_slots)))
		return complain(p, s, "there is no such slot");
	s->now = &s->form[is_second(s, t)];
	if (is_second(s, t))
		hand_over(&s->form[0], &s->form[1]);
	set_slot(s, t);
	set_micro(s->now, t->micro);
	each_value(s->now, true, !update, -1, false);
	if (first && s->busy[t->slot])
		return complain(p, s, "the slot is not free");
	if (!first && !update && s->busy[t->slot] != t->micro + 1)
		return complain(p, s, "the slot has another micro-batch");
	if (!first && !update) {
		each_value(s->now, true, t->kind == TURN_WEIGHT, t->slot,
		           false);
		s->busy[t->slot] = 0;
	}
	s->at = s->now->first[t->kind];
	/* updates of a rank wait for the norm together */
	*order_of(p, s) += update;
	return change_slots(p, s, t);
}

static void
end_turn(struct stages_run *p, struct stage *s, const struct turn *t)
{
	struct run *run = &s->now->run;
	double nmicro = run->env.nmicro;
	bool leaves = t->kind == TURN_BACKWARD && s->of->weight_slots;

	*order_of(p, s) += t->kind != TURN_UPDATE;
	spmd_carry_over(run->s, s->now->first[t->kind], s->now->end[t->kind]);
	if (is_second(s, t))
		hand_over(&s->form[1], &s->form[0]);
	if (t->kind == TURN_FORWARD || leaves) {
		each_value(s->now, true, leaves, t->slot, true);
		s->busy[t->slot] = t->micro + 1;
	}
	if (t->kind == TURN_FORWARD && run->g->loss)
		s->loss += *interp_get(spmd_rank(run->s, 0), run->g->loss)
			/ (run->g->adds ? 1 : nmicro);
	s->at = 0;
	s->turn++;
}

/* ---- between stages ---- */

static bool
is_sum_of_stages(const Node *n)
{
	return n->op == OP_ALL_REDUCE
		&& n->attr.ALL_REDUCE.group == GROUP_STAGES;
}

static bool
must_wait(const struct stages_run *p, const Node *n)
{
	bool receives = n->op == OP_RECEIVE;
	int64_t tag = receives ? n->attr.RECEIVE.tag : n->attr.SEND.tag;

	if (is_sum_of_stages(n))
		return true;
	if (!receives && n->op != OP_SEND)
		return false;
	return receives ? !p->mail[tag].x : p->mail[tag].x != NULL;
}

static const Node *
node_of(const struct stage *s)
{
	const struct turn *t = turn_of(s);

	return t && s->at && s->at < s->now->end[t->kind]
		? &s->now->run.g->node[s->at] : NULL;
}

/* All stages wait for the sum over them. */
static bool
sum_stages(struct stages_run *p)
{
	for (int k = 0; k < p->n; k++)
		if (!node_of(&p->stage[k])
		    || !is_sum_of_stages(node_of(&p->stage[k])))
			return false;
	for (int r = 0; r < p->ranks; r++) {
		double sum = 0;         /* a scalar */

		for (int k = 0; k < p->n; k++)
			sum += *interp_get(spmd_rank(p->stage[k].now->run.s, r),
			                   node_of(&p->stage[k])->in[0]);
		if (p->stage[0].now->run.env.round)
			sum = (float)sum;
		for (int k = 0; k < p->n; k++)
			interp_set(spmd_rank(p->stage[k].now->run.s, r),
			           node_of(&p->stage[k])->out[0], &sum);
	}
	for (int k = 0; k < p->n; k++)
		p->stage[k].at++;
	return true;
}

/* As far as it comes; *ran: whether it did. */
static bool
run_stage(struct stages_run *p, struct stage *s, bool *ran)
{
	const struct turn *t;

	while ((t = turn_of(s))) {
		if (!s->at && t->order != *order_of(p, s))
			return true;
		if (!s->at && !begin_turn(p, s, t))
			return false;
		while (s->at < s->now->end[t->kind]) {
			struct run *run = &s->now->run;

			if (must_wait(p, &run->g->node[s->at]))
				return true;
			if (!spmd_run(run->s, s->at, s->at + 1))
				return complain(p, s, spmd_error(run->s));
			s->at++;
			*ran = true;
		}
		end_turn(p, s, t);
		*ran = true;
	}
	return true;
}

/* ---- steps ---- */

/* What is counted over all micro-batches before the step. */
static bool
run_count_passes(struct stages_run *p, struct stage *s)
{
	struct form *f = &s->form[0];
	const Graph *g = f->run.g;

	for (NodeId from = 1, to; from < f->first[0]; from = to) {
		to = from;
		while (to < f->first[0]
		       && g->node[to].count_pass == g->node[from].count_pass)
			to++;
		for (int m = 0; m < p->r->pipeline->nmicro; m++) {
			set_micro(f, (uint32_t)m);
			if (!spmd_run(f->run.s, from, to))
				return complain(p, s, spmd_error(f->run.s));
			spmd_carry_over(f->run.s, from, to);
		}
	}
	return true;
}

static bool
run_turns(struct stages_run *p)
{
	for (;;) {
		bool ran = false, left = false;

		for (int k = 0; k < p->n; k++)
			if (!run_stage(p, &p->stage[k], &ran))
				return false;
		ran |= sum_stages(p);
		for (int k = 0; k < p->n; k++)
			left |= turn_of(&p->stage[k]) != NULL;
		if (!left)
			return true;
		for (int k = 0; k < p->n && !ran; k++)
			if (turn_of(&p->stage[k]))
				complain(p, &p->stage[k], "waits for others");
		if (!ran)
			return false;
	}
}

bool
stages_run_step(struct stages_run *p, int step)
{
	bool ok = true;

	memset(p->order, 0, (size_t)p->nrank * sizeof *p->order);
	for (int k = 0; k < p->n; k++) {
		struct stage *s = &p->stage[k];

		for (int i = 0; i < 2; i++) {
			s->form[i].run.env.step = (uint64_t)step;
			s->form[i].run.env.nmicro = p->r->pipeline->nmicro;
		}
		s->now = &s->form[0];
		s->turn = 0;
		s->at = 0;
		s->loss = 0;
		ok &= run_count_passes(p, s);
	}
	ok = ok && run_turns(p);
	for (int64_t i = 0; i < p->ranks * p->ntag; i++)
		if (ok && p->mail[i].x)
			ok = complain(p, &p->stage[0],
			              "a message was never received");
	return ok;
}

double
stages_run_loss(const struct stages_run *p)
{
	double loss = 0;

	for (int k = 0; k < p->n; k++)
		loss += p->stage[k].loss;
	return loss;
}

struct run *
stages_run_stage(struct stages_run *p, int stage)
{
	return &p->stage[stage].form[0].run;
}

/* ---- setting up ---- */

static void
find_ranges(struct form *s)
{
	const Graph *g = s->run.g;
	NodeId id = 1;

	while (id < g->nnode && g->node[id].count_pass)
		id++;
	for (int k = 0; k < TURN_KINDS; k++) {
		s->first[k] = id;
		while (id < g->nnode && (k == TURN_FORWARD
		       ? id <= graph_boundary(g)
		       : k == TURN_BACKWARD && g->weight_slots
		       ? id <= graph_weight_boundary(g)
		       : k == TURN_UPDATE || g->node[id].phase != PH_UPDATE))
			id++;
		s->end[k] = id;
	}
}

static bool
open_form(struct stages_run *p, struct form *f, Graph *g, int slots)
{
	const struct run *r = p->r;
	enum interp_round round;

	f->run = (struct run){ .dir = r->dir, .arena = r->arena,
		.diag = r->diag, .cli = r->cli, .part = true };
	run_adopt(&f->run, g);
	round = f->run.env.round;
	f->run.env = r->env;
	f->run.env.round = round;
	if (r->dir && strcmp(r->dir, "-") && !run_setup(&f->run))
		return false;
	run_fill(&f->run);
	find_ranges(f);
	p->ranks = spmd_ranks(f->run.s);
	f->slot = interp_need(calloc((size_t)slots, sizeof *f->slot));
	for (int k = 0; k < slots; k++)
		f->slot[k] = interp_need(calloc((size_t)p->ranks * g->nval,
		                                sizeof **f->slot));
	FOR_NODES (n, g)
		if (n->op == OP_SEND && n->attr.SEND.tag >= p->ntag)
			p->ntag = n->attr.SEND.tag + 1;
		else if (n->op == OP_RECEIVE && n->attr.RECEIVE.tag >= p->ntag)
			p->ntag = n->attr.RECEIVE.tag + 1;
	return true;
}

/* Both plans of a stage have one arena. */
static bool
open_stage(struct stages_run *p, struct stage *s,
           const struct pipeline_stage *of)
{
	bool ok;

	s->of = of;
	s->slots = of->weight_slots ? of->through_slots : of->slots;
	s->busy = interp_need(calloc((size_t)s->slots, sizeof *s->busy));
	ok = open_form(p, &s->form[0], of->graph, s->slots);
	if (!ok || !of->second.graph)
		return ok;
	ok = open_form(p, &s->form[1], of->second.graph, s->slots);
	for (int r = 0; ok && r < p->ranks; r++)
		interp_share_arena(spmd_rank(s->form[1].run.s, r),
		                   spmd_rank(s->form[0].run.s, r));
	return ok;
}

struct stages_run *
stages_run_new(struct run *r)
{
	struct stages_run *p = interp_need(calloc(1, sizeof *p));
	bool ok = true;

	p->r = r;
	p->n = r->pipeline->nstage;
	p->nrank = r->pipeline->nrank;
	p->order = interp_need(calloc((size_t)p->nrank, sizeof *p->order));
	p->stage = interp_need(calloc((size_t)p->n, sizeof *p->stage));
	for (int k = 0; k < p->n && ok; k++)
		ok = open_stage(p, &p->stage[k], &r->pipeline->stage[k]);
	if (!ok)
		return NULL;
	p->mail = interp_need(calloc((size_t)(p->ranks * p->ntag) + 1,
	                             sizeof *p->mail));
	for (int k = 0; k < 2 * p->n; k++) {
		const struct run *f = &p->stage[k / 2].form[k % 2].run;

		for (int i = 0; i < p->ranks && f->s; i++)
			spmd_rank(f->s, i)->mail = p->mail + i * p->ntag;
	}
	return p;
}

static void
free_form(const struct stages_run *p, struct form *f, int slots)
{
	for (int i = 0; f->run.s && i < slots; i++) {
		for (size_t v = 0; v < (size_t)p->ranks * f->run.g->nval; v++)
			free(f->slot[i][v]);
		free(f->slot[i]);
	}
	free(f->slot);
	if (f->run.s)
		spmd_free(f->run.s);
}

void
stages_run_free(struct stages_run *p)
{
	for (int k = 0; p && k < p->n; k++) {
		struct stage *s = &p->stage[k];

		/* the second plan borrows memory of the first */
		free_form(p, &s->form[1], s->slots);
		free_form(p, &s->form[0], s->slots);
		free(s->busy);
	}
	for (int64_t i = 0; p && i < p->ranks * p->ntag; i++)
		free(p->mail[i].x);
	if (p)
		free(p->mail);
	if (p)
		free(p->stage);
	if (p)
		free(p->order);
	free(p);
}
