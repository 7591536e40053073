/* Scopes of names, and the growing lists of nodes and values, for reading
 * nested graphs.  */
#include "frontend/onnx/flat_read.h"
#include "ir/base/hash.h"

#include <string.h>

/* ---- names in scope ---- */

static struct bucket *
name_bucket(const struct name_scope *t, const char *name)
{
	size_t i = hash_str(HASH_START, name) & (t->size - 1);

	while (t->slot[i].name && strcmp(t->slot[i].name, name) != 0)
		i = (i + 1) & (t->size - 1);
	return &t->slot[i];
}

void
flat_name_set(struct flat *f, struct name_scope *t, const char *name, int val)
{
	if (2 * (t->used + 1) > t->size) {
		struct name_scope old = *t;

		t->size = old.size ? old.size * 2 : 16;
		t->slot = arena_array(f->arena, t->size, sizeof *t->slot);
		for (size_t i = 0; i < old.size; i++)
			if (old.slot[i].name)
				*name_bucket(t, old.slot[i].name) = old.slot[i];
	}
	struct bucket *b = name_bucket(t, name);

	t->used += !b->name;
	*b = (struct bucket){ name, val };
}

int
flat_name_here(const struct name_scope *t, const char *name)
{
	return t->size ? name_bucket(t, name)->val : 0;
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
