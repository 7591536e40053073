/* Replay: check every claim of a plan, rule by rule.
 *
 * what    follows which values exist, where they lie and how long, over the
 *         schedule alone; nothing that the plan derives is believed
 * method  one walk for values, one for repeated work, one for lifetimes, one
 *         for memory, one for sums.  Faults carry the name of the rule that
 *         the plan file's description gives it.
 * cost    linear, but for the comparison of places alive together
 * refuses no plan silently: a fault ends the compilation
 *
 * Shares no code with the planner, the placer or the report.
 */
#include "passes/passes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct replay {
	const Plan *p;
	Diag *diag;
	Arena *arena;
	int faults;
	int64_t *owner;                 /* tensor in whose bytes it lies */
	int64_t *value;                 /* first-run tensor of the same value */
	bool *valid;
	int64_t *writer;
	bool *again;                    /* computed more than once */
	int64_t **sharing;              /* by owner: tensors in its bytes */
	int64_t *nsharing;
	int64_t *first, *last;          /* of owners' places */
	bool *taken;
	int64_t boundary;               /* last forward step */
	char where[96];
};

#define FAULT(r, rule, ...) \
	((r)->faults++, (void)diag_internal((r)->diag, \
	 "replay: " rule ": " __VA_ARGS__))

static const char *
name(struct replay *r, int64_t t)
{
	snprintf(r->where, sizeof r->where, "tensor %" PRId64 " (%s)", t,
	         r->p->tensor[t].name ? r->p->tensor[t].name : "?");
	return r->where;
}

static void
claim(struct replay *r, const char *rule, const char *what, int64_t claimed,
      int64_t found)
{
	if (claimed != found)
		FAULT(r, "%s", "%s is claimed to be %" PRId64 ", found %"
		      PRId64, rule, what, claimed, found);
}

static void
claim_real(struct replay *r, const char *what, double claimed, double found)
{
	double most = fabs(claimed) > fabs(found) ? fabs(claimed)
		: fabs(found);

	if (!(fabs(claimed - found) <= 1e-9 * most
	      || fabs(claimed - found) <= 1e-12))
		FAULT(r, "sums", "%s is claimed to be %.12g, found %.12g",
		      what, claimed, found);
}

/* ---- form: ids are in range, what is referred to is first hand ---- */

static bool
is_id(int64_t x, int64_t n)
{
	return x >= 0 && x < n;
}

static bool
check_tensor_form(struct replay *r, int64_t i)
{
	const Plan *p = r->p;
	const struct plan_tensor *t = &p->tensor[i];
	int64_t need = 1;

	if ((t->of != -1 && (!is_id(t->of, p->ntensor)
	     || p->tensor[t->of].of != -1))
	    || (t->alias_of != -1 && (!is_id(t->alias_of, p->ntensor)
	        || p->tensor[t->alias_of].alias_of != -1))
	    || t->bytes < 0 || t->alias_offset < 0 || t->offset < -1) {
		FAULT(r, "form", "%s refers to no tensor or has a negative "
		      "size", name(r, i));
		return false;
	}
	if (t->shape.rank >= 0 && t->dt != DT_NONE) {
		need = dtype_info[t->dt].nbytes;
		for (int k = 0; k < t->shape.rank; k++)
			if (!mul_ok(need, t->shape.dim[k], &need))
				need = INT64_MAX;
		if (t->bytes < need)
			FAULT(r, "form", "%s has fewer bytes than its shape "
			      "needs", name(r, i));
	}
	return true;
}

static bool
check_step_form(struct replay *r, int64_t i)
{
	const Plan *p = r->p;
	const struct plan_step *s = &p->step[i];
	bool ok = s->of == -1 || (is_id(s->of, p->nstep)
		&& p->step[s->of].of == -1);

	for (int k = 0; k < s->nread; k++)
		ok &= is_id(s->read[k], p->ntensor);
	for (int k = 0; k < s->nwrite; k++)
		ok &= s->write[k] == -1 || is_id(s->write[k], p->ntensor);
	for (int k = 0; k < s->ninlined; k++)
		ok &= is_id(s->inlined[k].of, i)
			&& p->step[s->inlined[k].of].of == -1;
	ok &= s->seconds >= 0 && s->flops >= 0 && s->bytes >= 0
		&& s->workspace >= 0 && (int)s->phase >= 0
		&& s->phase < PH_COUNT;
	if (!ok)
		FAULT(r, "form", "step %" PRId64 " refers to what does not "
		      "exist", i);
	return ok;
}

