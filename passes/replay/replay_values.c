/* Replay: the rules of values: alias, write, read, overwrite, view,
 * workspace, recompute, inline. */
#include "passes/replay/replay_rules.h"

#include <string.h>

/* ---- alias ---- */

void
replay_aliases(struct replay *r)
{
	const Plan *p = r->p;
	int64_t *fill;

	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i], *o;

		r->owner[i] = t->alias_of == -1 ? i : t->alias_of;
		r->value[i] = t->of != -1 ? t->of
			: plan_copy_of(t) != -1 ? t->copy_of
			: t->low_precision_of != -1 ? t->low_precision_of : i;
		o = &p->tensor[r->owner[i]];
		r->nsharing[r->owner[i]]++;
		if (t->alias_of == -1 && t->alias_offset)
			FAULT(r, "alias", "%s has an alias_offset but is not "
			      "an alias", name(r, i));
		if (t->alias_offset + t->bytes > o->bytes)
			FAULT(r, "alias", "%s extends beyond its owner",
			      name(r, i));
		if (t->resident != o->resident || t->host != o->host)
			FAULT(r, "alias", "%s and its owner disagree in "
			      "`resident` or `host`", name(r, i));
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
list_holds(const int64_t *list, int n, int64_t x)
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
				      "instruction %" PRId64, name(r, w), i);
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
		if (list_holds(s->write, s->nwrite, x))
			FAULT(r, "overwrite", "instruction %" PRId64 " writes "
			      "%s and another value into the same bytes", step,
			      name(r, w));
		else if (list_holds(s->read, s->nread, x)
		         && (low != begin || high != end))
			FAULT(r, "overwrite", "instruction %" PRId64 " "
			      "overwrites a part of %s while reading it", step,
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
		FAULT(r, "view", "instruction %" PRId64 " (%s) is a view, but "
		      "%s covers bytes that the instruction does not read",
		      step, s->op, name(r, w));
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
			FAULT(r, "workspace", "instruction %" PRId64 " reads "
			      "%s", i,
			      name(r, x));
		else if (!r->valid[x])
			FAULT(r, "read", "instruction %" PRId64 " (%s) reads "
			      "%s, which %s", i, s->op, name(r, x),
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
	claim(r, "workspace", "workspace_bytes of an instruction", s->workspace,
	      scratch);
}

void
replay_values(struct replay *r)
{
	check_writers(r);
	for (int64_t i = 0; i < r->p->nstep; i++)
		check_step_values(r, i);
	for (int64_t i = 0; i < r->p->ntensor; i++)
		if (r->p->tensor[i].output && !r->valid[i])
			FAULT(r, "overwrite", "%s is an output, but its bytes "
			      "are overwritten before the end", name(r, i));
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
		FAULT(r, "recompute", "instruction %" PRId64 " is not the "
		      "same op as instruction %" PRId64, i, s->of);
	for (int k = 0; same && k < s->nread; k++)
		same = r->value[s->read[k]] == r->value[f->read[k]];
	if (!same)
		FAULT(r, "recompute", "instruction %" PRId64 " (%s) does not "
		      "read the same values as instruction "
		      "%" PRId64, i, s->op, s->of);
	same = n == count_outputs(r, f);
	for (int k = 0; same && k < n; k++) {
		int64_t w = output_at(r, s, k);

		same = w < 0 || (output_at(r, f, k) >= 0 && r->value[w]
			== r->value[output_at(r, f, k)]);
	}
	if (!same)
		FAULT(r, "recompute", "instruction %" PRId64 " (%s) does not "
		      "write copies of the results of instruction "
		      "%" PRId64, i, s->op,
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
		bool known = list_holds(f->write, f->nwrite, v);

		for (int j = 0; j < f->nread && !known; j++)
			known = r->value[f->read[j]] == v;
		ok &= known;
	}
	for (int k = 0; k < s->nwrite; k++) {
		int64_t w = s->write[k];

		if (w >= 0 && r->p->tensor[w].kind != K_WORKSPACE)
			ok &= list_holds(f->write, f->nwrite,
			                 r->p->tensor[w].of);
	}
	if (!ok || !proper)
		FAULT(r, "recompute", "instruction %" PRId64 " (%s) is "
		      "neither instruction %" PRId64 " nor a part of "
		      "it", i, s->op, s->of);
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
				FAULT(r, "inline", "instruction %" PRId64 " "
				      "inlines instruction %" PRId64 " "
				      "without reading %s",
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
		if (plan_copy_of(t) != -1)
			r->copied[t->copy_of] = true;
		if ((t->dt != o->dt && t->low_precision_of == -1)
		    || !same_text(t->onnx, o->onnx)
		    || t->node != o->node || t->shape.rank != o->shape.rank
		    || (t->shape.rank > 0 && memcmp(t->shape.dim, o->shape.dim,
		        (size_t)t->shape.rank * sizeof t->shape.dim[0])))
			FAULT(r, "recompute", "%s differs in dtype or origin "
			      "from the tensor that it recomputes", name(r, i));
	}
}

void
replay_repeats(struct replay *r)
{
	const Plan *p = r->p;

	check_copies(r);
	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];

		if ((s->phase == PH_RECOMPUTE) != (s->of != -1))
			FAULT(r, "recompute", "instruction %" PRId64 ": phase "
			      "and `of` disagree", i);
		for (int k = 0; k < s->nwrite; k++) {
			int64_t w = s->write[k];

			if (w < 0 || p->tensor[w].kind == K_WORKSPACE)
				continue;
			if ((s->of == -1) != (p->tensor[w].of == -1))
				FAULT(r, "recompute", "instruction "
				      "%" PRId64 " writes %s: recomputed "
				      "instructions must write copies, and "
				      "other instructions must not",
				      i, name(r, w));
		}
		if (s->of >= i)
			FAULT(r, "recompute", "instruction %" PRId64 " "
			      "recomputes the later instruction "
			      "%" PRId64, i, s->of);
		else if (s->of >= 0 && same_onnx(s, &p->step[s->of]))
			check_whole_repeat(r, i);
		else if (s->of >= 0)
			check_part_repeat(r, i);
		check_inlined(r, i);
	}
}
