/* Scopes of names, and the growing lists of nodes and values, for reading
 * nested graphs.  */
#include "frontend/onnx/flat_read.h"
#include "runtime/support/hash.h"

#include <string.h>

/* ---- names in scope ---- */

static struct binding *
find_binding(const struct name_scope *t, const char *name)
{
	uint64_t hash = hash_str(HASH_START, name);
	uint32_t i;

	for (size_t at = 0; (i = table_next(&t->at, hash, &at));)
		if (strcmp(t->one[i - 1].name, name) == 0)
			return &t->one[i - 1];
	return NULL;
}

void
flat_name_set(struct flat *f, struct name_scope *t, const char *name, int val)
{
	struct binding *b = find_binding(t, name);

	if (b) {
		b->val = val;
		return;
	}
	t->one = arena_grow(f->arena, t->one, t->n, &t->cap, t->n + 1,
	                    sizeof *t->one);
	t->one[t->n++] = (struct binding){ name, val };
	table_add(&t->at, f->arena, hash_str(HASH_START, name),
	          (uint32_t)t->n);
}

int
flat_name_here(const struct name_scope *t, const char *name)
{
	const struct binding *b = find_binding(t, name);

	return b ? b->val : 0;
}

int
flat_name_get(const struct name_scope *t, const char *name)
{
	int v = 0;

	for (; t && !v; t = t->up)
		v = flat_name_here(t, name);
	return v;
}

/* ---- building ---- */

int
flat_add_val(struct flat *f, const struct context *c, const char *name)
{
	f->val = arena_grow(f->arena, f->val, (size_t)f->nval, &f->val_cap,
	                    (size_t)f->nval + 1, sizeof *f->val);
	f->val[f->nval] = (struct flat_val){
		.name = *c->prefix ? arena_printf(f->arena, "%s%s", c->prefix,
		                                  name) : name,
		.def = -1,
	};
	return f->nval++;
}

struct flat_node *
flat_add_node(struct flat *f)
{
	f->node = arena_grow(f->arena, f->node, (size_t)f->nnode, &f->node_cap,
	                     (size_t)f->nnode + 1, sizeof *f->node);
	f->node[f->nnode] = (struct flat_node){ .index = -1 };
	return &f->node[f->nnode++];
}

/* y is another name for x. */
void
flat_add_identity(struct flat *f, int x, int y)
{
	static const Onnx__NodeProto none = ONNX__NODE_PROTO__INIT;
	struct flat_node *n = flat_add_node(f);

	n->p = &none;
	n->name = "#identity";
	n->domain = "";
	n->type = "Identity";
	n->opset = NEWEST_OPSET;
	n->nin = n->nout = 1;
	n->in = arena_array(f->arena, 2, sizeof *n->in);
	n->out = n->in + 1;
	n->in[0] = x;
	n->out[0] = y;
	f->val[y].def = f->nnode - 1;
}