static bool
check_form(struct replay *r)
{
	bool ok = true;

	if (r->p->nstep < 1)
		FAULT(r, "form", "there is no step");
	for (int64_t i = 0; i < r->p->ntensor; i++)
		ok &= check_tensor_form(r, i);
	for (int64_t i = 0; i < r->p->nstep; i++)
		ok &= check_step_form(r, i);
	return ok && r->p->nstep > 0;
}

/* ---- alias ---- */

static void
check_aliases(struct replay *r)
{
	const Plan *p = r->p;
	int64_t *fill;

	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i], *o;

		r->owner[i] = t->alias_of == -1 ? i : t->alias_of;
		r->value[i] = t->of == -1 ? i : t->of;
		o = &p->tensor[r->owner[i]];
		r->nsharing[r->owner[i]]++;
		if (t->alias_of == -1 && t->alias_offset)
			FAULT(r, "alias", "%s has an alias_offset but is no "
			      "alias", name(r, i));
		if (t->alias_offset + t->bytes > o->bytes)
			FAULT(r, "alias", "%s reaches beyond its owner",
			      name(r, i));
		if (t->resident != o->resident)
			FAULT(r, "alias", "%s and its owner differ in "
			      "resident", name(r, i));
	}
	fill = arena_array(r->arena, (size_t)p->ntensor + 1, sizeof *fill);
	for (int64_t i = 0; i < p->ntensor; i++)
		r->sharing[i] = arena_array(r->arena,
		                            (size_t)r->nsharing[i] + 1,
		                            sizeof **r->sharing);
	for (int64_t i = 0; i < p->ntensor; i++)
		r->sharing[r->owner[i]][fill[r->owner[i]]++] = i;
}

/* ---- write, read, overwrite, view, workspace ---- */

static bool
lists(const int64_t *list, int n, int64_t x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

static void
check_writers(struct replay *r)
{
	const Plan *p = r->p;

	for (int64_t i = 0; i < p->ntensor; i++)
		r->writer[i] = -1;
	for (int64_t i = 0; i < p->nstep; i++)
		for (int k = 0; k < p->step[i].nwrite; k++) {
			int64_t w = p->step[i].write[k];

			if (w < 0 || (p->tensor[w].kind == K_WORKSPACE
			              && p->tensor[w].resident))
				continue;
			if (r->writer[w] != -1)
				FAULT(r, "write", "%s is written again by "
				      "step %" PRId64, name(r, w), i);
			r->writer[w] = i;
		}
	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];

		r->valid[i] = t->resident && t->alias_of == -1
			&& r->writer[i] == -1;
		if (r->writer[i] == -1 && !r->valid[i])
			FAULT(r, "write", "%s is neither resident nor "
			      "written", name(r, i));
	}
}

static void
check_overwrite(struct replay *r, int64_t step, int64_t w)
{
	const struct plan_step *s = &r->p->step[step];
	const struct plan_tensor *t = &r->p->tensor[w];
	int64_t begin = t->alias_offset, end = begin + t->bytes;

	for (int64_t k = 0; k < r->nsharing[r->owner[w]]; k++) {
		int64_t x = r->sharing[r->owner[w]][k];
		const struct plan_tensor *o = &r->p->tensor[x];
		int64_t low = o->alias_offset, high = low + o->bytes;

		if (x == w || high <= begin || end <= low)
			continue;
		if (lists(s->write, s->nwrite, x))
			FAULT(r, "overwrite", "step %" PRId64 " writes %s and "
			      "another value into the same bytes", step,
			      name(r, w));
		else if (lists(s->read, s->nread, x)
		         && (low != begin || high != end))
			FAULT(r, "overwrite", "step %" PRId64 " overwrites a "
			      "part of %s while reading it", step,
			      name(r, x));
		r->valid[x] = false;
	}
}

