/* Attributes of nodes: found through function calls, typed, defaulted and
 * checked.  An attribute that no reader asks for is an error: a misspelt one
 * would otherwise silently get its default.
 */
#include "frontend/onnx/flat.h"

#include <math.h>
#include <string.h>

#define AT(x) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##x

static bool
named(const Onnx__AttributeProto *a, const char *name)
{
	return a->name && strcmp(a->name, name) == 0;
}

/* Resolve an attribute that refers to an attribute of the enclosing call. */
static const Onnx__AttributeProto *
resolve_reference(const Onnx__AttributeProto *a, const struct attr_scope *s)
{
	while (a && a->ref_attr_name && *a->ref_attr_name) {
		const char *want = a->ref_attr_name;

		a = NULL;
		if (!s)
			return NULL;
		for (size_t i = 0; i < s->ngiven && !a; i++)
			if (named(s->given[i], want))
				a = s->given[i];
		if (a) {
			s = s->up;
			continue;
		}
		for (size_t i = 0; i < s->nfallback; i++)
			if (named(s->fallback[i], want))
				return s->fallback[i];
	}
	return a;
}

const Onnx__AttributeProto *
attr_find(const struct flat_node *n, const char *name)
{
	for (size_t i = 0; i < n->p->n_attribute; i++)
		if (named(n->p->attribute[i], name))
			return resolve_reference(n->p->attribute[i], n->scope);
	return NULL;
}

void
attr_begin(struct attr_reader *r, struct flat *f, const struct flat_node *n)
{
	*r = (struct attr_reader){ .file = f->file, .diag = f->diag,
	                           .node = n };
}

bool
attr_end(struct attr_reader *r)
{
	const Onnx__NodeProto *p = r->node->p;

	for (size_t i = 0; i < p->n_attribute && i < 64 && !r->failed; i++) {
		if (r->seen >> i & 1)
			continue;
		diag_at(r->diag, r->node->name, r->node->type, "attribute '%s' "
		        "is not known; is it misspelt, or newer than ckc?",
		        p->attribute[i]->name ? p->attribute[i]->name : "");
		r->failed = true;
	}
	return !r->failed;
}

static const char *
type_text(int type)
{
	static const char *const text[] = {
		"nothing", "a float", "an integer", "a string", "a tensor",
		"a graph", "floats", "integers", "strings", "tensors", "graphs",
		"a sparse tensor", "sparse tensors", "a type", "types"
	};

	return type < 0 || type > 14 ? "something unknown" : text[type];
}

/* Files of the first IR versions leave the type out. */
static int
stored_attr_type(const Onnx__AttributeProto *a)
{
	if (a->has_type && a->type != AT(UNDEFINED))
		return (int)a->type;
	return a->has_f ? AT(FLOAT) : a->has_i ? AT(INT)
		: a->has_s ? AT(STRING) : a->t ? AT(TENSOR) : a->g ? AT(GRAPH)
		: a->n_floats ? AT(FLOATS) : a->n_ints ? AT(INTS)
		: a->n_strings ? AT(STRINGS) : AT(UNDEFINED);
}

const Onnx__AttributeProto *
attr_get(struct attr_reader *r, const char *name, int type)
{
	const Onnx__NodeProto *p = r->node->p;
	const Onnx__AttributeProto *a = NULL;

	for (size_t i = 0; i < p->n_attribute && !a; i++) {
		if (!named(p->attribute[i], name))
			continue;
		if (i < 64)
			r->seen |= (uint64_t)1 << i;
		a = resolve_reference(p->attribute[i], r->node->scope);
		if (!a)
			return NULL;
	}
	/* an empty list may have lost its type */
	if (!a || !type || stored_attr_type(a) == type
	    || (type == AT(INTS) && stored_attr_type(a) == AT(UNDEFINED)))
		return a;
	diag_at(r->diag, r->node->name, r->node->type,
	        "attribute '%s': expected %s, found %s",
	        name, type_text(type), type_text(stored_attr_type(a)));
	r->failed = true;
	return NULL;
}

bool
attr_has(struct attr_reader *r, const char *name)
{
	return attr_get(r, name, 0) != NULL;
}

int64_t
attr_int(struct attr_reader *r, const char *name, int64_t otherwise)
{
	const Onnx__AttributeProto *a = attr_get(r, name, AT(INT));

	return a ? a->i : otherwise;
}

double
attr_float(struct attr_reader *r, const char *name, double otherwise)
{
	const Onnx__AttributeProto *a = attr_get(r, name, AT(FLOAT));

	return a ? (double)a->f : otherwise;
}

int
attr_word(struct attr_reader *r, const char *name, int otherwise,
          const char *const *words, int nword)
{
	const Onnx__AttributeProto *a = attr_get(r, name, AT(STRING));

	if (!a)
		return otherwise;
	for (int i = 0; i < nword; i++)
		if (strlen(words[i]) == a->s.len
		    && memcmp(words[i], a->s.data, a->s.len) == 0)
			return i;
	diag_at(r->diag, r->node->name, r->node->type,
	        "attribute '%s': '%.*s' is not supported",
	        name, a->s.len > 64 ? 64 : (int)a->s.len,
	        a->s.len ? (const char *)a->s.data : "");
	r->failed = true;
	return 0;
}

bool
attr_ints(struct attr_reader *r, const char *name, struct attr_ints *list)
{
	const Onnx__AttributeProto *a = attr_get(r, name, AT(INTS));

	list->n = 0;
	if (!a)
		return false;
	if (a->n_ints > sizeof list->v / sizeof list->v[0]) {
		diag_at(r->diag, r->node->name, r->node->type, "attribute '%s' "
		        "has too many elements: %zu", name, a->n_ints);
		r->failed = true;
		return false;
	}
	list->n = (int)a->n_ints;
	for (int i = 0; i < list->n; i++)
		list->v[i] = a->ints[i];
	return true;
}
