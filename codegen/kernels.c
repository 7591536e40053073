/* Kernels: every step that does work gets a function; steps whose text is the
 * same share one.
 */
#include "codegen/kernels.h"
#include "codegen/rank_tables.h"
#include "codegen/rules/target_emitter.h"
#include "runtime/support/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A name that follows from what the kernel is, so that another schedule's
 * kernels are the same text: the op, and digits of a hash of the body. */
static const char *
kernel_name(const struct kernels *k, Arena *a, Op op, const char *body)
{
	uint64_t h = hash_str(HASH_START, body);
	const char *name;
	bool taken;

	do {
		name = arena_printf(a, "%s_%08x", op_info[op].text,
		                    (unsigned)(h ^ h >> 32));
		taken = false;
		for (size_t i = 0; i < k->n; i++)
			taken |= !strcmp(k->v[i].name, name);
		h++;
	} while (taken);
	return name;
}

/* The op's function with this body: an old one, or a new one. */
static const char *
kernel_add(struct kernels *k, const struct emit *e, Op op, const char *body)
{
	struct kernel new = { .op = op, .body = body,
	                      .text.arena = e->arena };

	for (size_t i = 0; i < k->n; i++)
		if (k->v[i].op == op && !strcmp(k->v[i].body, body))
			return k->v[i].name;
	new.name = kernel_name(k, e->arena, op, body);
	e->emitter->function(&new.text, e, new.name, body);
	k->v = arena_grow(e->arena, k->v, k->n, &k->cap, k->n + 1,
	                  sizeof *k->v);
	k->v[k->n++] = new;
	return new.name;
}

static int
by_kernel_name(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool
step_kernel(struct emit *e, struct kernels *k, struct emitted_program *p,
            int64_t i)
{
	const struct plan_step *st = &p->plan->step[i];
	const Node *n = &p->g->node[st->gnode];
	struct out body = { .arena = e->arena, .indent = 1 };
	int64_t need;

	if (st->gnode == 0 || st->gnode >= p->g->nnode)
		return diag_internal(e->diag, "codegen: step %" PRId64
		                     " has no node", i);
	e->g = p->g;
	need = emit_workspace_bytes(e, n);
	if (need > st->workspace)
		return diag_internal(e->diag, "codegen: step %" PRId64 " (%s) "
		                     "needs %" PRId64 " bytes of workspace, "
		                     "but the plan has %" PRId64,
		                     i, st->op, need, st->workspace);
	e->out = &body;
	e->nconst = 0;
	e->items = 0;
	if (!e->emitter->emit(e, n))
		return false;
	if (rank_tables_has_transfer(p, i))
		return true;
	p->kernel[i] = kernel_add(k, e, n->op, body.s ? body.s : "");
	p->nconst[i] = e->nconst;
	p->constant[i] = arena_copy(e->arena, e->constant, sizeof e->constant);
	return true;
}

bool
kernels_add_program(struct kernels *k, struct emit *e,
                    struct emitted_program *p)
{
	bool ok = true;

	for (int64_t i = 0; i < p->plan->nstep; i++) {
		/* what fails forward fails again in its gradient */
		if (!ok && p->plan->step[i].phase != PH_FORWARD)
			break;
		e->gnode = p->plan->step[i].gnode;
		if (!p->plan->step[i].view)
			ok &= step_kernel(e, k, p, i);
	}
	return ok;
}

void
kernels_print(struct out *o, struct kernels *k, const struct emit *e)
{

	if (k->n)
		qsort(k->v, k->n, sizeof *k->v, by_kernel_name);
	out_put(o, "/* One function per distinct kernel, each named after its "
	        "op and its text. */\n");
	for (const char *const *text = e->emitter->texts; *text; text++)
		out_put(o, "#include \"%s\"\n", *text);
	for (int i = 0; i < e->ninclude; i++)
		out_put(o, "#include \"%s%s%s\"\n", e->emitter->prefix,
		        e->include[i], e->emitter->suffix);
	for (size_t i = 0; i < k->n; i++)
		out_bytes(o, k->v[i].text.s, k->v[i].text.n);
}