/* A view's bytes must be covered by what its step reads. */
static void
check_view(struct replay *r, int64_t step, int64_t w)
{
	const struct plan_step *s = &r->p->step[step];
	const struct plan_tensor *t = &r->p->tensor[w];
	int64_t begin = t->alias_offset, end = begin + t->bytes;
	bool moved = true;

	while (begin < end && moved) {
		moved = false;
		for (int k = 0; k < s->nread; k++) {
			const struct plan_tensor *x =
				&r->p->tensor[s->read[k]];

			if (r->owner[s->read[k]] != r->owner[w]
			    || x->alias_offset > begin
			    || x->alias_offset + x->bytes <= begin)
				continue;
			begin = x->alias_offset + x->bytes;
			moved = true;
		}
	}
	if (begin < end)
		FAULT(r, "view", "step %" PRId64 " (%s) makes %s of bytes "
		      "that it does not read", step, s->op, name(r, w));
}

static void
check_step_values(struct replay *r, int64_t i)
{
	const Plan *p = r->p;
	const struct plan_step *s = &p->step[i];
	int64_t scratch = 0;

	for (int k = 0; k < s->nread; k++) {
		int64_t x = s->read[k];

		if (p->tensor[x].kind == K_WORKSPACE)
			FAULT(r, "workspace", "step %" PRId64 " reads %s", i,
			      name(r, x));
		else if (!r->valid[x])
			FAULT(r, "read", "step %" PRId64 " (%s) reads %s, "
			      "which %s", i, s->op, name(r, x),
			      r->writer[x] < 0 || r->writer[x] >= i
			      ? "has no value yet" : "was overwritten");
	}
	for (int k = 0; k < s->nwrite; k++) {
		int64_t w = s->write[k];

		if (w < 0)
			continue;
		if (s->view)
			check_view(r, i, w);
		else
			check_overwrite(r, i, w);
		if (p->tensor[w].kind == K_WORKSPACE) {
			scratch += p->tensor[w].bytes;
			if (p->tensor[w].alias_of != -1)
				FAULT(r, "workspace", "%s is an alias",
				      name(r, w));
		}
	}
	for (int k = 0; k < s->nwrite; k++)
		if (s->write[k] >= 0)
			r->valid[s->write[k]] = true;
	claim(r, "workspace", "workspace_bytes of a step", s->workspace,
	      scratch);
}

static void
check_values(struct replay *r)
{
	check_writers(r);
	for (int64_t i = 0; i < r->p->nstep; i++)
		check_step_values(r, i);
	for (int64_t i = 0; i < r->p->ntensor; i++)
		if (r->p->tensor[i].output && !r->valid[i])
			FAULT(r, "overwrite", "%s is an output but does not "
			      "survive", name(r, i));
}

/* ---- recompute, inline ---- */

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool
has_onnx(const struct plan_step *s, const char *x)
{
	for (int i = 0; i < s->nonnx; i++)
		if (same_text(s->onnx[i], x))
			return true;
	return false;
}

static bool
same_onnx(const struct plan_step *a, const struct plan_step *b)
{
	if (a->nonnx != b->nonnx)
		return false;
	for (int i = 0; i < a->nonnx; i++)
		if (!same_text(a->onnx[i], b->onnx[i]))
			return false;
	return true;
}

/* Outputs without scratch, which stands last and may be absent. */
static int
count_outputs(const struct replay *r, const struct plan_step *s)
{
	int n = 0;

	for (int i = 0; i < s->nwrite; i++)
		n += s->write[i] < 0
			|| r->p->tensor[s->write[i]].kind != K_WORKSPACE;
	return n;
}

static int64_t
output_at(const struct replay *r, const struct plan_step *s, int at)
{
	for (int i = 0; i < s->nwrite; i++)
		if ((s->write[i] < 0
		     || r->p->tensor[s->write[i]].kind != K_WORKSPACE)
		    && at-- == 0)
			return s->write[i];
	return -1;
}

static void
check_whole_repeat(struct replay *r, int64_t i)
{
	const struct plan_step *s = &r->p->step[i];
	const struct plan_step *f = &r->p->step[s->of];
	int n = count_outputs(r, s);
	bool same = s->nread == f->nread;

	if (!same_text(s->op, f->op) || s->node != f->node
	    || s->view != f->view)
		FAULT(r, "recompute", "step %" PRId64 " is not the same op as "
		      "step %" PRId64, i, s->of);
	for (int k = 0; same && k < s->nread; k++)
		same = r->value[s->read[k]] == r->value[f->read[k]];
	if (!same)
		FAULT(r, "recompute", "step %" PRId64 " (%s) reads other "
		      "values than step %" PRId64, i, s->op, s->of);
	same = n == count_outputs(r, f);
	for (int k = 0; same && k < n; k++) {
		int64_t w = output_at(r, s, k);

		same = w < 0 || r->p->tensor[w].of == output_at(r, f, k);
	}
	if (!same)
		FAULT(r, "recompute", "step %" PRId64 " (%s) does not write "
		      "copies of what step %" PRId64 " writes", i, s->op,
		      s->of);
}

/* A part of a fused step touches only what the whole touches. */
static void
check_part_repeat(struct replay *r, int64_t i)
{
	const struct plan_step *s = &r->p->step[i];
	const struct plan_step *f = &r->p->step[s->of];
	bool ok = s->nonnx > 0, proper = false;

	for (int k = 0; k < s->nonnx; k++)
		ok &= has_onnx(f, s->onnx[k]);
	for (int k = 0; k < f->nonnx; k++)
		proper |= !has_onnx(s, f->onnx[k]);
	for (int k = 0; k < s->nread; k++) {
		int64_t v = r->value[s->read[k]];
		bool known = lists(f->write, f->nwrite, v);

		for (int j = 0; j < f->nread && !known; j++)
			known = r->value[f->read[j]] == v;
		ok &= known;
	}
	for (int k = 0; k < s->nwrite; k++) {
		int64_t w = s->write[k];

		if (w >= 0 && r->p->tensor[w].kind != K_WORKSPACE)
			ok &= lists(f->write, f->nwrite, r->p->tensor[w].of);
	}
	if (!ok || !proper)
		FAULT(r, "recompute", "step %" PRId64 " (%s) is neither step "
		      "%" PRId64 " nor a part of it", i, s->op, s->of);
}

static void
check_inlined(struct replay *r, int64_t i)
{
	const struct plan_step *s = &r->p->step[i];
	bool *known;

	if (s->ninlined == 0)
		return;
	known = arena_array(r->arena, (size_t)r->p->ntensor + 1, 1);
	for (int k = 0; k < s->nread; k++)
		known[r->value[s->read[k]]] = true;
	for (int k = 0; k < s->ninlined; k++) {
		const struct plan_step *f = &r->p->step[s->inlined[k].of];

		for (int j = 0; j < f->nread; j++)
			if (!known[r->value[f->read[j]]])
				FAULT(r, "inline", "step %" PRId64 " inlines "
				      "step %" PRId64 " without reading %s",
				      i, s->inlined[k].of,
				      name(r, f->read[j]));
		for (int j = 0; j < f->nwrite; j++)
			if (f->write[j] >= 0) {
				known[f->write[j]] = true;
				r->again[f->write[j]] = true;
			}
	}
}

static void
check_copies(struct replay *r)
{
	const Plan *p = r->p;

	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];
		const struct plan_tensor *o = &p->tensor[r->value[i]];

		if ((t->kind == K_RECOMPUTED) != (t->of != -1))
			FAULT(r, "recompute", "%s: kind and `of` disagree",
			      name(r, i));
		if (t->of != -1)
			r->again[t->of] = true;
		if (t->dt != o->dt || !same_text(t->onnx, o->onnx)
		    || t->node != o->node || t->shape.rank != o->shape.rank
		    || (t->shape.rank > 0 && memcmp(t->shape.dim, o->shape.dim,
		        (size_t)t->shape.rank * sizeof t->shape.dim[0])))
			FAULT(r, "recompute", "%s differs in type or origin "
			      "from what it repeats", name(r, i));
	}
}

static void
check_recompute(struct replay *r)
{
	const Plan *p = r->p;

	check_copies(r);
	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];

		if ((s->phase == PH_RECOMPUTE) != (s->of != -1))
			FAULT(r, "recompute", "step %" PRId64 ": phase and "
			      "`of` disagree", i);
		for (int k = 0; k < s->nwrite; k++) {
			int64_t w = s->write[k];

			if (w < 0 || p->tensor[w].kind == K_WORKSPACE)
				continue;
			if ((s->of == -1) != (p->tensor[w].of == -1))
				FAULT(r, "recompute", "step %" PRId64 " writes"
				      " %s: copies come from repeated steps "
				      "and from nowhere else", i, name(r, w));
		}
		if (s->of >= i)
			FAULT(r, "recompute", "step %" PRId64 " repeats the "
			      "later step %" PRId64, i, s->of);
		else if (s->of >= 0 && same_onnx(s, &p->step[s->of]))
			check_whole_repeat(r, i);
		else if (s->of >= 0)
			check_part_repeat(r, i);
		check_inlined(r, i);
	}
}

/* ---- lifetime, saved, decision ---- */

static Decision
decision_of(const struct replay *r, int64_t i, bool saved)
{
	if (r->p->tensor[i].kind != K_ACTIVATION)
		return D_NULL;
	return r->again[i] ? D_RECOMPUTE : saved ? D_KEEP : D_FREE;
}

static void
take_place(struct replay *r, int64_t i, int64_t first, int64_t last)
{
	int64_t o = r->owner[i];

	if (!r->taken[o] || first < r->first[o])
		r->first[o] = first;
	if (!r->taken[o] || last > r->last[o])
		r->last[o] = last;
	r->taken[o] = true;
}

static void
check_lifetimes(struct replay *r)
{
	const Plan *p = r->p;
	int64_t n = p->ntensor, saved_bytes = 0;
	int64_t *from = arena_array(r->arena, (size_t)n + 1, sizeof *from);
	int64_t *to = arena_array(r->arena, (size_t)n + 1, sizeof *to);

	for (int64_t i = 0; i < n; i++)
		from[i] = to[i] = -1;
	r->boundary = -1;
	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];

		if (s->phase == PH_FORWARD)
			r->boundary = i;
		for (int k = 0; k < s->nread + s->nwrite; k++) {
			int64_t x = k < s->nread ? s->read[k]
				: s->write[k - s->nread];

			if (x < 0)
				continue;
			from[x] = from[x] < 0 ? i : from[x];
			to[x] = i;
		}
	}
	for (int64_t i = 0; i < n; i++) {
		const struct plan_tensor *t = &p->tensor[i];
		bool saved;

		if (t->resident)
			from[i] = 0;
		if (t->resident || t->output)
			to[i] = p->nstep - 1;
		if (from[i] < 0)
			continue;       /* a fault of rule write */
		saved = !t->resident && from[i] <= r->boundary
			&& r->boundary < to[i];
		claim(r, "lifetime", name(r, i), t->first, from[i]);
		claim(r, "lifetime", name(r, i), t->last, to[i]);
		claim(r, "saved", name(r, i), t->saved, saved);
		claim(r, "decision", name(r, i), t->decision,
		      decision_of(r, i, saved));
		if (!t->resident)
			take_place(r, i, from[i], to[i]);
	}
	for (int64_t i = 0; i < n; i++)
		if (r->taken[i] && r->first[i] <= r->boundary
		    && r->boundary < r->last[i])
			saved_bytes += p->tensor[i].bytes;
	claim(r, "sums", "saved_bytes", p->sum.saved, saved_bytes);
}

/* ---- place, peak, budget ---- */

/* Compare each place with those that begin while it is taken. */
static void
check_places(struct replay *r)
{
	const Plan *p = r->p;
	int64_t *start = arena_array(r->arena, (size_t)p->nstep + 2,
	                             sizeof *start);
	int64_t *order = arena_array(r->arena, (size_t)p->ntensor + 1,
	                             sizeof *order);
	int64_t n = 0;

	for (int64_t i = 0; i < p->ntensor; i++)        /* sort by first */
		if (r->taken[i]) {
			start[r->first[i] + 1]++;
			n++;
		}
	for (int64_t k = 0; k < p->nstep; k++)
		start[k + 1] += start[k];
	for (int64_t i = 0; i < p->ntensor; i++)
		if (r->taken[i])
			order[start[r->first[i]]++] = i;
	for (int64_t a = 0; a < n; a++)
		for (int64_t b = a + 1; b < n; b++) {
			int64_t x = order[a], y = order[b];
			const struct plan_tensor *s = &p->tensor[x];
			const struct plan_tensor *t = &p->tensor[y];

			if (r->first[y] > r->last[x])
				break;
			if (s->offset < t->offset + t->bytes
			    && t->offset < s->offset + s->bytes)
				FAULT(r, "place", "tensor %" PRId64 " and %s "
				      "overlap while both are alive", x,
				      name(r, y));
		}
}

static int64_t
check_offsets(struct replay *r, int64_t live_bound)
{
	const Plan *p = r->p;
	int64_t placed = 0, moving = 0, arena = 0, align = p->sum.alignment;

	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];

		moving += !t->resident;
		placed += t->offset != -1;
		if (t->resident && t->offset != -1)
			FAULT(r, "place", "%s is resident but has an offset",
			      name(r, i));
	}
	if (placed && placed != moving)
		FAULT(r, "place", "offsets belong to all tensors outside "
		      "resident memory, or to none");
	if (!placed || placed != moving)
		return live_bound;
	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];

		if (t->resident)
			continue;
		if (t->alias_of != -1 && t->offset
		    != p->tensor[t->alias_of].offset + t->alias_offset)
			FAULT(r, "place", "%s is not where its owner is",
			      name(r, i));
		if (t->alias_of == -1 && (align < 1 || t->offset % align))
			FAULT(r, "place", "%s is not aligned", name(r, i));
		if (t->offset + t->bytes > arena)
			arena = t->offset + t->bytes;
	}
	check_places(r);
	return arena;
}

static int64_t
find_live_bound(struct replay *r)
{
	const Plan *p = r->p;
	int64_t *delta = arena_array(r->arena, (size_t)p->nstep + 2,
	                             sizeof *delta);
	int64_t live = 0, most = 0;

	for (int64_t i = 0; i < p->ntensor; i++)
		if (r->taken[i]) {
			delta[r->first[i]] += p->tensor[i].bytes;
			delta[r->last[i] + 1] -= p->tensor[i].bytes;
		}
	for (int64_t k = 0; k < p->nstep; k++) {
		live += delta[k];
		most = live > most ? live : most;
	}
	return most;
}

static void
check_memory(struct replay *r)
{
	const struct plan_summary *s = &r->p->sum;
	int64_t part[K_COUNT] = { 0 }, resident = 0;
	int64_t bound = find_live_bound(r), arena;

	arena = check_offsets(r, bound);
	for (int64_t i = 0; i < r->p->ntensor; i++) {
		const struct plan_tensor *t = &r->p->tensor[i];

		if (t->resident && t->alias_of == -1) {
			resident += t->bytes;
			part[t->kind] += t->bytes;
		}
	}
	claim(r, "peak", "live_bound_bytes", s->live_bound, bound);
	claim(r, "peak", "arena_bytes", s->arena, arena);
	claim(r, "peak", "resident_bytes", s->resident, resident);
	claim(r, "peak", "param_bytes", s->param, part[K_PARAM]);
	claim(r, "peak", "buffer_bytes", s->buffer, part[K_BUFFER]);
	claim(r, "peak", "constant_bytes", s->constant, part[K_CONSTANT]);
	claim(r, "peak", "input_bytes", s->input, part[K_INPUT]);
	claim(r, "peak", "grad_bytes", s->grad, part[K_GRAD]);
	claim(r, "peak", "optimizer_bytes", s->optimizer, part[K_STATE]);
	claim(r, "peak", "workspace_bytes", s->workspace, part[K_WORKSPACE]);
	claim(r, "peak", "peak_bytes", s->peak, resident + arena);
	if (s->budget >= 0 && resident + arena > s->budget)
		FAULT(r, "budget", "peak %" PRId64 " exceeds the budget %"
		      PRId64, resident + arena, s->budget);
}

/* ---- sums ---- */

static void
check_sums(struct replay *r)
{
	const struct plan_summary *s = &r->p->sum;
	double sec[PH_COUNT] = { 0 }, flops[PH_COUNT] = { 0 };
	double step = 0, step_flops = 0, base, over;

	for (int64_t i = 0; i < r->p->nstep; i++) {
		const struct plan_step *t = &r->p->step[i];
		double in_sec = 0, in_flops = 0;

		for (int k = 0; k < t->ninlined; k++) {
			in_sec += t->inlined[k].seconds;
			in_flops += t->inlined[k].flops;
		}
		if (in_sec > t->seconds || in_flops > t->flops)
			FAULT(r, "inline", "step %" PRId64 " inlines more than"
			      " it costs", i);
		sec[t->phase] += t->seconds - in_sec;
		sec[PH_RECOMPUTE] += in_sec;
		flops[t->phase] += t->flops - in_flops;
		flops[PH_RECOMPUTE] += in_flops;
	}
	for (int i = 0; i < PH_COUNT; i++) {
		step += sec[i];
		step_flops += flops[i];
	}
	base = step - sec[PH_RECOMPUTE];
	if (!(s->bound_sec <= step * (1 + 1e-9)))
		FAULT(r, "sums", "bound_seconds %.12g is above the cost %.12g",
		      s->bound_sec, step);
	over = step > s->bound_sec ? step - s->bound_sec : 0;
	claim_real(r, "forward_seconds", s->forward_sec, sec[PH_FORWARD]);
	claim_real(r, "backward_seconds", s->backward_sec, sec[PH_BACKWARD]);
	claim_real(r, "update_seconds", s->update_sec, sec[PH_UPDATE]);
	claim_real(r, "recompute_seconds", s->recompute_sec,
	           sec[PH_RECOMPUTE]);
	claim_real(r, "step_seconds", s->step_sec, step);
	claim_real(r, "recompute_flops", s->recompute_flops,
	           flops[PH_RECOMPUTE]);
	claim_real(r, "step_flops", s->step_flops, step_flops);
	claim_real(r, "overhead", s->overhead,
	           base > 0 ? sec[PH_RECOMPUTE] / base : 0);
	claim_real(r, "gap", s->gap, base > 0 ? over / base : 0);
}

bool
plan_replay(const Plan *p, Diag *diag)
{
	Arena *a = arena_new();
	size_t n = (size_t)p->ntensor + 1;
	struct replay r = {
		.p = p, .diag = diag, .arena = a,
		.owner = arena_array(a, n, sizeof *r.owner),
		.value = arena_array(a, n, sizeof *r.value),
		.valid = arena_array(a, n, sizeof *r.valid),
		.writer = arena_array(a, n, sizeof *r.writer),
		.again = arena_array(a, n, sizeof *r.again),
		.sharing = arena_array(a, n, sizeof *r.sharing),
		.nsharing = arena_array(a, n, sizeof *r.nsharing),
		.first = arena_array(a, n, sizeof *r.first),
		.last = arena_array(a, n, sizeof *r.last),
		.taken = arena_array(a, n, sizeof *r.taken),
	};

	if (check_form(&r)) {
		check_aliases(&r);
		check_values(&r);
		check_recompute(&r);
		check_lifetimes(&r);
		check_memory(&r);
		check_sums(&r);
	}
	arena_free(a);
	return r.faults == 0;
}

bool
pass_replay(Pass *p, Graph *g)
{
	bool ok;

	p->plan = plan_build(p, g);
	ok = plan_replay(p->plan, p->diag);
	if (p->reference) {
		int64_t budget = p->budget;
		const char *bound_class = p->bound_class;

		p->budget = -1;         /* what is claimed is of the plan */
		p->bound_class = NULL;
		p->reference_plan = plan_build(p, p->reference);
		p->budget = budget;
		p->bound_class = bound_class;
		ok &= plan_replay(p->reference_plan, p->diag);
	}
	return ok;
}
